//! NewReno: probe by one segment per round trip, halve on loss.
//!
//! - RFC 5681 §3.1: slow start, congestion avoidance, `ssthresh`.
//! - RFC 8511: a gentler cut when the signal is ECN.
//! - RFC 3742 (limited slow start) and RFC 9406 (`HyStart++`), if `slow_start` says so.
//!
//! RFC 6582 (partial ACKs) is loss repair and RFC 3465 (counting bytes) is `Ack::credit`; the
//! sender does both for every algorithm.

use crate::slow_start::{self, SlowStart};
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, Flavour, FlowState, Init, Kind,
    Marks, Window, defaults, share,
};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// NewReno in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "newreno",
    kind: Kind::Loss,
    summary: "one segment more per round trip, half the window on loss",
    reference: "RFC 5681, RFC 6582",
    year: 1999,
    marks: Marks::AsSet,
    source: include_str!("newreno.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(NewReno::new(init, params.parse()?))),
};

/// Parameters of NewReno.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Share kept after a loss.
    #[serde(deserialize_with = "share")]
    pub beta: f64,
    /// Share kept after an ECN mark, in stacks that follow RFC 8511.
    #[serde(deserialize_with = "share")]
    pub beta_ecn: f64,
    /// The slow-start variant: "standard", "hystart" (of 2008, as in Linux's CUBIC), "hystart++"
    /// (RFC 9406) or "limited" (RFC 3742).
    pub slow_start: slow_start::Kind,
    /// The window up to which limited slow start doubles (RFC 3742 §2).
    pub max_ssthresh: NonZeroU64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 0.5,
            beta_ecn: 0.8,
            slow_start: slow_start::Kind::Standard,
            max_ssthresh: const { NonZeroU64::new(100).unwrap() },
        }
    }
}

/// The NewReno controller of one flow.
#[derive(Clone, Debug)]
pub struct NewReno {
    config: Config,
    flavour: Flavour,
    window: Window,
    slow_start: SlowStart,
}

impl NewReno {
    /// NewReno at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let slow_start = SlowStart::new(config.slow_start, config.max_ssthresh);
        Self { config, flavour: init.flavour, window: Window::new(init), slow_start }
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        let rest = self.slow_start.on_ack(&mut self.window, flow, ack);
        if rest > 0 {
            self.window.grow(self.window.cwnd() as f64, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        let kept = match (event.cause, self.flavour) {
            (Cause::Ecn, Flavour::Rfc) => self.config.beta_ecn,
            // The kernel does not implement RFC 8511.
            _ => self.config.beta,
        };
        self.slow_start.on_congestion(flow, event);
        self.window.shrink(flow, event, kept);
    }

    fn floor(&self) -> Option<u64> {
        // `tcp_reno_min_cwnd`: a recovery longer than a round trip continues to halve the window.
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
        // Share of a segment that the window has grown by besides.
        record("credit", self.window.credit());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use crate::testing::{FLOW, INIT, LINUX, Path, windows};
    use serde_json::json;
    use tcplab_units::Duration;

    fn newreno() -> NewReno {
        NewReno::new(&INIT, Config::default())
    }

    #[test]
    fn doubles_then_halves_then_climbs_by_one() {
        assert_eq!(windows(&mut newreno(), 8, &[80]), [10, 20, 40, 80, 40, 41, 42, 43]);
    }

    #[test]
    fn ecn_mark_keeps_eight_tenths_of_cwnd() {
        let mut cc = newreno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(Cause::Ecn);
        assert_eq!(path.cwnd(), 8);
    }

    #[test]
    fn timeout_restarts_slow_start_up_to_half_of_cwnd() {
        let mut cc = newreno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(Cause::Timeout);
        assert_eq!(path.cwnd(), 1);
        let climb: Vec<_> = (0..6).map(|_| path.round()).collect();
        // 8 ACKs would double 4, but ssthresh is 5; from there one per round.
        assert_eq!(climb, [2, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut cc = newreno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.flow.cwnd_limited = false;
        assert_eq!(path.round(), 10);
    }

    #[test]
    fn beta_sets_the_share_kept_after_loss() {
        let mut cc = NewReno::new(&INIT, Config { beta: 0.25, ..Config::default() });
        assert_eq!(windows(&mut cc, 5, &[40]), [10, 20, 40, 10, 11]);
    }

    #[test]
    fn slow_start_is_a_parameter() {
        let params = Params(json!({ "slow_start": "limited", "max_ssthresh": 20 }));
        let mut cc = NewReno::new(&INIT, params.parse().unwrap());
        // RFC 3742 §2: doubling up to 20; then K = int(cwnd / 10): 21 to 29 grow by one for two
        // ACKs, and from 30 on for three: one more ACK to 21, then 16 to 29, 2 to 30, and the last
        // one is kept as credit.
        assert_eq!(windows(&mut cc, 3, &[]), [10, 20, 30]);
        let params = Params(json!({ "slow_start": "fast" }));
        assert!(params.parse::<Config>().unwrap_err().to_string().contains("\"hystart++\""));
    }

    #[test]
    fn rate_halving_floor_is_half_of_ssthresh_in_linux_flavour_only() {
        for (init, floor) in [(&LINUX, Some(2)), (&INIT, None)] {
            let mut cc = NewReno::new(init, Config::default());
            let event = Congestion { cause: Cause::Loss, flight: 10, again: false };
            cc.on_congestion(&FLOW, event);
            assert_eq!((cc.control().ssthresh, cc.floor()), (Some(5), floor));
        }
    }

    #[test]
    fn moderation_lowers_cwnd_and_keeps_ssthresh() {
        let mut cc = newreno();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(Cause::Loss);
        cc.on_moderated(7);
        assert_eq!(cc.control().cwnd, 5);
        cc.on_moderated(3);
        assert_eq!((cc.control().cwnd, cc.control().ssthresh), (3, Some(5)));
    }
}
