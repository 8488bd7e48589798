//! TCP-LP (low priority): uses the capacity that other flows leave, and yields as soon as a queue
//! builds up.
//!
//! Background transfers should not slow down other flows. LP tracks the one-way delay to the
//! receiver by the timestamps of its ACKs, so that queues on the return path do not count. When the
//! smoothed delay exceeds the minimum by more than 15 % of the range between minimum and maximum,
//! congestion is near, long before a Reno flow would lose a segment:
//!
//! - the first time the window is halved, and an inference phase of three round trips begins, in
//!   which the window does not grow;
//! - if the delay is above the threshold again in that phase, the window falls to one segment.
//!
//! Otherwise LP grows, and reacts to losses, as Reno. The delay is smoothed with a weight of an
//! eighth.
//!
//! Implemented to the integer as in Linux, whose peculiarities decide how LP behaves:
//!
//! - The smoothed delay has 29 bits. Timestamps of Linux hosts begin at random, so in seven of
//!   eight connections the delay, which is known up to a constant, is longer: the threshold is
//!   never reached, and LP is Reno.
//! - The rate of the receiver's clock is estimated from each ACK and the one before, and 1000 is
//!   divided by it in whole numbers: if the estimate is above 1000, the receiver's time does not
//!   count.
//! - In the other connections delays are whole milliseconds, and so is 15 % of their range: of less
//!   than 7 ms that is zero, so the first delays cut the window, whatever they are.
//! - After each early reaction the range restarts, from the smoothed delay to twice that, so the
//!   delay of a standing queue becomes normal.
//!
//! Without timestamps there is no delay, and LP is Reno. The same applies to a `clock_offset_ms` of
//! 2^29 or more.
//!
//! - Kuzmanovic, Knightly: TCP-LP: a distributed algorithm for low priority data transfer, INFOCOM
//!   2003.
//! - Linux 6.12, `tcp_lp.c`.

use crate::kernel::{jiffies, micros};
use crate::random::Random;
use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind, Marks,
    Timestamps, Window, defaults,
};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// TCP-LP in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "lp",
    kind: Kind::LossAndDelay,
    summary: "low priority: makes way when the one-way delay grows",
    reference: "Kuzmanovic, Knightly: TCP-LP, INFOCOM 2003",
    year: 2003,
    marks: Marks::AsSet,
    source: include_str!("lp.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(LowPriority::new(init, params.parse()?))),
};

/// Parameters of TCP-LP.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The receiver's timestamp at time zero of the sender's clock, in milliseconds. By default a
    /// random number from the run's seed, as on Linux hosts.
    pub clock_offset_ms: Option<u32>,
    /// The threshold above the minimum delay, in percent of the range of delays (the paper's delta,
    /// 0.15).
    pub threshold_percent: u8,
    /// The length of an inference phase in round trips (the paper's itt, 3).
    pub inference_rtts: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self { clock_offset_ms: None, threshold_percent: 15, inference_rtts: 3 }
    }
}

/// The rate of the sender's timestamp clock, and the unit of delays, in hertz.
const CLOCK_HZ: u32 = 1000;

/// The TCP-LP controller of one flow.
#[derive(Clone, Debug)]
pub struct LowPriority {
    config: Config,
    flavour: Flavour,
    window: Window,
    delays: Delays,
    /// When the window was last cut early, in milliseconds of the sender's clock; 0 for never.
    last_drop: u32,
    /// The length of an inference phase, in milliseconds.
    inference: u32,
    is_inferring: bool,
}

/// The offset of timestamp clocks at the beginning: hosts have been up for two seconds. Where the
/// receiver's clock seems fast, only the sender's counts.
const BOOTED: u32 = 1999;

/// The rate of the receiver's timestamp clock, in 32 bits like timestamps.
#[derive(Clone, Copy, Debug, Default)]
struct RemoteClock {
    /// Ticks a second; 0 for unknown.
    hz: u32,
    /// The timestamps of the previous ACK; 0 for none.
    sent: u32,
    echoed: u32,
}

impl RemoteClock {
    /// Adds an ACK's timestamps (`tcp_lp_remote_hz_estimator`).
    fn take(&mut self, sent: u32, echoed: u32) {
        let known = self.sent != 0 && self.echoed != 0;
        let mut scaled = i64::from(self.hz.wrapping_shl(6));
        if known && sent != self.sent && echoed != self.echoed {
            let passed = CLOCK_HZ.wrapping_mul(sent.wrapping_sub(self.sent));
            let rate = i64::from(passed / echoed.wrapping_sub(self.echoed));
            scaled = if scaled > 0 { scaled + rate - (scaled >> 6) } else { rate << 6 };
        }
        self.hz = (scaled >> 6) as u32;
        (self.sent, self.echoed) = (sent, echoed);
    }

    /// The delay measured by these timestamps, up to a constant (`tcp_lp_owd_calculator`).
    fn delay(&self, sent: u32, echoed: u32) -> Option<u32> {
        let ticks = CLOCK_HZ.checked_div(self.hz)?;
        Some(sent.wrapping_mul(ticks).wrapping_sub(echoed)).filter(|&delay| delay > 0)
    }
}

/// One-way delays in milliseconds, as in the kernel.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// The offset of the receiver's clock.
    offset: u32,
    remote: RemoteClock,
    /// The smoothed delay, in eighths.
    smoothed: u32,
    min: u32,
    max: u32,
    /// The overall maximum; `max` is the second-largest.
    reserved_max: u32,
}

impl Delays {
    fn new(offset: u32) -> Self {
        let remote = RemoteClock::default();
        Self { offset, remote, smoothed: 0, min: u32::MAX, max: 0, reserved_max: 0 }
    }

    /// Adds the timestamps of an ACK (`tcp_lp_rtt_sample`).
    fn take(&mut self, Timestamps { sent, echoed }: Timestamps) {
        // Timestamps have 32 bits.
        let [sent, echoed] = [sent, echoed].map(|shown| (shown as u32).wrapping_add(BOOTED));
        let sent = sent.wrapping_add(self.offset);
        self.remote.take(sent, echoed);
        let Some(delay) = self.remote.delay(sent, echoed) else { return };
        self.min = self.min.min(delay);
        if delay > self.max {
            if delay > self.reserved_max {
                self.max = if self.reserved_max == 0 { delay } else { self.reserved_max };
                self.reserved_max = delay;
            } else {
                self.max = delay;
            }
        }
        self.smoothed = match self.smoothed {
            0 => delay << 3,
            smoothed => smoothed.wrapping_add(delay).wrapping_sub(smoothed >> 3),
        };
    }

    fn is_low(&self, percent: u8) -> bool {
        let part = u32::from(percent).wrapping_mul(self.max.wrapping_sub(self.min)) / 100;
        self.smoothed >> 3 < self.min.wrapping_add(part)
    }

    /// Restarts the range around the current delay.
    fn start_over(&mut self) {
        self.min = self.smoothed >> 3;
        self.max = self.smoothed >> 2;
        self.reserved_max = self.max;
    }
}

impl LowPriority {
    /// TCP-LP at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let any = || Random::new(init.seed).word();
        let delays = Delays::new(config.clock_offset_ms.unwrap_or_else(any));
        Self {
            config,
            flavour: init.flavour,
            window: Window::new(init),
            delays,
            last_drop: 0,
            inference: 0,
            is_inferring: false,
        }
    }

    /// Checks for early congestion (`tcp_lp_pkts_acked`).
    fn look(&mut self, flow: &FlowState, ack: &Ack, timestamps: Timestamps) {
        // The sender's timestamp clock: one at the beginning, and never zero.
        let now = jiffies(flow.now) as u32 + 1;
        if ack.rtt.is_some_and(|rtt| micros(rtt) > 0) {
            self.delays.take(timestamps);
        }
        let since = now.wrapping_sub(timestamps.echoed as u32);
        if since.cast_signed() > 0 {
            self.inference = u32::from(self.config.inference_rtts).wrapping_mul(since);
        }
        self.is_inferring =
            self.last_drop != 0 && now.wrapping_sub(self.last_drop) < self.inference;
        if self.delays.is_low(self.config.threshold_percent) {
            return;
        }
        self.delays.start_over();
        // During recovery the sender moves the window to `ssthresh`, whatever is set here.
        if !flow.is_recovering() {
            self.window.set(if self.is_inferring { 1 } else { self.window.cwnd() >> 1 });
        }
        self.last_drop = now;
    }
}

impl CongestionControl for LowPriority {
    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        if let Some(timestamps) = ack.timestamps.filter(|_| !ack.is_idle) {
            self.look(flow, ack, timestamps);
        }
    }

    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn opening(&self, cwnd: u64) -> (u64, Option<u64>) {
        // `tcp_lp_pkts_acked` takes delays that are all zero for congestion, and halves the window.
        ((cwnd / 2).max(1), None)
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if !flow.is_recovering() && ack.credit > 0 && !self.is_inferring {
            self.window.grow_as_reno(flow, ack.credit);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.window.shrink(flow, event, 0.5);
    }

    fn floor(&self) -> Option<u64> {
        // `tcp_reno_min_cwnd`, as in the module until Linux 3.1.
        let ssthresh = self.window.control().ssthresh?;
        (self.flavour == Flavour::Linux).then_some(ssthresh / 2)
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // One-way delay, smoothed, in milliseconds; up to a constant, as clocks differ.
        record("one_way_delay_ms", f64::from(self.delays.smoothed) / 8.0);
        // Minimum one-way delay, in milliseconds, up to the same constant.
        record("least_delay_ms", f64::from(self.delays.min));
        // Second-largest one-way delay, in milliseconds, up to the same constant.
        record("greatest_delay_ms", f64::from(self.delays.max));
        // Length of an inference phase, in milliseconds.
        record("inference_ms", f64::from(self.inference));
        // 1 during an inference phase, else 0.
        record("is_inferring", f64::from(u8::from(self.is_inferring)));
    }
}
