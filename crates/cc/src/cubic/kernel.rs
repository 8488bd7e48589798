//! CUBIC as computed by Linux (`tcp_cubic.c`), to the integer.
//!
//! Differences from RFC 9438: time is in jiffies of a millisecond, and seconds of the curve in
//! 1/1024. The number of acknowledged segments per increment of the window (`cnt`) is whole,
//! computed at most once a jiffy. Reno's window is followed with a single slope, that of congestion
//! avoidance below the old window. A timeout resets everything. Growth without a plateau is at
//! least 5 % a round trip. `HyStart` is the one of 2008 (`slow_start::hystart`).

use super::Config;
use crate::kernel::{jiffies, micros};
use crate::slow_start::HyStart;
use crate::{Ack, Cause, Congestion, CongestionControl, Control, FlowState, Init, Window};
use tcplab_units::Duration;

/// The unit of shares: 1/1024.
const SCALE: u64 = 1024;
/// Times of the curve are in 2^-10 s.
const TIME_BITS: u32 = 10;
/// Jiffies a second.
const HZ: u64 = 1000;
/// The most acknowledged segments per increment of the window (`cnt`) without a plateau ahead.
const MOST_WITHOUT_PLATEAU: u64 = 20;

/// The kernel's CUBIC, for one flow.
#[derive(Clone, Debug)]
pub(crate) struct KernelCubic {
    /// Share kept after congestion, in 1/1024.
    beta: u64,
    /// C in 1/10240: `bic_scale * 10`.
    scale: u64,
    fast_convergence: bool,
    tcp_friendly: bool,
    window: Window,
    hystart: Option<HyStart>,
    /// Minimum RTT in microseconds; 0 until there is one.
    delay_min: u64,
    curve: Curve,
}

/// The state that a timeout resets.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// Acknowledged segments for one segment of growth.
    cnt: u64,
    last_max_cwnd: u64,
    last_cwnd: u64,
    /// When `cnt` was computed.
    last_time: u64,
    origin_point: u64,
    /// `K`.
    k: u64,
    /// The start of this stage, in jiffies.
    epoch_start: Option<u64>,
    ack_cnt: u64,
    /// The window that Reno would have.
    tcp_cwnd: u64,
}

impl KernelCubic {
    pub fn new(init: &Init, config: &Config) -> Self {
        // The module's parameters are whole numbers: 0.7 is 717 / 1024, 0.4 is 41 * 10 / 1024.
        let beta = libm::round(config.beta * SCALE as f64) as u64;
        let scale = 10 * libm::round(config.c * SCALE as f64 / 10.0).max(1.0) as u64;
        Self {
            beta: beta.min(SCALE - 1),
            scale,
            fast_convergence: config.fast_convergence,
            tcp_friendly: config.tcp_friendly,
            window: config.window(init),
            hystart: config.hystart.then(HyStart::default),
            delay_min: 0,
            curve: Curve::default(),
        }
    }

    /// Computes the acknowledged segments per increment of the window, `cnt` (`bictcp_update`).
    fn update(&mut self, now: u64, acked: u64) {
        let cwnd = self.window.cwnd();
        let delay_min = self.delay_min.div_ceil(1000 * 1000 / HZ);
        let (scale, beta) = (self.scale, self.beta);
        let curve = &mut self.curve;
        curve.ack_cnt = curve.ack_cnt.saturating_add(acked);
        if curve.last_cwnd == cwnd && now.saturating_sub(curve.last_time) <= HZ / 32 {
            return;
        }
        if curve.epoch_start.is_none() || curve.last_time != now {
            curve.last_cwnd = cwnd;
            curve.last_time = now;
            let epoch_start = *curve.epoch_start.get_or_insert_with(|| {
                curve.ack_cnt = acked;
                curve.tcp_cwnd = cwnd;
                curve.k = 0;
                curve.origin_point = cwnd.max(curve.last_max_cwnd);
                if curve.last_max_cwnd > cwnd {
                    let factor = (1_u64 << (10 + 3 * TIME_BITS)) / scale;
                    curve.k = cubic_root(factor.saturating_mul(curve.last_max_cwnd - cwnd));
                }
                now
            });
            let passed = now.saturating_sub(epoch_start).saturating_add(delay_min);
            let t = (passed.min(u64::MAX >> 11) << TIME_BITS) / HZ;
            let offset = t.abs_diff(curve.k);
            let cube = u128::from(offset) * u128::from(offset) * u128::from(offset);
            let delta = scale_down(cube, scale);
            let target = if t < curve.k {
                curve.origin_point.saturating_sub(delta)
            } else {
                curve.origin_point.saturating_add(delta)
            };
            curve.cnt =
                if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            if curve.last_max_cwnd == 0 {
                curve.cnt = curve.cnt.min(MOST_WITHOUT_PLATEAU);
            }
        }
        if self.tcp_friendly {
            // Three times (1 - beta) / (1 + beta) segments a round trip, in eighths.
            let slope = 8 * (SCALE + beta) / 3 / (SCALE - beta);
            let per_segment = (cwnd.saturating_mul(slope) >> 3).max(1);
            let grown = curve.ack_cnt.saturating_sub(1) / per_segment;
            curve.ack_cnt -= grown * per_segment;
            curve.tcp_cwnd = curve.tcp_cwnd.saturating_add(grown);
            if curve.tcp_cwnd > cwnd {
                curve.cnt = curve.cnt.min(cwnd / (curve.tcp_cwnd - cwnd));
            }
        }
        // At most half a window of growth in a round trip.
        curve.cnt = curve.cnt.max(2);
    }

    /// Resets the curve (`bictcp_reset`, `bictcp_hystart_reset`).
    fn forget(&mut self, flow: &FlowState) {
        self.curve = Curve::default();
        self.delay_min = 0;
        if let Some(hystart) = &mut self.hystart {
            *hystart = HyStart::beginning(flow);
        }
    }

    /// Adds an RTT sample (`cubictcp_acked`).
    fn take_rtt(&mut self, flow: &FlowState, rtt: Duration) {
        let now = jiffies(flow.now);
        if self.curve.epoch_start.is_some_and(|start| now.saturating_sub(start) < HZ) {
            // Delays right after a recovery do not reflect the queue.
            return;
        }
        let delay = micros(rtt).max(1);
        if self.delay_min == 0 || delay < self.delay_min {
            self.delay_min = delay;
        }
        // A window being reduced counts as slow start once it is below the threshold.
        let in_slow_start = flow.cwnd < self.window.ssthresh();
        if let Some(hystart) = self.hystart.as_mut().filter(|_| in_slow_start)
            && hystart.is_over(flow, flow.cwnd, delay, self.delay_min)
        {
            self.window.set(flow.cwnd);
            self.window.leave_slow_start();
        }
    }
}

/// `cube`, in 2^-30 s cubed, times C, in segments.
fn scale_down(cube: u128, scale: u64) -> u64 {
    let product = cube.saturating_mul(u128::from(scale)) >> (10 + 3 * TIME_BITS);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// A cube root by one step of Newton's method, as imprecise as the kernel's: 0.2 % on average.
fn cubic_root(a: u64) -> u64 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        return (first_guess(a) + 25) >> 6;
    }
    let b = ((bits * 84) >> 8) - 1;
    let x = (first_guess(a >> (b * 3)) << b) >> 6;
    let x = 2 * x + a / (x * (x - 1));
    (x * 341) >> 10
}

/// The initial guess of Newton's method for numbers whose first six bits are `x`, in 1/64.
///
/// The step multiplies by 341/1024 instead of dividing by 3, which is too small by 1/1024. If the
/// guess exceeds the root by a share e, Newton's result is too large by about e^2. With e = 1/32
/// the two errors cancel: 64 * 33/32 = 66 times the root of the middle, x + 1/2. The kernel's own
/// guesses were refined by hand from there. 23 of the 56 relevant ones differ from the rule, and so
/// do the results. These 23 are measured behaviour, for which no rule is known. Guesses that
/// minimize the error over all numbers with these bits (the largest error, the mean or the mean
/// square; exact or in integers; for all lengths of numbers or some) still differ in at least 15
/// places.
fn first_guess(x: u64) -> u64 {
    if x == 0 {
        return 0;
    }
    let rule = libm::round(66.0 * libm::cbrt(x as f64 + 0.5)) as u64;
    match x {
        8 => rule - 2,
        9..=11 | 16 | 18 | 20 | 21 | 24 | 32..=35 | 45 => rule - 1,
        15 | 25 | 27 | 30 | 31 | 42 | 56 | 60 | 63 => rule + 1,
        _ => rule,
    }
}

impl CongestionControl for KernelCubic {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.take_rtt(flow, rtt);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || !flow.cwnd_limited || ack.credit == 0 {
            return;
        }
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            self.update(jiffies(flow.now), rest);
            self.window.grow(self.curve.cnt as f64, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if !event.again {
            let cwnd = self.window.cwnd();
            self.curve.epoch_start = None;
            self.curve.last_max_cwnd = if cwnd < self.curve.last_max_cwnd && self.fast_convergence {
                (u128::from(cwnd) * u128::from(SCALE + self.beta) / u128::from(2 * SCALE)) as u64
            } else {
                cwnd
            };
        }
        self.window.shrink(flow, event, self.beta as f64 / SCALE as f64);
        if event.cause == Cause::Timeout {
            self.forget(flow);
        }
    }

    fn on_resized(&mut self, flow: &FlowState) {
        self.forget(flow);
        self.window.vouch();
    }

    fn on_transmit_start(&mut self, flow: &FlowState, idle: Duration) {
        let now = jiffies(flow.now);
        // Idle time does not count on the curve.
        if let Some(start) = &mut self.curve.epoch_start {
            *start = start.saturating_add(idle.as_millis()).min(now);
        }
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        record("w_max", self.curve.last_max_cwnd as f64);
        record("k", self.curve.k as f64 / SCALE as f64);
        record("w_est", self.curve.tcp_cwnd as f64);
        // Only with the Linux flavour: acknowledged segments per segment of growth.
        record("cnt", self.curve.cnt as f64);
        // Only with the Linux flavour: minimum RTT, in milliseconds; 0 until there is one.
        record("delay_min_ms", self.delay_min as f64 / 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LINUX, Path};

    fn cubic(hystart: bool) -> KernelCubic {
        KernelCubic::new(&LINUX, &Config { hystart, ..Config::default() })
    }

    #[test]
    fn the_cube_root_is_within_one_percent_of_the_root() {
        for a in [1_u64, 8, 27, 63, 64, 100, 1000, 123_456, 1 << 30, 1 << 40, (1 << 50) + 12_345] {
            let exact = libm::cbrt(a as f64);
            let found = cubic_root(a) as f64;
            assert!((found - exact).abs() <= 0.01 * exact + 0.5, "{a}: {found} for {exact}");
        }
    }

    #[test]
    fn small_roots_are_rounded() {
        // Within half a unit, except for 42, whose root is 3.476: the kernel returns 4.
        for a in (0..64_u64).filter(|a| *a != 42) {
            assert_eq!(cubic_root(a), libm::round(libm::cbrt(a as f64)) as u64, "{a}");
        }
        assert_eq!(cubic_root(42), 4);
    }

    #[test]
    fn cubic_root_initial_guess_keeps_error_within_0_16_percent() {
        // Far from the limits of integers only the guess and 341/1024 cause errors: at most 1/1024
        // either way for the rule; the refined guesses stay within 0.16 %.
        for x in 8..64_u64 {
            for part in 0..16_u64 {
                let a = (x << 45) + (part << 41);
                let exact = libm::cbrt(a as f64);
                let off = (cubic_root(a) as f64 - exact) / exact;
                assert!(off.abs() <= 0.0016, "{a}: {off}");
            }
        }
    }

    #[test]
    fn cubic_roots_match_the_kernel_checksum() {
        // A checksum (FNV-1a) of 200,000 roots, over all lengths of numbers, computed with the
        // kernel's own table of guesses, which the rule replaced.
        let mut state = 1_u64;
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        for number in 0..200_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            for byte in cubic_root(state >> (number % 64)).to_le_bytes() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!(sum, 0x3038_ec74_0a26_6a08);
    }

    #[test]
    fn keeps_717_of_1024() {
        let mut cc = cubic(false);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        for _ in 0..4 {
            path.round();
        }
        assert_eq!(path.cwnd(), 160);
        path.congestion(Cause::Loss);
        // 160 * 717 / 1024 = 112.03, and the segments of the ACK that ends recovery count.
        let control = path.cwnd();
        assert!((112..=113).contains(&control), "{control}");
    }

    #[test]
    fn returns_to_the_old_window_after_k() {
        // K = cbrt(0.3 * W / C): for W = 160 and C = 0.4004 it is 4.93 s.
        let mut cc = cubic(false);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        for _ in 0..4 {
            path.round();
        }
        path.congestion(Cause::Loss);
        for _ in 0..48 {
            path.round();
        }
        let k = path.probe("k");
        assert!((k - 4.93).abs() < 0.05, "{k}");
        assert!((156..=162).contains(&path.cwnd()), "{}", path.cwnd());
    }

    #[test]
    fn timeout_resets_w_max() {
        let mut cc = cubic(false);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.round();
        path.congestion(Cause::Timeout);
        assert!(path.probe("w_max") < 1.0);
    }
}
