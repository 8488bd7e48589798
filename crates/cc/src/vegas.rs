//! Vegas: keep a few segments in the queue, measured by delay, to avoid losses.
//!
//! The minimum RTT ever seen, `base_rtt`, is that of an empty path. A window W with a longer `rtt`
//! has segments waiting in a queue:
//!
//! ```text
//! diff = W · (rtt - base_rtt) / base_rtt        (Linux; the paper divides by rtt)
//! ```
//!
//! Once a round trip, the window grows by one segment if `diff` is below `alpha`, shrinks by one if
//! it is above `beta`, and stays otherwise. Slow start ends when `diff` exceeds `gamma`. After a
//! loss the window is halved, as in Reno. A single flow thus fills the link with almost no queue,
//! where Reno fills the queue.
//!
//! Vegas does badly beside other flows. Loss-based flows fill the queue, and Vegas yields to them.
//! Traffic in the reverse direction delays its ACKs, which Vegas takes for a queue of its own. A
//! flow that starts later takes the queue of earlier flows for part of the path. A route that
//! becomes longer looks like a queue too.
//!
//! There are several versions of Vegas, selected by `rules`. `linux` follows the kernel to the
//! integer: slow start doubles every round trip and ends at the measured rate (W · `base_rtt` /
//! `rtt` + 1), and a round trip counts with its minimum RTT, if there were three samples. `paper`:
//! slow start doubles only every other round trip, so that the one between shows the queue, and one
//! segment of a round trip is timed. `ns2` does the same with the mean RTT; slow start ends with
//! 7/8 of the window, and a loss keeps 3/4. `freebsd` is the paper's without `gamma`, in whole
//! milliseconds and bytes a millisecond. The paper's finer timeouts are not implemented:
//! retransmission is the sender's task.
//!
//! - Brakmo, O'Malley, Peterson: TCP Vegas: New Techniques for Congestion Detection and Avoidance,
//!   SIGCOMM 1994.
//! - Brakmo, Peterson: TCP Vegas: End to End Congestion Avoidance on a Global Internet, IEEE JSAC
//!   13(8), 1995.
//! - Linux 6.12, `tcp_vegas.c`; ns-2, `tcp-vegas.cc`; FreeBSD, `cc_vegas.c`.

use crate::delays::{Delays, in_ms};
use crate::kernel::micros;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind,
    Marks, Preset, Window, defaults, whole,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

mod others;
#[cfg(test)]
mod tests;

/// Vegas in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "vegas",
    kind: Kind::Delay,
    summary: "holds the window where a few segments queue, which it knows from the delay",
    reference: "Brakmo, O'Malley, Peterson 1994; Linux tcp_vegas.c",
    year: 1994,
    marks: Marks::AsSet,
    source: include_str!("vegas.rs"),
    presets: &[
        Preset {
            name: "1994",
            summary: "the paper's: one to three segments, slow start every other round trip",
            source: "Brakmo, O'Malley, Peterson: TCP Vegas, SIGCOMM 1994: Vegas-1,3, one buffer for slow start",
            params: r#"{ "rules": "paper", "alpha": 1, "beta": 3, "gamma": 1 }"#,
        },
        Preset {
            name: "freebsd-9.2",
            summary: "FreeBSD's: one to three segments, no gamma, in whole milliseconds",
            source: "freebsd-src sys/netinet/cc/cc_vegas.c (023681d6): vegas_alpha 1, vegas_beta 3; khelp/h_ertt.c (2012)",
            params: r#"{ "rules": "freebsd", "alpha": 1, "beta": 3 }"#,
        },
        Preset {
            name: "ns2",
            summary: "ns-2's: one to three segments by mean RTTs, three quarters kept after a loss",
            source: "ns-2 tcl/lib/ns-default.tcl: v_alpha_ 1, v_beta_ 3, v_gamma_ 1; tcp/tcp-vegas.cc",
            params: r#"{ "rules": "ns2", "alpha": 1, "beta": 3, "gamma": 1 }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Vegas::new(init, params.parse()?))),
};

/// Parameters of Vegas. The defaults are those of Linux.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The window grows with fewer segments in the queue than this.
    #[serde(deserialize_with = "whole")]
    pub alpha: u64,
    /// The window shrinks with more segments in the queue than this.
    #[serde(deserialize_with = "whole")]
    pub beta: u64,
    /// Slow start ends with more segments in the queue than this. FreeBSD's rules do not use it.
    #[serde(deserialize_with = "whole")]
    pub gamma: u64,
    /// The version: `linux`, `paper`, `ns2` or `freebsd`.
    pub rules: Rules,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 2, beta: 4, gamma: 1, rules: Rules::Linux }
    }
}

/// The version of Vegas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rules {
    /// The kernel's.
    Linux,
    /// The rule of the papers.
    Paper,
    /// ns-2's reading of the papers.
    Ns2,
    /// FreeBSD's.
    Freebsd,
}

/// The Vegas controller of one flow.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: Config,
    flavour: Flavour,
    window: Window,
    delays: Delays,
    /// The estimated segments in the queue.
    diff: f64,
    /// The RTT of that estimate.
    rtt: u64,
    /// RTTs of the round trip: their sum, their number, and the newest.
    sum: u64,
    count: u64,
    newest: u64,
    /// Whether ACKs grow the window until the next decision. Not used by the kernel's rules.
    grows: bool,
}

impl Vegas {
    /// Vegas at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self {
            config,
            flavour: init.flavour,
            window: Window::new(init),
            delays: Delays::new(),
            diff: 0.0,
            rtt: 0,
            sum: 0,
            count: 0,
            newest: 0,
            grows: true,
        }
    }

    /// Follows `tcp_vegas_cong_avoid`.
    fn go_on(&mut self, flow: &FlowState, credit: u64) {
        if !self.delays.is_on() {
            self.go_on_like_reno(flow, credit);
        } else if !self.delays.is_round_over(flow) {
            // Only Reno checks whether the window was full.
            self.window.slow_start(credit);
        } else {
            if self.delays.are_enough() {
                self.decide(credit);
            } else {
                self.go_on_like_reno(flow, credit);
            }
            self.delays.begin_round(flow);
        }
    }

    fn go_on_like_reno(&mut self, flow: &FlowState, credit: u64) {
        if flow.cwnd_limited {
            let rest = self.window.slow_start(credit);
            if rest > 0 {
                self.window.grow(self.window.cwnd() as f64, rest);
            }
        }
    }

    /// Decides by the queue that the last round trip shows.
    fn decide(&mut self, credit: u64) {
        let (cwnd, base, rtt) = (self.window.cwnd(), self.delays.base(), self.delays.least());
        let diff = self.times(cwnd, rtt.saturating_sub(base)) / base;
        (self.diff, self.rtt) = (diff as f64, rtt);
        if self.window.in_slow_start() {
            if diff > self.config.gamma {
                // One more, because a fraction of a segment was truncated.
                let measured = u128::from(cwnd) * u128::from(base) / u128::from(rtt) + 1;
                self.slow_down_to(u64::try_from(measured).unwrap_or(u64::MAX).min(cwnd));
            } else {
                self.window.slow_start(credit);
            }
        } else if diff > self.config.beta {
            self.slow_down_to(cwnd - 1);
        } else if diff < self.config.alpha {
            self.window.set(cwnd.saturating_add(1));
        }
        self.window.set(self.window.cwnd().max(2));
        // A window in congestion avoidance justifies a threshold of three quarters of itself
        // (`tcp_current_ssthresh`).
        let cwnd = self.window.cwnd();
        self.window.set_threshold(self.window.ssthresh().max((cwnd >> 1) + (cwnd >> 2)));
    }

    /// The product has 32 bits in the kernel and overflows: with 10,000 segments, from 430 ms of
    /// queue on.
    fn times(&self, cwnd: u64, delay: u64) -> u64 {
        let product = cwnd.saturating_mul(delay);
        if self.flavour == Flavour::Linux { product & u64::from(u32::MAX) } else { product }
    }

    /// Shrinks the window without a following slow start.
    fn slow_down_to(&mut self, cwnd: u64) {
        self.window.set(cwnd);
        self.window.set_threshold(self.window.ssthresh().min(self.window.cwnd()));
    }

    fn start_over(&mut self, flow: &FlowState) {
        if self.config.rules == Rules::Linux {
            self.delays.start_over(flow);
        }
    }
}

impl CongestionControl for Vegas {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        self.delays.follow(flow);
        self.delays.take(ack.rtt);
        if let Some(rtt) = ack.rtt {
            self.newest = micros(rtt);
            self.sum = self.sum.saturating_add(self.newest);
            self.count = self.count.saturating_add(1);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.delays.follow(flow);
        if flow.is_recovering() || ack.credit == 0 {
            return;
        }
        match self.config.rules {
            Rules::Linux => self.go_on(flow, ack.credit),
            Rules::Paper | Rules::Ns2 => self.go_on_by_the_paper(flow, ack.credit),
            Rules::Freebsd => self.go_on_like_freebsd(flow, ack.credit),
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let kept = match (self.config.rules, event.cause) {
            (Rules::Ns2, Cause::Loss | Cause::Ecn) => 0.75,
            _ => 0.5,
        };
        self.window.shrink(flow, event, kept);
        self.delays.on_congestion(flow, event.cause);
        self.grows = false;
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        self.start_over(flow);
        self.window.restart(flow, idle);
    }

    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        self.start_over(flow);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // `diff`: segments estimated to be in the queue.
        record("diff", self.diff);
        // `BaseRTT`: minimum RTT of the flow, in milliseconds; 0 until there is one.
        record("base_rtt_ms", self.delays.base_ms());
        // RTT from which `diff` was computed, in milliseconds.
        record("rtt_ms", in_ms(self.rtt));
    }
}
