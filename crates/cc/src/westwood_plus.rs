//! Westwood+: Westwood with one sample of the bandwidth per round trip.
//!
//! After a loss the window becomes the BDP of the path, from an estimate of the bandwidth and the
//! minimum RTT, whatever the cause of the loss. Westwood samples each ACK, and ACKs compressed on
//! the return path cause overestimates. Westwood+ counts the data acknowledged over a whole round
//! trip:
//!
//! - every `max(RTT, 50 ms)`: `b` = bytes acknowledged (duplicates as in Westwood) over the time;
//! - two filters in a row, each `7/8 old + 1/8 new`, in whole bytes per millisecond;
//! - at the end of recovery: `ssthresh = cwnd = max(2, estimate * RTTmin / mss)`. During recovery
//!   the window is reduced to a half, as in Reno;
//! - after a timeout: that `ssthresh`, and slow start. `RTTmin` is reset until the next ACK.
//!
//! These rules are those of Linux's `westwood`, to the integer, and the default. In the paper there
//! is one filter, `0.9 old + 0.1 new`, no minimum interval, and the window is set when the loss is
//! found: `filter = "paper"`. Growth is Reno's.
//!
//! Westwood+ keeps links full where losses are random, and empties a queue that it has filled. A
//! loss before the filters have settled, within some twenty round trips, leaves too small a window:
//! slow start ends in a tenth of the window. In Linux the estimate is in whole bytes per
//! millisecond, and each filter stops up to 7 short of a rate approached from below: a tenth of 1
//! Mbit/s. RTTs are rounded up to milliseconds, so the window is too large by that factor on paths
//! of less than a millisecond.
//!
//! - Grieco, Mascolo: Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP
//!   congestion control, ACM CCR 34(2), 2004: §2.1.
//! - Dell'Aera, Grieco, Mascolo: Linux 2.4 implementation of Westwood+ TCP with rate-halving, ICC
//!   2004.
//! - Linux 6.12, `tcp_westwood.c`.

use crate::kernel::{jiffies, micros};
use crate::westwood::AckedCount;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind,
    Marks, Preset, Window, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

#[cfg(test)]
mod tests;

/// Westwood+ in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "westwood+",
    kind: Kind::LossAndDelay,
    summary: "after a loss, the window that the rate of a whole round trip needs without a queue",
    reference: "Grieco, Mascolo: Westwood+, New Reno and Vegas TCP, ACM CCR 34(2), 2004",
    year: 2002,
    marks: Marks::AsSet,
    source: include_str!("westwood_plus.rs"),
    presets: &[
        Preset {
            name: "2004",
            summary: "as published: one filter, a sample each RTT",
            source: "Grieco, Mascolo, ACM CCR 34(2), 2004, equation 1: alpha = 0.9",
            params: r#"{ "filter": "paper", "alpha": 0.9 }"#,
        },
        Preset {
            name: "ns3",
            summary: "ns-3's TcpWestwood up to 3.33: the mean of two samples is filtered",
            source: "src/internet/model/tcp-westwood.cc: WESTWOODPLUS, TUSTIN: alpha = 0.9",
            params: r#"{ "filter": "tustin", "alpha": 0.9 }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(WestwoodPlus::new(init, params.parse()?))),
};

/// Parameters of Westwood+.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The filter, and the reaction to a loss: `linux`, `paper`, or `tustin` (the paper's with the
    /// mean of the last two samples, as in ns-3).
    pub filter: Filter,
    /// Share that the filters `paper` and `tustin` keep of the estimate (equation 1 of the paper).
    #[serde(deserialize_with = "share")]
    pub alpha: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { filter: Filter::Linux, alpha: 0.9 }
    }
}

/// How samples of the bandwidth are smoothed.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Two filters in a row, in whole numbers.
    Linux,
    /// One filter.
    Paper,
    /// One filter of the mean of two samples.
    Tustin,
}

/// The minimum interval of a sample in the kernel, in jiffies.
const LEAST_INTERVAL: u64 = 50;
/// The RTT before the first sample, in jiffies.
const INITIAL_RTT: u64 = 20_000;

/// The Westwood+ controller of one flow.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    config: Config,
    flavour: Flavour,
    window: Window,
    counted: AckedCount,
    /// Bytes acknowledged since `since`.
    bytes: u64,
    /// When the sample began, in jiffies.
    since: Option<u64>,
    estimate: Estimate,
    /// The last sample of the bandwidth, in bytes per jiffy.
    sample: f64,
    /// The last RTT and the minimum, in jiffies.
    rtt: u64,
    rtt_min: u64,
    /// Whether the next RTT becomes the minimum.
    forgets_rtt_min: bool,
    /// Whether the last episode began with a timeout.
    timed_out: bool,
    mss: u64,
}

/// The bandwidth, in bytes per jiffy.
#[derive(Clone, Copy, Debug)]
enum Estimate {
    /// After the first filter and after both.
    Twice {
        first: u64,
        second: u64,
    },
    Once {
        estimate: f64,
    },
}

impl Estimate {
    fn new(filter: Filter) -> Self {
        match filter {
            Filter::Linux => Self::Twice { first: 0, second: 0 },
            Filter::Paper | Filter::Tustin => Self::Once { estimate: 0.0 },
        }
    }

    fn take(&mut self, bytes: u64, interval: u64, (before, config): (f64, &Config)) {
        match self {
            Self::Twice { first, second } => {
                let sample = bytes / interval;
                if (*first, *second) == (0, 0) {
                    (*first, *second) = (sample, sample);
                } else {
                    *first = eighth(*first, sample);
                    *second = eighth(*second, *first);
                }
            }
            Self::Once { estimate } => {
                let sample = bytes as f64 / interval as f64;
                let new = match config.filter {
                    Filter::Tustin => f64::midpoint(sample, before),
                    // The paper does not give an initial value. As in Linux, it is the first
                    // sample.
                    _ if *estimate <= 0.0 => {
                        *estimate = sample;
                        sample
                    }
                    _ => sample,
                };
                *estimate = config.alpha * *estimate + (1.0 - config.alpha) * new;
            }
        }
    }

    fn bytes_in(self, jiffies: u64) -> u64 {
        match self {
            Self::Twice { second, .. } => second.saturating_mul(jiffies),
            Self::Once { estimate } => (estimate * jiffies as f64) as u64,
        }
    }

    fn mbit_s(self) -> f64 {
        let bytes_per_jiffy = match self {
            Self::Twice { second, .. } => second as f64,
            Self::Once { estimate } => estimate,
        };
        bytes_per_jiffy * 8.0 / 1e3
    }
}

/// The kernel's filter, with a weight of an eighth for the new value.
fn eighth(old: u64, new: u64) -> u64 {
    ((7 * u128::from(old) + u128::from(new)) >> 3) as u64
}

impl WestwoodPlus {
    /// Westwood+ at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self {
            estimate: Estimate::new(config.filter),
            sample: 0.0,
            config,
            flavour: init.flavour,
            window: Window::new(init),
            counted: AckedCount::default(),
            bytes: 0,
            since: None,
            rtt: INITIAL_RTT,
            rtt_min: INITIAL_RTT,
            forgets_rtt_min: true,
            timed_out: false,
            mss: init.mss.max(1),
        }
    }

    /// The window that fills the path without a queue, in segments.
    fn ideal(&self) -> u64 {
        (self.estimate.bytes_in(self.rtt_min) / self.mss).max(2)
    }

    fn is_linux(&self) -> bool {
        self.config.filter == Filter::Linux
    }

    /// Ends the sample if its round trip is over.
    fn end_sample(&mut self, now: u64) {
        let since = *self.since.get_or_insert(now);
        let interval = now.saturating_sub(since);
        let least = if self.is_linux() { LEAST_INTERVAL } else { 0 };
        if self.rtt > 0 && interval > self.rtt.max(least) {
            self.estimate.take(self.bytes, interval, (self.sample, &self.config));
            self.sample = self.bytes as f64 / interval as f64;
            self.bytes = 0;
            self.since = Some(now);
        }
    }
}

impl CongestionControl for WestwoodPlus {
    fn on_begin(&mut self, flow: &FlowState) {
        if self.is_linux() {
            self.since = Some(jiffies(flow.now));
        }
    }

    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        self.since.get_or_insert(jiffies(flow.now));
    }

    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt.map(micros).filter(|&rtt| rtt > 0) {
            self.rtt = rtt.div_ceil(1000);
        }
        self.mss = flow.mss.max(1);
        self.end_sample(jiffies(flow.now));
        self.bytes = self.bytes.saturating_add(self.counted.take(flow, ack));
        self.rtt_min = if std::mem::take(&mut self.forgets_rtt_min) {
            self.rtt
        } else {
            self.rtt_min.min(self.rtt)
        };
    }

    fn wants_in_ack_event(&self) -> bool {
        true
    }

    fn opening(&self, cwnd: u64) -> (u64, Option<u64>) {
        // A timeout of the SYN calls `tcp_westwood_bw_rttmin` (`CA_EVENT_LOSS`), which knows no
        // bandwidth yet. The thresholds of all other algorithms are far above the window of one
        // after that timeout.
        (cwnd, (cwnd == 1).then_some(2))
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if !flow.is_recovering() && ack.credit > 0 {
            self.window.grow_as_reno(flow, ack.credit);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.timed_out = event.cause == Cause::Timeout;
        if !self.is_linux() {
            self.window.shrink_to(flow, event, self.ideal());
            return;
        }
        self.window.shrink(flow, event, 0.5);
        if self.timed_out && !event.again {
            self.window.set_threshold(self.ideal());
            self.forgets_rtt_min = true;
        }
    }

    fn on_resized(&mut self, _flow: &FlowState) {
        self.timed_out = true;
        self.window.vouch();
    }

    fn on_recovered(&mut self, _flow: &FlowState) {
        if self.is_linux() && !self.timed_out {
            self.window.set(self.ideal());
            self.window.leave_slow_start();
        }
    }

    fn floor(&self) -> Option<u64> {
        // `min_cwnd` of the module: rate halving may continue to the window at the end of recovery.
        (self.flavour == Flavour::Linux && self.is_linux()).then(|| self.ideal())
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Estimated bandwidth, in Mbit/s.
        record("bandwidth_mbit_s", self.estimate.mbit_s());
        // Last sample of the bandwidth, in Mbit/s.
        record("sample_mbit_s", self.sample * 8.0 / 1e3);
        // Last RTT, in milliseconds.
        record("rtt_ms", self.rtt as f64);
        // Minimum RTT, in milliseconds.
        record("rtt_min_ms", self.rtt_min as f64);
        // Segments that fill the path without a queue: bandwidth times minimum RTT; at least 2.
        record("ideal_cwnd", self.ideal() as f64);
    }
}
