//! Prague: DCTCP for the internet, with separate queues (L4S).
//!
//! An L4S queue (RFC 9330) marks early and often. It separates classic flows from flows that react
//! to each mark in proportion, whose packets are ECT(1). Prague is the first of these controllers.
//! From DCTCP it has `alpha`, a moving average of the share of marked packets, and the cut by half
//! of alpha. The differences make it suitable for unprepared paths:
//!
//! - Both ends count marks (accurate ECN, RFC 9768), so no special receiver is needed.
//! - Segments are paced at one window a round trip, twice that in slow start, in bursts of at most
//!   0.25 ms at that rate: a queue that marks from a few packets on would take longer bursts for
//!   congestion.
//! - The ACK of a marked segment reduces the window, and for one round trip no other ACK does,
//!   however many segments were marked (the draft, §2.4.2). With random marks, m in a round trip,
//!   cuts are then `1 + 1/m` round trips apart: the growth in that time, as many segments, equals
//!   the cut `m / 2` with m = 1 + sqrt(3) = 2.7.
//! - Additive increase continues during a reduction, by the data acknowledged without a mark.
//! - `alpha` is 1 with the first mark, which ends slow start, and an average from then on.
//! - Flows with short round trips behave as if these were `virtual_rtt_ms` long: they average and
//!   cut at most once in that time, and grow by `(rtt / virtual_rtt)^2` a round trip. With random
//!   marks of probability p, a window W then grows by `rtt / virtual_rtt` and loses `p W / 2` about
//!   once in that time, so the rate `W / rtt` goes as `1 / (p virtual_rtt)`, whatever the round
//!   trip (§2.4.4). Short flows must not be slowed down by this: it begins `rtt_transition` round
//!   trips after slow start.
//! - The window has a fractional part, so that small cuts of small windows are not lost. Below two
//!   segments, down to 100 kbit/s, the pacing rate limits a flow to its window.
//! - A loss halves the window.
//!
//! A classic queue is longer and expects each mark to be treated like a loss. With marks from such
//! a queue, Prague would take the share of other flows. With `fallback` Prague detects such a queue
//! by its delay, as the difference of a slow average of the RTT and the minimum RTT (`d`), and by
//! the variation of RTTs (`v`, a slow average of their deviation). Each averaging time from the
//! first mark on adds `log2(v / 0.75 ms) / 2` to a score, and `log2(d / 2 ms) / 2` if `d` is longer
//! than that. The score begins at -8. Between 0 and 1 the minimum cut for a mark rises to 0.31,
//! about that of CUBIC. On slow links RTTs vary by the transmission time of a packet, and an L4S
//! queue is mistaken for a classic one.
//!
//! The queue is `dualpi2`, which separates classic flows, or, without other flows, one that marks
//! at a threshold: `red` with `ecn`, a `weight` of 1 and `min` equal to `max`.
//!
//! The rules are those of the draft and of version 0.6 of the kernel module (`tcp_prague.c` of the
//! L4S team), where the fall-back is off by default, too, with the small windows of later versions.
//! A virtual round trip ends with its time, as in `udp_prague`; the module also waits for the end
//! of the real one. Later modules reduce their segment size, and switch to virtual round trips
//! after four: neither is implemented, nor is CUBIC's growth on long paths, which the draft plans
//! for.
//!
//! - draft-briscoe-iccrg-prague-congestion-control.
//! - RFC 9330, RFC 9331 §4: requirements for L4S senders.
//! - Briscoe, Ahmed: TCP Prague Fall-back on Detection of a Classic ECN AQM, 2019.

use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Phase, Window, above_zero, defaults, share,
};
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Rate, Time};

/// Prague in the table of algorithms.
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

/// The minimum window is that of this rate in bits a second, but at most one segment
/// (`MINIMUM_RATE`).
const LEAST_RATE: f64 = 100e3;

/// Windows below this are enforced by pacing.
const SMALL: f64 = 2.0;

/// The header bytes included in the pacing rate (`tcp_mss_to_mtu`).
const HEADERS: u64 = 40;

/// The maximum duration of a burst at the pacing rate.
const LONGEST_BURST: Duration = Duration::from_micros(250);

/// Parameters of Prague.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The weight of a round trip in alpha.
    #[serde(deserialize_with = "share")]
    pub gain: f64,
    /// The virtual RTT: shorter round trips count as this many milliseconds long.
    #[serde(deserialize_with = "above_zero")]
    pub virtual_rtt_ms: f64,
    /// Round trips after slow start from which short ones count as the virtual RTT.
    pub rtt_transition: u64,
    /// Whether cuts are like CUBIC's if marks come from a classic queue.
    pub fallback: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { gain: 0.0625, virtual_rtt_ms: 25.0, rtt_transition: 500, fallback: false }
    }
}

/// Evidence for a classic queue (Briscoe and Ahmed 2019; `prague_classic_ecn_detection`).
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    /// Averages of the RTT, zero before the first, and of its deviation, in seconds.
    rtt: f64,
    deviation: f64,
    /// The weight of an RTT in the average is 2 to the power of minus this, and half of that in the
    /// deviation.
    log: u32,
    score: f64,
}

impl Default for Suspicion {
    fn default() -> Self {
        Self { rtt: 0.0, deviation: Self::FINEST, log: Self::SLOWEST, score: -Self::STICKY }
    }
}

impl Suspicion {
    /// The deviation and queueing delay, in seconds, that are no evidence.
    const DEVIATION: f64 = 0.75e-3;
    const DELAY: f64 = 2e-3;
    /// A score this far from its range takes a while to change sides.
    const STICKY: f64 = 8.0;
    /// The resolution of the kernel's clock: a microsecond.
    const FINEST: f64 = 1e-6;
    const SLOWEST: u32 = 18;
    /// The minimum cut for a mark with a classic queue, as a value of alpha.
    const ALPHA: f64 = 0.625;

    fn note_rtt(&mut self, rtt: Duration) {
        let rtt = rtt.as_secs_f64();
        if self.rtt <= 0.0 {
            self.rtt = rtt;
            return;
        }
        let (error, weight) = (rtt - self.rtt, libm::exp2(-f64::from(self.log)));
        self.rtt += error * weight;
        self.deviation += (error.abs() - self.deviation) * weight / 2.0;
    }

    /// Sets the averaging time to the RTTs in several sawteeth of this window
    /// (`prague_update_rtt_scaling`).
    fn scale(&mut self, ssthresh: u64) {
        let log = ssthresh.max(1).ilog2();
        self.log = (log + log / 2 + 1).min(Self::SLOWEST);
    }

    /// Updates the score at the end of an averaging time.
    fn judge(&mut self, min_rtt: Duration) {
        if min_rtt == Duration::MAX {
            return;
        }
        let compared =
            |seconds: f64, limit: f64| libm::log2(seconds.max(Self::FINEST) / limit) / 2.0;
        let delay = compared(self.rtt - min_rtt.as_secs_f64(), Self::DELAY).max(0.0);
        let score = self.score + compared(self.deviation, Self::DEVIATION) + delay;
        self.score = score.clamp(-Self::STICKY, 1.0 + Self::STICKY);
    }

    /// 0 for an L4S queue, 1 for a classic one.
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
    /// The window if it is less than two segments; `window` is the next whole number then.
    small: Option<f64>,
    /// The same before the last loss.
    small_before: Option<f64>,
    /// Windows of segments for one segment of growth: 1, or the square of the ratio of the virtual
    /// RTT to the real one.
    price: f64,
    srtt: Duration,
    /// Round trips outside of slow start.
    rounds: u64,
    /// The current round trip ends when this is acknowledged.
    end: u64,
    /// The share of marked packets; `None` before the first mark.
    alpha: Option<f64>,
    /// The time of alpha's last update, and segments delivered and marked since.
    moved_at: Time,
    delivered: u64,
    marked: u64,
    suspicion: Suspicion,
    /// The time of the last cut for marks, and the end of that round trip.
    cut_at: Option<Time>,
    cut_end: u64,
    /// Whether the window was cut for a mark, and data outstanding then still is.
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
            end: 0,
            alpha: None,
            moved_at: Time::ZERO,
            delivered: 0,
            marked: 0,
            suspicion: Suspicion::default(),
            cut_at: None,
            cut_end: 0,
            answers_mark: false,
        }
    }

    /// The window if it is less than two segments, and has not been set since.
    fn small(&self) -> Option<f64> {
        self.small.filter(|&small| whole(small) == self.window.cwnd())
    }

    /// The window in segments, with its fractional part.
    fn size(&self) -> f64 {
        let whole = self.window.cwnd() as f64;
        let part = (self.window.credit() / (whole * self.price)).clamp(0.0, 1.0);
        self.small().unwrap_or(whole + part)
    }

    fn resize(&mut self, size: f64) {
        let size = size.max(self.least());
        self.small = (size < SMALL).then_some(size);
        self.window.set(whole(size));
        let part = if size < SMALL { 0.0 } else { size - libm::floor(size) };
        self.window.set_credit(part * self.window.cwnd() as f64 * self.price);
    }

    /// The minimum window in segments.
    fn least(&self) -> f64 {
        if self.srtt.is_zero() {
            return 1.0;
        }
        (LEAST_RATE * self.srtt.as_secs_f64() / (self.mss as f64 * 8.0)).min(1.0)
    }

    /// Whether slow start ended long enough ago for short round trips to count as the virtual RTT.
    fn is_old(&self) -> bool {
        self.rounds >= self.config.rtt_transition
    }

    /// Whether it is too early to average or cut again after `then`.
    fn is_early(&self, flow: &FlowState, then: Time) -> bool {
        self.is_old() && !self.window.in_slow_start() && flow.now.since(then) < self.virtual_rtt
    }

    /// Updates alpha once a round trip.
    fn count(&mut self, flow: &FlowState, ack: &Ack) {
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.marked = self.marked.saturating_add(ack.ce);
        if let Some(rtt) = ack.rtt {
            self.suspicion.note_rtt(rtt);
        }
        if flow.una < self.end || self.is_early(flow, self.moved_at) {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let marked = (self.marked as f64 / self.delivered.max(1) as f64).min(1.0);
            *alpha += (marked - *alpha) * self.config.gain;
            self.moved_at = flow.now;
            if self.config.fallback {
                self.suspicion.judge(flow.min_rtt);
            }
        }
        self.rounds += u64::from(!self.window.in_slow_start());
        (self.end, self.delivered, self.marked) = (flow.nxt, 0, 0);
    }

    /// Reduces the window for a mark, unless that was done too recently.
    fn answer(&mut self, flow: &FlowState, event: Congestion) {
        let is_early = |then| flow.una < self.cut_end || self.is_early(flow, then);
        if self.cut_at.is_some_and(is_early) {
            return;
        }
        (self.cut_at, self.cut_end) = (Some(flow.now), flow.nxt);
        let alpha = *self.alpha.get_or_insert(1.0);
        let cut = alpha.max(Suspicion::ALPHA * self.suspicion.share());
        let kept = (self.size() * (1.0 - cut / 2.0)).max(self.least());
        self.window.shrink_to(flow, event, whole(kept));
        self.resize(kept);
        self.window.set_threshold(whole(kept));
    }

    /// Additive increase and slow start.
    fn grow(&mut self, flow: &FlowState, ack: &Ack) {
        // A flow whose window is enforced by pacing does not fill it.
        let is_paced = self.small().is_some() && flow.next_departure >= flow.now;
        if (flow.is_recovering() && !self.answers_mark) || !(flow.cwnd_limited || is_paced) {
            return;
        }
        let longer = if self.is_old() {
            (self.virtual_rtt.as_secs_f64() / flow.srtt.as_secs_f64().max(1e-6)).max(1.0)
        } else {
            1.0
        };
        let (size, price) = (self.size(), longer * longer);
        // Marked segments do not count.
        let unmarked = ack.credit.saturating_sub(ack.ce);
        if let Some(small) = self.small() {
            self.price = price;
            return self.resize(small + unmarked as f64 / (small.max(1.0) * price));
        }
        let rest = self.window.slow_start(unmarked);
        if rest > 0 {
            if price.to_bits() != self.price.to_bits() {
                // When the price changes, the earned part of a segment is kept.
                self.price = price;
                self.resize(size);
            }
            self.window.grow(self.window.cwnd() as f64 * price, rest);
        }
    }
}

/// The whole segments of a window, at least one.
fn whole(size: f64) -> u64 {
    if size < SMALL { libm::ceil(size) as u64 } else { size as u64 }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.srtt = flow.srtt;
        if ack.ce > 0 {
            self.alpha.get_or_insert(1.0);
        }
        if ack.ce > 0 && flow.phase <= Phase::Reduced {
            // Not at the stack's next episode, which may begin up to a round trip later.
            let event = Congestion { cause: Cause::Ecn, flight: flow.in_flight, again: false };
            self.answer(flow, event);
        }
        self.grow(flow, ack);
        self.count(flow, ack);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        self.suspicion.scale(self.window.ssthresh());
        self.answers_mark = event.cause == Cause::Ecn;
        if self.answers_mark {
            self.answer(flow, event);
            return;
        }
        let kept = self.size() / 2.0;
        self.small_before = self.small;
        self.window.shrink(flow, event, 0.5);
        if kept < SMALL {
            // Slow start must not raise a window of less than two segments back to two.
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
        let times = if self.window.cwnd() < self.window.ssthresh() / 2 { 2.0 } else { 1.0 };
        let bits = times * self.size() * self.mss.saturating_add(HEADERS) as f64 * 8.0;
        Control {
            // Nothing is lost with a mark: the smaller window applies at once, and grows again.
            prr: !self.answers_mark,
            pacing: (srtt > 0.0).then(|| Rate::from_bits_per_second(((bits / srtt) as u64).max(1))),
            longest_burst: Some(LONGEST_BURST),
            ..self.window.control()
        }
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // `alpha`: moving average of the share of marked packets, 0 to 1; 0 before the first mark.
        record("alpha", self.alpha.unwrap_or(0.0));
        // Window with its fraction, in segments.
        record("window", self.size());
        // Degree to which the bottleneck counts as a classic queue: 0 an L4S queue, 1 a classic
        // one.
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
    fn first_mark_halves_cwnd_and_starts_the_alpha_average() {
        let mut cc = prague();
        cc.window.set(100);
        cc.on_congestion(&at(100, 50), MARK);
        assert_eq!((cc.control().cwnd, cc.alpha), (50, Some(1.0)));
        // Round trips of 50 ms with one of ten marked: 1 - 0.9 / 16, and then a sixteenth of the
        // remaining difference.
        let ack = Ack { delivered: 10, ce: 1, ..Ack::default() };
        for (millis, expected) in [(110, 1.0 - 0.9 / 16.0), (160, 1.0 - 0.9 * 31.0 / 256.0)] {
            cc.on_ack(&at(millis, 50), &ack);
            let alpha = cc.alpha.unwrap();
            assert!((alpha - expected).abs() < 1e-12, "{alpha}");
        }
    }

    #[test]
    fn rtts_below_25_ms_use_the_virtual_rtt() {
        let mut cc = prague();
        cc.window.set(100);
        cc.on_congestion(&at(100, 5), MARK);
        cc.window.set(100);
        // A second mark one round trip later is too early, and after 25 ms it is not.
        cc.on_congestion(&at(105, 5), MARK);
        assert_eq!(cc.control().cwnd, 100);
        cc.on_congestion(&at(125, 5), MARK);
        assert_eq!(cc.control().cwnd, 50);
        // (25 / 5)^2 = 25 windows for one more segment.
        for _ in 0..24 {
            cc.on_ack(&at(130, 5), &Ack { credit: 50, ..Ack::default() });
        }
        assert_eq!(cc.control().cwnd, 50);
        cc.on_ack(&at(130, 5), &Ack { credit: 50, ..Ack::default() });
        assert_eq!(cc.control().cwnd, 51);
    }

    #[test]
    fn small_windows_are_fractional_and_paced() {
        let mut cc = prague();
        cc.window.set(3);
        cc.window.leave_slow_start();
        (cc.alpha, cc.srtt) = (Some(0.5), Duration::from_millis(50));
        // A quarter less: 2.25 segments, which is a window of two; then 1.6875 and 1.265625.
        for (millis, cwnd, size) in [(100, 2, 2.25), (200, 2, 1.6875), (300, 2, 1.265_625)] {
            cc.answer(&at(millis, 50), MARK);
            assert_eq!((cc.control().cwnd, cc.size()), (cwnd, size));
        }
        // 1.265625 segments of 1460 bytes, with headers of 40, in 50 ms.
        let rate = cc.control().pacing.unwrap().bits_per_second();
        assert_eq!(rate, (1.265_625 * 1500.0 * 8.0 / 0.05) as u64);
        cc.answer(&at(400, 50), MARK);
        assert_eq!((cc.control().cwnd, cc.size()), (1, 0.949_218_75));
        // One segment for the next window's worth, and then another: back to whole windows.
        let ack = Ack { credit: 1, ..Ack::default() };
        cc.on_ack(&at(410, 50), &ack);
        assert_eq!((cc.control().cwnd, cc.size()), (1 + 1, 1.949_218_75));
        cc.on_ack(&at(420, 50), &ack);
        assert_eq!((cc.control().cwnd, cc.small()), (2, None));
        // A loss halves the window too, and not to two segments.
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
        // 100 kbit/s for 50 ms are 5000 bits, of a segment's 11,680.
        assert_eq!((cc.control().cwnd, cc.size()), (1, 5000.0 / 11_680.0));
    }

    #[test]
    fn classic_aqm_score_follows_queueing_delay_and_rtt_deviation() {
        let judged = |rtt_ms: f64, least: u64, deviation_us: f64| {
            let (rtt, deviation) = (rtt_ms / 1e3, deviation_us / 1e6);
            let mut suspicion = Suspicion { rtt, deviation, score: 0.0, ..Suspicion::default() };
            suspicion.judge(Duration::from_millis(least));
            suspicion.score
        };
        // Halves of the logarithms of the ratios to 2 ms and 0.75 ms; a short delay is no evidence
        // for L4S.
        assert!((judged(28.0, 20, 750.0) - 1.0).abs() < 1e-6);
        assert!((judged(28.0, 20, 1500.0) - 1.5).abs() < 1e-6);
        assert!((judged(21.0, 20, 375.0) + 0.5).abs() < 1e-6);
        assert!((judged(20.0, 20, 375.0) + 0.5).abs() < 1e-6);
        // From -8 up to the limit of 9.
        let mut suspicion = Suspicion { rtt: 0.034, deviation: 0.003, ..Suspicion::default() };
        for expected in [-5.5, -3.0, -0.5, 2.0, 4.5, 7.0, 9.0, 9.0] {
            // log2(4) / 2 and log2(16 / 2) / 2.
            suspicion.judge(Duration::from_millis(18));
            assert!((suspicion.score - expected).abs() < 1e-6, "{}", suspicion.score);
        }
        // A mark then cuts by at least 0.625 / 2.
        let mut cc = prague();
        cc.window.set(100);
        (cc.alpha, cc.suspicion.score) = (Some(0.0), 1.0);
        cc.answer(&at(100, 50), MARK);
        assert_eq!((cc.control().cwnd, cc.size()), (68, 68.75));
    }

    #[test]
    fn ce_feedback_reduces_cwnd_at_once_and_once_per_round_trip() {
        let mut cc = prague();
        cc.window.set(100);
        cc.window.leave_slow_start();
        let cut = |cc: &mut Prague, millis, una, ce| {
            cc.alpha = Some(1.0);
            let flow = FlowState { una, nxt: una + 10, phase: Phase::Reduced, ..at(millis, 50) };
            cc.on_ack(&flow, &Ack { delivered: 1, ce, ..Ack::default() });
            cc.control().cwnd
        };
        assert_eq!(cut(&mut cc, 100, 0, 1), 50);
        assert_eq!(cut(&mut cc, 149, 9, 1), 50);
        assert_eq!(cut(&mut cc, 150, 10, 0), 50);
        assert_eq!(cut(&mut cc, 151, 11, 1), 25);
    }

    #[test]
    fn rtt_average_gain_falls_with_log2_of_cwnd() {
        let mut suspicion = Suspicion::default();
        // log2 of 16 is 4: 2^-(4 + 2 + 1) for the RTT, and half of that for its deviation.
        suspicion.scale(16);
        suspicion.note_rtt(Duration::from_millis(20));
        suspicion.note_rtt(Duration::from_millis(148));
        assert!((suspicion.rtt - 0.021).abs() < 1e-12);
        assert!((suspicion.deviation - (1e-6 + (0.128 - 1e-6) / 256.0)).abs() < 1e-12);
        suspicion.scale(u64::MAX);
        assert_eq!(suspicion.log, 18);
    }

    #[test]
    fn alpha_is_updated_after_both_a_round_trip_and_the_virtual_rtt() {
        let mut cc = prague();
        cc.window.set(100);
        cc.on_congestion(&at(100, 5), MARK);
        let ack = Ack { delivered: 1, ..Ack::default() };
        let mut alpha = |millis, una| {
            cc.on_ack(&FlowState { una, nxt: una + 10, ..at(millis, 5) }, &ack);
            cc.alpha
        };
        assert_eq!(alpha(100, 0), Some(15.0 / 16.0));
        // First the round trip is over and 25 ms are not; then both are, and at last only the time.
        assert_eq!(alpha(124, 10), Some(15.0 / 16.0));
        assert_eq!(alpha(125, 10), Some(225.0 / 256.0));
        assert_eq!(alpha(150, 19), Some(225.0 / 256.0));
    }

    #[test]
    fn pacing_rate_is_cwnd_per_rtt_and_double_in_slow_start() {
        let mut cc = prague();
        cc.on_ack(&at(100, 50), &Ack::default());
        let rate = |cc: &Prague| cc.control().pacing.unwrap().bits_per_second();
        // Ten segments of 1500 bytes in 50 ms.
        assert_eq!(rate(&cc), 2 * 2_400_000);
        cc.window.leave_slow_start();
        assert_eq!(rate(&cc), 2_400_000);
    }

    #[test]
    fn unmarked_acks_grow_cwnd_during_an_ecn_reduction() {
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
    fn prague_without_marks_equals_reno_at_long_rtt() {
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
