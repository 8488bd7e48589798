//! BBR, version 3: a model of the path as in version 1, corrected by losses.
//!
//! Like version 1, this algorithm measures the bandwidth and the minimum RTT, paces at a gain times
//! the bandwidth, and keeps a gain times the BDP in flight. New are bounds learned from losses:
//!
//! - `inflight_longterm`: where a probe lost more than 2 % of the data in flight, the amount that
//!   is safe. The next probes begin there and raise the bound by 1, 2, 4, ... segments a round
//!   trip.
//! - `bw_shortterm`, `inflight_shortterm`: each round trip with losses between probes lowers them
//!   to what was delivered, by at most 30 %, until the next probe.
//!
//! | mode | pacing gain | until |
//! |---|---|---|
//! | startup (0) | 2.77 | no growth by a quarter in three round trips, or many losses |
//! | drain (1) | 0.5 | no more than the BDP is in flight, or three round trips |
//! | down (2) | 0.9 | the queue is drained, and 15 % of the safe amount are free |
//! | cruise (3) | 1 | two to three seconds, or as many round trips as BDP segments (up to 63) |
//! | refill (4) | 1, short-term bounds discarded | a round trip |
//! | up (5) | 1.25 | the rate stops growing, or losses are many |
//! | probe RTT (6) | 1, half of the BDP in flight | 200 ms, every ten seconds without a lower RTT |
//!
//! After a probe that lost too much, the next one ends at the amount found safe; if nothing is lost
//! there, another probe follows at once.
//!
//! In short queues version 3 loses far less than version 1. On paths where Reno works well, it
//! probes as seldom as Reno does. The draft does not mention ECN; here a mark counts as a round
//! trip with losses. Linux 6.12 does not have version 3.
//!
//! - Cardwell, Swett, Beshay: BBR Congestion Control, draft-ietf-ccwg-bbr (the text after -04, with
//!   precautionary probes and the window of the RTT as the interval of its measurement); before
//!   that draft-cardwell-iccrg-bbr-congestion-control-02.

mod cycle;
mod losses;

use crate::max_filter::WindowedMax;
use crate::random::Random;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Lost,
    Marks, Phase, RateSample, above_zero, defaults, share,
};
use cycle::Cycle;
use losses::Losses;
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Rate, Time};

const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// The share of the bandwidth used for pacing (`PacingMarginPercent`).
const MARGIN: f64 = 0.99;
/// `MinPipeCwnd`.
const LEAST_WINDOW: f64 = 4.0;
/// Growth by less than this factor in so many round trips is a plateau.
const STILL_GROWING: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The number of loss events in a round trip that ends startup (`StartupFullLossCnt`).
const STARTUP_LOSSES: u32 = 6;
/// The most round trips of drain.
const DRAIN_ROUNDS: u64 = 3;
/// The window of the ACK aggregation filter in round trips (`ExtraAckedFilterLen`).
const EXTRA_ROUNDS: u64 = 10;
/// The most bytes of a burst.
const MOST_BURST_BYTES: f64 = 65_536.0;

/// BBR 3 in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr3",
    kind: Kind::Model,
    summary: "BBR that keeps losses below 2 % and leaves room for others",
    reference: "draft-ietf-ccwg-bbr",
    year: 2023,
    marks: Marks::AsSet,
    source: include_str!("bbr3.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Bbr3::new(init, params.parse()?))),
};

/// Parameters of BBR 3.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Share of the data in flight that may be lost (`LossThresh`).
    #[serde(deserialize_with = "share")]
    pub loss_threshold: f64,
    /// Minimum share kept in a round trip with losses (`Beta`).
    #[serde(deserialize_with = "share")]
    pub beta: f64,
    /// Share of the safe amount that is left free between probes (`Headroom`).
    #[serde(deserialize_with = "share")]
    pub headroom: f64,
    /// Seconds after which the minimum RTT is measured again.
    #[serde(deserialize_with = "above_zero")]
    pub min_rtt_window_s: f64,
    /// Milliseconds for which the minimum RTT is measured.
    #[serde(deserialize_with = "above_zero")]
    pub probe_rtt_ms: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            min_rtt_window_s: 10.0,
            probe_rtt_ms: 200.0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    fn is_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW`.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (STARTUP_GAIN, CWND_GAIN),
            Self::Drain => (DRAIN_GAIN, CWND_GAIN),
            Self::Down => (DOWN_GAIN, CWND_GAIN),
            Self::Cruise | Self::Refill => (1.0, CWND_GAIN),
            Self::Up => (UP_GAIN, UP_CWND_GAIN),
            Self::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        }
    }
}

/// Whether the rate still grows (`full_bw`, `full_bw_now`, `full_bw_reached`).
#[derive(Clone, Copy, Debug, Default)]
struct Plateau {
    rate: f64,
    rounds: u32,
    is_now: bool,
    was_reached: bool,
}

impl Plateau {
    fn reset(&mut self, rate: f64) {
        (self.rate, self.rounds, self.is_now) = (rate, 0, false);
    }
}

/// ACK aggregation.
#[derive(Clone, Debug, Default)]
struct Extra {
    since: Time,
    delivered: u64,
    most: WindowedMax,
}

/// The measurement of the minimum RTT.
#[derive(Clone, Copy, Debug, Default)]
struct Measurement {
    window: u64,
    until: Option<Time>,
    has_round: bool,
}

/// The BBR 3 controller of one flow. Volumes are in segments, rates in segments a second.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Config,
    random: Random,
    initial: u64,
    mss: u64,
    mode: Mode,
    cwnd: u64,
    ssthresh: Option<u64>,
    /// In bytes a second.
    pacing_rate: f64,
    /// The maximum rates of this cycle and of the previous one.
    max_bw: [f64; 2],
    bw: f64,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    measurement: Measurement,
    rounds: u64,
    round_end: u64,
    round_start: bool,
    drain_began: u64,
    plateau: Plateau,
    extra: Extra,
    cycle: Cycle,
    losses: Losses,
    restarts: bool,
    before: Phase,
    cwnd_before: u64,
}

fn rate_of(sample: &RateSample) -> f64 {
    let seconds = sample.interval.as_secs_f64();
    if seconds > 0.0 { sample.delivered as f64 / seconds } else { 0.0 }
}

impl Bbr3 {
    /// BBR 3 at the start of a connection.
    pub fn new(init: &Init, config: Config) -> Self {
        let mut bbr = Self {
            config,
            random: Random::new(init.seed),
            initial: init.initial_window.max(1),
            mss: init.mss,
            mode: Mode::Startup,
            cwnd: init.initial_window.max(1),
            ssthresh: None,
            pacing_rate: 0.0,
            max_bw: [0.0; 2],
            bw: 0.0,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            measurement: Measurement::default(),
            rounds: 0,
            round_end: 0,
            round_start: false,
            drain_began: 0,
            plateau: Plateau::default(),
            extra: Extra::default(),
            cycle: Cycle::default(),
            losses: Losses::default(),
            restarts: false,
            before: Phase::Open,
            cwnd_before: 0,
        };
        bbr.pace_over(Duration::from_millis(1));
        bbr
    }

    /// `InitPacingRate`.
    fn pace_over(&mut self, rtt: Duration) {
        let first = (self.initial as f64) * self.mss as f64 / rtt.as_secs_f64().max(1e-6);
        self.pacing_rate = STARTUP_GAIN * first;
    }

    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// `StartRound`.
    fn start_round(&mut self, flow: &FlowState) {
        self.round_end = flow.delivered;
    }

    /// `BDPMultiple`.
    fn path(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt {
            Some(rtt) => gain * bw * rtt.as_secs_f64(),
            None => self.initial as f64,
        }
    }

    /// `TargetInflight`.
    fn target(&self) -> f64 {
        self.path(self.bw, 1.0).min(self.cwnd as f64)
    }

    /// `QuantizationBudget`.
    fn with_room(&self, segments: f64) -> f64 {
        let burst = (self.pacing_rate * 1e-3).min(MOST_BURST_BYTES) / self.mss.max(1) as f64;
        let room = segments.max(3.0 * burst.max(2.0)).max(LEAST_WINDOW);
        room + if self.mode == Mode::Up { 2.0 } else { 0.0 }
    }

    /// `Inflight`.
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.with_room(self.path(bw, gain))
    }

    /// `UpdateMaxBw`.
    fn update_max_bw(&mut self, flow: &FlowState, sample: Option<&RateSample>) {
        self.round_start = false;
        let Some(sample) = sample else { return };
        if sample.delivered_at_send >= self.round_end {
            self.start_round(flow);
            self.rounds += 1;
            self.cycle.rounds += 1;
            self.round_start = true;
        }
        let rate = rate_of(sample);
        if rate >= self.max_bw() || !sample.app_limited {
            self.max_bw[0] = self.max_bw[0].max(rate);
        }
    }

    /// `AdvanceMaxBwFilter`. A cycle without samples does not count.
    fn advance_max_bw(&mut self) {
        if self.max_bw[0] > 0.0 {
            self.max_bw = [0.0, self.max_bw[0]];
        }
    }

    /// `UpdateACKAggregation`.
    fn update_aggregation(&mut self, flow: &FlowState, ack: &Ack) {
        let interval = flow.now.since(self.extra.since).as_secs_f64();
        let mut expected = self.bw * interval;
        if self.extra.delivered as f64 <= expected {
            self.extra.delivered = 0;
            self.extra.since = flow.now;
            expected = 0.0;
        }
        self.extra.delivered = self.extra.delivered.saturating_add(ack.delivered);
        let extra = self.extra.delivered.saturating_sub(expected as u64).min(self.cwnd);
        let window = if self.plateau.was_reached { EXTRA_ROUNDS } else { 1 };
        self.extra.most.update(window, self.rounds, extra);
    }

    /// `CheckFullBWReached`.
    fn check_plateau(&mut self, sample: Option<&RateSample>) {
        let Some(sample) = sample.filter(|sample| !sample.app_limited) else { return };
        if self.plateau.is_now || !self.round_start {
            return;
        }
        let rate = rate_of(sample);
        if rate >= self.plateau.rate * STILL_GROWING {
            self.plateau.reset(rate);
            return;
        }
        self.plateau.rounds += 1;
        self.plateau.is_now = self.plateau.rounds >= FULL_ROUNDS;
        self.plateau.was_reached |= self.plateau.is_now;
    }

    /// `CheckStartupDone`, `CheckDrainDone`.
    fn check_startup_and_drain(&mut self, flow: &FlowState, ack: &Ack) {
        self.check_startup_losses(flow, ack);
        if self.mode == Mode::Startup && self.plateau.was_reached {
            self.mode = Mode::Drain;
            self.drain_began = self.rounds;
            self.ssthresh = Some((self.inflight(self.max_bw(), 1.0) as u64).max(1));
        }
        let is_drained = flow.in_flight as f64 <= self.inflight(self.bw, 1.0);
        let is_long = self.rounds > self.drain_began + DRAIN_ROUNDS;
        if self.mode == Mode::Drain && (is_drained || is_long) {
            self.start_down(flow);
        }
    }

    /// `UpdateMinRTT`, `CheckProbeRTT`.
    fn update_min_rtt(&mut self, flow: &FlowState, ack: &Ack) {
        let window = Duration::from_secs_f64(self.config.min_rtt_window_s);
        let is_old = flow.now.since(self.min_rtt_at) > window;
        if is_old && self.mode != Mode::ProbeRtt {
            // Computed before the minimum RTT is replaced by a possibly inflated one.
            let half = self.path(self.bw, PROBE_RTT_CWND_GAIN).max(LEAST_WINDOW);
            self.measurement.window = half as u64;
        }
        if let Some(rtt) = ack.rtt
            && (is_old || self.min_rtt.is_none_or(|least| rtt < least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = flow.now;
        }
        if is_old && self.mode != Mode::ProbeRtt && !self.restarts {
            self.save_window();
            self.mode = Mode::ProbeRtt;
            self.measurement.until = None;
            self.cycle.stop_probing();
            self.start_round(flow);
        }
        if self.mode == Mode::ProbeRtt {
            self.measure(flow);
        }
        self.restarts &= ack.delivered == 0;
    }

    /// `HandleProbeRTT`.
    fn measure(&mut self, flow: &FlowState) {
        if self.measurement.until.is_some() {
            self.measurement.has_round |= self.round_start;
            if self.measurement.has_round {
                self.end_measurement(flow);
            }
        } else if flow.in_flight <= self.measurement.window {
            let lasting = Duration::from_secs_f64(self.config.probe_rtt_ms / 1e3);
            self.measurement.until =
                Some(Time::from_picos(flow.now.as_picos().saturating_add(lasting.as_picos())));
            self.measurement.has_round = false;
            self.start_round(flow);
        }
    }

    /// `CheckProbeRTTDone`, `ExitProbeRTT`.
    fn end_measurement(&mut self, flow: &FlowState) {
        if self.measurement.until.is_none_or(|until| flow.now <= until) {
            return;
        }
        self.min_rtt_at = flow.now;
        self.restore_window();
        self.losses.forget_short_term();
        if self.plateau.was_reached {
            self.start_down(flow);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `SaveCwnd`.
    fn save_window(&mut self) {
        self.cwnd_before = if self.before < Phase::Recovery && self.mode != Mode::ProbeRtt {
            self.cwnd
        } else {
            self.cwnd_before.max(self.cwnd)
        };
    }

    /// `RestoreCwnd`.
    fn restore_window(&mut self) {
        self.cwnd = self.cwnd.max(self.cwnd_before);
    }

    /// `SetPacingRateWithGain`.
    fn pace(&mut self, gain: f64) {
        let rate = gain * self.bw * self.mss as f64 * MARGIN;
        if self.plateau.was_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `SetCwnd`.
    fn set_window(&mut self, flow: &FlowState, ack: &Ack) {
        let (_, gain) = self.mode.gains();
        let room = self.path(self.bw, gain) + self.extra.most.get() as f64;
        let most = libm::ceil(self.with_room(room)) as u64;
        if ack.delivered > 0 {
            let grown = self.cwnd.saturating_add(ack.delivered);
            if self.plateau.was_reached {
                self.cwnd = grown.min(most);
            } else if self.cwnd < most || flow.delivered < self.initial {
                self.cwnd = grown;
            }
        }
        self.cwnd = self.cwnd.max(LEAST_WINDOW as u64);
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.measurement.window.max(LEAST_WINDOW as u64));
        }
        // BoundCwndForModel.
        let cap = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.losses.inflight_longterm,
            Mode::ProbeRtt | Mode::Cruise => self.with_headroom(),
            Mode::Startup | Mode::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.losses.inflight_shortterm).max(LEAST_WINDOW);
        self.cwnd = self.cwnd.min(cap as u64);
    }
}

impl CongestionControl for Bbr3 {
    fn on_begin(&mut self, flow: &FlowState) {
        self.mss = flow.mss;
        self.min_rtt = (flow.min_rtt < Duration::MAX).then_some(flow.min_rtt);
        self.min_rtt_at = flow.now;
        self.extra.since = flow.now;
        self.start_round(flow);
        if !flow.srtt.is_zero() {
            self.pace_over(flow.srtt);
        }
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.mss = flow.mss;
        let sample = ack.rate.as_ref().filter(|sample| !sample.interval.is_zero());
        self.update_latest(flow, sample);
        self.update_max_bw(flow, sample);
        self.adapt_short_term();
        self.update_aggregation(flow, ack);
        self.check_plateau(sample);
        self.check_startup_and_drain(flow, ack);
        self.update_cycle(flow, ack);
        self.update_min_rtt(flow, ack);
        self.losses.advance(sample);
        self.bw = self.max_bw().min(self.losses.bw_shortterm);
        let before = std::mem::replace(&mut self.before, flow.phase);
        if before >= Phase::Recovery && flow.phase < Phase::Recovery {
            self.restore_window();
        }
        self.pace(self.mode.gains().0);
        self.set_window(flow, ack);
    }

    fn on_lost(&mut self, flow: &FlowState, lost: &Lost) {
        self.note_loss(flow);
        self.handle_lost(flow, lost);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if !event.again {
            self.save_window();
        }
        match event.cause {
            Cause::Timeout => {
                self.before = Phase::Loss;
                self.cwnd = self.cwnd.min(flow.in_flight.saturating_add(1));
            }
            Cause::Ecn => self.note_loss(flow),
            Cause::Loss => {}
        }
    }

    fn on_undo(&mut self, flow: &FlowState) {
        self.restore_window();
        self.take_back(flow);
    }

    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        if !flow.app_limited {
            return;
        }
        self.restarts = true;
        self.extra.since = flow.now;
        if self.mode.is_cycle() {
            self.pace(1.0);
        } else if self.mode == Mode::ProbeRtt {
            self.end_measurement(flow);
        }
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn is_holding_back(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    fn buffered_windows(&self) -> u64 {
        3
    }

    fn control(&self) -> Control {
        let bits = (self.pacing_rate * 8.0) as u64;
        Control {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            pacing: Some(Rate::from_bits_per_second(bits.max(8))),
            prr: false,
            least_burst: None,
            longest_burst: None,
        }
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        // Unbounded values are shown as 0.
        let bound = |value: f64| if value.is_finite() { value } else { 0.0 };
        let (pacing_gain, cwnd_gain) = self.mode.gains();
        // `BBR.bw`: estimated bandwidth, in Mbit/s.
        record("bandwidth_mbit_s", self.bw * self.mss as f64 * 8.0 / 1e6);
        // `BBR.min_rtt`: recent minimum RTT, in milliseconds; 0 until there is one.
        record("min_rtt_ms", self.min_rtt.map_or(0.0, Duration::as_millis_f64));
        // `BBR.pacing_gain`: pacing rate as a multiple of the bandwidth.
        record("pacing_gain", pacing_gain);
        // `BBR.cwnd_gain`: window as a multiple of the BDP.
        record("cwnd_gain", cwnd_gain);
        // State: 0 Startup, 1 Drain, 2 ProbeBW_DOWN, 3 ProbeBW_CRUISE, 4 ProbeBW_REFILL, 5
        // ProbeBW_UP, 6 ProbeRTT.
        record("mode", f64::from(self.mode as u8));
        // `BBR.inflight_longterm`: long-term bound of the data in flight, in segments; 0 where
        // there is none.
        record("inflight_longterm_segments", bound(self.losses.inflight_longterm));
        // `BBR.inflight_shortterm`: short-term bound of the data in flight, in segments; 0 where
        // there is none.
        record("inflight_shortterm_segments", bound(self.losses.inflight_shortterm));
    }
}

#[cfg(test)]
mod tests;
