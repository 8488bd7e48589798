//! H-TCP: Reno for a second after each loss, then faster growth the longer there is no loss.
//!
//! With D the seconds since the last loss, a round trip adds
//!
//! a(D) = 1 up to D = 1, then 1 + 10 (D - 1) + ((D - 1) / 2)^2
//!
//! segments, times 2 (1 - b), which compensates flows with another b, the share kept after a loss.
//! `use_rtt_scaling` multiplies by RTT / 100 ms, between a tenth and two, so that flows of
//! different round trips grow equally in time.
//!
//! A loss keeps b = `RTTmin` / `RTTmax`, between 0.5 and 0.8: just enough to empty the queue that
//! caused the loss. The first loss keeps a half. With `use_bandwidth_switch`, a loss also keeps a
//! half if the throughput changed by more than a fifth since the loss before: the path has changed,
//! or other flows have come. `RTTmin` is never reset. `RTTmax` moves 5 % towards `RTTmin` with each
//! loss, and rises by no more than 20 ms a sample.
//!
//! Growth depends on time and not on the window, so flows that lose together become equal, and
//! large windows are refilled soon. On short paths, where losses come within a second, H-TCP is
//! Reno with a better b. Growth does not slow down near the old window, so a loss affects many
//! segments at once.
//!
//! - Leith, Shorten: H-TCP: TCP for high-speed and long-distance networks, `PFLDnet` 2004.
//! - draft-leith-tcp-htcp-06, 2008.
//! - Linux, `tcp_htcp.c`: implemented here to the integer, in 32 bits and milliseconds.

use crate::kernel::{jiffies, micros};
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Phase, Window, defaults,
};
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Time};

/// H-TCP in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "htcp",
    kind: Kind::Loss,
    summary: "grows faster the longer no loss occurs, and a loss keeps as much as empties the \
              queue",
    reference: "Leith, Shorten 2004",
    year: 2004,
    marks: Marks::AsSet,
    source: include_str!("htcp.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(HTcp::new(init, params.parse()?))),
};

/// Parameters of H-TCP: names and defaults are those of the kernel's module.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether to halve the window if the flow's throughput changed by more than a fifth.
    pub use_bandwidth_switch: bool,
    /// Whether flows grow equally in time instead of per round trip.
    pub use_rtt_scaling: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { use_bandwidth_switch: true, use_rtt_scaling: true }
    }
}

/// One, where shares are in 1/128.
const ONE: u32 = 1 << 7;
/// The minimum and maximum share that a loss leaves.
const LEAST_KEPT: u32 = 1 << 6;
const MOST_KEPT: u32 = 102;
/// Jiffies a second.
const HZ: u32 = 1000;
/// The largest rise of `RTTmax` in a sample, in milliseconds.
const RTT_STEP: u32 = 20;

/// The H-TCP controller of one flow.
#[derive(Clone, Debug)]
pub struct HTcp {
    config: Config,
    window: Window,
    /// Segments a round trip, in 1/128.
    alpha: u32,
    /// Share that a loss leaves, in 1/128.
    beta: u32,
    /// Whether `beta` is computed from the next loss on.
    is_adaptive: bool,
    /// The segments covered by the last ACK; one once they are counted.
    pkts_acked: u16,
    /// In milliseconds; 0 until there is one.
    min_rtt: u32,
    history: History,
    /// The state before the last loss, until recovery is over.
    before: Option<History>,
    throughput: Throughput,
    /// The sender's phase at the last call.
    phase: Phase,
}

/// The state restored if a loss was spurious.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// When the last loss episode ended, in milliseconds.
    last_cong: u32,
    max_rtt: u32,
    /// Throughput before the last loss, in segments a second.
    old_max: u32,
}

/// The flow's throughput, in segments a second.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Segments since the last sample.
    packets: u32,
    /// The time of the last sample. The kernel starts from its clock's zero, long ago.
    since: Option<u32>,
    smoothed: u32,
    max: u32,
}

/// The kernel's clock of milliseconds, in 32 bits.
fn clock(time: Time) -> u32 {
    jiffies(time) as u32
}

impl HTcp {
    /// H-TCP at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self {
            config,
            window: Window::new(init),
            alpha: ONE,
            beta: LEAST_KEPT,
            is_adaptive: false,
            pkts_acked: 1,
            min_rtt: 0,
            history: History::default(),
            before: None,
            throughput: Throughput::default(),
            phase: Phase::Open,
        }
    }

    /// Adds an RTT sample (`measure_rtt`).
    fn take_rtt(&mut self, flow: &FlowState, rtt: Duration) {
        let rtt = u32::try_from(micros(rtt).div_ceil(1000)).unwrap_or(u32::MAX);
        if self.min_rtt > rtt || self.min_rtt == 0 {
            self.min_rtt = rtt;
        }
        if flow.phase == Phase::Open {
            let max = &mut self.history.max_rtt;
            *max = (*max).max(self.min_rtt);
            if rtt <= max.saturating_add(RTT_STEP) {
                *max = (*max).max(rtt);
            }
        }
    }

    /// Adds acknowledged segments to the throughput (`measure_achieved_throughput`).
    fn take_packets(&mut self, flow: &FlowState, acked: u64) {
        let now = clock(flow.now);
        let sample = &mut self.throughput;
        if flow.phase > Phase::Disorder {
            sample.packets = 0;
            sample.since = Some(now);
            return;
        }
        sample.packets = sample.packets.wrapping_add(acked as u32);
        let step = u64::from((self.alpha >> 7).max(1));
        // A window of data, less its growth; where growth exceeds the window, there is no sample.
        let Some(enough) = self.window.cwnd().checked_sub(step) else { return };
        let passed = sample.since.map_or(u32::MAX, |since| now.wrapping_sub(since));
        if u64::from(sample.packets) < enough || passed < self.min_rtt || self.min_rtt == 0 {
            return;
        }
        let found = sample.packets.wrapping_mul(HZ) / passed;
        if now.wrapping_sub(self.history.last_cong) / self.min_rtt <= 3 {
            // Right after a loss.
            sample.smoothed = found;
            sample.max = found;
        } else {
            sample.smoothed = sample.smoothed.wrapping_mul(3).wrapping_add(found) / 4;
            sample.max = sample.max.max(sample.smoothed);
        }
        sample.packets = 0;
        sample.since = Some(now);
    }

    /// Computes the share that the next loss leaves (`htcp_beta_update`).
    fn update_beta(&mut self) {
        if self.config.use_bandwidth_switch {
            let (new, old) = (self.throughput.max, self.history.old_max);
            self.history.old_max = new;
            let [low, high] = [4, 6].map(|fifths| old.wrapping_mul(fifths));
            if high.wrapping_sub(low) < new.wrapping_mul(5).wrapping_sub(low) {
                self.beta = LEAST_KEPT;
                self.is_adaptive = false;
                return;
            }
        }
        let (min, max) = (self.min_rtt, self.history.max_rtt);
        if self.is_adaptive && min > 10 && max > 0 {
            let share = (u64::from(min) << 7) / u64::from(max);
            self.beta = share.clamp(LEAST_KEPT.into(), MOST_KEPT.into()) as u32;
        } else {
            self.beta = LEAST_KEPT;
            self.is_adaptive = true;
        }
    }

    /// Computes the growth per round trip (`htcp_alpha_update`).
    fn update_alpha(&mut self, now: u32) {
        let mut factor: u32 = 1;
        let passed = now.wrapping_sub(self.history.last_cong);
        if let Some(longer) = passed.checked_sub(HZ).filter(|longer| *longer > 0) {
            let half = longer / 2;
            let square = half.wrapping_mul(half) / HZ;
            factor = 1_u32.wrapping_add(longer.wrapping_mul(10).wrapping_add(square) / HZ);
        }
        if self.config.use_rtt_scaling && self.min_rtt > 0 {
            // 100 ms over the RTT, in eighths, between a half and ten.
            let scale = ((HZ << 3) / self.min_rtt.saturating_mul(10)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = factor.wrapping_mul(2).wrapping_mul(ONE - self.beta);
        if self.alpha == 0 {
            self.alpha = ONE;
        }
    }

    /// Updates the parameters at a loss (`htcp_param_update`).
    fn update(&mut self, now: u32) {
        let (min, max) = (self.min_rtt, self.history.max_rtt);
        self.update_beta();
        self.update_alpha(now);
        if min > 0 && max > min {
            self.history.max_rtt = min + (u64::from(max - min) * 95 / 100) as u32;
        }
    }

    /// Restarts the time since the last loss (`htcp_reset`).
    fn reset(&mut self, now: u32) {
        self.before = Some(self.history);
        self.history.last_cong = now;
    }

    /// Follows the sender's phases (`htcp_state`).
    fn look(&mut self, flow: &FlowState) {
        let from = std::mem::replace(&mut self.phase, flow.phase);
        if from == flow.phase {
            return;
        }
        if from.passes_open(flow.phase) && self.before.take().is_some() {
            self.history.last_cong = clock(flow.now);
        }
        if flow.phase > Phase::Disorder {
            self.reset(clock(flow.now));
        }
    }

    /// Congestion avoidance.
    fn grow(&mut self, now: u32) {
        let credit = self.window.credit() as u32;
        let cwnd = self.window.cwnd();
        if u64::from(credit.wrapping_mul(self.alpha) >> 7) >= cwnd {
            self.window.set(cwnd.saturating_add(1));
            self.window.set_credit(0.0);
            self.update_alpha(now);
        } else {
            self.window.set_credit(f64::from(credit.wrapping_add(self.pkts_acked.into())));
        }
        self.pkts_acked = 1;
    }
}

impl CongestionControl for HTcp {
    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn on_begin(&mut self, flow: &FlowState) {
        self.history.last_cong = clock(flow.now);
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        if ack.is_idle {
            return;
        }
        if flow.phase == Phase::Open {
            self.pkts_acked = ack.acked as u16;
        }
        if let Some(rtt) = ack.rtt.filter(|rtt| micros(*rtt) > 0) {
            self.take_rtt(flow, rtt);
        }
        if self.config.use_bandwidth_switch {
            self.take_packets(flow, ack.acked);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.look(flow);
        if flow.is_recovering() || !flow.cwnd_limited || ack.credit == 0 {
            return;
        }
        if self.window.in_slow_start() {
            // Growth left over from slow start is dropped.
            self.window.slow_start(ack.credit);
        } else {
            self.grow(clock(flow.now));
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let now = clock(flow.now);
        let kept = if event.again {
            0
        } else {
            self.update(now);
            (u128::from(self.window.cut_from(event)) * u128::from(self.beta)) >> 7
        };
        self.window.shrink_to(flow, event, kept as u64);
        self.reset(now);
        self.phase = match event.cause {
            Cause::Loss => Phase::Recovery,
            Cause::Ecn => Phase::Reduced,
            Cause::Timeout => Phase::Loss,
        };
    }

    fn on_resized(&mut self, flow: &FlowState) {
        self.reset(clock(flow.now));
        self.phase = Phase::Loss;
        self.window.vouch();
    }

    fn on_recovered(&mut self, flow: &FlowState) {
        if flow.phase == Phase::Open {
            self.look(flow);
        }
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        if let Some(before) = self.before.take() {
            self.history = before;
        }
        self.window.undo();
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    /// Throughputs are in segments a second; unknown values are 0.
    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Segments by which the window grows per round trip.
        record("alpha", f64::from(self.alpha) / f64::from(ONE));
        // Share of the window that a loss leaves.
        record("beta", f64::from(self.beta) / f64::from(ONE));
        // Minimum RTT of the flow, in milliseconds; 0 until there is one.
        record("min_rtt_ms", self.min_rtt.into());
        // Maximum RTT, which decays at each loss, in milliseconds; 0 until there is one.
        record("max_rtt_ms", self.history.max_rtt.into());
        // Throughput, smoothed, in segments per second.
        record("throughput", self.throughput.smoothed.into());
        // Maximum smoothed throughput since the last loss, in segments per second.
        record("max_throughput", self.throughput.max.into());
        // Maximum smoothed throughput before the last loss, in segments per second.
        record("old_max_throughput", self.history.old_max.into());
        // When the last loss episode ended, in seconds after the start of the experiment.
        record("last_congestion_s", f64::from(self.history.last_cong) / f64::from(HZ));
    }
}

#[cfg(test)]
mod tests;
