//! Compound TCP: NewReno's window, and a second one that grows fast while queues are short.
//!
//! NewReno needs thousands of round trips to refill a fast, long path after a loss. Compound adds a
//! delay window: it grows steeply where nothing queues, and shrinks as a queue builds up. NewReno's
//! window remains, so Compound takes no more than its share of a full link. Windows Server had
//! Compound from 2008 on; details of that implementation beyond the papers are not published.
//!
//! The window is `cwnd + dwnd`. `cwnd` is NewReno's, one segment more per round trip. Once a round
//! trip, in congestion avoidance, with `win` for the whole window:
//!
//! - `diff = win (1 - baseRTT / RTT)`: the segments of the flow that wait in queues. RTT is the
//!   minimum of the round trip, so that delayed ACKs do not count.
//! - `diff < gamma`: `dwnd` grows by `alpha win^k - 1`; the one is the growth of `cwnd`.
//! - otherwise `dwnd` shrinks by `zeta diff`, and `ssthresh` follows, so that slow start does not
//!   restore it.
//! - After a loss the whole window is `win (1 - beta)`, of which half of the old `cwnd` is `cwnd`;
//!   after a timeout `dwnd` is zero.
//!
//! With short queues a fixed `gamma` is never reached, and Compound takes more than its share.
//! Tuning by emulation (`gamma_tuning`) tracks the queue that NewReno alone would have,
//! `cwnd (1 - baseRTT / RTT)`, and after each loss moves `gamma` towards three quarters of that.
//!
//! A round trip ends when data sent after its first ACK is acknowledged. The first one after a loss
//! begins when recovery is over, because RTTs during recovery do not reflect the queue.
//!
//! All values are whole numbers, so that a kernel module computes the same at every ACK
//! (`examples/linux/tcp_compound.c`): RTTs in microseconds, `dwnd`, `diff` and `gamma` in 1/1024
//! segment, rounded down.
//!
//! - Tan, Song, Zhang, Sridharan: A compound TCP approach for high-speed and long distance
//!   networks, MSR-TR-2005-86 and INFOCOM 2006: the windows and alpha, beta, k, zeta, gamma.
//! - Tan, Song, Sridharan, Ho: CTCP: improving TCP-friendliness over low-buffered network links,
//!   2006: tuning of gamma.
//! - draft-sridharan-tcpm-ctcp-02, 2008: both together.
//! - Andrew's module for Linux (2008), which is not in the kernel: `low_window` and `lambda`.

use crate::kernel::micros;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Preset, Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

/// Compound TCP in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "compound",
    kind: Kind::LossAndDelay,
    summary: "NewReno's window, plus a delay window that grows fast while queues are short",
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
    /// The growth of the delay window: `alpha win^k` a round trip.
    #[serde(deserialize_with = "above_zero")]
    pub alpha: f64,
    /// Share of the window given up after congestion.
    #[serde(deserialize_with = "share")]
    pub beta: f64,
    /// The exponent of the window in the growth of the delay window.
    #[serde(deserialize_with = "share")]
    pub k: f64,
    /// The weight of queued segments in the reduction of the delay window per round trip.
    #[serde(deserialize_with = "above_zero")]
    pub zeta: f64,
    /// Segments that may be queued before the delay window shrinks; with tuning, the initial value.
    #[serde(deserialize_with = "above_zero")]
    pub gamma: f64,
    /// Whether gamma follows the queue that NewReno alone would have at a loss.
    pub gamma_tuning: bool,
    /// The minimum of gamma with tuning.
    #[serde(deserialize_with = "above_zero")]
    pub gamma_low: f64,
    /// The maximum of gamma with tuning.
    #[serde(deserialize_with = "above_zero")]
    pub gamma_high: f64,
    /// The weight of a new measurement in gamma at each loss.
    #[serde(deserialize_with = "share")]
    pub lambda: f64,
    /// Below this many segments the delay window does not grow: NewReno is good enough.
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

/// One segment, in units of 1/1024.
const ONE: u64 = 1 << 10;
/// No RTT sample yet, in microseconds.
const UNKNOWN: u64 = 0x7fff_ffff;
/// Larger windows count as this in computations, whose products must fit 64 bits.
const MOST_SEGMENTS: u64 = 1 << 22;

/// Converts to 1/1024, limited so that products fit 64 bits.
fn fixed(value: f64) -> u64 {
    (libm::round(value * ONE as f64) as u64).min(u64::from(u32::MAX))
}

/// The Compound controller of one flow.
#[derive(Clone, Debug)]
pub struct Compound {
    config: Config,
    /// The sum of both windows.
    window: Window,
    delay: Delay,
    /// The delay state before the last decrease, until an undo.
    before: Option<Delay>,
    /// Minimum RTT of the round trip, in microseconds.
    least: u64,
    /// The sequence number of the next new data when the round trip began.
    begin: u64,
    /// Whether the next ACK that may grow the window begins a round trip.
    begins: bool,
    /// The estimated queue, in 1/1024 segment.
    diff: u64,
}

/// The state of the delay window.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// The delay window in 1/1024 segment; its whole segments are part of the flow's window.
    dwnd: u64,
    /// Minimum RTT of the flow, in microseconds.
    base_rtt: u64,
    /// In 1/1024 segment.
    gamma: u64,
    /// The queue that NewReno alone would have, in 1/1024 segment, if measured since the last loss.
    diff_reno: Option<u64>,
}

impl Delay {
    /// The state before anything is known of the path.
    fn new(config: &Config) -> Self {
        Self { dwnd: 0, base_rtt: UNKNOWN, gamma: fixed(config.gamma), diff_reno: None }
    }
}

impl Compound {
    /// Compound at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self {
            delay: Delay::new(&config),
            config,
            window: Window::new(init),
            before: None,
            least: UNKNOWN,
            begin: 0,
            begins: true,
            diff: 0,
        }
    }

    /// The loss-based window.
    fn cwnd(&self) -> u64 {
        self.window.cwnd().saturating_sub(self.delay.dwnd / ONE)
    }

    /// Limits the delay window to the whole window, which the sender may have reduced.
    fn fit(&mut self) {
        self.delay.dwnd = self.delay.dwnd.min(self.window.cwnd().saturating_mul(ONE));
    }

    /// Sets the delay window, and adjusts the flow's window by the difference in whole segments.
    fn set_dwnd(&mut self, dwnd: u64) {
        let cwnd = self.cwnd();
        self.delay.dwnd = dwnd;
        self.window.set(cwnd.saturating_add(dwnd / ONE));
    }

    /// The growth of the delay window in a round trip, with which both windows grow by
    /// `alpha win^k`.
    fn growth(&self, win: u64) -> u64 {
        let power = if (self.config.k - 0.75).abs() < f64::EPSILON {
            three_quarters(win)
        } else {
            (libm::pow(win as f64, self.config.k) * ONE as f64) as u64
        };
        let both = fixed(self.config.alpha).saturating_mul(power) / ONE;
        both.saturating_sub(ONE).min(win * ONE)
    }

    /// Ends a round trip in congestion avoidance with this minimum RTT.
    fn adjust(&mut self, rtt: u64) {
        if rtt == UNKNOWN {
            return;
        }
        let waited = rtt.saturating_sub(self.delay.base_rtt);
        let queued = |segments: u64| segments.min(MOST_SEGMENTS) * ONE * waited / rtt;
        self.diff = queued(self.window.cwnd());
        self.delay.diff_reno = Some(queued(self.cwnd()));
        let dwnd = self.delay.dwnd;
        if self.diff >= self.delay.gamma {
            let less = fixed(self.config.zeta).saturating_mul(self.diff) / ONE;
            self.set_dwnd(dwnd.saturating_sub(less));
            self.window.set_threshold(self.window.ssthresh().min(self.window.cwnd()));
        } else if self.window.cwnd() >= self.config.low_window {
            let more = self.growth(self.window.cwnd().min(MOST_SEGMENTS));
            self.set_dwnd(dwnd.saturating_add(more));
        }
    }

    /// Moves gamma towards three quarters of NewReno's queue at the loss.
    fn tune(&mut self) {
        let Some(diff_reno) = self.delay.diff_reno.take().filter(|_| self.config.gamma_tuning)
        else {
            return;
        };
        let Config { lambda, gamma_low, gamma_high, .. } = self.config;
        let lambda = fixed(lambda);
        let gamma = ((ONE - lambda) * self.delay.gamma + lambda * (diff_reno * 3 / 4)) / ONE;
        self.delay.gamma = gamma.min(fixed(gamma_high)).max(fixed(gamma_low));
    }

    /// Resets the delay state after a timeout, because the path may have changed.
    fn forget(&mut self) {
        self.delay = Delay::new(&self.config);
        self.begins = true;
    }
}

/// `win^(3/4)` in 1/1024, by integer square roots, as available in the kernel (`int_sqrt64`).
fn three_quarters(win: u64) -> u64 {
    // The inner root is in 1/2^20, so the outer one is of 2^20 times the value.
    (win * (win << 40).isqrt()).isqrt()
}

impl CongestionControl for Compound {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, _flow: &FlowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let rtt = micros(rtt).clamp(1, UNKNOWN - 1);
            self.delay.base_rtt = self.delay.base_rtt.min(rtt);
            self.least = self.least.min(rtt);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || ack.credit == 0 {
            return;
        }
        let (rtt, is_over) = (self.least, !self.begins && flow.una > self.begin);
        if self.begins || is_over {
            (self.least, self.begin, self.begins) = (UNKNOWN, flow.nxt, false);
        }
        if !flow.cwnd_limited {
            return;
        }
        self.fit();
        let is_starting = self.window.in_slow_start();
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            self.window.grow(self.window.cwnd() as f64, rest);
        }
        if is_over && !is_starting {
            self.adjust(rtt);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if event.again {
            self.window.shrink(flow, event, 1.0 - self.config.beta);
        } else {
            self.fit();
            self.before = Some(self.delay);
            // Half of NewReno's window, including half a segment.
            let half = self.cwnd().saturating_mul(ONE) / 2;
            self.window.shrink(flow, event, 1.0 - self.config.beta);
            self.tune();
            let rest = self.window.cwnd().saturating_mul(ONE).saturating_sub(half);
            self.delay.dwnd = rest.min(self.delay.dwnd);
            self.begins = true;
        }
        if event.cause == Cause::Timeout {
            self.forget();
        }
    }

    fn on_resized(&mut self, _flow: &FlowState) {
        self.forget();
        self.before = None;
        self.window.vouch();
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        self.window.undo();
        if let Some(before) = self.before.take() {
            let base_rtt = self.delay.base_rtt.min(before.base_rtt);
            self.delay = Delay { base_rtt, ..before };
        }
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        // Only NewReno's window remains: the delay window belongs to the earlier state of the path.
        self.delay.dwnd = 0;
        self.before = None;
        self.begins = true;
        self.window.restart(flow, idle);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let base_rtt = Some(self.delay.base_rtt).filter(|rtt| *rtt < UNKNOWN);
        let segments = |parts: u64| parts as f64 / ONE as f64;
        // The loss-based window, in segments.
        record("cwnd", self.cwnd() as f64);
        // The delay-based window, in segments.
        record("dwnd", segments(self.delay.dwnd));
        // Segments estimated to wait in queues.
        record("diff", segments(self.diff));
        // Queued segments beyond which `dwnd` decreases.
        record("gamma", segments(self.delay.gamma));
        // Minimum RTT, in milliseconds; 0 until there is one.
        record("base_rtt_ms", base_rtt.map_or(0.0, |rtt| rtt as f64 / 1e3));
    }
}

#[cfg(test)]
mod tests;
