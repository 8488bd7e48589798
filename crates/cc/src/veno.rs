//! Veno: Reno with Vegas's estimate of the queue, to distinguish random losses from congestion
//! losses.
//!
//! As in Vegas, Veno estimates how many segments of its window W wait in a queue:
//!
//! ```text
//! diff = W · (rtt - base_rtt) / rtt
//! ```
//!
//! `base_rtt` is the minimum RTT ever seen and `rtt` the minimum since the last ACK. Veno keeps
//! Reno's window with two changes:
//!
//! - The increase: with `beta` segments or more in the queue the window grows by one segment only
//!   every other round trip, so it stays longer near the best size.
//! - The decrease: a loss with fewer than `beta` segments in the queue is probably not due to
//!   congestion, and four fifths of the window are kept. With more, the window is halved.
//!
//! Both rules help on wireless links, where losses are random and the queue is short. With long
//! queues and no random losses Veno is a slightly slower Reno. Like Vegas it depends on `base_rtt`,
//! and so on having seen the path empty.
//!
//! Both flavours use the kernel's arithmetic, with `diff` in half segments. In the kernel, the
//! number of RTT samples is never reset, so the estimate starts with the third sample of the
//! connection.
//!
//! - Fu, Liew: TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks, IEEE JSAC
//!   21(2), 2003.
//! - Linux 6.12, `tcp_veno.c`.

use crate::delays::Delays;
use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks, Window,
    above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

/// Veno in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "veno",
    kind: Kind::LossAndDelay,
    summary: "Reno that cuts less when the queue is short, and grows slower when it is long",
    reference: "Fu, Liew 2003; Linux tcp_veno.c",
    year: 2003,
    marks: Marks::AsSet,
    source: include_str!("veno.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Veno::new(init, &params.parse()?))),
};

/// Parameters of Veno. The defaults are those of the paper and of Linux, where they are constants.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The segments in the queue from which a loss counts as congestion; counted in halves.
    #[serde(deserialize_with = "above_zero")]
    pub beta: f64,
    /// Share kept after a loss with a shorter queue.
    #[serde(deserialize_with = "share")]
    pub kept_by_chance: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { beta: 3.0, kept_by_chance: 0.8 }
    }
}

/// The Veno controller of one flow.
#[derive(Clone, Debug)]
pub struct Veno {
    /// `beta`, in half segments.
    beta: u64,
    kept_by_chance: f64,
    window: Window,
    delays: Delays,
    /// RTTs of the connection, in the kernel's 16 bits.
    count: u16,
    /// Half segments in the queue.
    diff: u64,
    /// Whether this round trip of two in congestion is the one with growth.
    grows: bool,
}

impl Veno {
    /// Veno at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        Self {
            beta: libm::round(2.0 * config.beta).max(1.0) as u64,
            kept_by_chance: config.kept_by_chance,
            window: Window::new(init),
            delays: Delays::new(),
            count: 0,
            diff: 0,
            grows: true,
        }
    }

    /// Estimates the queue, from the RTTs since the last ACK that counted.
    fn estimate(&mut self) {
        let (base, rtt) = (self.delays.base(), self.delays.least());
        let window = u128::from(self.window.cwnd()) << 1;
        let target = window * u128::from(base) / u128::from(rtt);
        self.diff = u64::try_from(window.saturating_sub(target)).unwrap_or(u64::MAX);
    }

    /// Congestion avoidance with a queue: a segment for every other window of ACKs.
    fn grow_slowly(&mut self, credit: u64) {
        let (cwnd, earned) = (self.window.cwnd(), self.window.credit());
        if earned < cwnd as f64 {
            self.window.set_credit(earned + credit as f64);
            return;
        }
        if self.grows {
            self.window.set(cwnd.saturating_add(1));
        }
        self.grows = !self.grows;
        self.window.set_credit(0.0);
    }

    fn start_over(&mut self, flow: &FlowState) {
        self.delays.start_over(flow);
        self.grows = true;
    }
}

impl CongestionControl for Veno {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_begin(&mut self, flow: &FlowState) {
        // The kernel counts the RTT of the handshake, and initializes Veno after that
        // (`tcp_veno_init`).
        self.count = u16::from(flow.min_rtt < Duration::MAX);
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        self.delays.follow(flow);
        self.delays.take(ack.rtt);
        self.count = self.count.wrapping_add(u16::from(ack.rtt.is_some()));
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.delays.follow(flow);
        if flow.is_recovering() || ack.credit == 0 || !flow.cwnd_limited {
            return;
        }
        let heeds = self.delays.is_on();
        let is_known = heeds && self.count > 2;
        if is_known {
            self.estimate();
        }
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            if is_known && self.diff >= self.beta {
                self.grow_slowly(rest);
            } else {
                self.window.grow(self.window.cwnd() as f64, rest);
            }
        }
        if is_known {
            self.window.set(self.window.cwnd().max(2));
        }
        if heeds {
            self.delays.forget_least();
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let kept = if self.diff < self.beta { self.kept_by_chance } else { 0.5 };
        self.window.shrink(flow, event, kept);
        self.delays.on_congestion(flow, event.cause);
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
        // `N`: segments estimated to be in the queue.
        record("diff", self.diff as f64 / 2.0);
        // Minimum RTT of the flow, in milliseconds; 0 until there is one.
        record("base_rtt_ms", self.delays.base_ms());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::testing::{INIT, Path};

    fn veno() -> Veno {
        Veno::new(&INIT, &Config::default())
    }

    #[test]
    fn a_loss_without_a_queue_keeps_four_fifths() {
        let mut cc = veno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        while path.cwnd() < 80 {
            path.round();
        }
        path.congestion(Cause::Loss);
        assert_eq!(path.cwnd(), 64);
    }

    #[test]
    fn a_loss_with_a_queue_keeps_half() {
        // 80 * 10 / 110 = 7.3 wait, which is more than 3; in halves and truncated: 160 - 160 * 100
        // / 110 = 15.
        let mut cc = veno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.round();
        path.rtt = Duration::from_millis(110);
        while path.cwnd() < 80 {
            path.round();
        }
        path.congestion(Cause::Loss);
        assert_eq!(path.cwnd(), 40);
    }

    #[test]
    fn with_a_queue_the_window_grows_every_other_round_trip() {
        // In every other round trip, 20 of 21 ACKs are saved and the next one buys a segment. With
        // 20 to 22 segments, 20 * 20 / 120 = 3.3 wait. The first ACK that buys is the first of the
        // second round trip; the next, with 21 to be saved, is the third of the third and buys
        // nothing, and the one after that is the fourth of the fourth.
        let mut cc = veno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.round();
        path.rtt = Duration::from_millis(120);
        path.round();
        path.congestion(Cause::Loss);
        assert_eq!(path.cwnd(), 20);
        let seen: Vec<_> = (0..4).map(|_| path.round()).collect();
        assert_eq!(seen, [20, 21, 21, 22]);
    }

    #[test]
    fn without_a_queue_the_window_grows_every_round_trip() {
        let mut cc = veno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.round();
        path.congestion(Cause::Loss);
        let seen: Vec<_> = (0..4).map(|_| path.round()).collect();
        assert_eq!(seen, [17, 18, 19, 20]);
    }
}
