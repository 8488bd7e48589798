//! Compound TCP: NewReno's window, and a second one beside it that grows fast while queues are short.
//!
//! NewReno needs thousands of round trips to fill a fast, long path again after a loss. Compound adds a
//! window that is governed by delay: it grows steeply where nothing queues, and gives way as a queue
//! builds up. What is left then is NewReno, so that it takes no more than its share of a full link.
//! Windows Server had it from 2008 on; what Windows did beyond the papers is not published.
//!
//! The window is `cwnd + dwnd`. `cwnd` is NewReno's, one segment more per round trip. Once a round trip,
//! in congestion avoidance, with `win` for the whole window:
//!
//! - `diff = win (1 - baseRTT / RTT)`: the segments of the flow that wait in queues. RTT is the least
//!   of the round trip, so that delayed ACKs do not count.
//! - `diff < gamma`: `dwnd` grows by `alpha win^k - 1`; the one is what `cwnd` grows by.
//! - else it shrinks by `zeta diff`.
//! - After a loss the whole is `win (1 - beta)`, of which half of the old `cwnd` is `cwnd`; after a
//!   timeout `dwnd` is zero.
//!
//! With short queues a fixed `gamma` is never reached, and Compound takes more than its share. Tuning
//! by emulation (`gamma_tuning`) watches what NewReno alone would have waiting, `cwnd (1 - baseRTT / RTT)`,
//! and after each loss moves `gamma` towards three quarters of that.
//!
//! - Tan, Song, Zhang, Sridharan: A compound TCP approach for high-speed and long distance networks,
//!   MSR-TR-2005-86 and INFOCOM 2006: the windows and alpha, beta, k, zeta, gamma.
//! - Tan, Song, Sridharan, Ho: CTCP: improving TCP-friendliness over low-buffered network links, 2006:
//!   tuning of gamma.
//! - draft-sridharan-tcpm-ctcp-02, 2008: both together.
//! - Andrew's module for Linux (2008), which is not in the kernel: `low_window` and `lambda`.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Left,
    Marks, Preset, Round, Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

/// Compound TCP in the table.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "compound",
    kind: Kind::LossAndDelay,
    summary: "NewReno's window, and one beside it that grows fast while queues are short",
    reference: "draft-sridharan-tcpm-ctcp-02",
    year: 2005,
    marks: Marks::AsSet,
    source: include_str!("compound.rs"),
    presets: &[
        Preset {
            name: "2005",
            summary: "as first published: gamma is 30 segments on every path",
            source: "Tan, Song, Zhang, Sridharan: A compound TCP approach, MSR-TR-2005-86 and INFOCOM 2006",
            params: r#"{ "gamma_tuning": false }"#,
        },
        Preset {
            name: "2006",
            summary: "gamma is tuned by emulation between 5 and 30 segments; the default",
            source: "Tan, Song, Sridharan, Ho: CTCP over low-buffered network links, 2006; draft-sridharan-tcpm-ctcp-02",
            params: r#"{ "gamma_tuning": true }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Compound::new(init, params.parse()?))),
};

/// Parameters of Compound TCP.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How steeply the window of delay grows: by `alpha win^k` a round trip.
    #[serde(deserialize_with = "above_zero")]
    pub alpha: f64,
    /// Share of the window given up after congestion.
    #[serde(deserialize_with = "share")]
    pub beta: f64,
    /// The power of the window by which the window of delay grows.
    #[serde(deserialize_with = "share")]
    pub k: f64,
    /// How much of what is queued the window of delay gives up in a round trip.
    #[serde(deserialize_with = "above_zero")]
    pub zeta: f64,
    /// Segments that may wait in queues before the window of delay gives way; where they are tuned, at
    /// first.
    #[serde(deserialize_with = "above_zero")]
    pub gamma: f64,
    /// Whether gamma follows what NewReno alone would have waiting when a segment is lost.
    pub gamma_tuning: bool,
    /// Tuning does not go below this.
    #[serde(deserialize_with = "above_zero")]
    pub gamma_low: f64,
    /// Nor above this.
    #[serde(deserialize_with = "above_zero")]
    pub gamma_high: f64,
    /// How much of the way gamma goes with each loss.
    #[serde(deserialize_with = "share")]
    pub lambda: f64,
    /// Below this many segments the window of delay does not grow: NewReno is good enough.
    pub low_window: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.125,
            beta: 0.5,
            k: 0.75,
            zeta: 1.0,
            gamma: 30.0,
            gamma_tuning: true,
            gamma_low: 5.0,
            gamma_high: 30.0,
            lambda: 0.25,
            low_window: 38,
        }
    }
}

/// The Compound controller of one flow.
#[derive(Clone, Debug)]
pub struct Compound {
    config: Config,
    /// Both windows together.
    window: Window,
    delay: Delay,
    /// The same before the last decrease.
    before: Delay,
    /// What waits in queues.
    diff: f64,
}

/// The part that delay governs.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// Its window; the whole part of it is part of the flow's.
    dwnd: f64,
    base_rtt: Duration,
    gamma: f64,
    /// What NewReno would have waiting, if that was measured since the last loss.
    diff_reno: Option<f64>,
}

impl Compound {
    /// Compound at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let (base_rtt, gamma) = (Duration::MAX, config.gamma);
        let delay = Delay { dwnd: 0.0, base_rtt, gamma, diff_reno: None };
        Self { config, window: Window::new(init), delay, before: delay, diff: 0.0 }
    }

    /// The window that losses govern.
    fn cwnd(&self) -> u64 {
        self.window.cwnd().saturating_sub(self.delay.dwnd as u64)
    }

    /// Gives the window of delay so many segments, and the flow those more or less.
    fn set_dwnd(&mut self, dwnd: f64) {
        let cwnd = self.cwnd();
        self.delay.dwnd = dwnd.max(0.0);
        self.window.set(cwnd.saturating_add(self.delay.dwnd as u64));
    }

    /// A round trip in congestion avoidance is over.
    fn adjust(&mut self, round: &Round) {
        let Some(rtt) = round.min_rtt.filter(|rtt| *rtt > Duration::ZERO) else {
            return;
        };
        let win = self.window.cwnd() as f64;
        let queued = 1.0 - (self.delay.base_rtt.as_secs_f64() / rtt.as_secs_f64()).min(1.0);
        self.diff = win * queued;
        self.delay.diff_reno = Some(self.cwnd() as f64 * queued);
        let dwnd = self.delay.dwnd;
        if self.diff >= self.delay.gamma {
            self.set_dwnd(dwnd - self.config.zeta * self.diff);
        } else if self.window.cwnd() >= self.config.low_window {
            let grown = self.config.alpha * libm::pow(win, self.config.k) - 1.0;
            self.set_dwnd(dwnd + grown.clamp(0.0, win));
        }
    }

    /// Moves gamma towards three quarters of what NewReno had waiting when the queue was full.
    fn tune(&mut self) {
        let Some(diff_reno) = self.delay.diff_reno.take().filter(|_| self.config.gamma_tuning)
        else {
            return;
        };
        let Config { lambda, gamma_low, gamma_high, .. } = self.config;
        let gamma = (1.0 - lambda) * self.delay.gamma + lambda * 0.75 * diff_reno;
        self.delay.gamma = gamma.min(gamma_high).max(gamma_low);
    }
}

impl CongestionControl for Compound {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.delay.base_rtt = self.delay.base_rtt.min(rtt);
        }
        if flow.is_recovering() || !flow.cwnd_limited {
            return;
        }
        let is_starting = self.window.in_slow_start();
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            self.window.grow(self.window.cwnd() as f64, rest);
        }
        if let Some(round) = ack.round.filter(|_| !is_starting) {
            self.adjust(&round);
        }
    }

    fn on_adopted(&mut self, _flow: &FlowState, left: &Left) {
        self.window.take_over(left);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if event.again {
            return self.window.shrink(flow, event, 1.0 - self.config.beta);
        }
        self.before = self.delay;
        let half = self.cwnd() as f64 / 2.0;
        self.window.shrink(flow, event, 1.0 - self.config.beta);
        if event.cause == Cause::Timeout {
            // The path may be another: all that was known of its delay is not.
            let (base_rtt, gamma) = (Duration::MAX, self.config.gamma);
            self.delay = Delay { dwnd: 0.0, base_rtt, gamma, diff_reno: None };
        } else {
            self.tune();
            self.delay.dwnd = (self.window.cwnd() as f64 - half).clamp(0.0, self.delay.dwnd);
        }
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        if self.window.undo() {
            self.delay = self.before;
        }
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        // What is left is NewReno's: what delay allowed was for the path as it was.
        self.delay.dwnd = 0.0;
        self.window.restart(flow, idle);
    }

    fn on_unused(&mut self, _flow: &FlowState, used: u64) {
        self.window.narrow(used);
        self.delay.dwnd = self.delay.dwnd.min(self.window.cwnd() as f64);
    }

    fn on_moderated(&mut self, cwnd: u64) {
        self.window.cap(cwnd);
        self.delay.dwnd = self.delay.dwnd.min(self.window.cwnd() as f64);
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let base_rtt = Some(self.delay.base_rtt).filter(|rtt| *rtt < Duration::MAX);
        // The part of the window that loss governs, in segments.
        record("cwnd", self.cwnd() as f64);
        // The part of the window that delay governs, in segments.
        record("dwnd", self.delay.dwnd);
        // Segments estimated to wait in queues.
        record("diff", self.diff);
        // Queued segments beyond which `dwnd` decreases.
        record("gamma", self.delay.gamma);
        // Least RTT, in milliseconds; 0 until there is one.
        record("base_rtt_ms", base_rtt.map_or(0.0, Duration::as_millis_f64));
    }
}

#[cfg(test)]
mod tests;
