//! Hybla: a flow with a long round trip grows as fast as Reno would with a short one.
//!
//! Reno grows by a segment a round trip, so a flow over a satellite gets a small part of the rate
//! of one over a cable, even alone. Hybla counts in round trips of a reference flow: with `rtt0`
//! the RTT of that flow and rho = RTT / `rtt0`, at least one, an ACK adds
//!
//! - 2^rho - 1 segments in slow start, which doubles the window every `rtt0`;
//! - rho^2 / W in congestion avoidance: rho times as fast, in a window rho times as large.
//!
//! RTT is the minimum of the smoothed RTT, and rho is rounded down to eighths. A connection begins
//! with a window of rho. Growth counts ACKs, not the segments they cover. While data is out of
//! order, and after a timeout, Hybla grows as Reno; a loss halves the window as with Reno.
//!
//! Hybla compensates for the round trip, not for radio losses. With RTTs of many `rtt0` slow start
//! adds so much per ACK (15 segments at 100 ms) that it ends in many losses at once, and without
//! SACK in timeouts. With RTTs below `rtt0` Hybla is Reno. The window is at most 65,535 segments.
//!
//! - Caini, Firrincieli: TCP Hybla: a TCP enhancement for heterogeneous networks, International
//!   Journal of Satellite Communications and Networking 22(5), 2004.
//! - Linux, `tcp_hybla.c`: implemented here to the integer. The paper's measures against losses in
//!   slow start (pacing, a bandwidth estimate) are not part of it.

use crate::kernel::micros;
use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks, Phase,
    Preset, Window, defaults, whole_above_zero,
};
use serde::{Deserialize, Serialize};

/// Hybla in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "hybla",
    kind: Kind::Loss,
    summary: "grows as Reno would with a short round trip, for satellites",
    reference: "Caini, Firrincieli 2004",
    year: 2004,
    marks: Marks::AsSet,
    source: include_str!("hybla.rs"),
    presets: &[Preset {
        name: "ns-3",
        summary: "the default of ns-3: a reference of 50 ms",
        source: "ns-3.33, tcp-hybla.cc: RRTT 50 ms",
        params: r#"{ "rtt0": 50 }"#,
    }],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Hybla::new(init, &params.parse()?))),
};

/// Parameters of Hybla: name, unit and default are those of the kernel's module.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The round trip of the reference flow, in milliseconds.
    #[serde(deserialize_with = "whole_above_zero")]
    pub rtt0: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { rtt0: 25 }
    }
}

/// The parts of a segment in which growth is counted.
const SEGMENT: u64 = 128;
/// 2^(n/8) segments, in these parts, rounded down.
const POWERS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
/// The maximum window in the kernel (`snd_cwnd_clamp`).
const MOST: u64 = 65_535;

/// The Hybla controller of one flow.
#[derive(Clone, Debug)]
pub struct Hybla {
    /// Microseconds.
    rtt0: u64,
    window: Window,
    /// The minimum smoothed RTT, in microseconds; `u64::MAX` until there is one.
    least: u64,
    /// In eighths.
    rho: u64,
    /// Growth of less than a segment.
    parts: u64,
}

impl Hybla {
    /// Hybla at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        Self {
            rtt0: config.rtt0 * 1000,
            window: Window::new(init),
            least: u64::MAX,
            rho: 8,
            parts: 0,
        }
    }

    /// Adds the smoothed RTT (`hybla_recalc_param`).
    fn take_rtt(&mut self, flow: &FlowState) {
        let srtt = micros(flow.srtt);
        if srtt < self.least {
            self.least = srtt;
            self.rho = (srtt.saturating_mul(8) / self.rtt0).max(8);
        }
    }

    /// Growth as Reno (`tcp_reno_cong_avoid`).
    fn grow_as_reno(&mut self, credit: u64) {
        let rest = self.window.slow_start(credit);
        if rest > 0 {
            self.window.grow(self.window.cwnd() as f64, rest);
        }
    }

    /// Growth by an ACK (`hybla_cong_avoid`).
    fn grow(&mut self) {
        let in_slow_start = self.window.in_slow_start();
        let cwnd = self.window.cwnd();
        let parts = if in_slow_start {
            (POWERS[(self.rho % 8) as usize] << (self.rho / 8).min(16)) - SEGMENT
        } else {
            // rho^2 * 128, and rho is in eighths.
            self.rho.saturating_mul(self.rho).saturating_mul(2) / cwnd
        };
        if !in_slow_start && parts < SEGMENT {
            self.window.set_credit(self.window.credit() + 1.0);
        }
        self.parts += parts % SEGMENT;
        let mut grown = cwnd.saturating_add(parts / SEGMENT);
        if self.parts >= SEGMENT {
            self.parts -= SEGMENT;
            grown = grown.saturating_add(1);
            self.window.set_credit(0.0);
        }
        if parts == 0 && self.window.credit() >= grown as f64 {
            // The window is too large for whole parts: a segment a round trip.
            grown = grown.saturating_add(1);
            self.window.set_credit(0.0);
        }
        self.window.set(if in_slow_start { grown.min(self.window.ssthresh()) } else { grown });
    }
}

impl CongestionControl for Hybla {
    fn on_begin(&mut self, flow: &FlowState) {
        self.take_rtt(flow);
        self.window.set(self.rho / 8);
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || ack.credit == 0 {
            return;
        }
        self.take_rtt(flow);
        if !flow.cwnd_limited {
            return;
        }
        if flow.phase == Phase::Open {
            self.grow();
        } else {
            self.grow_as_reno(ack.credit);
        }
        self.window.cap(MOST);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.window.shrink(flow, event, 0.5);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let least = if self.least == u64::MAX { 0 } else { self.least };
        // `rho`: smoothed RTT as a multiple of the reference RTT, at least 1.
        record("rho", self.rho as f64 / 8.0);
        // Minimum smoothed RTT, in milliseconds; 0 until there is one.
        record("least_srtt_ms", least as f64 / 1e3);
        // Growth of less than a segment, as a share of one.
        record("parts", self.parts as f64 / SEGMENT as f64);
        // Share of a segment that the window has grown by besides.
        record("credit", self.window.credit());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::testing::{FLOW, LINUX, Path};
    use tcplab_units::Duration;

    fn hybla() -> Hybla {
        Hybla::new(&LINUX, &Config::default())
    }

    fn rtt(millis: u64) -> FlowState {
        FlowState { srtt: Duration::from_millis(millis), ..FLOW }
    }

    fn ack() -> Ack {
        Ack { acked: 1, credit: 1, delivered: 1, ..Ack::default() }
    }

    #[test]
    fn powers_table_is_two_to_the_eighths_rounded_down() {
        for (eighths, power) in POWERS.into_iter().enumerate() {
            assert_eq!(power, (128.0 * libm::exp2(eighths as f64 / 8.0)) as u64);
        }
    }

    #[test]
    fn begins_with_a_window_of_rho() {
        // rho = RTT / 25 ms, whole, 1 at least.
        for (millis, expected) in [(0, 1), (10, 1), (40, 1), (50, 2), (124, 4), (600, 24)] {
            let mut cc = hybla();
            cc.on_begin(&rtt(millis));
            assert_eq!(cc.control().cwnd, expected, "{millis} ms");
        }
    }

    #[test]
    fn slow_start_doubles_every_reference_round_trip() {
        // 100 ms: rho = 4, and every ACK adds 2^4 - 1 = 15 segments besides its own.
        let mut cc = hybla();
        cc.on_begin(&rtt(100));
        cc.on_ack(&rtt(100), &ack());
        assert_eq!(cc.control().cwnd, 4 + 15);
        // 40 ms: rho = 1.6, in eighths 12 = 1 + 4/8: 2 * 181 / 128 - 1 = 1.83 segments.
        let mut cc = hybla();
        cc.on_begin(&rtt(40));
        cc.on_ack(&rtt(40), &ack());
        cc.on_ack(&rtt(40), &ack());
        // 1 + 2 * 1.83 = 4.66
        assert_eq!(cc.control().cwnd, 4);
    }

    #[test]
    fn hybla_equals_reno_at_the_reference_rtt() {
        let mut cc = hybla();
        let mut path = Path::new(&mut cc, Duration::from_millis(25));
        assert_eq!((path.round(), path.round()), (20, 40));
        path.congestion(Cause::Loss);
        // rho^2 * 128 / 20 = 6 parts of 128 (not 6.4) for each of 20 ACKs: 120; the 21st and 22nd
        // ACK bring it to 132.
        assert_eq!((path.cwnd(), path.round(), path.round()), (20, 20, 21));
    }

    #[test]
    fn grows_by_the_square_of_rho_a_round_trip() {
        let mut cc = hybla();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.round();
        path.congestion(Cause::Loss);
        let before = path.cwnd();
        let grown = path.round() - before;
        // rho^2 = 16, less what the division rounds off and what the window grows meanwhile.
        assert!((13..=16).contains(&grown), "{before} grew by {grown}");
    }

    #[test]
    fn rho_follows_the_least_smoothed_rtt() {
        let mut cc = hybla();
        cc.on_begin(&rtt(100));
        for (millis, rho) in [(200, 4), (50, 2), (100, 2)] {
            cc.on_ack(&rtt(millis), &ack());
            assert_eq!(cc.rho / 8, rho, "{millis} ms");
        }
    }

    #[test]
    fn hybla_grows_like_reno_in_disorder_and_loss() {
        for phase in [Phase::Disorder, Phase::Loss] {
            let mut cc = hybla();
            cc.on_begin(&rtt(100));
            cc.on_ack(&FlowState { phase, ..rtt(100) }, &ack());
            assert_eq!(cc.control().cwnd, 5, "{phase:?}");
        }
    }
}
