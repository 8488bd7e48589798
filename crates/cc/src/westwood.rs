//! Westwood (2002): after a loss, the window that just fills the path, from the rate of the ACKs.
//!
//! Reno halves whatever the reason of a loss. Westwood measures how fast ACKs report data and sets the
//! window to what that rate needs without a queue, so a loss that has nothing to do with congestion,
//! as on a radio link, costs next to nothing.
//!
//! Each ACK is a sample of the bandwidth, `b = d / delta`: the data it stands for (`AckedCount`: a
//! duplicate counts for one segment, and what duplicates have counted is taken off the cumulative ACK
//! that ends them) over the time since the last ACK. A low-pass filter with the time constant `tau`
//! smooths them:
//!
//! - `BWE = a * BWE + (1 - a) * (b + b_before) / 2`, with `a = (2 tau - delta) / (2 tau + delta)`;
//! - for each `tau / 2` without an ACK, a sample of zero is put in between;
//! - after a loss or a timeout `ssthresh = max(2, BWE * RTTmin)` in segments; after a loss the window is
//!   no wider than that, after a timeout one segment. Growth is Reno's.
//!
//! It fills lossy links far better than Reno. ACKs that were compressed on their way back come faster
//! than data went, and then it overestimates: up to a hundred times (Grieco and Mascolo 2004, figure 1).
//! Westwood+ was made for that.
//!
//! An ACK that comes at the same instant as the one before counts with the next.
//!
//! - Casetti, Gerla, Mascolo, Sanadidi, Wang: TCP Westwood: end-to-end congestion control for
//!   wired/wireless networks, Wireless Networks 8, 2002: §2.2 the filter, §2.3 `AckedCount`, §3 the
//!   answer to losses, §4 `tau` = 500 ms.
//! - Mascolo, Casetti, Gerla, Sanadidi, Wang: TCP Westwood: bandwidth estimation for enhanced transport
//!   over wireless links, MobiCom 2001.

use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks, Preset,
    Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Time};

/// Westwood in the table.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "westwood",
    kind: Kind::LossAndDelay,
    summary: "after a loss, the window that the rate of the ACKs needs without a queue",
    reference: "Casetti, Gerla, Mascolo, Sanadidi, Wang: TCP Westwood, Wireless Networks 8, 2002",
    year: 2001,
    marks: Marks::AsSet,
    source: include_str!("westwood.rs"),
    presets: &[
        Preset {
            name: "ns2",
            summary: "the authors' module for ns-2: a filter that takes ACKs to be evenly spaced",
            source: "tcp-westwood.cc 1.3 (Valla, 2002): filter_type_ = 1: 0.9047 and twice 0.0476",
            params: r#"{ "filter": "constant", "alpha": 0.9047 }"#,
        },
        Preset {
            name: "ns3",
            summary: "ns-3's TcpWestwood up to 3.33: the same with its own constant",
            source: "src/internet/model/tcp-westwood.cc: WESTWOOD, TUSTIN: alpha = 0.9",
            params: r#"{ "filter": "constant", "alpha": 0.9 }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Westwood::new(init, params.parse()?))),
};

/// Parameters of Westwood.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How samples are smoothed: `tau`, by the time between them, with samples of zero while there is
    /// none; or `constant`, by `alpha` for each ACK whenever it comes.
    pub filter: Filter,
    /// Time constant of the filter `tau`, in milliseconds; 500 in the paper's experiments (§4).
    #[serde(deserialize_with = "above_zero")]
    pub tau_ms: f64,
    /// Share that the filter `constant` keeps of the estimate with each ACK; what the filter `tau`
    /// keeps when ACKs come `tau / 10` apart (§2.2).
    #[serde(deserialize_with = "share")]
    pub alpha: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { filter: Filter::Tau, tau_ms: 500.0, alpha: 19.0 / 21.0 }
    }
}

/// How samples of the bandwidth are smoothed.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// With a time constant.
    Tau,
    /// With a constant share.
    Constant,
}

/// The Westwood controller of one flow.
#[derive(Clone, Debug)]
pub struct Westwood {
    config: Config,
    window: Window,
    counted: AckedCount,
    bandwidth: Bandwidth,
}

/// The estimate, in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
struct Bandwidth {
    estimate: f64,
    last_sample: f64,
    /// Bytes since `last_ack`.
    bytes: u64,
    last_ack: Option<Time>,
}

/// How much data an ACK stands for, with duplicate ACKs (§2.3). In bytes, as Linux does it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckedCount {
    /// What was acknowledged before.
    una: Option<u64>,
    /// What duplicates have counted and no cumulative ACK has covered yet.
    accounted: u64,
}

impl AckedCount {
    /// The bytes that this ACK stands for.
    pub fn take(&mut self, flow: &FlowState, ack: &Ack) -> u64 {
        // Where the first begins is not known, so it looks like a duplicate (`first_ack` of Linux).
        let before = self.una.replace(flow.una).unwrap_or(flow.una);
        let acked = flow.una.saturating_sub(before);
        if ack.is_predicted {
            return acked;
        }
        if acked == 0 {
            self.accounted = self.accounted.saturating_add(flow.mss);
            return flow.mss;
        }
        if acked <= flow.mss {
            return acked;
        }
        if self.accounted >= acked {
            self.accounted -= acked;
            return flow.mss;
        }
        acked - std::mem::take(&mut self.accounted)
    }
}

impl Bandwidth {
    fn take(&mut self, now: Time, bytes: u64, config: &Config) {
        self.bytes = self.bytes.saturating_add(bytes);
        let Some(last) = self.last_ack else {
            self.last_ack = Some(now);
            self.bytes = 0;
            return;
        };
        let delta = now.since(last).as_secs_f64();
        if delta <= 0.0 {
            return;
        }
        match config.filter {
            Filter::Constant => self.sample(self.bytes as f64 / delta, config.alpha),
            Filter::Tau => {
                let tau = config.tau_ms / 1e3;
                let rest = self.pass_silence(delta, tau);
                let kept = (2.0 * tau - rest) / (2.0 * tau + rest);
                self.sample(self.bytes as f64 / rest, kept);
            }
        }
        self.bytes = 0;
        self.last_ack = Some(now);
    }

    fn sample(&mut self, sample: f64, kept: f64) {
        let mean = (sample + self.last_sample) / 2.0;
        self.estimate = kept * self.estimate + (1.0 - kept) * mean;
        self.last_sample = sample;
    }

    /// A sample of zero for each half of `tau` in which no ACK came; returns what is left of the time.
    fn pass_silence(&mut self, delta: f64, tau: f64) -> f64 {
        let step = tau / 2.0;
        // The ACK itself is a sample: it has a step to itself, if not less.
        let silent = (libm::ceil(delta / step) - 1.0).max(0.0);
        if silent >= 1.0 {
            // (2 tau - tau / 2) / (2 tau + tau / 2).
            const KEPT: f64 = 0.6;
            self.sample(0.0, KEPT);
            self.estimate *= libm::pow(KEPT, silent - 1.0);
        }
        (delta - silent * step).clamp(step * 1e-6, step)
    }
}

impl Westwood {
    /// Westwood at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self {
            config,
            window: Window::new(init),
            counted: AckedCount::default(),
            bandwidth: Bandwidth::default(),
        }
    }

    /// What fills the path without a queue, in segments.
    fn ideal(&self, flow: &FlowState) -> u64 {
        if flow.min_rtt == Duration::MAX {
            return 2;
        }
        let bytes = self.bandwidth.estimate * flow.min_rtt.as_secs_f64();
        ((bytes / flow.mss.max(1) as f64) as u64).max(2)
    }
}

impl CongestionControl for Westwood {
    fn on_arrival(&mut self, flow: &FlowState, ack: &Ack) {
        let bytes = self.counted.take(flow, ack);
        self.bandwidth.take(flow.now, bytes, &self.config);
    }

    fn hears_arrivals(&self) -> bool {
        true
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if !flow.is_recovering() && ack.credit > 0 {
            self.window.grow_as_reno(flow, ack.credit);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.window.shrink_to(flow, event, self.ideal(flow));
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        self.window.undo();
    }

    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        self.window.restart(flow, idle);
    }

    fn on_unused(&mut self, _flow: &FlowState, used: u64) {
        self.window.narrow(used);
    }

    fn on_moderated(&mut self, cwnd: u64) {
        self.window.cap(cwnd);
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        record("bandwidth_mbit_s", self.bandwidth.estimate * 8.0 / 1e6);
        record("sample_mbit_s", self.bandwidth.last_sample * 8.0 / 1e6);
    }
}
