//! HyStart++ (RFC 9406): leave the first slow start when delay grows, before the queue overflows.
//!
//! When the minimum RTT of a round exceeds that of the last round by an eighth, growth slows to a
//! quarter (conservative slow start, CSS). If delay falls again, the cause was jitter and slow
//! start resumes; if not within five rounds, slow start is over.
//!
//! The sender counts rounds. [`SlowStart`](super::SlowStart) asks for the usable credit while
//! [`Window::in_first_slow_start`](crate::Window::in_first_slow_start) (RFC 9406 §4.3), and then
//! whether slow start ends.

use crate::Ack;
use tcplab_units::Duration;

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// `L`: the growth limit of one ACK without pacing.
const LIMIT_UNPACED: u64 = 8;

/// Tracks the RTTs of one slow start.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    /// `currentRoundMinRTT`.
    round_min_rtt: Option<Duration>,
    /// `rttSampleCount`.
    samples: u32,
    /// `lastRoundMinRTT`.
    last_round_min_rtt: Option<Duration>,
    conservative: Option<Conservative>,
    /// `L`.
    limit: u64,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline: Duration,
    rounds: u32,
    /// Credit of less than a segment.
    part: u64,
}

impl HyStartPlusPlus {
    /// For an ack-clocked flow.
    pub fn unpaced() -> Self {
        Self {
            round_min_rtt: None,
            samples: 0,
            last_round_min_rtt: None,
            conservative: None,
            limit: LIMIT_UNPACED,
        }
    }

    /// For a paced flow, whose rate bounds bursts of credit.
    pub fn paced() -> Self {
        Self { limit: u64::MAX, ..Self::unpaced() }
    }

    /// Whether growth is slowed.
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// The part of an ACK's `credit` that slow start may use.
    pub fn credit(&mut self, credit: u64) -> u64 {
        let credit = credit.min(self.limit);
        let Some(conservative) = &mut self.conservative else {
            return credit;
        };
        let total = credit.saturating_add(conservative.part);
        conservative.part = total % CSS_GROWTH_DIVISOR;
        total / CSS_GROWTH_DIVISOR
    }

    /// Handles an ACK. Returns whether slow start ends.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        if let Some(rtt) = ack.rtt {
            self.round_min_rtt = Some(self.round_min_rtt.map_or(rtt, |least| least.min(rtt)));
            self.samples = self.samples.saturating_add(1);
            if self.samples >= N_RTT_SAMPLE {
                self.judge();
            }
        }
        let Some(round) = &ack.round else {
            return false;
        };
        self.last_round_min_rtt = round.min_rtt;
        self.round_min_rtt = None;
        self.samples = 0;
        // The round in which CSS began counts, although it was conservative only in part.
        self.conservative.as_mut().is_some_and(|conservative| {
            conservative.rounds += 1;
            conservative.rounds >= CSS_ROUNDS
        })
    }

    /// Compares this round's minimum RTT, once there are enough samples.
    fn judge(&mut self) {
        let Some(now) = self.round_min_rtt else {
            return;
        };
        if let Some(conservative) = self.conservative {
            if now < conservative.baseline {
                self.conservative = None;
            }
        } else if let Some(last) = self.last_round_min_rtt {
            let thresh = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if now >= last + thresh {
                self.conservative = Some(Conservative { baseline: now, rounds: 0, part: 0 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Round;

    /// A round of ten ACKs at this RTT. Returns whether slow start ended.
    fn round(hystart: &mut HyStartPlusPlus, millis: u64) -> bool {
        acks(hystart, millis, 10)
    }

    fn acks(hystart: &mut HyStartPlusPlus, millis: u64, count: u32) -> bool {
        let rtt = Some(Duration::from_millis(millis));
        let ack = Ack { credit: 1, rtt, ..Ack::default() };
        for _ in 1..count {
            assert!(!hystart.on_ack(&ack), "slow start ends at the end of a round");
        }
        hystart.on_ack(&Ack { round: Some(Round { min_rtt: rtt, ..Round::default() }), ..ack })
    }

    fn conservative() -> HyStartPlusPlus {
        let mut hystart = HyStartPlusPlus::unpaced();
        round(&mut hystart, 80);
        round(&mut hystart, 90);
        assert!(hystart.is_conservative());
        hystart
    }

    #[test]
    fn css_starts_when_rtt_rises_by_an_eighth_clamped_to_4_and_16_ms() {
        for (base, thresh) in [(10, 4), (32, 4), (80, 10), (128, 16), (400, 16)] {
            for (rise, expected) in [(thresh - 1, false), (thresh, true)] {
                let mut hystart = HyStartPlusPlus::unpaced();
                round(&mut hystart, base);
                round(&mut hystart, base + rise);
                assert_eq!(hystart.is_conservative(), expected, "{base} ms + {rise} ms");
            }
        }
    }

    #[test]
    fn compares_neighbouring_rounds_only() {
        let mut hystart = HyStartPlusPlus::unpaced();
        for millis in [80, 89, 99, 110] {
            round(&mut hystart, millis);
            assert!(!hystart.is_conservative(), "{millis} ms");
        }
    }

    #[test]
    fn hystart_needs_eight_rtt_samples_in_a_round() {
        for (samples, expected) in [(7, false), (8, true)] {
            let mut hystart = HyStartPlusPlus::unpaced();
            round(&mut hystart, 20);
            acks(&mut hystart, 100, samples);
            assert_eq!(hystart.is_conservative(), expected, "{samples} samples");
        }
    }

    #[test]
    fn one_low_rtt_sample_prevents_css_in_its_round() {
        let mut hystart = HyStartPlusPlus::unpaced();
        round(&mut hystart, 80);
        let fast = Ack { rtt: Some(Duration::from_millis(80)), ..Ack::default() };
        hystart.on_ack(&fast);
        round(&mut hystart, 200);
        assert!(!hystart.is_conservative());
    }

    #[test]
    fn slow_start_ends_after_five_css_rounds() {
        let mut hystart = conservative();
        let ends: Vec<_> = (2..=5).map(|_| round(&mut hystart, 95)).collect();
        assert_eq!(ends, [false, false, false, true]);
    }

    #[test]
    fn slow_start_resumes_if_rtt_falls_during_css() {
        let mut hystart = conservative();
        round(&mut hystart, 89);
        assert!(!hystart.is_conservative());
        assert_eq!(hystart.credit(3), 3);
    }

    #[test]
    fn css_growth_is_a_quarter_of_slow_start() {
        let mut hystart = conservative();
        let grown: u64 = (0..100).map(|_| hystart.credit(1)).sum();
        assert_eq!(grown, 25);
        let grown: u64 = (0..50).map(|_| hystart.credit(2)).sum();
        assert_eq!(grown, 25);
    }

    #[test]
    fn hystart_growth_per_ack_is_at_most_eight_segments_unless_paced() {
        assert_eq!(HyStartPlusPlus::unpaced().credit(20), 8);
        assert_eq!(HyStartPlusPlus::paced().credit(20), 20);
    }
}
