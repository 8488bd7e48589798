//! BIC: after a loss, a binary search for the old window: in steps that shrink as the window gets
//! near it, and then beyond it in growing steps.
//!
//! Reno adds a segment a round trip, which takes an hour where windows are of tens of thousands.
//! BIC concludes from a loss that the window before was too large and the one after is not. The
//! right window lies between, and is found by halving the interval.
//!
//! With W the window, Wmax the one of the last loss and B the divisor of the search, a round trip
//! adds
//!
//! | where | segments |
//! |---|---|
//! | W up to `low_window` | 1, as Reno |
//! | far below Wmax | `max_increment` |
//! | below Wmax | (Wmax - W) / B |
//! | less than 2 B below Wmax, or than B above | B / `smooth_part` |
//! | above Wmax | (W - Wmax) / (B - 1) |
//! | far above Wmax | `max_increment` |
//!
//! Before the first loss a round trip adds at least a twentieth of the window. All increments are
//! multiplied by the measured number of segments per ACK, because the kernel once counted ACKs and
//! not segments. This mean begins at two, and is rounded so that it stays near two even if every
//! segment has its ACK.
//!
//! A loss leaves `beta` of the window, and sets Wmax to the window at the loss. If that is below
//! the last Wmax, other flows need room, and Wmax is halfway between the window before and after
//! (fast convergence). A timeout resets the search.
//!
//! BIC fills long fat paths and stays near the window that fits. It is unfair to Reno and to flows
//! with long round trips; CUBIC, which was designed to be fairer, replaced it in Linux 2.6.19.
//!
//! - Xu, Harfoush, Rhee: Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks,
//!   INFOCOM 2004.
//! - Linux, `tcp_bic.c`: implemented here to the integer. B is a constant there.

use crate::kernel::jiffies;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Phase, Preset, Window, defaults, share_of_1024, whole_above_zero,
};
use serde::{Deserialize, Serialize};

/// BIC in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bic",
    kind: Kind::Loss,
    summary: "a binary search between the window at the last loss and the reduced window",
    reference: "Xu, Harfoush, Rhee 2004",
    year: 2004,
    marks: Marks::AsSet,
    source: include_str!("bic.rs"),
    presets: &[
        Preset {
            name: "2004",
            summary: "the published algorithm: each step halves the search range, and a loss \
                      keeps seven eighths of the window",
            // smooth_part by its own definition: log(B / (B * Smin)) / log(B / (B - 1)) + B round
            // trips, with B = 2 and Smin = 0.01: 6.6 + 2.
            source: "Xu, Harfoush, Rhee 2004: Smax = 32, Smin = 0.01, low_window = 14, beta = 0.125",
            params: r#"{ "max_increment": 32, "smooth_part": 9, "search_divisor": 2, "beta": 896 }"#,
        },
        Preset {
            name: "linux-2.6.20",
            summary: "Linux of 2007: slow start ends at 100 segments",
            source: "Linux 2.6.20, tcp_bic.c: initial_ssthresh = 100",
            params: r#"{ "initial_ssthresh": 100 }"#,
        },
        Preset {
            name: "ns-3",
            summary: "the defaults of ns-3: steeper near the old window",
            source: "ns-3.33, tcp-bic.cc: MaxIncr 16, LowWnd 14, SmoothPart 5, Beta 0.8",
            params: r#"{ "smooth_part": 5 }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Bic::new(init, params.parse()?))),
};

/// Parameters of BIC: names, units and defaults are those of the kernel's module.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Share kept after a loss, in 1/1024.
    #[serde(deserialize_with = "share_of_1024")]
    pub beta: u64,
    /// Whether a flow that shrinks twice in a row makes room for others.
    pub fast_convergence: bool,
    /// The window in segments at which the first slow start ends; 0 for no limit.
    pub initial_ssthresh: u32,
    /// The window in segments up to which BIC grows and halves as Reno.
    pub low_window: u32,
    /// The most segments that a round trip adds (Smax).
    #[serde(deserialize_with = "whole_above_zero")]
    pub max_increment: u64,
    /// The divisor of the distance to the old window (B of the kernel, where it is a constant).
    #[serde(deserialize_with = "whole_above_zero")]
    pub search_divisor: u64,
    /// Round trips from B segments below the old window to that window.
    #[serde(deserialize_with = "whole_above_zero")]
    pub smooth_part: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 819,
            fast_convergence: true,
            initial_ssthresh: 0,
            low_window: 14,
            max_increment: 16,
            search_divisor: 4,
            smooth_part: 20,
        }
    }
}

/// Shares are in 1/1024.
const SCALE: u64 = 1024;
/// Milliseconds after which the price is recomputed even if the window is the same.
const FRESH: u64 = 1000 / 32;
/// The most acknowledged segments per increment of the window (`cnt`) before the first loss.
const MOST_WITHOUT_MAX: u64 = 20;
/// Segments per ACK are in 1/16.
const ACK_RATIO_SHIFT: u32 = 4;

/// The BIC controller of one flow.
#[derive(Clone, Debug)]
pub struct Bic {
    config: Config,
    window: Window,
    search: Search,
}

/// The state that a timeout resets.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Acknowledged segments for one segment of growth.
    cnt: u64,
    /// `Wmax`; 0 until there is one.
    last_max_cwnd: u64,
    /// The window for which `cnt` was computed, and the time.
    last_cwnd: u64,
    last_time: u64,
    /// Segments per ACK.
    delayed_ack: u64,
}

impl Search {
    const NEW: Self = Self {
        cnt: 0,
        last_max_cwnd: 0,
        last_cwnd: 0,
        last_time: 0,
        delayed_ack: 2 << ACK_RATIO_SHIFT,
    };
}

impl Bic {
    /// BIC at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let mut window = Window::new(init);
        if config.initial_ssthresh > 0 {
            window.set_threshold(config.initial_ssthresh.into());
        }
        Self { config, window, search: Search::NEW }
    }

    /// Computes the acknowledged segments per increment of the window, `cnt` (`bictcp_update`).
    fn update(&mut self, now: u64) {
        let cwnd = self.window.cwnd();
        let search = &self.search;
        if search.last_cwnd == cwnd && now.saturating_sub(search.last_time) <= FRESH {
            return;
        }
        let cnt = if cwnd <= self.config.low_window.into() {
            cwnd
        } else {
            let ratio = search.delayed_ack;
            (self.price(cwnd).saturating_mul(1 << ACK_RATIO_SHIFT) / ratio).max(1)
        };
        self.search = Search { cnt, last_cwnd: cwnd, last_time: now, ..self.search };
    }

    /// The acknowledged segments for one segment of growth, if each has an ACK: the window over the
    /// growth per round trip.
    fn price(&self, cwnd: u64) -> u64 {
        let Config { max_increment, search_divisor, smooth_part, .. } = self.config;
        let (most, divisor) = (max_increment, search_divisor);
        let smooth = cwnd.saturating_mul(smooth_part) / divisor;
        let max = self.search.last_max_cwnd;
        let price = if cwnd < max {
            match (max - cwnd) / divisor {
                0..=1 => smooth,
                step if step > most => cwnd / most,
                step => cwnd / step,
            }
        } else {
            let beyond = cwnd - max;
            if beyond < divisor {
                smooth
            } else if beyond < most * (divisor - 1) {
                cwnd.saturating_mul(divisor - 1) / beyond
            } else {
                cwnd / most
            }
        };
        if max == 0 { price.min(MOST_WITHOUT_MAX) } else { price }
    }

    /// The window after a loss, and its effect on Wmax (`bictcp_recalc_ssthresh`).
    fn threshold(&mut self, event: Congestion) -> u64 {
        let (cwnd, beta) = (self.window.cwnd(), self.config.beta);
        let returns = cwnd < self.search.last_max_cwnd;
        self.search.last_max_cwnd = if returns && self.config.fast_convergence {
            part(cwnd, SCALE + beta, 2 * SCALE)
        } else {
            cwnd
        };
        let base = self.window.cut_from(event);
        if cwnd <= self.config.low_window.into() { base / 2 } else { part(base, beta, SCALE) }
    }
}

/// A part of `segments`, rounded down.
fn part(segments: u64, of: u64, whole: u64) -> u64 {
    (u128::from(segments) * u128::from(of) / u128::from(whole)) as u64
}

impl CongestionControl for Bic {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.phase == Phase::Open && !ack.is_idle {
            let ratio = &mut self.search.delayed_ack;
            *ratio = (*ratio - (*ratio >> ACK_RATIO_SHIFT)).saturating_add(ack.acked);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || !flow.cwnd_limited || ack.credit == 0 {
            return;
        }
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            self.update(jiffies(flow.now));
            self.window.grow(self.search.cnt as f64, rest);
        }
    }

    fn on_resized(&mut self, _flow: &FlowState) {
        self.search = Search::NEW;
        self.window.vouch();
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let kept = if event.again { 0 } else { self.threshold(event) };
        self.window.shrink_to(flow, event, kept);
        if event.cause == Cause::Timeout {
            self.search = Search::NEW;
        }
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    /// `w_max` is 0 until there is one.
    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // `Wmax`: window at the last loss, in segments; 0 until there is one.
        record("w_max", self.search.last_max_cwnd as f64);
        // Acknowledged segments per segment of growth.
        record("cnt", self.search.cnt as f64);
        // Segments that an ACK acknowledges, as a moving average.
        record("segments_per_ack", self.search.delayed_ack as f64 / 16.0);
    }
}

#[cfg(test)]
mod tests;
