//! TCP-NV (new Vegas): a window slightly above the one that the measured rate needs, for data
//! centres.
//!
//! Like Vegas, NV reduces the window before a queue overflows. It is designed for hosts whose
//! network cards deliver segments in batches, so that a single RTT has little meaning. Each ACK
//! gives a rate, the delivered data over its smoothed RTT, and the maximum of a round trip counts.
//! Once per round trip the window is compared with `W = maximum rate * minimum RTT / mss + nv_pad`:
//!
//! - more than `W`, with enough samples (60, or 30 in the first slow start) and two round trips
//!   without a decision: slow start is over, the window is reduced by 30 % of the excess, or to `W`
//!   if that is near, and stops growing;
//! - at most `W` less `nv_pad_buffer`, with 20 samples: the window may grow again, by a segment per
//!   round trip;
//! - between: no change.
//!
//! A loss keeps 80 %, and the window does not grow until the next round allows it. Each timeout
//! halves the speed of growth, down to 1/256, and eight good rounds double it. The minimum RTT is
//! renewed about every `nv_reset_period`, at random between 3/4 and 5/4 of it, so that flows do not
//! do so together.
//!
//! NV is meant for networks in which all flows use it: flows that fill queues push it aside. With
//! few samples, as with small windows, the window does not change.
//!
//! Implemented to the integer as in Linux. The backend `linux` passes the random numbers drawn here
//! to the kernel.
//!
//! - Brakmo: TCP-NV: congestion avoidance for data centers, Linux Plumbers Conference 2010; NV: an
//!   update, netdev 2016.
//! - Linux 6.12, `tcp_nv.c`.

use crate::kernel::{jiffies, micros};
use crate::params::whole_where;
use crate::random::Random;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Phase, Window, defaults,
};
use serde::{Deserialize, Deserializer, Serialize};
use tcplab_units::Duration;

#[cfg(test)]
mod tests;

/// NV in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "nv",
    kind: Kind::Delay,
    summary: "a window a little above what the measured rate needs, inside a data centre",
    reference: "Brakmo: TCP-NV, Linux Plumbers Conference 2010",
    year: 2010,
    marks: Marks::AsSet,
    source: include_str!("nv.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Nv::new(init, params.parse()?))),
};

/// Parameters of NV: those of the kernel's module, with its defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Segments that may be queued.
    #[serde(deserialize_with = "count")]
    pub nv_pad: u64,
    /// The interval at which the minimum RTT is renewed, in seconds.
    #[serde(deserialize_with = "count")]
    pub nv_reset_period: u64,
    /// The minimum window after reductions due to delay, in segments.
    #[serde(deserialize_with = "count")]
    pub nv_min_cwnd: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { nv_pad: 10, nv_reset_period: 5, nv_min_cwnd: 2 }
    }
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_where(
        deserializer,
        |number| (1..=65535).contains(&number),
        "a whole number from 1 to 65535",
    )
}

/// The window does not grow when it is this close to too large.
const PAD_BUFFER: u64 = 2;
/// The share of the excess that is removed, in 1/128: 30 %.
const CONGESTION_DECREASE: u64 = 30 * 128 / 100;
/// Share kept after a loss, in 1/1024: 80 %.
const LOSS_KEPT: u64 = 819;
/// The samples that a round trip needs to end slow start, to decrease and to increase.
const SAMPLES_TO_END_SLOW_START: u8 = 30;
const SAMPLES_TO_DECREASE: u8 = 60;
const SAMPLES_TO_INCREASE: u8 = 20;
/// Round trips after which growth stops although samples are few, and before a decrease.
const ROUNDS_TO_STOP: u8 = 10;
const ROUNDS_TO_DECREASE: u8 = 2;
/// Good decisions in a row that speed up growth after timeouts.
const GOOD_ROUNDS: u64 = 8;
/// Windows with less than one sample a round trip may grow up to this many segments.
const LEAST_WINDOW: u64 = 4;
const LEAST_WINDOW_BOUND: u64 = 81;
const HZ: u64 = 1000;
/// The unit of rates: a byte per 80,000 microseconds, 100 bit/s.
const RATE_SCALE: u64 = 80_000;

/// The NV controller of one flow.
#[derive(Clone, Debug)]
pub struct Nv {
    config: Config,
    window: Window,
    random: Random,
    /// When the minimum RTT is renewed, in jiffies.
    renewal: Option<u64>,
    /// The minimum RTT, and the next one, in microseconds.
    min_rtt: u64,
    next_min_rtt: u64,
    /// Growth is this power of two of a segment per round trip; never above 0 here.
    growth: i8,
    may_grow: bool,
    /// Whether the round restarts once the sender is steady.
    needs_reset: bool,
    least_window: u64,
    round: Round,
    /// The last `W`.
    ideal: u64,
}

/// The state that a loss episode resets.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The round ends when more than this is acknowledged.
    end: u64,
    una: u64,
    samples: u8,
    /// Round trips since the last decision.
    undecided: u8,
    /// Smoothed, in microseconds; 0 for none.
    rtt: u64,
    max_rate: u64,
    good_rounds: u64,
}

impl Round {
    fn new(una: u64) -> Self {
        Self { end: una, una, ..Self::default() }
    }
}

impl Nv {
    /// NV at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let mut random = Random::new(init.seed);
        // The ACK of the handshake draws one (`tcpnv_acked`), whose effect `tcpnv_init` discards.
        random.byte();
        Self {
            config,
            window: Window::new(init),
            random,
            renewal: None,
            min_rtt: u64::from(u32::MAX),
            next_min_rtt: u64::from(u32::MAX),
            growth: 0,
            may_grow: true,
            needs_reset: false,
            least_window: LEAST_WINDOW,
            round: Round::default(),
            ideal: 0,
        }
    }

    fn begin_anew(&mut self, flow: &FlowState) {
        if std::mem::take(&mut self.needs_reset) {
            self.round = Round::new(flow.una);
        }
    }

    /// Adds an RTT and the bytes delivered meanwhile.
    fn sample(&mut self, rtt: u64, bytes: u64) {
        let round = &mut self.round;
        if round.rtt > 0 {
            round.rtt = u64::midpoint(rtt, round.rtt);
        } else {
            round.rtt = rtt;
            self.min_rtt = rtt << 1;
        }
        let rate = bytes.saturating_mul(RATE_SCALE) / round.rtt.max(1);
        // The kernel keeps 32 bits.
        round.max_rate = round.max_rate.max(rate & u64::from(u32::MAX));
        round.samples = round.samples.saturating_add(1);
        self.min_rtt = self.min_rtt.min(round.rtt);
        self.next_min_rtt = self.next_min_rtt.min(round.rtt);
    }

    /// Renews the minimum RTT when it is time.
    fn renew(&mut self, now: u64) {
        if now < *self.renewal.get_or_insert(now.saturating_add(2 * HZ)) {
            return;
        }
        self.min_rtt = std::mem::replace(&mut self.next_min_rtt, u64::from(u32::MAX));
        let period = self.config.nv_reset_period * (384 + u64::from(self.random.byte())) * HZ;
        self.renewal = Some(now.saturating_add(period >> 9));
        self.least_window = (self.least_window / 2).max(LEAST_WINDOW);
    }

    /// Ends a round trip and judges the window.
    fn end_round(&mut self, flow: &FlowState, acked_bytes: u64) {
        let round = &mut self.round;
        round.end = flow.nxt;
        round.undecided = round.undecided.saturating_add(1);
        let (mss, least) = (flow.mss.max(1), self.least_window);
        if round.samples == 1
            && acked_bytes >= (least - 1).saturating_mul(mss)
            && least < LEAST_WINDOW_BOUND
        {
            // A window whose ACK arrives all at once is too small to be judged.
            self.least_window = (least + 2).min(LEAST_WINDOW_BOUND);
            round.end = flow.nxt.saturating_add(self.least_window.saturating_mul(mss));
            round.samples = 0;
            self.may_grow = true;
            return;
        }
        let by_rate = u128::from(round.max_rate) * u128::from(self.min_rtt)
            / (u128::from(RATE_SCALE) * u128::from(mss));
        self.ideal = by_rate as u64 + self.config.nv_pad;
        let cwnd = self.window.cwnd();
        let is_decided = if cwnd > self.ideal {
            self.decrease(cwnd - self.ideal)
        } else {
            cwnd <= self.ideal.saturating_sub(PAD_BUFFER) && self.increase()
        };
        if is_decided {
            self.round.samples = 0;
            self.round.undecided = 0;
            self.round.max_rate = 0;
            self.window.set(self.window.cwnd().max(self.config.nv_min_cwnd));
        }
    }

    /// Reduces a window that is too large by `excess`. Returns whether there were enough samples.
    fn decrease(&mut self, excess: u64) -> bool {
        let round = &mut self.round;
        if round.undecided < ROUNDS_TO_DECREASE {
            return false;
        }
        if self.window.in_first_slow_start() {
            if round.samples < SAMPLES_TO_END_SLOW_START {
                return false;
            }
        } else if round.samples < SAMPLES_TO_DECREASE {
            self.may_grow &= round.undecided <= ROUNDS_TO_STOP;
            return false;
        }
        self.may_grow = false;
        self.window.set_threshold(self.ideal);
        let cwnd = self.window.cwnd();
        self.window.set(if excess > 2 {
            cwnd - ((u128::from(excess) * u128::from(CONGESTION_DECREASE)) >> 7).max(2) as u64
        } else {
            self.ideal
        });
        round.good_rounds = 0;
        true
    }

    /// Lets the window grow. Returns whether there were enough samples.
    fn increase(&mut self) -> bool {
        if self.round.samples < SAMPLES_TO_INCREASE {
            return false;
        }
        self.may_grow = true;
        self.round.good_rounds += 1;
        if self.growth < 0 && self.round.good_rounds > GOOD_ROUNDS {
            self.growth += 1;
            self.round.good_rounds = 0;
        }
        true
    }
}

impl CongestionControl for Nv {
    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        if self.renewal.is_none() {
            self.renewal = Some(jiffies(flow.now).saturating_add(2 * HZ));
            self.round = Round::new(flow.una);
        }
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        let Some(rtt) = ack.rtt.map(micros) else { return };
        if flow.phase > Phase::Disorder {
            return;
        }
        let acked_bytes = flow.una.saturating_sub(self.round.una);
        self.round.una = flow.una;
        let delivered = flow.delivered.saturating_add(ack.delivered);
        let meanwhile = delivered.saturating_sub(ack.delivered_at_send.unwrap_or(0));
        if meanwhile == 0 {
            return;
        }
        self.sample(rtt, meanwhile.saturating_mul(flow.mss));
        self.renew(jiffies(flow.now));
        if self.round.end < flow.una {
            self.end_round(flow, acked_bytes);
        }
    }

    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.phase == Phase::Open {
            self.begin_anew(flow);
        }
        if flow.is_recovering() || ack.credit == 0 || !flow.cwnd_limited || !self.may_grow {
            return;
        }
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            let price = self.window.cwnd() as f64;
            let slower = f64::from(1_u32 << self.growth.unsigned_abs());
            self.window.grow(if self.growth < 0 { price * slower } else { price.max(4.0) }, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.needs_reset = true;
        self.may_grow = false;
        if event.cause == Cause::Timeout {
            self.growth = (self.growth - 1).max(-8);
        }
        let kept = (u128::from(self.window.cwnd()) * u128::from(LOSS_KEPT)) >> 10;
        self.window.shrink_to(flow, event, kept as u64);
    }

    fn on_resized(&mut self, _flow: &FlowState) {
        self.needs_reset = true;
        self.may_grow = false;
        self.growth = (self.growth - 1).max(-8);
        self.window.vouch();
    }

    fn on_recovered(&mut self, flow: &FlowState) {
        self.begin_anew(flow);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Maximum delivery rate since the last decision, in Mbit/s.
        record("rate_mbit_s", self.round.max_rate as f64 / 1e4);
        // Minimum RTT, in milliseconds; 4294967.295 until there is one.
        record("min_rtt_ms", self.min_rtt as f64 / 1e3);
        // Smoothed RTT, in milliseconds; 0 until there is one.
        record("rtt_ms", self.round.rtt as f64 / 1e3);
        // The last `W`: segments that fill the path at that rate and the minimum RTT.
        record("ideal_cwnd", self.ideal as f64);
        // RTT samples in the current round trip.
        record("samples", f64::from(self.round.samples));
        // 1 if the window may grow, else 0.
        record("may_grow", f64::from(u8::from(self.may_grow)));
        // Base-2 logarithm of the segments by which the window grows per round trip; never above
        // 0.
        record("growth", f64::from(self.growth));
    }
}
