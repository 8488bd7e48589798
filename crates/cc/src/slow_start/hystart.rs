//! HyStart of 2008, as in Linux: leave slow start when the ACKs of a round are closely spaced for
//! half a minimum RTT, or when delay has grown by an eighth (between 4 and 16 ms).
//!
//! Ha, Rhee: Taming the elephants: new TCP slow start, 2011; `tcp_cubic.c`.

use crate::FlowState;
use crate::kernel::micros;
use tcplab_units::Time;

/// The minimum window for an exit.
const LOW_WINDOW: u64 = 16;
/// The largest spacing of ACKs in a train.
const ACK_DELTA_US: u64 = 2000;
const MIN_SAMPLES: u32 = 8;
const DELAY_MIN_US: u64 = 4000;
const DELAY_MAX_US: u64 = 16_000;
/// The largest segmentation offload packet in bytes, which may delay ACKs: 64 KiB less room for
/// headers (`sk_dst_gso_max_size`).
const GSO_BYTES: u64 = 65_536 - 321;
/// The maximum allowance for that.
const MOST_ACK_DELAY_US: u64 = 1000;

/// Tracks the ACKs and RTTs of one slow start. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct HyStart {
    round_start: u64,
    /// The round ends when more than this is acknowledged.
    end: u64,
    last_ack: u64,
    least: u64,
    samples: u32,
    found: bool,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { round_start: 0, end: 0, last_ack: 0, least: u64::MAX, samples: 0, found: false }
    }
}

impl HyStart {
    /// A slow start that begins now.
    pub fn beginning(flow: &FlowState) -> Self {
        let now = clock(flow);
        Self { round_start: now, end: flow.nxt, last_ack: now, ..Self::default() }
    }

    /// Handles an ACK with this delay. Returns whether slow start ends.
    pub fn is_over(&mut self, flow: &FlowState, cwnd: u64, delay: u64, delay_min: u64) -> bool {
        if self.found {
            return false;
        }
        if flow.una > self.end {
            *self = Self::beginning(flow);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let now = clock(flow);
        if now.saturating_sub(self.last_ack) <= ACK_DELTA_US {
            self.last_ack = now;
            let threshold = delay_min.saturating_add(ack_delay(flow));
            // Pacing alone spreads a window over half of a round trip.
            let threshold = if flow.is_paced { threshold } else { threshold / 2 };
            self.found |= now.saturating_sub(self.round_start) > threshold;
        }
        self.least = self.least.min(delay);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let thresh = (delay_min >> 3).clamp(DELAY_MIN_US, DELAY_MAX_US);
            self.found |= self.least > delay_min.saturating_add(thresh);
        }
        self.found
    }
}

fn clock(flow: &FlowState) -> u64 {
    micros(flow.now.since(Time::ZERO))
}

/// The delay that segmentation offload may add: the time of four packets at the flow's rate
/// (`hystart_ack_delay`).
fn ack_delay(flow: &FlowState) -> u64 {
    (GSO_BYTES * 4 * 1_000_000)
        .checked_div(flow.rate)
        .map_or(0, |delay| delay.min(MOST_ACK_DELAY_US))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FLOW;
    use tcplab_units::Duration;

    const DELAY_MIN: u64 = 40_000;

    fn at(micros: u64) -> FlowState {
        let srtt = Duration::from_millis(40);
        let now = Time::ZERO + Duration::from_micros(micros);
        FlowState { now, srtt, nxt: 1, rate: 1_000_000, ..FLOW }
    }

    #[test]
    fn ack_train_of_half_the_min_rtt_ends_slow_start() {
        let mut hystart = HyStart::beginning(&at(0));
        // The threshold of (40 ms + 1 ms) / 2 = 20.5 ms is exceeded by the ACK at 21 ms.
        let ends = (1..=30).find(|&ms| hystart.is_over(&at(ms * 1000), 20, DELAY_MIN, DELAY_MIN));
        assert_eq!(ends, Some(21));
    }

    #[test]
    fn gap_above_two_milliseconds_breaks_the_ack_train() {
        let mut hystart = HyStart::beginning(&at(0));
        for ms in (3..60).step_by(3) {
            assert!(!hystart.is_over(&at(ms * 1000), 20, DELAY_MIN, DELAY_MIN), "{ms}");
        }
    }

    #[test]
    fn rtt_increase_by_an_eighth_ends_slow_start_at_the_ninth_sample() {
        for (delay, ends) in [(45_000, None), (45_001, Some(9))] {
            let mut hystart = HyStart::beginning(&at(0));
            let found = (1..=12).find(|n| hystart.is_over(&at(n * 3000), 20, delay, DELAY_MIN));
            assert_eq!(found, ends, "{delay}");
        }
    }

    #[test]
    fn hystart_is_off_below_16_segments() {
        let mut hystart = HyStart::beginning(&at(0));
        assert!((1..40).all(|ms| !hystart.is_over(&at(ms * 1000), 15, DELAY_MIN, DELAY_MIN)));
    }
}
