//! Scalable TCP: every ACK adds a hundredth of a segment, and a loss takes an eighth of the window.
//!
//! The window grows by one percent a round trip, whatever its size, and recovers within 13 round
//! trips after a loss, at any rate: (7/8) * 1.01^13 = 0.996. Reno needs half a window of round
//! trips for that.
//!
//! An acknowledged segment adds 1 / min(W, `ai_cnt`): Reno's growth while that is larger. With
//! `legacy_window`, as in the paper, windows up to that size behave as in Reno, and those above it
//! grow by 1 / `ai_cnt`.
//!
//! With p the share of lost segments, the window is about 0.08 / p. Scalable TCP recovers fast and
//! keeps long fat paths full with small buffers. But growth and reduction are proportional to the
//! window, so two flows that lose together keep their initial shares: it does not converge to
//! fairness.
//!
//! - Kelly: Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2),
//!   2003.
//! - Linux, `tcp_scalable.c`: implemented here to the integer.

use crate::{
    Ack, Algorithm, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks, Preset,
    Window, defaults, whole_above_zero,
};
use serde::{Deserialize, Serialize};

/// Scalable TCP in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "scalable",
    kind: Kind::Loss,
    summary: "one percent more per round trip, an eighth less on loss",
    reference: "Kelly 2003",
    year: 2003,
    marks: Marks::AsSet,
    source: include_str!("scalable.rs"),
    presets: &[
        Preset {
            name: "2003",
            summary: "the published algorithm: Reno up to 16 segments, 0.01 per ACK above",
            source: "Kelly 2003: a = 0.01, b = 0.125, lwnd = 16",
            params: r#"{ "legacy_window": 16 }"#,
        },
        Preset {
            name: "linux-2.6.20",
            summary: "Linux of 2007, which made up for delayed ACKs: 0.02 per ACK",
            source: "Linux 2.6.20, tcp_scalable.c: TCP_SCALABLE_AI_CNT 50",
            params: r#"{ "ai_cnt": 50 }"#,
        },
        Preset {
            name: "ns-3",
            summary: "the defaults of ns-3: 0.02 per segment",
            source: "ns-3.33, tcp-scalable.cc: AIFactor 50, MDFactor 0.125",
            params: r#"{ "ai_cnt": 50 }"#,
        },
    ],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Scalable::new(init, params.parse()?))),
};

/// Parameters of Scalable TCP, which are constants in the kernel's module.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Acknowledged segments for one segment of growth, where the window is larger than that (1/a
    /// of the paper; `TCP_SCALABLE_AI_CNT` of Linux).
    #[serde(deserialize_with = "whole_above_zero")]
    pub ai_cnt: u64,
    /// The window in segments up to which growth and reduction are Reno's (`lwnd` of the paper); 0
    /// for the Linux rule.
    pub legacy_window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { ai_cnt: 100, legacy_window: 0 }
    }
}

/// The Scalable controller of one flow.
#[derive(Clone, Debug)]
pub struct Scalable {
    config: Config,
    window: Window,
}

impl Scalable {
    /// Scalable TCP at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        Self { config, window: Window::new(init) }
    }

    /// Whether Reno's rules apply to the window.
    fn is_legacy(&self) -> bool {
        self.window.cwnd() <= self.config.legacy_window.into()
    }

    /// Acknowledged segments for one segment of growth.
    fn price(&self) -> u64 {
        let (cwnd, fixed) = (self.window.cwnd(), self.config.ai_cnt);
        if self.is_legacy() {
            cwnd
        } else if self.config.legacy_window > 0 {
            fixed
        } else {
            cwnd.min(fixed)
        }
    }
}

impl CongestionControl for Scalable {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        if flow.is_recovering() || !flow.cwnd_limited {
            return;
        }
        let rest = self.window.slow_start(ack.credit);
        if rest > 0 {
            self.window.grow(self.price() as f64, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let base = self.window.cut_from(event);
        let taken = if self.is_legacy() { base.div_ceil(2) } else { base >> 3 };
        self.window.shrink_to(flow, event, base - taken);
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Acknowledged segments per segment of growth.
        record("cnt", self.price() as f64);
        // Share of a segment that the window has grown by besides.
        record("credit", self.window.credit());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{INIT, LINUX, Path, windows};
    use crate::{Cause, resolve};
    use tcplab_units::Duration;

    fn avoiding(cwnd: u64, config: Config) -> Scalable {
        let mut cc = Scalable::new(&Init { initial_window: cwnd, ..LINUX }, config);
        cc.window.leave_slow_start();
        cc
    }

    #[test]
    fn grows_by_a_hundredth_of_large_windows() {
        // 100 segments for one: 1000 buy 10, and 1010 buy 10 more, with 10 left.
        let mut cc = avoiding(1000, Config::default());
        assert_eq!(windows(&mut cc, 3, &[]), [1000, 1010, 1020]);
    }

    #[test]
    fn small_windows_grow_by_one_per_round_trip() {
        assert_eq!(windows(&mut avoiding(20, Config::default()), 4, &[]), [20, 21, 22, 23]);
    }

    #[test]
    fn a_loss_takes_an_eighth() {
        // 1000 - 125; 875 - 109, because an eighth of 875 is 109.4.
        let mut cc = avoiding(1000, Config::default());
        assert_eq!(windows(&mut cc, 3, &[1000, 875]), [1000, 875, 766]);
    }

    #[test]
    fn scalable_recovers_in_14_round_trips_at_any_cwnd() {
        // From 7/8, ln(8/7) / ln(1.01) = 13.4 round trips.
        for cwnd in [800, 80_000] {
            let seen = windows(&mut avoiding(cwnd, Config::default()), 16, &[cwnd]);
            assert!(seen[14] < cwnd && seen[15] >= cwnd, "{seen:?}");
        }
    }

    #[test]
    fn scalable_2003_equals_reno_up_to_16_and_adds_a_hundredth_above() {
        let (_, params) = resolve("scalable/2003", &crate::Params::default()).unwrap();
        let config: Config = params.parse().unwrap();
        assert_eq!(windows(&mut avoiding(10, config.clone()), 3, &[10]), [10, 5, 6]);
        // 17 segments of 0.01 each add a sixth of a segment: after six round trips one.
        let seen = windows(&mut avoiding(17, config), 8, &[]);
        assert_eq!(seen, [17, 17, 17, 17, 17, 17, 18, 18]);
    }

    #[test]
    fn starts_as_reno_does() {
        let mut cc = Scalable::new(&INIT, Config::default());
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        assert_eq!((path.round(), path.round()), (20, 40));
        path.congestion(Cause::Timeout);
        // 1 with the RFC flavour, and slow start up to 40 - 5.
        assert_eq!((path.cwnd(), cc.control().ssthresh), (1, Some(35)));
    }
}
