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
//! - else `dwnd` shrinks by `zeta diff`, and slow start does not take it back: `ssthresh` follows.
//! - After a loss the whole is `win (1 - beta)`, of which half of the old `cwnd` is `cwnd`; after a
//!   timeout `dwnd` is zero.
//!
//! With short queues a fixed `gamma` is never reached, and Compound takes more than its share. Tuning
//! by emulation (`gamma_tuning`) watches what NewReno alone would have waiting, `cwnd (1 - baseRTT / RTT)`,
//! and after each loss moves `gamma` towards three quarters of that.
//!
//! A round trip is over when what was sent after its first ACK is acknowledged. The first one after a
//! loss begins when the repair is over: RTTs until then tell of the repair.
//!
//! All is in whole numbers, so that a module of the kernel computes the same at every ACK
//! (`examples/linux/tcp_compound.c`): RTTs in microseconds, `dwnd`, `diff` and `gamma` in 1/1024
//! segment, rounded down.
//!
//! - Tan, Song, Zhang, Sridharan: A compound TCP approach for high-speed and long distance networks,
//!   MSR-TR-2005-86 and INFOCOM 2006: the windows and alpha, beta, k, zeta, gamma.
//! - Tan, Song, Sridharan, Ho: CTCP: improving TCP-friendliness over low-buffered network links, 2006:
//!   tuning of gamma.
//! - draft-sridharan-tcpm-ctcp-02, 2008: both together.
//! - Andrew's module for Linux (2008), which is not in the kernel: `low_window` and `lambda`.

use crate::kernel::micros;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Preset, Window, above_zero, defaults, share,
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

/// One segment, or one of what has parts of 1/1024.
const ONE: u64 = 1 << 10;
/// No RTT yet, in microseconds.
const UNKNOWN: u64 = 0x7fff_ffff;
/// Windows are not taken for larger in what is computed from them: the products have 64 bits.
const MOST_SEGMENTS: u64 = 1 << 22;

/// In 1/1024, and so that the products have 64 bits.
fn fixed(value: f64) -> u64 {
    (libm::round(value * ONE as f64) as u64).min(u64::from(u32::MAX))
}

/// The Compound controller of one flow.
#[derive(Clone, Debug)]
pub struct Compound {
    config: Config,
    /// Both windows together.
    window: Window,
    delay: Delay,
    /// The same before the last decrease, until that is taken back.
    before: Option<Delay>,
    /// Least RTT of the round trip, in microseconds.
    least: u64,
    /// What had been sent when the round trip began.
    begin: u64,
    /// The next ACK that may widen the window begins a round trip.
    begins: bool,
    /// What waits in queues, in 1/1024 segment.
    diff: u64,
}

/// The part that delay governs.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// Its window in 1/1024 segment; whole segments of it are part of the flow's.
    dwnd: u64,
    /// Least RTT of the flow, in microseconds.
    base_rtt: u64,
    /// In 1/1024 segment.
    gamma: u64,
    /// What NewReno would have waiting, in 1/1024 segment, if that was measured since the last loss.
    diff_reno: Option<u64>,
}

impl Delay {
    /// Nothing is known of the path.
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

    /// The window that losses govern.
    fn cwnd(&self) -> u64 {
        self.window.cwnd().saturating_sub(self.delay.dwnd / ONE)
    }

    /// The window of delay is part of a window that the sender may have made smaller since.
    fn fit(&mut self) {
        self.delay.dwnd = self.delay.dwnd.min(self.window.cwnd().saturating_mul(ONE));
    }

    /// Gives the window of delay so much, and the flow the whole segments more or less.
    fn set_dwnd(&mut self, dwnd: u64) {
        let cwnd = self.cwnd();
        self.delay.dwnd = dwnd;
        self.window.set(cwnd.saturating_add(dwnd / ONE));
    }

    /// What the window of delay grows by in a round trip, for both to grow by `alpha win^k`.
    fn growth(&self, win: u64) -> u64 {
        let power = if (self.config.k - 0.75).abs() < f64::EPSILON {
            three_quarters(win)
        } else {
            (libm::pow(win as f64, self.config.k) * ONE as f64) as u64
        };
        let both = fixed(self.config.alpha).saturating_mul(power) / ONE;
        both.saturating_sub(ONE).min(win * ONE)
    }

    /// A round trip in congestion avoidance is over, of which this is the least RTT.
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

    /// Moves gamma towards three quarters of what NewReno had waiting when the queue was full.
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

    /// After a timeout the path may be another: all that was known of its delay is not.
    fn forget(&mut self) {
        self.delay = Delay::new(&self.config);
        self.begins = true;
    }
}

/// `win^(3/4)` in 1/1024, by roots of whole numbers, as the kernel has them (`int_sqrt64`).
fn three_quarters(win: u64) -> u64 {
    // The inner root is in 1/2^20, so the outer one is of 2^20 times its value.
    (win * (win << 40).isqrt()).isqrt()
}

impl CongestionControl for Compound {
    fn hears_arrivals(&self) -> bool {
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
            // Half of NewReno's window, half a segment included.
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
        // What is left is NewReno's: what delay allowed was for the path as it was.
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
        // The part of the window that loss governs, in segments.
        record("cwnd", self.cwnd() as f64);
        // The part of the window that delay governs, in segments.
        record("dwnd", segments(self.delay.dwnd));
        // Segments estimated to wait in queues.
        record("diff", segments(self.diff));
        // Queued segments beyond which `dwnd` decreases.
        record("gamma", segments(self.delay.gamma));
        // Least RTT, in milliseconds; 0 until there is one.
        record("base_rtt_ms", base_rtt.map_or(0.0, |rtt| rtt as f64 / 1e3));
    }
}

#[cfg(test)]
mod tests;
