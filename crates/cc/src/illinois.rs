//! Illinois: losses decide when the window shrinks; delay decides by how much, and how fast the
//! window grows again.
//!
//! The window W grows by alpha a round trip and shrinks by the share beta at a loss, as in Reno
//! with 1 and 1/2. In Illinois both depend on the mean queueing delay `da` of the last round trip,
//! compared with the maximum ever seen, `dm`:
//!
//! - alpha is `alpha_max` (10) while `da` is below 1 % of `dm`, and falls from there like 1/`da`,
//!   down to `alpha_min` (0.3) at `dm`. Once the delay has been above 1 %, alpha returns to
//!   `alpha_max` only after `theta` round trips below.
//! - beta is `beta_min` (1/8) up to a tenth of `dm`, `beta_max` (1/2) from eight tenths on, and
//!   linear between.
//!
//! The window is therefore concave over time: it rises fast far from congestion and slowly near it,
//! and a loss without a queue costs little. Illinois fills fast long paths better than Reno and
//! shares well with it. Below `win_thresh` segments, and after a timeout, alpha is 1 and beta 1/2:
//! Reno. The maximum delay is never reset, so one outlier misleads it permanently.
//!
//! Both flavours use the kernel's arithmetic, alpha in 1/128 and beta in 1/64. `win_thresh` and
//! `theta` are parameters of the kernel's module too, but can only be set when the module is
//! loaded.
//!
//! - Liu, Başar, Srikant: TCP-Illinois: A Loss and Delay-Based Congestion Control Algorithm for
//!   High-Speed Networks, VALUETOOLS 2006; Performance Evaluation 65, 2008.
//! - Linux 6.12, `tcp_illinois.c`.

use crate::kernel::micros;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Window, above_zero, defaults, share, whole,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

/// Illinois in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "illinois",
    kind: Kind::LossAndDelay,
    summary: "the delay sets how fast the window grows, and how much a loss cuts it",
    reference: "Liu, Başar, Srikant 2006; Linux tcp_illinois.c",
    year: 2006,
    marks: Marks::AsSet,
    source: include_str!("illinois.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Illinois::new(init, &params.parse()?))),
};

/// The units of alpha and of beta.
const ALPHA_ONE: u64 = 128;
const BETA_ONE: u64 = 64;
/// No RTT sample yet, in microseconds.
const UNKNOWN: u64 = 0x7fff_ffff;

/// Parameters of Illinois. The defaults are those of the paper and of Linux.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Growth of the window in segments per round trip without a queue.
    #[serde(deserialize_with = "above_zero")]
    pub alpha_max: f64,
    /// Growth of the window in segments per round trip with the longest queue.
    #[serde(deserialize_with = "above_zero")]
    pub alpha_min: f64,
    /// Share that a loss takes with the longest queue.
    #[serde(deserialize_with = "share")]
    pub beta_max: f64,
    /// Share that a loss takes without a queue.
    #[serde(deserialize_with = "share")]
    pub beta_min: f64,
    /// Windows below this, in segments, behave as in Reno.
    #[serde(deserialize_with = "whole")]
    pub win_thresh: u64,
    /// Round trips without a queue before the window grows by `alpha_max` again.
    #[serde(deserialize_with = "whole")]
    pub theta: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha_max: 10.0,
            alpha_min: 0.3,
            beta_max: 0.5,
            beta_min: 0.125,
            win_thresh: 15,
            theta: 5,
        }
    }
}

/// A minimum and maximum, in the kernel's fixed point.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: u64,
    max: u64,
}

impl Range {
    fn new(one: u64, min: f64, max: f64) -> Self {
        let fixed = |value: f64| ((value * one as f64) as u64).clamp(1, u64::from(u32::MAX));
        Self { min: fixed(min), max: fixed(max).max(fixed(min)) }
    }
}

/// The Illinois controller of one flow.
#[derive(Clone, Debug)]
pub struct Illinois {
    alphas: Range,
    betas: Range,
    win_thresh: u64,
    theta: u64,
    window: Window,
    /// Segments a round trip, in 1/128.
    alpha: u64,
    /// Share that a loss takes, in 1/64.
    beta: u64,
    /// RTTs of the connection, in microseconds.
    least: u64,
    greatest: u64,
    /// The sum of the round trip's RTTs, and their number in the kernel's 16 bits.
    sum: u64,
    count: u16,
    /// The sequence number of the next new data when the round trip began.
    begin: u64,
    /// Segments of this ACK.
    acked: u64,
    /// Whether the delay has been above the lowest range.
    was_above: bool,
    /// Round trips below that range since.
    rounds_below: u64,
    /// `da` and `dm` of the last round trip.
    delays: (u64, u64),
}

impl Illinois {
    /// Illinois at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        let alphas = Range::new(ALPHA_ONE, config.alpha_min, config.alpha_max);
        Self {
            alphas,
            betas: Range::new(BETA_ONE, config.beta_min, config.beta_max),
            win_thresh: config.win_thresh,
            theta: config.theta,
            window: Window::new(init),
            alpha: alphas.max,
            beta: BETA_ONE / 2,
            least: UNKNOWN,
            greatest: 0,
            sum: 0,
            count: 0,
            begin: 0,
            acked: 0,
            was_above: false,
            rounds_below: 0,
            delays: (0, 0),
        }
    }

    fn take(&mut self, rtt: Duration) {
        // Larger values would overflow the kernel's arithmetic.
        let rtt = micros(rtt).min(u64::from(u32::MAX) / self.alphas.max);
        self.least = self.least.min(rtt);
        self.greatest = self.greatest.max(rtt);
        self.sum = self.sum.saturating_add(rtt);
        self.count = self.count.wrapping_add(1);
    }

    fn begin_round(&mut self, flow: &FlowState) {
        self.begin = flow.nxt;
        (self.sum, self.count) = (0, 0);
    }

    /// Resets both after a timeout (`tcp_illinois_state`).
    fn forget(&mut self, flow: &FlowState) {
        self.be_reno();
        self.rounds_below = 0;
        self.was_above = false;
        self.begin_round(flow);
    }

    fn be_reno(&mut self) {
        (self.alpha, self.beta) = (ALPHA_ONE, BETA_ONE / 2);
    }

    /// Computes both for the next round trip (`update_params`).
    fn decide(&mut self) {
        if self.window.cwnd() < self.win_thresh {
            self.be_reno();
        } else if self.count > 0 {
            let mean = (self.sum / u64::from(self.count)).saturating_sub(self.least);
            let most = self.greatest.saturating_sub(self.least);
            self.delays = (mean, most);
            self.alpha = self.next_alpha(mean, most);
            self.beta = self.next_beta(mean, most);
        }
    }

    fn next_alpha(&mut self, mean: u64, most: u64) -> u64 {
        let low = most / 100;
        if mean > low {
            self.was_above = true;
            // k1 / (k2 + da), with both sides multiplied to stay in whole numbers.
            let Range { min, max } = self.alphas;
            let (mean, most) = (mean - low, most - low);
            return most.saturating_mul(max) / (most + mean.saturating_mul(max - min) / min).max(1);
        }
        if self.was_above {
            self.rounds_below += 1;
            if self.rounds_below < self.theta {
                return self.alpha;
            }
            self.rounds_below = 0;
            self.was_above = false;
        }
        self.alphas.max
    }

    fn next_beta(&self, mean: u64, most: u64) -> u64 {
        let Range { min, max } = self.betas;
        let (low, high) = (most / 10, 8 * most / 10);
        if mean <= low {
            return min;
        }
        if mean >= high || high <= low {
            return max;
        }
        (min * (high - mean) + max * (mean - low)) / (high - low)
    }

    fn grow(&mut self) {
        let (cwnd, earned) = (self.window.cwnd(), self.window.credit() + self.acked as f64);
        self.acked = 1;
        self.window.set_credit(earned);
        let bought = (earned as u64).saturating_mul(self.alpha) / ALPHA_ONE;
        if bought >= cwnd {
            self.window.set(cwnd.saturating_add(bought / cwnd));
            self.window.set_credit(0.0);
        }
    }
}

impl CongestionControl for Illinois {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, _flow: &FlowState, ack: &Ack) {
        if ack.is_idle {
            return;
        }
        self.acked = ack.acked;
        if let Some(rtt) = ack.rtt {
            self.take(rtt);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || ack.credit == 0 {
            return;
        }
        if flow.una > self.begin {
            self.decide();
            self.begin_round(flow);
        }
        if !flow.cwnd_limited {
            return;
        }
        if self.window.in_slow_start() {
            self.window.slow_start(ack.credit);
        } else {
            self.grow();
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let cwnd = self.window.cwnd();
        let cut = u128::from(cwnd) * u128::from(self.beta) / u128::from(BETA_ONE);
        self.window.shrink_to(flow, event, cwnd - u64::try_from(cut).unwrap_or(cwnd).min(cwnd));
        if event.cause == Cause::Timeout {
            self.forget(flow);
        }
    }

    fn on_resized(&mut self, flow: &FlowState) {
        self.forget(flow);
        self.window.vouch();
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Segments by which the window grows per round trip.
        record("alpha", self.alpha as f64 / ALPHA_ONE as f64);
        // Share of the window that a loss takes.
        record("beta", self.beta as f64 / BETA_ONE as f64);
        // `da`: mean queueing delay of the last round trip, in milliseconds.
        record("average_delay_ms", self.delays.0 as f64 / 1e3);
        // `dm`: maximum queueing delay seen, in milliseconds.
        record("max_delay_ms", self.delays.1 as f64 / 1e3);
        // Minimum RTT of the flow, in milliseconds; 0 until there is one.
        record("base_rtt_ms", if self.least < UNKNOWN { self.least as f64 / 1e3 } else { 0.0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{INIT, Path, windows};

    fn illinois() -> Illinois {
        Illinois::new(&INIT, &Config::default())
    }

    #[test]
    fn alpha_falls_with_queueing_delay_as_in_the_paper() {
        // The paper's k1 / (k2 + da), where delays up to 1 % of the maximum count as zero. The
        // minimum of alpha is 38 / 128 in the kernel.
        let (dm, d1, min, max) = (100_000.0, 1000.0, 38.0 / 128.0, 10.0);
        let k1 = (dm - d1) * min * max / (max - min);
        let k2 = (dm - d1) * min / (max - min) - d1;
        for da in [1001_u64, 2000, 10_000, 50_000, 100_000] {
            let found = illinois().next_alpha(da, 100_000) as f64 / 128.0;
            let expected = k1 / (k2 + da as f64);
            assert!((found - expected).abs() < 1.0 / 128.0, "{da}: {found} for {expected}");
        }
        assert_eq!(illinois().next_alpha(1000, 100_000), 1280);
    }

    #[test]
    fn alpha_returns_to_its_maximum_after_theta_low_delay_rounds() {
        // 0.3 is 38 / 128, and 10 is 1280 / 128.
        let mut cc = illinois();
        cc.alpha = cc.next_alpha(100_000, 100_000);
        let seen: Vec<_> = (0..5).map(|_| cc.next_alpha(0, 100_000)).collect();
        assert_eq!(seen, [38, 38, 38, 38, 1280]);
    }

    #[test]
    fn beta_is_linear_between_a_tenth_and_eight_tenths_of_max_delay() {
        // In 1/64; at 45 %: (8 * 35 + 32 * 35) / 70 = 20.
        for (percent, beta) in [(0, 8), (10, 8), (45, 20), (80, 32), (100, 32)] {
            assert_eq!(illinois().next_beta(percent * 1000, 100_000), beta, "{percent} %");
        }
        assert_eq!(illinois().next_beta(0, 0), 8);
    }

    #[test]
    fn without_queue_cwnd_grows_by_ten_and_loss_cuts_an_eighth() {
        // 160 - 20 = 140. 14 ACKs buy the 141st segment, and 15 each from there on: 14 + 8 * 15 =
        // 134 of the 140 ACKs buy nine.
        assert_eq!(windows(&mut illinois(), 7, &[160]), [10, 20, 40, 80, 160, 140, 149]);
    }

    #[test]
    fn small_windows_grow_and_shrink_like_reno() {
        let mut cc = illinois();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(Cause::Timeout);
        assert_eq!((path.probe("alpha"), path.probe("beta")), (1.0, 0.5));
        while path.cwnd() < 15 {
            path.round();
            assert!(path.probe("alpha") < 1.1, "{}", path.cwnd());
        }
        path.round();
        path.round();
        assert!(path.probe("alpha") > 9.9);
    }
}
