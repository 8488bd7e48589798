//! Westwood (2002): after a loss, the window that just fills the path, from the rate of the ACKs.
//!
//! Reno halves the window whatever the reason of a loss. Westwood measures the rate of acknowledged
//! data and sets the window to the size that this rate needs without a queue, so a loss without
//! congestion, as on a radio link, costs next to nothing.
//!
//! Each ACK is a sample of the bandwidth, `b = d / delta`: the data it stands for (`AckedCount`: a
//! duplicate counts for one segment, and the segments counted by duplicates are subtracted from the
//! cumulative ACK that ends them) over the time since the last ACK. A low-pass filter with the time
//! constant `tau` smooths the samples:
//!
//! - `BWE = a * BWE + (1 - a) * (b + b_before) / 2`, with `a = (2 tau - delta) / (2 tau + delta)`;
//! - for each `tau / 2` without an ACK, a sample of zero is inserted;
//! - after a loss or a timeout `ssthresh = max(2, BWE * RTTmin)` in segments; after a loss the
//!   window is at most that, after a timeout one segment. Growth is Reno's.
//!
//! Westwood fills lossy links far better than Reno. ACKs compressed on the return path arrive
//! faster than the data did, and cause an overestimate of up to a hundred times (Grieco and Mascolo
//! 2004, figure 1). Westwood+ corrects that.
//!
//! An ACK at the same instant as the one before counts with the next.
//!
//! - Casetti, Gerla, Mascolo, Sanadidi, Wang: TCP Westwood: end-to-end congestion control for
//!   wired/wireless networks, Wireless Networks 8, 2002: §2.2 the filter, §2.3 `AckedCount`, §3 the
//!   reaction to losses, §4 `tau` = 500 ms.
//! - Mascolo, Casetti, Gerla, Sanadidi, Wang: TCP Westwood: bandwidth estimation for enhanced
//!   transport over wireless links, `MobiCom` 2001.

use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks, Preset,
    Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Time};

/// Westwood in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "westwood",
    kind: Kind::LossAndDelay,
    summary: "a loss cuts the window to the BDP that the rate of the ACKs gives",
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
    /// The filter of samples: `tau`, by the time between samples, with samples of zero during
    /// silence; or `constant`, with the weight `alpha` for each ACK.
    pub filter: Filter,
    /// Time constant of the filter `tau`, in milliseconds; 500 in the paper's experiments (§4).
    #[serde(deserialize_with = "above_zero")]
    pub tau_ms: f64,
    /// Share of the estimate that the filter `constant` keeps with each ACK; the share that the
    /// filter `tau` keeps when ACKs are `tau / 10` apart (§2.2).
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
    /// With a constant weight.
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

/// The data that an ACK stands for, with duplicate ACKs (§2.3). In bytes, as in Linux.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckedCount {
    /// The previous acknowledgment.
    una: Option<u64>,
    /// Bytes counted by duplicates and not yet covered by a cumulative ACK.
    accounted: u64,
}

impl AckedCount {
    /// The bytes that this ACK stands for.
    pub fn take(&mut self, flow: &FlowState, ack: &Ack) -> u64 {
        // The start of the first ACK is unknown, so it counts as a duplicate (`first_ack` of
        // Linux).
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
        let mean = f64::midpoint(sample, self.last_sample);
        self.estimate = kept * self.estimate + (1.0 - kept) * mean;
        self.last_sample = sample;
    }

    /// Inserts a sample of zero for each half of `tau` without an ACK; returns the remaining time.
    fn pass_silence(&mut self, delta: f64, tau: f64) -> f64 {
        let step = tau / 2.0;
        // The ACK itself is a sample with a step of its own.
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

    /// The window that fills the path without a queue, in segments.
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

    fn wants_in_ack_event(&self) -> bool {
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

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Estimated bandwidth (filtered), in Mbit/s.
        record("bandwidth_mbit_s", self.bandwidth.estimate * 8.0 / 1e6);
        // Last bandwidth sample, in Mbit/s.
        record("sample_mbit_s", self.bandwidth.last_sample * 8.0 / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FLOW, INIT};

    const MSS: u64 = INIT.mss;

    fn westwood(params: &str) -> Westwood {
        let params = crate::Params(serde_json::from_str(params).unwrap());
        Westwood::new(&INIT, params.parse().unwrap())
    }

    /// ACKs of a segment each, ten milliseconds apart.
    fn steady(cc: &mut Westwood, acks: u64) -> FlowState {
        let mut flow = FlowState { min_rtt: Duration::from_millis(100), ..FLOW };
        for number in 1..=acks {
            flow.now = Time::ZERO + Duration::from_millis(10 * number);
            flow.una = MSS * number;
            cc.on_arrival(&flow, &Ack { acked: 1, ..Ack::default() });
        }
        flow
    }

    #[test]
    fn bandwidth_estimate_converges_within_five_time_constants() {
        // 1460 bytes each 10 ms are 1.168 Mbit/s; after 5 * 500 ms all but exp(-5) = 0.7 % is
        // known.
        let mut cc = westwood("{}");
        steady(&mut cc, 251);
        let seen = crate::testing::probe(&cc, "bandwidth_mbit_s");
        assert!(0.99 * 1.168 < seen && seen < 1.168 * 1.001, "{seen}");
    }

    #[test]
    fn loss_sets_cwnd_to_bandwidth_times_min_rtt() {
        // 1460 bytes each 10 ms, for 100 ms: ten segments, rounded down as the filter is below
        // that.
        let mut cc = westwood("{}");
        let flow = steady(&mut cc, 1001);
        cc.window.slow_start(90);
        let event = Congestion { cause: crate::Cause::Loss, flight: 100, again: false };
        cc.on_congestion(&flow, event);
        assert!((9..=10).contains(&cc.control().cwnd), "{:?}", cc.control());
        cc.on_congestion(&flow, Congestion { cause: crate::Cause::Timeout, ..event });
        assert_eq!(cc.control().cwnd, 1);
        assert!((9..=10).contains(&cc.control().ssthresh.unwrap()));
    }

    #[test]
    fn each_half_of_tau_without_an_ack_is_a_sample_of_zero() {
        let start = Bandwidth { estimate: 1000.0, last_sample: 1000.0, ..Bandwidth::default() };
        for (delta, expected, rest) in [
            (0.25, 1000.0, 0.25),
            // 0.6 * 1000 + 0.4 * (0 + 1000) / 2.
            (0.30, 800.0, 0.05),
            // 0.6 of that, since both samples are zero now.
            (0.60, 480.0, 0.10),
        ] {
            let mut bandwidth = start;
            let left = bandwidth.pass_silence(delta, 0.5);
            assert!((bandwidth.estimate - expected).abs() < 1e-6, "{delta}: {bandwidth:?}");
            assert!((left - rest).abs() < 1e-9, "{delta}: {left}");
        }
    }

    #[test]
    fn tustin_and_constant_filters_agree_at_a_tenth_of_tau() {
        // (2 - 0.1) / (2 + 0.1) = 19 / 21 = 0.9048, of which ns-2's module has four digits.
        let estimates = ["{}", r#"{ "filter": "constant" }"#].map(|params| {
            let mut cc = westwood(params);
            let mut flow = FLOW;
            for number in 1..=20 {
                flow.now = Time::ZERO + Duration::from_millis(50 * number);
                flow.una = MSS * number * number;
                cc.on_arrival(&flow, &Ack::default());
            }
            cc.bandwidth.estimate
        });
        assert!((estimates[0] / estimates[1] - 1.0).abs() < 1e-9, "{estimates:?}");
    }

    #[test]
    fn ack_after_duplicates_excludes_segments_they_counted() {
        let mut counted = AckedCount { una: Some(0), accounted: 0 };
        let mut take =
            |una| counted.take(&FlowState { una: una * MSS, ..FLOW }, &Ack::default()) / MSS;
        assert_eq!([take(1), take(1), take(1), take(1)], [1, 1, 1, 1]);
        // Three duplicates and an ACK of five segments, of which two are new.
        assert_eq!(take(6), 2);
        // A delayed ACK without preceding duplicates.
        assert_eq!(take(8), 2);
        // More duplicates than a partial ACK covers: the ACK counts for the one repaired segment.
        assert_eq!([take(8), take(8), take(8), take(8)], [1; 4]);
        assert_eq!([take(10), take(15)], [1, 3]);
    }

    #[test]
    fn acks_of_the_same_instant_count_together() {
        let mut cc = westwood("{}");
        let mut flow = FlowState { now: Time::ZERO + Duration::from_millis(10), ..FLOW };
        cc.on_arrival(&flow, &Ack::default());
        flow.now += Duration::from_millis(20);
        for una in [MSS, 2 * MSS] {
            cc.on_arrival(&FlowState { una, ..flow }, &Ack::default());
        }
        flow.now += Duration::from_millis(20);
        cc.on_arrival(&FlowState { una: 3 * MSS, ..flow }, &Ack::default());
        // Two segments in the last 20 ms: 2 * 1460 * 8 / 0.02 = 1.168 Mbit/s.
        let seen = crate::testing::probe(&cc, "sample_mbit_s");
        assert!((seen - 1.168).abs() < 1e-9, "{seen}");
    }
}
