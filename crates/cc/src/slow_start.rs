//! Slow-start variants, for any algorithm to hold: their growth, and their exit before a loss.
//!
//! | file | variant |
//! |---|---|
//! | `hystart` | `HyStart` of 2008, as in Linux |
//! | `hystart_plus_plus` | `HyStart++` (RFC 9406) |
//! | `limited` | limited slow start (RFC 3742) |
//!
//! An algorithm has a parameter `slow_start` of type [`Kind`] and a [`SlowStart`] made from it,
//! passes each ACK to [`SlowStart::on_ack`], grows by the remaining credit, and reports congestion:
//! `newreno.rs` is the example.

mod hystart;
mod hystart_plus_plus;
mod limited;

pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;
pub use limited::Limited;

use crate::kernel::micros;
use crate::{Ack, Cause, Congestion, FlowState, Window};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// A slow-start variant, as named by parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub enum Kind {
    /// One segment for each acknowledged one, until `ssthresh` or a loss (RFC 5681 §3.1).
    #[default]
    #[serde(rename = "standard")]
    Standard,
    /// Standard slow start with an exit by `HyStart` of 2008.
    #[serde(rename = "hystart")]
    HyStart,
    /// Standard slow start with an exit by `HyStart++`, the first time (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
    /// Standard slow start up to a window, and slower growth beyond (RFC 3742).
    #[serde(rename = "limited")]
    Limited,
}

/// The slow start of one flow.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// Until `ssthresh` or a loss.
    Standard,
    /// Until `HyStart` of 2008 ends it.
    HyStart(HyStart),
    /// Until `HyStart++` ends the first one.
    HyStartPlusPlus(HyStartPlusPlus),
    /// Slower growth beyond a window.
    Limited(Limited),
}

impl SlowStart {
    /// The slow start of an ack-clocked flow. Limited slow start doubles up to a window of
    /// `max_ssthresh`.
    pub fn new(kind: Kind, max_ssthresh: NonZeroU64) -> Self {
        match kind {
            Kind::Standard => Self::Standard,
            Kind::HyStart => Self::HyStart(HyStart::default()),
            Kind::HyStartPlusPlus => Self::HyStartPlusPlus(HyStartPlusPlus::unpaced()),
            Kind::Limited => Self::Limited(Limited::new(max_ssthresh)),
        }
    }

    /// Handles an ACK: the window grows while in slow start, or leaves slow start. Returns the
    /// credit left for congestion avoidance.
    pub fn on_ack(&mut self, window: &mut Window, flow: &FlowState, ack: &Ack) -> u64 {
        if flow.is_recovering() {
            return 0;
        }
        let credit = if flow.cwnd_limited { ack.credit } else { 0 };
        if !window.in_slow_start() {
            return credit;
        }
        match self {
            Self::HyStart(hystart) => {
                if let Some(rtt) = ack.rtt {
                    let least = micros(flow.min_rtt.min(rtt));
                    if hystart.is_over(flow, window.cwnd(), micros(rtt), least) {
                        window.leave_slow_start();
                    }
                }
                window.slow_start(credit)
            }
            // RFC 9406 §4.3: later slow starts end at `ssthresh`.
            Self::HyStartPlusPlus(hystart) if window.in_first_slow_start() => {
                let rest = window.slow_start(hystart.credit(credit));
                if hystart.on_ack(ack) {
                    window.leave_slow_start();
                }
                rest
            }
            Self::Limited(limited) => {
                let worth = limited.credit(window.cwnd(), credit);
                window.slow_start(worth)
            }
            Self::Standard | Self::HyStartPlusPlus(_) => window.slow_start(credit),
        }
    }

    /// Congestion was signalled: another slow start begins after a timeout.
    pub fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if event.cause == Cause::Timeout
            && let Self::HyStart(hystart) = self
        {
            *hystart = HyStart::beginning(flow);
        }
    }

    /// Whether `HyStart++` has slowed growth and not yet ended it.
    pub fn is_conservative(&self, window: &Window) -> bool {
        match self {
            Self::HyStartPlusPlus(hystart) => {
                window.in_first_slow_start() && hystart.is_conservative()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
