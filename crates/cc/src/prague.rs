//! Prague: DCTCP for the internet, with queues of its own (L4S).
//!
//! A queue of L4S (RFC 9330) marks early and often, and keeps flows apart from others that answer each
//! mark in proportion and say so: their packets are ECT(1). Prague is the first of these controllers.
//! From DCTCP it has `alpha`, a moving average of the share of marked packets, and the cut by half of
//! it; what differs makes it fit for paths that nobody has prepared for it.
//!
//! - Marks are counted by both ends (RFC 9768), so it needs no special receiver.
//! - Segments are paced: a queue that marks from a few packets on would take bursts for congestion.
//! - Additive increase goes on while the window gets smaller, by what was acknowledged without a mark.
//! - `alpha` is 1 with the first mark, which ends slow start, and an average from then on.
//! - Flows with short round trips behave as if theirs were `virtual_rtt_ms`: they average and cut at
//!   most once in that time, and grow by `(rtt / virtual_rtt)^2` a round trip. With marks at random
//!   with probability p, a window W then grows by `rtt / virtual_rtt` and is cut by `p W / 2` in that
//!   time, so the rate is `W / rtt = 2 / (p virtual_rtt)`, whatever the round trip.
//! - A loss halves the window.
//!
//! The queue is one that marks at a threshold: `red` with `ecn`, a `weight` of 1 and `min` equal to
//! `max`. There is no second queue for others here (RFC 9332), so give it a link of its own. The sender
//! is paced by its stack, at up to 1.2 windows a round trip (two in slow start). Of the draft this
//! leaves out the slow change to independence of round trips in the first 500 of them, windows that are
//! no whole numbers, the fall-back where a queue looks like a classic one, and its wish for CUBIC's growth
//! on long paths.
//!
//! - draft-briscoe-iccrg-prague-congestion-control.
//! - RFC 9330, RFC 9331 §4: what L4S asks of senders.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Time};

/// Prague in the table.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "prague",
    kind: Kind::Marks,
    summary: "cut by the share of marked packets, for queues of L4S",
    reference: "draft-briscoe-iccrg-prague-congestion-control, RFC 9331",
    year: 2019,
    marks: Marks::Counted,
    source: include_str!("prague.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Prague::new(init, &params.parse()?))),
};

/// Parameters of Prague.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The weight of a round trip in alpha.
    #[serde(deserialize_with = "share")]
    pub gain: f64,
    /// Round trips that are shorter count as so many milliseconds long.
    #[serde(deserialize_with = "above_zero")]
    pub virtual_rtt_ms: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { gain: 0.0625, virtual_rtt_ms: 25.0 }
    }
}

/// The Prague controller of one flow.
#[derive(Clone, Debug)]
pub struct Prague {
    gain: f64,
    virtual_rtt: Duration,
    window: Window,
    /// The share of marked packets; none before the first mark.
    alpha: Option<f64>,
    /// Since when segments are counted, how many have arrived and were marked.
    counted_since: Time,
    delivered: u64,
    marked: u64,
    /// When marks last made the window smaller.
    cut_at: Option<Time>,
    /// The window was cut for a mark, and what was outstanding then still is.
    answers_mark: bool,
}

impl Prague {
    /// Prague at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        Self {
            gain: config.gain,
            virtual_rtt: Duration::from_secs_f64((config.virtual_rtt_ms / 1e3).min(1e3)),
            window: Window::new(init),
            alpha: None,
            counted_since: Time::ZERO,
            delivered: 0,
            marked: 0,
            cut_at: None,
            answers_mark: false,
        }
    }

    /// The round trip that this flow goes by.
    fn round_trip(&self, flow: &FlowState) -> Duration {
        flow.srtt.max(self.virtual_rtt)
    }

    /// Moves alpha once a round trip.
    fn count(&mut self, flow: &FlowState, ack: &Ack) {
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.marked = self.marked.saturating_add(ack.ce);
        if flow.now.since(self.counted_since) < self.round_trip(flow) {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let marked = (self.marked as f64 / self.delivered.max(1) as f64).min(1.0);
            *alpha += (marked - *alpha) * self.gain;
        }
        (self.counted_since, self.delivered, self.marked) = (flow.now, 0, 0);
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.count(flow, ack);
        if (flow.is_recovering() && !self.answers_mark) || !flow.cwnd_limited {
            return;
        }
        // What was marked does not count.
        let rest = self.window.slow_start(ack.credit.saturating_sub(ack.ce));
        if rest > 0 {
            let longer = self.round_trip(flow).as_secs_f64() / flow.srtt.as_secs_f64().max(1e-6);
            self.window.grow(self.window.cwnd() as f64 * longer * longer, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.answers_mark = event.cause == Cause::Ecn;
        if event.cause != Cause::Ecn {
            return self.window.shrink(flow, event, 0.5);
        }
        let is_early = self.cut_at.is_some_and(|then| flow.now.since(then) < self.round_trip(flow));
        if is_early {
            return;
        }
        self.cut_at = Some(flow.now);
        let alpha = *self.alpha.get_or_insert(1.0);
        let kept = libm::round(self.window.cwnd() as f64 * (1.0 - alpha / 2.0));
        self.window.shrink_to(flow, event, kept as u64);
    }

    fn on_deepened(&mut self, _cwnd: u64) {
        self.answers_mark = false;
        let half = (self.window.cwnd() / 2).max(2);
        self.window.set_threshold(half);
        self.window.cap(half);
    }

    fn on_recovered(&mut self, _flow: &FlowState) {
        self.answers_mark = false;
    }

    fn window(&mut self) -> Option<&mut Window> {
        Some(&mut self.window)
    }

    fn control(&self) -> Control {
        // A mark lost nothing: the smaller window is used at once, and grows again.
        Control { prr: !self.answers_mark, ..self.window.control() }
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        record("alpha", self.alpha.unwrap_or(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FLOW, INIT, Path, windows};
    use crate::{Params, Phase, build};

    fn prague() -> Prague {
        Prague::new(&INIT, &Config::default())
    }

    fn at(millis: u64, srtt: u64) -> FlowState {
        let now = Time::ZERO + Duration::from_millis(millis);
        FlowState { now, srtt: Duration::from_millis(srtt), ..FLOW }
    }

    const MARK: Congestion = Congestion { cause: Cause::Ecn, flight: 0, again: false };

    #[test]
    fn the_first_mark_halves_and_alpha_is_an_average_from_then_on() {
        let mut cc = prague();
        cc.window.set(100);
        cc.on_congestion(&at(100, 50), MARK);
        assert_eq!((cc.control().cwnd, cc.alpha), (50, Some(1.0)));
        // Round trips of 50 ms with one of ten marked: 1 - 0.9 / 16, and a sixteenth of what is missing
        // again.
        let ack = Ack { delivered: 10, ce: 1, ..Ack::default() };
        for (millis, expected) in [(110, 1.0 - 0.9 / 16.0), (160, 1.0 - 0.9 * 31.0 / 256.0)] {
            cc.on_ack(&at(millis, 50), &ack);
            let alpha = cc.alpha.unwrap();
            assert!((alpha - expected).abs() < 1e-12, "{alpha}");
        }
    }

    #[test]
    fn short_round_trips_count_as_25_ms() {
        let mut cc = prague();
        cc.window.set(100);
        cc.on_congestion(&at(100, 5), MARK);
        cc.window.set(100);
        // A second mark one round trip later is too early, and after 25 ms it is not.
        cc.on_congestion(&at(105, 5), MARK);
        assert_eq!(cc.control().cwnd, 100);
        cc.on_congestion(&at(125, 5), MARK);
        assert_eq!(cc.control().cwnd, 50);
        // (25 / 5)^2 = 25 windows for one segment more.
        for _ in 0..24 {
            cc.on_ack(&at(130, 5), &Ack { credit: 50, ..Ack::default() });
        }
        assert_eq!(cc.control().cwnd, 50);
        cc.on_ack(&at(130, 5), &Ack { credit: 50, ..Ack::default() });
        assert_eq!(cc.control().cwnd, 51);
    }

    #[test]
    fn it_grows_during_a_cut_by_what_was_not_marked() {
        let mut cc = prague();
        cc.window.set(100);
        cc.on_congestion(&at(100, 50), MARK);
        let flow = FlowState { phase: Phase::Reduced, ..at(110, 50) };
        assert!(!cc.control().prr);
        cc.on_ack(&flow, &Ack { credit: 49, ce: 49, ..Ack::default() });
        cc.on_ack(&flow, &Ack { credit: 50, ce: 1, ..Ack::default() });
        assert_eq!(cc.control().cwnd, 50);
        cc.on_ack(&flow, &Ack { credit: 1, ..Ack::default() });
        assert_eq!(cc.control().cwnd, 51);
    }

    #[test]
    fn without_marks_and_on_long_paths_it_is_reno() {
        let mut newreno = build("newreno", &INIT, &Params::default()).unwrap();
        let expected = windows(newreno.as_mut(), 20, &[80, 60]);
        assert_eq!(windows(&mut prague(), 20, &[80, 60]), expected);
    }

    #[test]
    fn a_loss_during_a_cut_halves() {
        let mut cc = prague();
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.round();
        path.congestion(Cause::Ecn);
        let before = path.cwnd();
        cc.on_deepened(before);
        assert_eq!(cc.control().cwnd, before / 2);
        assert!(cc.control().prr);
    }
}
