//! Copa: send at the rate that the queueing delay calls for, so that the queue stays short.
//!
//! Under a simple model of traffic, a flow that weighs throughput against delay is best served by
//! the rate `1 / (delta d_q)`, where `d_q` is the queueing delay. Copa steers its window towards
//! that rate. Flows that do so together share equally, and their queue empties every few round
//! trips. A queue that stays full indicates a flow that fills buffers, and then Copa competes with
//! it.
//!
//! With each ACK (§2.1 of the paper):
//!
//! - `RTTmin` is the minimum RTT of 10 s, `RTTstanding` that of the last half of a smoothed RTT,
//!   and `d_q` their difference.
//! - If `cwnd / RTTstanding` is at most `1 / (delta d_q)` segments a second, the window grows by
//!   `v / (delta cwnd)` segments; otherwise it shrinks by as much: by `v / delta` in a round trip.
//! - `v`, the velocity, is one, and doubles with every round trip from the third on in which the
//!   window moved in the same direction. When the direction changes, `v` is reset to one: at the
//!   end of the round trip in the paper, and here at once, as in its implementations. The window at
//!   most doubles in a round trip.
//! - Copa begins with slow start, until the rate is above the target for the first time, or the
//!   first loss.
//! - Segments are paced at twice `cwnd / RTTstanding`, to avoid bursts.
//!
//! Default mode: `delta` is 0.5, and losses change nothing. Competitive mode (§2.2): if the queue
//! was not nearly empty for five RTTs (`d_q` more than a tenth of the maximum in four RTTs),
//! `1 / delta` grows by one each round trip without a loss and halves with a loss, like NewReno's
//! window. Here less than a segment of the flow's own also counts as nearly empty: on slow links a
//! single packet exceeds the tenth. Copa flows that mistake each other for such flows keep the
//! queue full until they lose a packet.
//!
//! The paper does not cover timeouts and marks: after a timeout Copa starts over like NewReno, and
//! a mark counts as a loss. Where a queue is too short to be seen in RTTs, losses do not stop Copa.
//!
//! - Arun, Balakrishnan: Copa: practical delay-based congestion control for the Internet, NSDI
//!   2018.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Left,
    Marks, Window, above_zero, defaults,
};
use delays::Delays;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use tcplab_units::{Duration, Rate};
use velocity::Velocity;

mod delays;
mod velocity;

/// Copa in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "copa",
    kind: Kind::Delay,
    summary: "a target rate set by the queueing delay, and a short queue",
    reference: "Arun, Balakrishnan, NSDI 2018",
    year: 2018,
    marks: Marks::AsSet,
    source: include_str!("copa.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Copa::new(init, params.parse()?))),
};

/// The minimum window: a window of one segment would wait for delayed ACKs.
const LEAST: u64 = 2;

/// Parameters of Copa.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The weight of delay against throughput: a single flow on a link has about `1 / delta`
    /// segments queued. The paper uses 0.5.
    #[serde(deserialize_with = "above_zero")]
    pub delta: f64,
    /// Whether Copa competes with flows that fill buffers.
    pub competitive: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { delta: 0.5, competitive: true }
    }
}

/// The Copa controller of one flow.
#[derive(Clone, Debug)]
pub struct Copa {
    config: Config,
    window: Window,
    delays: Delays,
    pacing: Option<Rate>,
    steering: Steering,
    /// The state before the last decrease, and the cause of that.
    before: Option<(Steering, Cause)>,
}

/// The steering of the window.
#[derive(Clone, Copy, Debug)]
struct Steering {
    in_slow_start: bool,
    velocity: Velocity,
    /// `1 / delta` in competitive mode.
    competing: Option<f64>,
}

impl Copa {
    /// Copa at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let velocity = Velocity::new(init.initial_window);
        Self {
            config,
            window: Window::new(init),
            delays: Delays::default(),
            pacing: None,
            steering: Steering { in_slow_start: true, velocity, competing: None },
            before: None,
        }
    }

    /// `1 / delta`.
    fn weight(&self) -> f64 {
        self.steering.competing.unwrap_or(1.0 / self.config.delta)
    }

    /// Whether the rate is above the target: `cwnd / RTTstanding > 1 / (delta d_q)`.
    fn is_too_fast(&self) -> bool {
        let queueing = self.delays.queueing().as_secs_f64();
        self.window.cwnd() as f64 * queueing > self.delays.standing().as_secs_f64() * self.weight()
    }

    /// Switches to competitive mode and back (§2.2).
    fn choose_mode(&mut self, flow: &FlowState, ack: &Ack) {
        if !self.config.competitive || self.delays.empties(flow) {
            self.steering.competing = None;
        } else if self.steering.competing.is_none() {
            self.steering.competing = Some(1.0 / self.config.delta);
        } else if let Some(weight) = &mut self.steering.competing
            && ack.round.is_some_and(|round| round.lost == 0)
        {
            *weight += 1.0;
        }
    }

    /// Moves the window towards the target, in proportion to the delivered segments.
    fn steer(&mut self, flow: &FlowState, ack: &Ack) {
        let is_too_fast = self.is_too_fast();
        self.steering.in_slow_start &= !is_too_fast && self.window.in_slow_start();
        if self.steering.in_slow_start {
            if flow.cwnd_limited {
                self.window.slow_start(ack.delivered);
            }
            return;
        }
        if ack.round.is_some() {
            self.steering.velocity.on_round(self.window.cwnd());
        }
        let heading = if is_too_fast { Ordering::Less } else { Ordering::Greater };
        self.steering.velocity.head(heading);
        let delivered = ack.delivered as f64;
        let step = self.steering.velocity.get() * self.weight() / self.window.cwnd() as f64;
        let change = delivered * step.min(1.0);
        if is_too_fast {
            self.window.drift(-change, LEAST);
        } else if flow.cwnd_limited {
            self.window.drift(change, LEAST);
        }
    }

    fn pace(&mut self, flow: &FlowState) {
        let standing = self.delays.standing().as_picos();
        if standing == 0 {
            return;
        }
        let bits = u128::from(self.window.cwnd()) * u128::from(flow.mss) * 8 * 2;
        let rate = bits.saturating_mul(1_000_000_000_000) / u128::from(standing);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
        self.pacing = Some(Rate::from_bits_per_second(rate));
    }
}

impl CongestionControl for Copa {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.delays.take(flow, rtt, self.window.cwnd());
        }
        if ack.delivered > 0 {
            self.choose_mode(flow, ack);
            self.steer(flow, ack);
            self.pace(flow);
        }
    }

    fn on_adopted(&mut self, _flow: &FlowState, left: &Left) {
        self.window.take_over(left);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if !event.again {
            self.before = Some((self.steering, event.cause));
        }
        if let Some(weight) = &mut self.steering.competing {
            *weight = (*weight / 2.0).max(1.0 / self.config.delta);
        }
        self.steering.in_slow_start = event.cause == Cause::Timeout;
        if event.cause == Cause::Timeout {
            self.window.shrink(flow, event, 0.5);
            self.steering.velocity = Velocity::new(self.window.cwnd());
        }
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        let Some((steering, cause)) = self.before.take() else {
            return;
        };
        self.steering = steering;
        if cause == Cause::Timeout {
            self.window.undo();
        }
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        self.before = None;
        self.window.restart(flow, idle);
        self.steering.velocity = Velocity::new(self.window.cwnd());
    }

    fn control(&self) -> Control {
        let (cwnd, window) = (self.window.cwnd(), self.window.control());
        let in_slow_start = self.steering.in_slow_start;
        Control {
            // After slow start, the window is not below the one where slow start ended.
            ssthresh: if in_slow_start { window.ssthresh } else { Some(cwnd) },
            pacing: self.pacing,
            prr: false,
            ..window
        }
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // `delta`: smaller values keep more packets in the queue (1 / delta is the target).
        record("delta", 1.0 / self.weight());
        // `v`: how fast the window moves towards the target.
        record("velocity", self.steering.velocity.get());
        // `d_q`: queueing delay, in milliseconds.
        record("queueing_delay_ms", self.delays.queueing().as_millis_f64());
        // `RTTstanding`: minimum RTT of the last half round trip, in milliseconds.
        record("rtt_standing_ms", self.delays.standing().as_millis_f64());
        // `RTTmin`: recent minimum RTT, in milliseconds; 0 until there is one.
        record("min_rtt_ms", self.delays.least().as_millis_f64());
        // 1 in competitive mode, else 0.
        record("competitive", f64::from(u8::from(self.steering.competing.is_some())));
    }
}

#[cfg(test)]
mod tests;
