//! RTTs of the flow and of the round trip, as the kernel's Vegas, Veno and `YeAH` keep them
//! (`tcp_vegas.c`).
//!
//! They count for nothing while the sender is in trouble: then delays tell of the repair.

use crate::kernel::micros;
use crate::{Cause, FlowState, Phase};
use tcplab_units::Duration;

/// Stands for an RTT that is not known yet, in microseconds.
const UNKNOWN: u64 = 0x7fff_ffff;
/// With fewer, a receiver that holds ACKs back may have delayed them all.
const ENOUGH_SAMPLES: u16 = 3;

/// What is known of the delays of a path. RTTs are in microseconds and one more, so never zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// Least RTT since the flow began, or began again after idle.
    base: u64,
    /// Least RTT since the round trip began.
    least: u64,
    samples: u16,
    /// What had been sent when the round trip began.
    begin: u64,
    /// Nothing is amiss, so delays tell of the queue.
    is_on: bool,
    /// Where the sender stood when last looked at.
    phase: Phase,
}

impl Delays {
    pub fn new() -> Self {
        let (base, least) = (UNKNOWN, UNKNOWN);
        Self { base, least, samples: 0, begin: 0, is_on: true, phase: Phase::Open }
    }

    /// Takes an RTT (`tcp_vegas_pkts_acked`).
    pub fn take(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            let rtt = micros(rtt).min(UNKNOWN - 1) + 1;
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples = self.samples.wrapping_add(1);
        }
    }

    /// Looks where the sender stands. What begins when all is well is a new round trip
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

    /// Trouble begins, and the sender is about to say where it stands. A repair that follows another
    /// one at once began when that had ended.
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

    /// After idle, and when a timeout has emptied the path, delays are learned anew
    /// (`tcp_vegas_cwnd_event`).
    pub fn start_over(&mut self, flow: &FlowState) {
        self.base = UNKNOWN;
        self.is_on = true;
        self.phase = flow.phase;
        self.begin_round(flow);
    }

    /// Whether what was sent when the round trip began is acknowledged, and more.
    pub fn is_round_over(&self, flow: &FlowState) -> bool {
        flow.una > self.begin
    }

    pub fn begin_round(&mut self, flow: &FlowState) {
        self.begin = flow.nxt;
        self.samples = 0;
        self.forget_least();
    }

    /// The next least RTT is that of what comes now.
    pub fn forget_least(&mut self) {
        self.least = UNKNOWN;
    }

    /// Whether delays are to be heeded at all.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether one of the RTTs of the round trip was surely not that of an ACK held back.
    pub fn are_enough(&self) -> bool {
        self.samples >= ENOUGH_SAMPLES
    }

    /// Least RTT of the flow; never more than [`least`](Self::least).
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Least RTT of the round trip.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// What had been sent when the round trip began.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The least RTT of the flow, for a probe; 0 until there is one.
    pub fn base_ms(&self) -> f64 {
        in_ms(self.base)
    }
}

/// An RTT for a probe; 0 if it is not known.
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
    fn an_rtt_counts_a_microsecond_more_and_the_least_is_kept() {
        let mut delays = with(&[20, 10, 30]);
        assert_eq!((delays.base(), delays.least()), (10_001, 10_001));
        delays.begin_round(&FLOW);
        delays.take(Some(Duration::from_millis(15)));
        assert_eq!((delays.base(), delays.least()), (10_001, 15_001));
        assert!((delays.base_ms() - 10.0).abs() < 1e-12);
    }

    #[test]
    fn three_rtts_are_enough() {
        assert!(!with(&[20, 20]).are_enough());
        assert!(with(&[20, 20, 20]).are_enough());
    }

    #[test]
    fn a_round_trip_begins_when_all_is_well_again() {
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
    fn a_repair_that_ends_in_disorder_ends_a_round_trip_too() {
        // `tcp_try_undo_recovery` opens, then `tcp_try_keep_open` sees what is out of order.
        let mut delays = with(&[20, 20, 20]);
        delays.on_congestion(&FLOW, Cause::Loss);
        delays.follow(&FlowState { phase: Phase::Disorder, ..FLOW });
        assert!(!delays.is_on() && !delays.are_enough());
    }

    #[test]
    fn an_empty_path_is_learned_anew_even_during_a_repair() {
        let mut delays = with(&[20]);
        let flow = FlowState { phase: Phase::Loss, ..FLOW };
        delays.on_congestion(&flow, Cause::Timeout);
        delays.start_over(&flow);
        delays.follow(&flow);
        assert!(delays.is_on());
        assert!(delays.base_ms() < 1e-12);
    }
}
