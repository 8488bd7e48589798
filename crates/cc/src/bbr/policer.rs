//! Detects a policer on the path, and estimates its rate (`bbr_lt_bw_sampling`).
//!
//! A policer with a token bucket passes a burst and then drops packets above its rate. Two
//! consecutive intervals with many losses and the same throughput indicate a policer; for a while
//! their throughput is then the bandwidth.

use super::{BW_UNIT, UNIT, bytes_per_second};
use crate::FlowState;

/// The minimum length of an interval in round trips, and the maximum in multiples of that.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// The share of lost among delivered segments, in 1/256, for an interval to count: 20 %.
const LOSS_SHARE: u64 = 50;
/// Throughputs are equal if they differ by at most an eighth, or by so many bytes a second.
const ALIKE: u64 = UNIT / 8;
const ALIKE_BYTES: u64 = 4000 / 8;
/// The number of round trips for which the rate is used.
const BELIEVED_ROUNDS: u32 = 48;
/// The limit of milliseconds whose microseconds fit 32 bits.
const MOST_MILLIS: u64 = u32::MAX as u64 / 1000;

/// The information of an ACK about a policer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    pub losses: u64,
    pub app_limited: bool,
    /// Whether a round trip ends.
    pub round_start: bool,
    /// Whether the gain cycles.
    pub is_cruising: bool,
    /// When data was last delivered, in milliseconds.
    pub delivered_ms: u64,
}

/// The conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    /// A policer was detected.
    Policed,
    /// The rate has been used for long enough.
    Over,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// The rate of the last interval, or of the policer, in 2^-24 segments a microsecond.
    bandwidth: u64,
    is_believed: bool,
    is_sampling: bool,
    rounds: u32,
    /// The start of the interval, and the delivered and lost segments at that time.
    since_ms: u64,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The policer's rate, if there is one.
    pub fn rate(&self) -> Option<u64> {
        self.is_believed.then_some(self.bandwidth)
    }

    /// Starts over.
    pub fn reset(&mut self, flow: &FlowState, delivered_ms: u64) {
        *self = Self::default();
        self.begin_interval(flow, delivered_ms);
    }

    fn begin_interval(&mut self, flow: &FlowState, delivered_ms: u64) {
        self.since_ms = delivered_ms;
        self.delivered = flow.delivered;
        self.lost = flow.lost;
        self.rounds = 0;
    }

    pub fn judge(&mut self, flow: &FlowState, signs: Signs) -> Verdict {
        if self.is_believed {
            if signs.is_cruising && signs.round_start {
                self.rounds += 1;
                if self.rounds >= BELIEVED_ROUNDS {
                    self.reset(flow, signs.delivered_ms);
                    return Verdict::Over;
                }
            }
            return Verdict::Nothing;
        }
        if !self.is_sampling {
            // Until the first loss there are tokens left.
            if signs.losses == 0 {
                return Verdict::Nothing;
            }
            self.begin_interval(flow, signs.delivered_ms);
            self.is_sampling = true;
        }
        if signs.app_limited {
            self.reset(flow, signs.delivered_ms);
            return Verdict::Nothing;
        }
        self.rounds += u32::from(signs.round_start);
        if self.rounds < LEAST_ROUNDS {
            return Verdict::Nothing;
        }
        if self.rounds > MOST_ROUNDS {
            self.reset(flow, signs.delivered_ms);
            return Verdict::Nothing;
        }
        // An interval ends with a loss, when the tokens are used up.
        if signs.losses == 0 {
            return Verdict::Nothing;
        }
        self.end_interval(flow, signs.delivered_ms)
    }

    fn end_interval(&mut self, flow: &FlowState, delivered_ms: u64) -> Verdict {
        let lost = flow.lost.saturating_sub(self.lost);
        let delivered = flow.delivered.saturating_sub(self.delivered);
        if delivered == 0 || lost.saturating_mul(UNIT) < delivered.saturating_mul(LOSS_SHARE) {
            return Verdict::Nothing;
        }
        let millis = delivered_ms.saturating_sub(self.since_ms);
        if millis == 0 {
            return Verdict::Nothing;
        }
        if millis >= MOST_MILLIS {
            self.reset(flow, delivered_ms);
            return Verdict::Nothing;
        }
        let bandwidth = delivered.saturating_mul(BW_UNIT) / (millis * 1000);
        let difference = bandwidth.abs_diff(self.bandwidth);
        let is_alike = difference.saturating_mul(UNIT) <= self.bandwidth.saturating_mul(ALIKE)
            || bytes_per_second(difference, UNIT, flow.mss) <= ALIKE_BYTES;
        if self.bandwidth > 0 && is_alike {
            self.bandwidth = bandwidth.midpoint(self.bandwidth);
            self.is_believed = true;
            self.rounds = 0;
            return Verdict::Policed;
        }
        self.bandwidth = bandwidth;
        self.begin_interval(flow, delivered_ms);
        Verdict::Nothing
    }
}
