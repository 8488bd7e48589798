//! CDG (CAIA delay gradient): backs off at random, with a probability that rises with the growth of
//! delay.
//!
//! CDG reacts to the growth of delay, not to its size, so no base delay need be known and no
//! threshold set. Once per round trip the minimum and maximum RTT are compared with those of the
//! round before. The mean of eight such gradients `g`, of the minimum RTTs if positive and of the
//! maximum ones otherwise, decides:
//!
//! - with probability `1 - exp(-g / G)` the window is cut to 0.7071 of its size, at most once in
//!   two rounds;
//! - after five such cuts in a row that did not reduce the delay, other flows do not back off, and
//!   CDG stops backing off too until the delay falls;
//! - a shadow window keeps what those cuts took. After a loss the window is half of the shadow
//!   window, not of the reduced window, so that CDG keeps up with Reno;
//! - with `use_tolerance`, a loss while the queue is not full is no sign of congestion.
//!
//! CDG keeps queues short and tolerates random losses. Against flows that fill queues it still
//! gives way, which the heuristics only soften. `use_ineff = 0` and `use_shadow = false` make CDG a
//! scavenger.
//!
//! Implemented to the integer as in Linux: RTTs in microseconds, the factor divided by the window
//! instead of the gradients, a classic `HyStart` of its own to end slow start, and delayed ACKs
//! left out of the RTTs. The backend `linux` passes the random numbers drawn here to the kernel.
//!
//! - Hayes, Armitage: Revisiting TCP congestion control using delay gradients, IFIP Networking
//!   2011.
//! - Hayes: Timing enhancements to the FreeBSD kernel to support delay and rate based TCP
//!   mechanisms, CAIA TR 100219A, 2010.
//! - Linux 6.12, `tcp_cdg.c`.

use crate::kernel::micros;
use crate::params::whole_where;
use crate::random::Random;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Preset, Window, defaults,
};
use gradient::{Gradients, Span};
use serde::{Deserialize, Deserializer, Serialize};
use slow_start::Train;
use tcplab_units::{Duration, Time};

mod gradient;
mod slow_start;
#[cfg(test)]
mod tests;

/// CDG in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "cdg",
    kind: Kind::LossAndDelay,
    summary: "backs off by chance, the more likely the faster the delay grows",
    reference: "Hayes, Armitage: Revisiting TCP congestion control using delay gradients, 2011",
    year: 2011,
    marks: Marks::AsSet,
    source: include_str!("cdg.rs"),
    presets: &[Preset {
        name: "2011",
        summary: "as published: 0.7 is kept, no HyStart",
        source: "Hayes, Armitage, IFIP Networking 2011: beta = 0.7, G = 3 ms, 8 gradients",
        params: r#"{ "backoff_beta": 717, "backoff_factor": 42, "hystart_detect": 0 }"#,
    }],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Cdg::new(init, params.parse()?))),
};

/// Parameters of CDG: those of the kernel's module, with its defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The number of averaged gradients: a power of two up to 256.
    #[serde(deserialize_with = "power_of_two")]
    pub window: u64,
    /// Share kept when backing off, in 1/1024.
    #[serde(deserialize_with = "up_to_1024")]
    pub backoff_beta: u64,
    /// The weight of a gradient in the back-off probability: 1000 / (`G` in milliseconds *
    /// `window`).
    #[serde(deserialize_with = "word")]
    pub backoff_factor: u64,
    /// The signals that end slow start: 1 for a train of ACKs, 2 for delay, 3 for either, 0 for
    /// losses only.
    #[serde(deserialize_with = "up_to_3")]
    pub hystart_detect: u64,
    /// The number of ineffectual back-offs in a row after which there are no more; 0 for no limit.
    #[serde(deserialize_with = "word")]
    pub use_ineff: u64,
    /// Whether losses cut a shadow window that is not reduced by back-offs.
    pub use_shadow: bool,
    /// Whether a loss while the queue is not full leaves the window unchanged.
    pub use_tolerance: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 8,
            backoff_beta: 724,
            backoff_factor: 42,
            hystart_detect: 3,
            use_ineff: 5,
            use_shadow: true,
            use_tolerance: false,
        }
    }
}

fn power_of_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let allowed = |number: u64| number.is_power_of_two() && number <= 256;
    whole_where(deserializer, allowed, "a power of two up to 256")
}

fn up_to_1024<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_where(deserializer, |number| number <= 1024, "a whole number up to 1024")
}

fn up_to_3<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_where(deserializer, |number| number <= 3, "a whole number up to 3")
}

fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let allowed = |number: u64| u32::try_from(number).is_ok();
    whole_where(deserializer, allowed, "a whole number up to 4294967295")
}

/// The state of the queue by the last gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    NotFull,
    Full,
    /// The window is being cut due to a gradient.
    BackingOff,
}

/// The CDG controller of one flow.
#[derive(Clone, Debug)]
pub struct Cdg {
    config: Config,
    window: Window,
    random: Random,
    watch: Watch,
    /// The window without the reductions of back-offs.
    shadow: u64,
    /// The last gradient, in microseconds times `window`.
    gradient: i32,
    backoffs: u64,
    wants_reduction: bool,
    timed_out: bool,
    has_started: bool,
}

/// State that a restart after idle resets.
#[derive(Clone, Debug)]
struct Watch {
    state: State,
    /// RTTs of this round trip and the one before, in microseconds.
    rtt: Span,
    rtt_before: Span,
    gradients: Gradients,
    train: Train,
    /// The round ends when more than this is acknowledged.
    round_end: u64,
    /// Back-offs since the delay last fell.
    ineffectual: u64,
    /// ACKs of several segments minus ACKs of one: how many of the latter may be delayed ACKs.
    delayed: u8,
}

impl Watch {
    fn new(config: &Config, round_end: u64) -> Self {
        Self {
            state: State::Unknown,
            rtt: Span::default(),
            rtt_before: Span::default(),
            gradients: Gradients::new(config.window as usize),
            train: Train::default(),
            round_end,
            ineffectual: 0,
            delayed: 0,
        }
    }

    /// Records an RTT. A delayed ACK, one of a single segment among ACKs of several, counts only
    /// for the minimum RTT (`tcp_cdg_acked`).
    fn take(&mut self, rtt: i32, acked: u64, is_in_order: bool) {
        if is_in_order {
            if acked == 1 && self.delayed > 0 {
                self.rtt.min = self.rtt.min.min(rtt);
                self.delayed -= 1;
                return;
            }
            if acked > 1 && self.delayed < 5 {
                self.delayed += 1;
            }
        }
        self.rtt.min = slow_start::least(self.rtt.min, rtt);
        self.rtt.max = self.rtt.max.max(rtt);
    }

    fn begin_round(&mut self, round_end: u64) {
        self.round_end = round_end;
        self.rtt_before = std::mem::take(&mut self.rtt);
    }
}

impl Cdg {
    /// CDG at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let window = Window::new(init);
        Self {
            watch: Watch::new(&config, 0),
            shadow: window.cwnd(),
            window,
            random: Random::new(init.seed),
            gradient: 0,
            backoffs: 0,
            wants_reduction: false,
            timed_out: false,
            has_started: false,
            config,
        }
    }

    /// Ends a round trip. Returns whether to back off because of its RTTs.
    fn end_round(&mut self, flow: &FlowState) -> bool {
        let watch = &mut self.watch;
        self.gradient = 0;
        if watch.rtt_before != Span::default() {
            let step = watch.gradients.take(watch.rtt, watch.rtt_before);
            self.gradient = step.gradient;
            if step.falls {
                watch.ineffectual = 0;
            }
            if self.config.use_tolerance {
                watch.state = match step.queue {
                    Some(true) => State::Full,
                    Some(false) => State::NotFull,
                    None => watch.state,
                };
            }
        }
        watch.begin_round(flow.nxt);
        watch.train.begin_round();
        self.gradient > 0 && self.backs_off()
    }

    /// Decides at random (`tcp_cdg_backoff`).
    fn backs_off(&mut self) -> bool {
        let exponent =
            self.gradient.cast_unsigned().wrapping_mul(self.config.backoff_factor as u32);
        if self.random.word() <= gradient::chance_to_stay(exponent) {
            return false;
        }
        if self.config.use_ineff > 0 {
            self.watch.ineffectual += 1;
            if self.watch.ineffectual > self.config.use_ineff {
                return false;
            }
        }
        self.shadow = self.shadow.max(self.window.cwnd());
        self.watch.state = State::BackingOff;
        true
    }

    /// The window after congestion (`tcp_cdg_ssthresh`).
    fn threshold(&mut self) -> u64 {
        let cwnd = self.window.cwnd();
        if self.watch.state == State::BackingOff {
            return ((u128::from(cwnd) * u128::from(self.config.backoff_beta)) >> 10) as u64;
        }
        if self.watch.state == State::NotFull && self.config.use_tolerance {
            return cwnd;
        }
        self.shadow = (self.shadow >> 1).min(cwnd);
        if self.config.use_shadow { self.shadow.max(cwnd >> 1) } else { cwnd >> 1 }
    }
}

impl CongestionControl for Cdg {
    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        self.watch.round_end = flow.nxt;
        // The kernel reports the RTT of the handshake, too.
        if flow.min_rtt < Duration::MAX {
            self.watch.take(to_i32(micros(flow.min_rtt)), 1, true);
        }
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        let rtt = ack.rtt.map_or(0, |rtt| to_i32(micros(rtt)));
        if rtt > 0 {
            self.watch.take(rtt, ack.acked, flow.sacked == 0);
        }
    }

    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.wants_reduction = false;
        if flow.is_recovering() || ack.credit == 0 {
            return;
        }
        if self.window.in_slow_start() && self.config.hystart_detect > 0 {
            let now = micros(flow.now.since(Time::ZERO));
            let watch = &mut self.watch;
            let limited = flow.cwnd_limited;
            if watch.train.is_over(now, watch.rtt.min, limited, self.config.hystart_detect) {
                self.window.leave_slow_start();
            }
        }
        if flow.una > self.watch.round_end
            && self.watch.rtt != Span::default()
            && self.end_round(flow)
        {
            self.backoffs += 1;
            self.wants_reduction = true;
            return;
        }
        let before = self.window.cwnd();
        if flow.cwnd_limited {
            self.window.grow_as_reno(flow, ack.credit);
            self.shadow = self.shadow.saturating_add(self.window.cwnd() - before);
        } else {
            self.shadow = self.shadow.min(before);
        }
    }

    fn wants_reduction(&self) -> bool {
        self.wants_reduction
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.timed_out = event.cause == Cause::Timeout;
        self.wants_reduction = false;
        let kept = if event.again { 0 } else { self.threshold() };
        self.window.shrink_to(flow, event, kept);
    }

    fn on_resized(&mut self, _flow: &FlowState) {
        self.timed_out = true;
        self.window.vouch();
    }

    fn on_recovered(&mut self, flow: &FlowState) {
        if !self.timed_out {
            self.watch.state = State::Unknown;
            self.watch.begin_round(flow.nxt);
        }
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        self.watch = Watch::new(&self.config, flow.nxt);
        self.shadow = self.window.cwnd();
        self.window.restart(flow, idle);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Change of the RTT per round trip, averaged, in microseconds.
        record("gradient_us", f64::from(self.gradient) / self.config.window as f64);
        // Shadow window: the window without the reductions of back-offs, in segments.
        record("shadow_cwnd", self.shadow as f64);
        // Back-offs for delay.
        record("backoffs", self.backoffs as f64);
        // Back-offs since the delay last fell.
        record("ineffectual_backoffs", self.watch.ineffectual as f64);
        // Minimum RTT of the round trip before, in milliseconds.
        record("least_rtt_ms", f64::from(self.watch.rtt_before.min) / 1e3);
        // Maximum RTT of the round trip before, in milliseconds.
        record("greatest_rtt_ms", f64::from(self.watch.rtt_before.max) / 1e3);
    }
}

fn to_i32(micros: u64) -> i32 {
    i32::try_from(micros).unwrap_or(i32::MAX)
}
