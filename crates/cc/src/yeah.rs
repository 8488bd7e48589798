//! `YeAH`: grow fast while the queue is short, like Reno when it is not, and drain it before losses
//! occur.
//!
//! Once a round trip, `YeAH` estimates how many segments of its window W wait in the queue, from
//! the minimum RTT of the round trip and the minimum ever seen:
//!
//! ```text
//! queue = W · (rtt - base_rtt) / rtt
//! ```
//!
//! - Fast mode: with `alpha` segments or fewer, and a queueing delay of at most `base_rtt / phy`,
//!   the window grows as in Scalable TCP, by one for each min(W, 100) segments acknowledged.
//! - Slow mode: otherwise the window grows as in Reno. With more than `alpha` segments in the queue
//!   the window also shrinks at once, by `queue / gamma` but at most W / 2^`epsilon`: precautionary
//!   decongestion.
//! - `reno_count` is the window that Reno would have in this flow's place, and decongestion stops
//!   there: otherwise loss-based flows would take everything. It starts as half the window when
//!   slow mode begins, grows by one each round trip in slow mode, and is reset after `zeta` round
//!   trips in fast mode.
//! - After a loss the window shrinks by the queue, at least W / 2^`delta`, at most by half. After
//!   `rho` round trips in slow mode there is competition, and the window is halved.
//!
//! `YeAH` fills long fat paths quickly and keeps their queues short, without yielding to Reno. Like
//! all delay-based algorithms it depends on having seen the path empty.
//!
//! Both flavours use the kernel's arithmetic.
//!
//! - Baiocchi, Castellani, Vacirca: `YeAH-TCP`: Yet Another Highspeed TCP, `PFLDnet` 2007.
//! - Linux 6.12, `tcp_yeah.c`.

use crate::delays::Delays;
use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks, Window,
    defaults, whole, whole_above_zero,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

/// `YeAH` in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "yeah",
    kind: Kind::LossAndDelay,
    summary: "fast while the queue is short; like Reno, and draining the queue, while it is long",
    reference: "Baiocchi, Castellani, Vacirca 2007; Linux tcp_yeah.c",
    year: 2007,
    marks: Marks::AsSet,
    source: include_str!("yeah.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Yeah::new(init, params.parse()?))),
};

/// The maximum of acknowledged segments for one segment of growth in fast mode
/// (`TCP_SCALABLE_AI_CNT`).
const SCALABLE: u64 = 100;

/// Parameters of `YeAH`, with the names and values of the constants in Linux.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The limit of segments in the queue.
    #[serde(deserialize_with = "whole")]
    pub alpha: u64,
    /// The part of the queue drained in a round trip: one `gamma`th.
    #[serde(deserialize_with = "whole_above_zero")]
    pub gamma: u64,
    /// The minimum part of the window that a loss takes: 1/2^`delta`.
    #[serde(deserialize_with = "whole")]
    pub delta: u64,
    /// The maximum part of the window that draining takes: 1/2^`epsilon`.
    #[serde(deserialize_with = "whole")]
    pub epsilon: u64,
    /// The limit of the queueing delay as a part of the minimum RTT: one `phy`th.
    #[serde(deserialize_with = "whole_above_zero")]
    pub phy: u64,
    /// Round trips in slow mode that indicate competition.
    #[serde(deserialize_with = "whole")]
    pub rho: u64,
    /// Round trips in fast mode after which Reno's window is reset.
    #[serde(deserialize_with = "whole")]
    pub zeta: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 80, gamma: 1, delta: 3, epsilon: 1, phy: 8, rho: 16, zeta: 50 }
    }
}

/// The `YeAH` controller of one flow.
#[derive(Clone, Debug)]
pub struct Yeah {
    config: Config,
    window: Window,
    delays: Delays,
    /// Segments in the queue at the end of the last round trip.
    queue: u64,
    /// Round trips in slow mode (`doing_reno_now`).
    slow_rounds: u64,
    /// Round trips in fast mode since the last loss.
    fast_rounds: u64,
    /// Reno's window.
    reno_count: u64,
}

/// A right shift that allows all bits.
fn part(segments: u64, bits: u64) -> u64 {
    segments.checked_shr(u32::try_from(bits).unwrap_or(u32::MAX)).unwrap_or(0)
}

impl Yeah {
    /// `YeAH` at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self {
            config,
            window: Window::new(init),
            delays: Delays::new(),
            queue: 0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno_count: 2,
        }
    }

    fn grow(&mut self, credit: u64) {
        let rest = self.window.slow_start(credit);
        if rest > 0 {
            let cwnd = self.window.cwnd();
            let per = if self.slow_rounds == 0 { cwnd.min(SCALABLE) } else { cwnd };
            self.window.grow(per as f64, rest);
        }
    }

    /// Chooses the mode of the next round trip.
    fn decide(&mut self) {
        let (cwnd, base, rtt) = (self.window.cwnd(), self.delays.base(), self.delays.least());
        let waited = rtt.saturating_sub(base);
        let queue = u128::from(cwnd) * u128::from(waited) / u128::from(rtt);
        self.queue = u64::try_from(queue).unwrap_or(u64::MAX);
        if self.queue <= self.config.alpha && waited <= base / self.config.phy {
            self.fast_rounds += 1;
            if self.fast_rounds > self.config.zeta {
                self.reno_count = 2;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
            return;
        }
        if self.queue > self.config.alpha && cwnd > self.reno_count {
            let drained = (self.queue / self.config.gamma).min(part(cwnd, self.config.epsilon));
            self.window.set(cwnd.saturating_sub(drained).max(self.reno_count));
            self.window.leave_slow_start();
        }
        self.reno_count = match self.reno_count {
            0..=2 => (self.window.cwnd() >> 1).max(2),
            more => more.saturating_add(1),
        };
        self.slow_rounds += 1;
    }
}

impl CongestionControl for Yeah {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        self.delays.follow(flow);
        self.delays.take(ack.rtt);
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.delays.follow(flow);
        if flow.is_recovering() || ack.credit == 0 || !flow.cwnd_limited {
            return;
        }
        self.grow(ack.credit);
        if self.delays.is_round_over(flow) {
            if self.delays.are_enough() {
                self.decide();
            }
            self.delays.begin_round(flow);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let cwnd = self.window.cwnd();
        let half = (cwnd >> 1).max(2);
        let cut = if self.slow_rounds < self.config.rho {
            self.queue.min(half).max(part(cwnd, self.config.delta))
        } else {
            half
        };
        if !event.again {
            self.fast_rounds = 0;
            self.reno_count = (self.reno_count >> 1).max(2);
        }
        self.window.shrink_to(flow, event, cwnd.saturating_sub(cut));
        self.delays.on_congestion(flow, event.cause);
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        self.delays.start_over(flow);
        self.window.restart(flow, idle);
    }

    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        self.delays.start_over(flow);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Segments in the queue at the end of the last round trip.
        record("queue", self.queue as f64);
        // 1 in slow mode, in which the window grows as in Reno, else 0.
        record("is_slow", f64::from(self.slow_rounds > 0));
        // Round trips in slow mode (`doing_reno_now`).
        record("slow_rounds", self.slow_rounds as f64);
        // Estimated window of a competing Reno flow, in segments.
        record("reno_count", self.reno_count as f64);
        // Minimum RTT of the flow, in milliseconds; 0 until there is one.
        record("base_rtt_ms", self.delays.base_ms());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::testing::{INIT, Path, windows};

    fn yeah() -> Yeah {
        Yeah::new(&INIT, Config::default())
    }

    /// At 280 segments, in fast mode, on a path of 100 ms.
    fn lose_at_320(cc: &mut Yeah) -> Path<'_> {
        windows(cc, 6, &[320]);
        Path::new(cc, Duration::from_millis(100))
    }

    #[test]
    fn a_loss_without_a_queue_keeps_seven_eighths_and_growth_is_scalable() {
        // 320 - 320 / 8 = 280. Then one for each 100 ACKs: 280 of them buy 2, and 80 + 282 buy 3.
        assert_eq!(windows(&mut yeah(), 9, &[320]), [10, 20, 40, 80, 160, 320, 280, 282, 285]);
    }

    #[test]
    fn queueing_delay_above_an_eighth_of_base_rtt_enters_slow_mode() {
        // 15 of 115 ms: 280 * 15 / 115 = 36 segments are within the limit, but 15 > 100 / 8 exceeds
        // the delay limit. It takes effect with the first ACK of the second round trip, and growth
        // is Reno's from there on; Reno's window begins at half of the 282.
        let mut cc = yeah();
        let mut path = lose_at_320(&mut cc);
        path.rtt = Duration::from_millis(115);
        path.round();
        let (before, after) = (path.round(), path.round());
        assert_eq!(after - before, 1);
        assert_eq!((path.probe("is_slow"), path.probe("reno_count")), (1.0, 142.0));
    }

    /// After a round trip with this window and RTT, on a path of 100 ms.
    fn decided(cwnd: u64, reno_count: u64, rtt_ms: u64) -> Yeah {
        let mut cc = Yeah { reno_count, ..yeah() };
        cc.window.set(cwnd);
        cc.delays.take(Some(Duration::from_millis(100)));
        cc.delays.forget_least();
        cc.delays.take(Some(Duration::from_millis(rtt_ms)));
        cc.decide();
        cc
    }

    #[test]
    fn queue_above_the_limit_is_subtracted_from_cwnd() {
        // 282 * 50,000 / 150,001 = 93.999 wait, more than 80: 282 - 93 = 189. Reno's window begins
        // at half of that.
        let cc = decided(282, 2, 150);
        assert_eq!((cc.queue, cc.window.cwnd(), cc.window.ssthresh()), (93, 189, 189));
        assert_eq!(cc.reno_count, 94);
    }

    #[test]
    fn draining_stops_at_half_and_at_renos_window() {
        // 188 * 200 / 300 = 125 wait.
        assert_eq!(decided(188, 2, 300).window.cwnd(), 94);
        let cc = decided(188, 150, 300);
        assert_eq!((cc.window.cwnd(), cc.reno_count), (150, 151));
    }

    #[test]
    fn loss_halves_cwnd_after_sixteen_slow_mode_rounds() {
        // After 16 round trips in slow mode. Until then a loss takes the queue, 13 %, but at least
        // an eighth.
        for (rounds, is_half) in [(10, false), (18, true)] {
            let mut cc = yeah();
            let mut path = lose_at_320(&mut cc);
            path.rtt = Duration::from_millis(115);
            for _ in 0..rounds {
                path.round();
            }
            let before = path.cwnd();
            path.congestion(Cause::Loss);
            let kept = path.cwnd() as f64 / before as f64;
            assert!(if is_half { (kept - 0.5).abs() < 0.01 } else { kept > 0.86 }, "{kept}");
        }
    }
}
