//! LEDBAT: use the capacity that other flows leave, and yield as soon as they need the link.
//!
//! LEDBAT is for transfers that are in no hurry: backups, updates, torrents. It measures the
//! queueing delay of its segments and holds that at a target of 100 ms. NewReno or CUBIC in the
//! same queue fill it beyond the target, and LEDBAT retreats to its minimum window.
//!
//! With each ACK (RFC 6817 §2.4.2):
//!
//! - The one-way delay is the receiver's timestamp less the echoed one (RFC 7323), so a queue on
//!   the return path does not count. The delay is known up to a constant and in whole milliseconds.
//! - The base delay is the minimum of `base_history` minutes, and the current delay the minimum of
//!   the last `current_filter` samples. Their difference is the queueing delay.
//! - `off_target = (target - queueing delay) / target`
//! - `cwnd += gain off_target acked / cwnd`: growth at most as fast as NewReno's, and reduction in
//!   proportion to the excess over the target.
//! - `cwnd` does not grow beyond the data in flight plus `allowed_increase`, and is at least two
//!   segments.
//!
//! A loss halves the window. There is no slow start: the stack's initial window grows by a segment
//! a round trip. Without timestamps LEDBAT uses RTTs instead, and yields to queues in both
//! directions.
//!
//! A late-coming LEDBAT flow measures the queue of earlier ones as part of its base delay, and
//! takes more than its share until the earlier flows' base delays expire or the queue runs empty.
//!
//! - RFC 6817: everything here; a bare § is one of its sections.
//! - Rossi, Testa, Valenti, Muscariello, ICCCN 2010: the late-comer advantage.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Window, above_zero, defaults,
};
use delays::Delays;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use tcplab_units::Duration;

mod delays;

/// LEDBAT in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "ledbat",
    kind: Kind::Delay,
    summary: "keeps the queueing delay within 100 ms, and yields to other flows",
    reference: "RFC 6817",
    year: 2009,
    marks: Marks::AsSet,
    source: include_str!("ledbat.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Ledbat::new(init, params.parse()?))),
};

/// `MIN_CWND` (§2.5).
const MIN_CWND: u64 = 2;

/// Parameters of LEDBAT.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `TARGET`: the target queueing delay in milliseconds. RFC 6817 §2.5 allows 100 at most.
    #[serde(deserialize_with = "above_zero")]
    pub target_ms: f64,
    /// `GAIN`: growth of the window in segments per round trip without a queue. RFC 6817 §2.5
    /// allows one at most.
    #[serde(deserialize_with = "above_zero")]
    pub gain: f64,
    /// `BASE_HISTORY`: minutes after which a minimum delay expires (RFC 6817 §2.5).
    pub base_history: NonZeroU64,
    /// `CURRENT_FILTER`: the number of samples whose minimum is the current delay; at least four a
    /// round trip (RFC 6817 §2.5).
    pub current_filter: NonZeroU64,
    /// `ALLOWED_INCREASE`: segments by which the window may exceed the data in flight (RFC 6817
    /// §2.5).
    pub allowed_increase: NonZeroU64,
}

impl Default for Config {
    fn default() -> Self {
        let number = |value| NonZeroU64::new(value).expect("these are not zero");
        Self {
            target_ms: 100.0,
            gain: 1.0,
            base_history: number(10),
            current_filter: number(4),
            allowed_increase: number(1),
        }
    }
}

/// The LEDBAT controller of one flow.
#[derive(Clone, Debug)]
pub struct Ledbat {
    config: Config,
    window: Window,
    delays: Delays,
    /// Whether delays are one-way; without timestamps, they are RTTs.
    is_one_way: bool,
}

impl Ledbat {
    /// LEDBAT at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let delays = Delays::new(config.base_history, config.current_filter);
        Self { config, window: Window::new(init), delays, is_one_way: false }
    }

    /// Adds the delay measured by an ACK.
    fn measure(&mut self, flow: &FlowState, ack: &Ack) {
        if ack.one_way_delay.is_some() && !self.is_one_way {
            self.is_one_way = true;
            self.delays.forget();
        }
        let delay = if self.is_one_way { ack.one_way_delay } else { ack.rtt };
        if let Some(delay) = delay {
            self.delays.take(flow.now, delay);
        }
    }

    fn queueing_delay(&self) -> Duration {
        self.delays.queueing().unwrap_or(Duration::ZERO)
    }
}

impl CongestionControl for Ledbat {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if ack.acked > 0 {
            self.measure(flow, ack);
        }
        if flow.is_recovering() {
            return;
        }
        let target = self.config.target_ms;
        let off_target = 1.0 - self.queueing_delay().as_millis_f64() / target;
        let cwnd = self.window.cwnd();
        let change = self.config.gain * off_target * ack.acked as f64 / cwnd as f64;
        self.window.drift(change.clamp(-(cwnd as f64), ack.acked as f64), MIN_CWND);
        // §2.4.2: an unused window does not grow. The RFC also reduces the window to the limit, but
        // a sender of bursts leaves part of its window unused for a while, and would lose that
        // again and again.
        let allowed = ack.in_flight_before.saturating_add(self.config.allowed_increase.get());
        self.window.cap(allowed.max(cwnd));
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        // §2.4.2: half of the window, and one segment after a timeout.
        self.window.shrink(flow, event, 0.5);
        if event.cause == Cause::Timeout && !event.again {
            self.delays.forget_current();
        }
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let base = self.delays.base().unwrap_or(Duration::ZERO);
        // Estimated queueing delay, in milliseconds.
        record("queueing_delay_ms", self.queueing_delay().as_millis_f64());
        // Base delay: minimum delay of the history, in milliseconds; up to a constant where delays
        // are one-way.
        record("base_delay_ms", base.as_millis_f64());
        // `off_target`: 1 where the queue is empty, 0 at the target delay, negative above it.
        record("off_target", 1.0 - self.queueing_delay().as_millis_f64() / self.config.target_ms);
    }
}

#[cfg(test)]
mod tests;
