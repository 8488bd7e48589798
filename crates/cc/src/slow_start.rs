//! Slow start, for any algorithm to hold: how fast it is, and what may end it before a loss does.
//!
//! | file | what it is |
//! |---|---|
//! | `classic` | `HyStart` of 2008, as Linux has it |
//! | `hystart` | `HyStart++` (RFC 9406) |
//! | `limited` | limited slow start (RFC 3742) |
//!
//! An algorithm has a parameter `slow_start` of type [`Kind`] and a [`SlowStart`] made of it, lets
//! [`SlowStart::on_ack`] take each ACK, grows by what that leaves, and says what congestion there was:
//! `newreno.rs` is the example.

mod classic;
mod hystart;
mod limited;

pub use classic::Classic;
pub use hystart::HyStart;
pub use limited::Limited;

use crate::kernel::micros;
use crate::{Ack, Cause, Congestion, FlowState, Window};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// A way to begin, as parameters name it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub enum Kind {
    /// A segment for each that is acknowledged, until `ssthresh` or a loss (RFC 5681 §3.1).
    #[default]
    #[serde(rename = "standard")]
    Standard,
    /// The same, until `HyStart` of 2008 ends it.
    #[serde(rename = "hystart")]
    Classic,
    /// The same, until `HyStart++` ends the first one (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStart,
    /// The same up to a window, and slower beyond (RFC 3742).
    #[serde(rename = "limited")]
    Limited,
}

/// The slow start of one flow.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// Until `ssthresh` or a loss.
    Standard,
    /// Until `HyStart` of 2008 ends it.
    Classic(Classic),
    /// Until `HyStart++` ends the first one.
    HyStart(HyStart),
    /// Slower beyond a window.
    Limited(Limited),
}

impl SlowStart {
    /// The slow start of a flow that its ACKs clock. Limited slow start doubles up to a window of
    /// `max_ssthresh`.
    pub fn new(kind: Kind, max_ssthresh: NonZeroU64) -> Self {
        match kind {
            Kind::Standard => Self::Standard,
            Kind::Classic => Self::Classic(Classic::default()),
            Kind::HyStart => Self::HyStart(HyStart::unpaced()),
            Kind::Limited => Self::Limited(Limited::new(max_ssthresh)),
        }
    }

    /// Takes an ACK: the window grows by it while it is in slow start, or leaves slow start. Returns the
    /// credit that is left for congestion avoidance.
    pub fn on_ack(&mut self, window: &mut Window, flow: &FlowState, ack: &Ack) -> u64 {
        if flow.is_recovering() {
            return 0;
        }
        let credit = if flow.cwnd_limited { ack.credit } else { 0 };
        if !window.in_slow_start() {
            return credit;
        }
        match self {
            Self::Classic(classic) => {
                if let Some(rtt) = ack.rtt {
                    let least = micros(flow.min_rtt.min(rtt));
                    if classic.is_over(flow, window.cwnd(), micros(rtt), least) {
                        window.leave_slow_start();
                    }
                }
                window.slow_start(credit)
            }
            // RFC 9406 §4.3: later ones have an `ssthresh` to end them.
            Self::HyStart(hystart) if window.in_first_slow_start() => {
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
            Self::Standard | Self::HyStart(_) => window.slow_start(credit),
        }
    }

    /// Congestion was signalled: after a timeout another slow start begins.
    pub fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if event.cause == Cause::Timeout
            && let Self::Classic(classic) = self
        {
            *classic = Classic::beginning(flow);
        }
    }

    /// Whether `HyStart++` has slowed growth and not yet ended it.
    pub fn is_conservative(&self, window: &Window) -> bool {
        match self {
            Self::HyStart(hystart) => window.in_first_slow_start() && hystart.is_conservative(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
