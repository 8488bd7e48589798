//! Prague: DCTCP for the internet, with queues of its own (L4S).
//!
//! A queue of L4S (RFC 9330) marks early and often, and keeps flows apart from others that answer each
//! mark in proportion and say so: their packets are ECT(1). Prague is the first of these controllers.
//! From DCTCP it has `alpha`, a moving average of the share of marked packets, and the cut by half of
//! it; what differs makes it fit for paths that nobody has prepared for it.
//!
//! - Marks are counted by both ends (RFC 9768), so it needs no special receiver.
//! - Segments are paced, and no more leave at once than the rate sends in 0.25 ms: a queue that marks from
//!   a few packets on would take bursts for congestion.
//! - A round trip with marks makes the window smaller once (RFC 8257 §3.3): at the first of them, or
//!   when a round trip has passed since the last cut. So there are two marks a round trip, as the coupling
//!   of RFC 9332 §2.1 takes for granted. To wait for another mark after that round trip, as others
//!   do, is to have 2.7.
//! - Additive increase goes on while the window gets smaller, by what was acknowledged without a mark.
//! - `alpha` is 1 with the first mark, which ends slow start, and an average from then on.
//! - Flows with short round trips behave as if theirs were `virtual_rtt_ms`: they average and cut at
//!   most once in that time, and grow by `(rtt / virtual_rtt)^2` a round trip. With marks at random
//!   with probability p, a window W then grows by `rtt / virtual_rtt` and is cut by `p W / 2` in that
//!   time, so the rate is `W / rtt = 2 / (p virtual_rtt)`, whatever the round trip. Short flows shall
//!   not be slow for that: it begins after `rtt_transition` round trips.
//! - The window has fractions, so that small cuts of small windows are not lost. Below two segments,
//!   down to a sixteenth of one, the pacing rate is what holds a flow to its window.
//! - A loss halves the window.
//!
//! Where marks come from a classic queue, which keeps a longer queue and expects each mark to be answered
//! like a loss, Prague would take the share of others. It tells such a queue by its delay, as the
//! difference of the smoothed and the least RTT (`d`), and by how RTTs vary (`v`, their mean deviation):
//! each averaging time with a mark adds `log2(v / 0.75 ms) / 2 + log2(d / 2 ms) / 2` to a score, which is
//! at first 0. Between a score of 0 and 1 Prague turns into Reno, whose cut is a half and whose round
//! trips are as they are. Both limits are larger by the time that a packet takes at the rate of the
//! flow, because on slow links a queue of a packet is as short as there can be. The 5 ms of
//! `CoDel` are too short a queue to be told so on fast links.
//!
//! The queue is `dualpi2`, which keeps classic flows apart, or, alone, one that marks at a threshold:
//! `red` with `ecn`, a `weight` of 1 and `min` equal to `max`. The sender is paced by its stack, at up to
//! 1.2 windows a round trip (two in slow start). The growth of CUBIC on long paths, which the draft plans
//! for, is left out.
//!
//! - draft-briscoe-iccrg-prague-congestion-control.
//! - RFC 9330, RFC 9331 §4: what L4S asks of senders.
//! - Briscoe, Ahmed: TCP Prague Fall-back on Detection of a Classic ECN AQM, 2019.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Phase, Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Rate, Time};

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

/// The smallest window, in segments.
const LEAST: f64 = 1.0 / 16.0;

/// Windows below this are held to by pacing.
const SMALL: f64 = 2.0;

/// How long the rate takes for the segments that leave at once, at the most.
const LONGEST_BURST: Duration = Duration::from_micros(250);

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
    /// They do so from this round trip of the connection on.
    pub rtt_transition: u64,
    /// Whether it turns into Reno where marks come from a classic queue.
    pub fallback: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { gain: 0.0625, virtual_rtt_ms: 25.0, rtt_transition: 500, fallback: true }
    }
}

/// What speaks for a classic queue (Briscoe and Ahmed 2019).
#[derive(Clone, Copy, Debug, Default)]
struct Suspicion {
    /// Mean deviation of the RTT, in seconds.
    deviation: f64,
    score: f64,
}

impl Suspicion {
    /// Seconds of deviation and of queueing delay that say nothing.
    const DEVIATION: f64 = 0.75e-3;
    const DELAY: f64 = 2e-3;
    /// A score that is far from the limits stays on its side for a while.
    const STICKY: f64 = 16.0;

    fn note_rtt(&mut self, flow: &FlowState, rtt: Duration) {
        let error = (rtt.as_secs_f64() - flow.srtt.as_secs_f64()).abs();
        self.deviation += (error - self.deviation) / 4.0;
    }

    /// Some packets of the last round trip were marked, in which the window was this.
    fn judge(&mut self, flow: &FlowState, window: f64) {
        let srtt = flow.srtt.as_secs_f64();
        let packet = srtt / window;
        let delay = srtt - flow.min_rtt.as_secs_f64().min(srtt);
        let compared = |seconds: f64, limit: f64| {
            libm::log2(seconds.max(1e-6) / (limit + packet).max(1e-6)) / 2.0
        };
        self.score += compared(self.deviation, Self::DEVIATION) + compared(delay, Self::DELAY);
        self.score = self.score.clamp(-Self::STICKY, 1.0 + Self::STICKY);
    }

    /// 0: the queue is one of L4S; 1: it is a classic one.
    fn share(self) -> f64 {
        self.score.clamp(0.0, 1.0)
    }
}

/// The Prague controller of one flow.
#[derive(Clone, Debug)]
pub struct Prague {
    config: Config,
    virtual_rtt: Duration,
    mss: u64,
    window: Window,
    /// The window where it is less than two segments; `window` is the next whole number then.
    small: Option<f64>,
    /// The same before the last loss.
    small_before: Option<f64>,
    /// How many windows of segments buy one more: 1, or the square of how much shorter round trips are
    /// than the virtual one.
    price: f64,
    srtt: Duration,
    /// Round trips since the connection began.
    rounds: u64,
    /// The share of marked packets; none before the first mark.
    alpha: Option<f64>,
    /// Since when segments are counted, how many have arrived and were marked.
    counted_since: Time,
    delivered: u64,
    marked: u64,
    suspicion: Suspicion,
    /// When marks last made the window smaller, and whether some have come that did not.
    cut_at: Option<Time>,
    is_unanswered: bool,
    /// Marks before this are of the slow start that has ended.
    heeds_from: Time,
    /// The window was cut for a mark, and what was outstanding then still is.
    answers_mark: bool,
}

impl Prague {
    /// Prague at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        Self {
            config: config.clone(),
            virtual_rtt: Duration::from_secs_f64((config.virtual_rtt_ms / 1e3).min(1e3)),
            mss: init.mss,
            window: Window::new(init),
            small: None,
            small_before: None,
            price: 1.0,
            srtt: Duration::ZERO,
            rounds: 0,
            alpha: None,
            counted_since: Time::ZERO,
            delivered: 0,
            marked: 0,
            suspicion: Suspicion::default(),
            cut_at: None,
            is_unanswered: false,
            heeds_from: Time::ZERO,
            answers_mark: false,
        }
    }

    /// The window if it is less than two segments, and nothing has set it since.
    fn small(&self) -> Option<f64> {
        self.small.filter(|&small| whole(small) == self.window.cwnd())
    }

    /// The window in segments, and parts of one.
    fn size(&self) -> f64 {
        let whole = self.window.cwnd() as f64;
        let part = (self.window.credit() / (whole * self.price)).clamp(0.0, 1.0);
        self.small().unwrap_or(whole + part)
    }

    fn resize(&mut self, size: f64) {
        let size = size.max(LEAST);
        self.small = (size < SMALL).then_some(size);
        self.window.set(whole(size));
        let part = if size < SMALL { 0.0 } else { size - libm::floor(size) };
        self.window.set_credit(part * self.window.cwnd() as f64 * self.price);
    }

    /// The round trip that this flow goes by.
    fn round_trip(&self, flow: &FlowState) -> Duration {
        let is_short = self.rounds >= self.config.rtt_transition && self.suspicion.share() < 1.0;
        if is_short { flow.srtt.max(self.virtual_rtt) } else { flow.srtt }
    }

    /// Moves alpha once a round trip.
    fn count(&mut self, flow: &FlowState, ack: &Ack) {
        self.rounds += u64::from(ack.round.is_some());
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.marked = self.marked.saturating_add(ack.ce);
        if let Some(rtt) = ack.rtt {
            self.suspicion.note_rtt(flow, rtt);
        }
        if flow.now.since(self.counted_since) < self.round_trip(flow) {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let marked = (self.marked as f64 / self.delivered.max(1) as f64).min(1.0);
            *alpha += (marked - *alpha) * self.config.gain;
        }
        if self.config.fallback && self.marked > 0 {
            self.suspicion.judge(flow, self.size());
        }
        (self.counted_since, self.delivered, self.marked) = (flow.now, 0, 0);
    }

    /// Something was marked: makes the window smaller, unless that was done less than a round trip ago.
    fn answer(&mut self, flow: &FlowState, event: Congestion) {
        let is_early = self.cut_at.is_some_and(|then| flow.now.since(then) < self.round_trip(flow));
        if is_early {
            return;
        }
        (self.cut_at, self.is_unanswered) = (Some(flow.now), false);
        if self.window.in_slow_start() {
            self.heeds_from = flow.now + flow.srtt;
        }
        let alpha = *self.alpha.get_or_insert(1.0);
        // The cut of Reno where the queue is a classic one.
        let cut = alpha + (1.0 - alpha) * self.suspicion.share();
        let kept = (self.size() * (1.0 - cut / 2.0)).max(LEAST);
        self.window.shrink_to(flow, event, whole(kept));
        self.resize(kept);
        self.window.set_threshold(whole(kept));
    }
}

/// The whole segments in a window: at least what it takes to send at all.
fn whole(size: f64) -> u64 {
    if size < SMALL { libm::ceil(size) as u64 } else { size as u64 }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.srtt = flow.srtt;
        self.count(flow, ack);
        self.is_unanswered |= ack.ce > 0 && flow.now >= self.heeds_from;
        if self.is_unanswered && flow.phase <= Phase::Reduced {
            // Neither with the next episode of the stack, which may begin up to a round trip later, nor
            // with the next mark.
            let event = Congestion { cause: Cause::Ecn, flight: flow.in_flight, again: false };
            self.answer(flow, event);
        }
        // A flow that is held to a part of its window by pacing does not fill it.
        let is_paced = self.small().is_some() && flow.next_departure >= flow.now;
        if (flow.is_recovering() && !self.answers_mark) || !(flow.cwnd_limited || is_paced) {
            return;
        }
        let longer = self.round_trip(flow).as_secs_f64() / flow.srtt.as_secs_f64().max(1e-6);
        let longer = longer.max(1.0);
        let (size, price) = (self.size(), longer * longer);
        // What was marked does not count.
        let unmarked = ack.credit.saturating_sub(ack.ce);
        if let Some(small) = self.small() {
            self.price = price;
            return self.resize(small + unmarked as f64 / (small.max(1.0) * price));
        }
        let rest = self.window.slow_start(unmarked);
        if rest > 0 {
            if price.to_bits() != self.price.to_bits() {
                // A part of a segment is worth the same when the price changes.
                self.price = price;
                self.resize(size);
            }
            self.window.grow(self.window.cwnd() as f64 * price, rest);
        }
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.answers_mark = event.cause == Cause::Ecn;
        if self.answers_mark {
            self.answer(flow, event);
            return;
        }
        let kept = self.size() / 2.0;
        self.small_before = self.small;
        self.window.shrink(flow, event, 0.5);
        if kept < SMALL {
            // No way back to two segments, where the window was less.
            self.window.set_threshold(whole(kept));
            if event.cause == Cause::Loss {
                self.resize(kept);
            }
        }
    }

    fn on_undo(&mut self, _flow: &FlowState) {
        self.window.undo();
        self.small = self.small_before;
    }

    fn on_deepened(&mut self, _cwnd: u64) {
        self.answers_mark = false;
        if self.small().is_some() {
            self.resize(self.size() / 2.0);
            return self.window.set_threshold(self.window.cwnd());
        }
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
        let srtt = self.srtt.as_secs_f64();
        let rate = |small: f64| {
            let bits = small * self.mss as f64 * 8.0 / srtt;
            Rate::from_bits_per_second((bits as u64).max(1))
        };
        Control {
            // A mark lost nothing: the smaller window is used at once, and grows again.
            prr: !self.answers_mark,
            pacing: self.small().filter(|_| srtt > 0.0).map(rate),
            longest_burst: Some(LONGEST_BURST),
            ..self.window.control()
        }
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        record("alpha", self.alpha.unwrap_or(0.0));
        record("window", self.size());
        record("classic", self.suspicion.share());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FLOW, INIT, Path, windows};
    use crate::{Params, Phase, build};

    fn prague() -> Prague {
        Prague::new(&INIT, &Config { rtt_transition: 0, ..Config::default() })
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
    fn marks_of_a_round_trip_are_answered_when_it_is_over() {
        let mut cc = prague();
        cc.window.set(100);
        cc.window.leave_slow_start();
        let (mark, none) = (Ack { delivered: 1, ce: 1, ..Ack::default() }, Ack::default());
        cc.on_ack(&at(100, 50), &mark);
        assert_eq!((cc.control().cwnd, cc.alpha), (50, Some(1.0)));
        for millis in [120, 149] {
            cc.on_ack(&at(millis, 50), &mark);
            assert_eq!(cc.control().cwnd, 50);
        }
        cc.on_ack(&at(150, 50), &none);
        assert!(cc.control().cwnd < 30);
        // Nothing has been marked since.
        let cwnd = cc.control().cwnd;
        cc.on_ack(&at(250, 50), &none);
        assert_eq!(cc.control().cwnd, cwnd);
    }

    #[test]
    fn marks_of_the_round_trip_in_which_slow_start_ends_are_answered_once() {
        let mut cc = prague();
        cc.window.set(100);
        let mark = Ack { delivered: 1, ce: 1, ..Ack::default() };
        for millis in [100, 120, 149] {
            cc.on_ack(&at(millis, 50), &mark);
        }
        cc.on_ack(&at(151, 50), &Ack::default());
        assert_eq!(cc.control().cwnd, 50);
    }

    #[test]
    fn small_windows_have_parts_and_are_paced() {
        let mut cc = prague();
        cc.window.set(3);
        cc.alpha = Some(0.5);
        // A quarter off: 2.25 segments, which is a window of two; again 1.6875, and then 1.265625.
        for (millis, cwnd, size) in [(100, 2, 2.25), (200, 2, 1.6875), (300, 2, 1.265_625)] {
            cc.answer(&at(millis, 50), MARK);
            cc.srtt = Duration::from_millis(50);
            assert_eq!((cc.control().cwnd, cc.size()), (cwnd, size));
        }
        // 1.265625 segments of 1460 bytes in 50 ms.
        let rate = cc.control().pacing.unwrap().bits_per_second();
        assert_eq!(rate, (1.265_625 * 1460.0 * 8.0 / 0.05) as u64);
        cc.answer(&at(400, 50), MARK);
        assert_eq!((cc.control().cwnd, cc.size()), (1, 0.949_218_75));
        // One segment for the next window's worth, and then another: back to whole windows.
        let ack = Ack { credit: 1, ..Ack::default() };
        cc.on_ack(&at(410, 50), &ack);
        assert_eq!((cc.control().cwnd, cc.size()), (1 + 1, 1.949_218_75));
        cc.on_ack(&at(420, 50), &ack);
        assert_eq!((cc.control().cwnd, cc.control().pacing), (2, None));
        // A loss halves it, too, and not to two segments.
        cc.resize(1.5);
        let loss = Congestion { cause: Cause::Loss, flight: 2, again: false };
        cc.on_congestion(&at(500, 50), loss);
        assert_eq!((cc.control().cwnd, cc.size()), (1, 0.75));
        cc.on_undo(&at(510, 50));
        assert_eq!((cc.control().cwnd, cc.size()), (2, 1.5));
        for millis in 1..100 {
            cc.alpha = Some(1.0);
            cc.answer(&at(1000 * millis, 50), MARK);
        }
        assert_eq!((cc.control().cwnd, cc.size()), (1, LEAST));
    }

    #[test]
    fn a_classic_queue_is_told_by_its_delay_and_its_changes() {
        let marked = |srtt: u64, least: u64, deviation_us: u64| {
            let mut cc = prague();
            cc.window.set(1000);
            cc.suspicion.deviation = deviation_us as f64 / 1e6;
            let min_rtt = Duration::from_millis(least);
            cc.suspicion.judge(&FlowState { min_rtt, ..at(100, srtt) }, 1e9);
            cc.suspicion.score
        };
        // Each in halves of powers of two from 2 ms and 0.75 ms.
        assert!((marked(28, 20, 750) - 1.0).abs() < 1e-6);
        assert!((marked(28, 20, 1500) - 1.5).abs() < 1e-6);
        assert!((marked(21, 20, 375) + 1.0).abs() < 1e-6);
        // Then a mark halves, whatever alpha is.
        let mut cc = prague();
        cc.window.set(100);
        (cc.alpha, cc.suspicion.score) = (Some(0.0), 1.0);
        cc.answer(&at(100, 50), MARK);
        assert_eq!(cc.control().cwnd, 50);
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
