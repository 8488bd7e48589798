//! RTTs of the flow and of the round trip, as in the kernel's Vegas, Veno and `YeAH`
//! (`tcp_vegas.c`).
//!
//! RTTs are ignored during loss recovery, when delays do not reflect the queue.

use crate::kernel::micros;
use crate::{Cause, FlowState, Phase};
use tcplab_units::Duration;

/// An unknown RTT, in microseconds.
const UNKNOWN: u64 = 0x7fff_ffff;
/// With fewer samples, all of them may be from delayed ACKs.
const ENOUGH_SAMPLES: u16 = 3;

/// The delays of a path. RTTs are in microseconds plus one, so never zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// Minimum RTT since the flow began, or restarted after idle.
    base: u64,
    /// Minimum RTT since the round trip began.
    least: u64,
    samples: u16,
    /// The sequence number of the next new data when the round trip began.
    begin: u64,
    /// Whether no recovery is in progress, so that delays reflect the queue.
    is_on: bool,
    /// The sender's phase at the last call.
    phase: Phase,
}

impl Delays {
    pub fn new() -> Self {
        let (base, least) = (UNKNOWN, UNKNOWN);
        Self { base, least, samples: 0, begin: 0, is_on: true, phase: Phase::Open }
    }

    /// Adds an RTT sample (`tcp_vegas_pkts_acked`).
    pub fn take(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            let rtt = micros(rtt).min(UNKNOWN - 1) + 1;
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples = self.samples.wrapping_add(1);
        }
    }

    /// Follows the sender's phase. A new round trip begins when recovery is over
    /// (`tcp_vegas_state`).
    pub fn follow(&mut self, flow: &FlowState) {
        if flow.phase == self.phase {
            return;
        }
        if self.phase.passes_open(flow.phase) {
            self.begin_round(flow);
        }
        self.phase = flow.phase;
        self.is_on = flow.phase == Phase::Open;
    }

    /// Recovery begins, before the sender reports its phase. A recovery that follows another one
    /// directly began when that had ended.
    pub fn on_congestion(&mut self, flow: &FlowState, cause: Cause) {
        if cause == Cause::Loss && self.phase >= Phase::Recovery {
            self.begin_round(flow);
        }
        self.is_on = false;
        self.phase = match cause {
            Cause::Loss => Phase::Recovery,
            Cause::Ecn => Phase::Reduced,
            Cause::Timeout => Phase::Loss,
        };
    }

    /// Resets the delays, after idle and when a timeout has emptied the path
    /// (`tcp_vegas_cwnd_event`).
    pub fn start_over(&mut self, flow: &FlowState) {
        self.base = UNKNOWN;
        self.is_on = true;
        self.phase = flow.phase;
        self.begin_round(flow);
    }

    /// Whether more than the data sent before the round trip is acknowledged.
    pub fn is_round_over(&self, flow: &FlowState) -> bool {
        flow.una > self.begin
    }

    pub fn begin_round(&mut self, flow: &FlowState) {
        self.begin = flow.nxt;
        self.samples = 0;
        self.forget_least();
    }

    /// Resets the minimum RTT of the round trip.
    pub fn forget_least(&mut self) {
        self.least = UNKNOWN;
    }

    /// Whether delays may be used at all.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether at least one RTT of the round trip was certainly not from a delayed ACK.
    pub fn are_enough(&self) -> bool {
        self.samples >= ENOUGH_SAMPLES
    }

    /// Minimum RTT of the flow; never more than [`least`](Self::least).
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Minimum RTT of the round trip.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// The sequence number of the next new data when the round trip began.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The minimum RTT of the flow for a probe; 0 until there is one.
    pub fn base_ms(&self) -> f64 {
        in_ms(self.base)
    }
}

/// An RTT for a probe; 0 if unknown.
pub(crate) fn in_ms(rtt: u64) -> f64 {
    if rtt >= UNKNOWN { 0.0 } else { rtt.saturating_sub(1) as f64 / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FLOW;

    fn with(rtts_ms: &[u64]) -> Delays {
        let mut delays = Delays::new();
        for &rtt in rtts_ms {
            delays.take(Some(Duration::from_millis(rtt)));
        }
        delays
    }

    #[test]
    fn rtt_is_one_microsecond_more_and_base_and_round_minimum_are_kept() {
        let mut delays = with(&[20, 10, 30]);
        assert_eq!((delays.base(), delays.least()), (10_001, 10_001));
        delays.begin_round(&FLOW);
        delays.take(Some(Duration::from_millis(15)));
        assert_eq!((delays.base(), delays.least()), (10_001, 15_001));
        assert!((delays.base_ms() - 10.0).abs() < 1e-12);
    }

    #[test]
    fn round_needs_three_rtt_samples() {
        assert!(!with(&[20, 20]).are_enough());
        assert!(with(&[20, 20, 20]).are_enough());
    }

    #[test]
    fn delay_measurement_restarts_when_recovery_ends() {
        let mut delays = with(&[20, 20, 20]);
        delays.on_congestion(&FLOW, Cause::Loss);
        delays.follow(&FlowState { phase: Phase::Recovery, ..FLOW });
        assert!(!delays.is_on() && delays.are_enough());
        delays.follow(&FlowState { nxt: 5000, ..FLOW });
        assert!(delays.is_on() && !delays.are_enough());
        assert!(!delays.is_round_over(&FlowState { una: 5000, ..FLOW }));
        assert!(delays.is_round_over(&FlowState { una: 5001, ..FLOW }));
        assert_eq!(delays.base(), 20_001);
    }

    #[test]
    fn delay_measurement_restarts_when_recovery_ends_in_disorder() {
        // `tcp_try_undo_recovery` returns to open, then `tcp_try_keep_open` finds data out of
        // order.
        let mut delays = with(&[20, 20, 20]);
        delays.on_congestion(&FLOW, Cause::Loss);
        delays.follow(&FlowState { phase: Phase::Disorder, ..FLOW });
        assert!(!delays.is_on() && !delays.are_enough());
    }

    #[test]
    fn start_over_resets_base_rtt_even_during_loss_recovery() {
        let mut delays = with(&[20]);
        let flow = FlowState { phase: Phase::Loss, ..FLOW };
        delays.on_congestion(&flow, Cause::Timeout);
        delays.start_over(&flow);
        delays.follow(&flow);
        assert!(delays.is_on());
        assert!(delays.base_ms() < 1e-12);
    }
}
