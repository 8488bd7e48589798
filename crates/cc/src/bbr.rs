//! BBR: send as fast as the path has been measured to deliver, with little more in flight than its
//! BDP.
//!
//! Losses and full queues do not tell how fast a path is. BBR measures the path: the bandwidth is
//! the maximum delivery rate of the last ten round trips, and the delay of the empty path is the
//! minimum RTT of ten seconds. BBR paces at a gain times the bandwidth, and its window is a gain
//! times the product of both.
//!
//! | mode | pacing gain | until |
//! |---|---|---|
//! | startup (0) | 2.89 | the bandwidth has not grown by a quarter in three round trips |
//! | drain (1) | 0.35 | no more than the BDP is in flight |
//! | probe bandwidth (2) | 1.25, 0.75, then 1 six times | a minimum RTT each; starts at random, not at 0.75 |
//! | probe RTT (3) | 1, four segments in flight | 200 ms and a round trip, after ten seconds |
//!
//! A lost segment is not a sign of congestion. When recovery begins, as many segments leave as
//! arrive for a round trip, and then the window is restored. A steady loss of a fifth at a constant
//! rate indicates a policer, whose rate is kept for 48 round trips. The window has room for ACKs
//! that arrive in bunches.
//!
//! BBR finds the rate of a path with random losses, and keeps long queues short if it is alone.
//! Beside other flows in a short queue BBR takes more than its share and loses many segments; in
//! long queues it takes less. Flows of different RTT share unevenly in favour of the longer one.
//! Version 3 addresses these problems.
//!
//! This is version 1 as in Linux 6.12, to the integer. Its `bandwidth_mbit_s` counts payload, not
//! headers.
//!
//! - Cardwell, Cheng, Gunn, Hassas Yeganeh, Jacobson: BBR: Congestion-Based Congestion Control, ACM
//!   Queue 14(5), 2016.
//! - `tcp_bbr.c` of Linux; draft-cardwell-iccrg-bbr-congestion-control-00.
//! - Hock, Bless, Zitterbart: Experimental evaluation of BBR congestion control, ICNP 2017.

mod aggregation;
#[cfg(test)]
pub(crate) mod line;
mod policer;
mod sizes;

use crate::kernel::{jiffies, micros};
use crate::max_filter::WindowedMax;
use crate::random::Random;
use crate::{
    Ack, Algorithm, Cause, Congestion, CongestionControl, Control, FlowState, Init, Kind, Marks,
    Phase, above_zero, defaults,
};
use aggregation::{Acked, Aggregation};
use policer::{Policer, Signs, Verdict};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use tcplab_units::{Duration, Rate, Time};

/// The unit of bandwidths: 2^-24 segments a microsecond.
const BW_SCALE: u32 = 24;
const BW_UNIT: u64 = 1 << BW_SCALE;
/// The unit of gains: 1/256.
const UNIT: u64 = 256;
/// 2/ln 2: the gain that doubles the window each round trip with steady pacing.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The number of cycle phases with which a cycle may begin.
const BEGINNINGS: u64 = 7;
/// The share of the bandwidth used for pacing, with a margin of one percent.
const MARGIN_MILLIONTHS: u64 = 990_000;
/// The pipe is full once the bandwidth has grown by less than a quarter in this many round trips.
const STILL_GROWING: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// The minimum window: with less in flight, delayed ACKs leave the path idle.
const LEAST_WINDOW: u64 = 4;
/// Until this many segments are delivered the window grows whatever the model says
/// (`TCP_INIT_CWND`).
const FIRST_SEGMENTS: u64 = 10;
/// The pacing rate in bytes a second below which segments leave one by one.
const LEAST_FOR_BURSTS: u64 = 1_200_000 / 8;
/// The limits of a burst: bytes, without room for headers, and segments.
const MOST_BURST_BYTES: u64 = 65_535 - 320;
const MOST_BURST: u64 = 127;
/// The limit of ACK aggregation in the window, in microseconds.
const MOST_AGGREGATION: u64 = 100_000;
/// The RTT assumed before the first sample, in microseconds.
const NOMINAL_RTT: u64 = 1_000;

/// BBR in the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    kind: Kind::Model,
    summary: "paces at the measured bottleneck bandwidth, with at most two BDPs in flight",
    reference: "ACM Queue 14(5), 2016",
    year: 2016,
    marks: Marks::AsSet,
    source: include_str!("bbr.rs"),
    presets: &[],
    defaults: defaults::<Config>,
    build: |init, params| Ok(Box::new(Bbr::new(init, &params.parse()?))),
};

/// Parameters of BBR. The kernel has the defaults as constants.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The window of the bandwidth's maximum filter, in round trips.
    pub bw_window_rounds: u32,
    /// The window as a multiple of the BDP, while the bandwidth is probed.
    #[serde(deserialize_with = "above_zero")]
    pub cwnd_gain: f64,
    /// Seconds after which the minimum RTT is measured again.
    #[serde(deserialize_with = "above_zero")]
    pub min_rtt_window_s: f64,
    /// Milliseconds for which the minimum RTT is measured.
    #[serde(deserialize_with = "above_zero")]
    pub probe_rtt_ms: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { bw_window_rounds: 10, cwnd_gain: 2.0, min_rtt_window_s: 10.0, probe_rtt_ms: 200.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// The BBR controller of one flow.
#[derive(Clone, Debug)]
pub struct Bbr {
    bw_window: u64,
    cwnd_gain_cruising: u64,
    /// In milliseconds.
    min_rtt_window: u64,
    probe_rtt: u64,
    random: Random,
    mss: u64,
    mode: Mode,
    cwnd: u64,
    /// `u64::MAX` until startup has ended.
    ssthresh: u64,
    /// In bytes a second.
    pacing_rate: u64,
    /// The highest rate that the connection may have, in bytes a second (`sk_max_pacing_rate`).
    max_pacing_rate: u64,
    pacing_gain: u64,
    cwnd_gain: u64,
    has_seen_rtt: bool,
    /// In microseconds; `None` until the first sample.
    min_rtt: Option<u64>,
    /// In milliseconds.
    min_rtt_at: u64,
    probe_rtt_until: Option<u64>,
    probe_rtt_has_round: bool,
    bandwidth: WindowedMax,
    rounds: u64,
    /// `delivered` at the end of the round trip.
    round_end: u64,
    round_start: bool,
    /// When data was last delivered, and when the cycle's phase began.
    delivered_at: Time,
    phase_began: u64,
    phase: usize,
    full_bandwidth: u64,
    full_rounds: u32,
    is_full: bool,
    policer: Policer,
    aggregation: Aggregation,
    /// The sender's phase at the last ACK, and the window before recovery.
    before: Phase,
    cwnd_before: u64,
    ssthresh_before: u64,
    conserves: bool,
    restarts: bool,
    holds_back: bool,
}

/// The pacing rate of a bandwidth with a gain, less the margin, in bytes a second
/// (`bbr_rate_bytes_per_sec`).
fn bytes_per_second(bandwidth: u64, gain: u64, mss: u64) -> u64 {
    let rate = u128::from(bandwidth) * u128::from(mss);
    let rate = rate.saturating_mul(u128::from(gain)) / u128::from(UNIT);
    let rate = rate.saturating_mul(u128::from(MARGIN_MILLIONTHS)) >> BW_SCALE;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The whole segments delivered at a bandwidth in so many microseconds.
fn segments_in(bandwidth: u64, time: u64) -> u64 {
    let segments = (u128::from(bandwidth) * u128::from(time)) >> BW_SCALE;
    u64::try_from(segments).unwrap_or(u64::MAX)
}

fn micros_at(time: Time) -> u64 {
    micros(time.since(Time::ZERO))
}

impl Bbr {
    /// BBR at the start of a connection.
    pub fn new(init: &Init, config: &Config) -> Self {
        let mut bbr = Self {
            bw_window: config.bw_window_rounds.into(),
            cwnd_gain_cruising: (config.cwnd_gain * UNIT as f64) as u64,
            min_rtt_window: (config.min_rtt_window_s * 1e3) as u64,
            probe_rtt: config.probe_rtt_ms as u64,
            random: Random::new(init.seed),
            mss: init.mss,
            mode: Mode::Startup,
            cwnd: init.initial_window.max(1),
            ssthresh: u64::MAX,
            pacing_rate: 0,
            max_pacing_rate: init.max_pacing.map_or(u64::MAX, |it| it.bits_per_second() / 8),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            has_seen_rtt: false,
            min_rtt: None,
            min_rtt_at: 0,
            probe_rtt_until: None,
            probe_rtt_has_round: false,
            bandwidth: WindowedMax::default(),
            rounds: 0,
            round_end: 0,
            round_start: false,
            delivered_at: Time::ZERO,
            phase_began: 0,
            phase: 0,
            full_bandwidth: 0,
            full_rounds: 0,
            is_full: false,
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            before: Phase::Open,
            cwnd_before: 0,
            ssthresh_before: 0,
            conserves: false,
            restarts: false,
            holds_back: false,
        };
        bbr.pacing_rate = bbr.first_rate(NOMINAL_RTT);
        bbr
    }

    /// The initial pacing rate: the first window in an RTT, with the gain of startup.
    fn first_rate(&self, rtt: u64) -> u64 {
        let bandwidth = self.cwnd.saturating_mul(BW_UNIT) / rtt.max(1);
        self.rate_of(bandwidth, HIGH_GAIN)
    }

    /// The pacing rate of a bandwidth with this gain (`bbr_bw_to_pacing_rate`).
    fn rate_of(&self, bandwidth: u64, gain: u64) -> u64 {
        bytes_per_second(bandwidth, gain, self.mss).min(self.max_pacing_rate)
    }

    fn pace_by_rtt(&mut self, flow: &FlowState) {
        if !flow.srtt.is_zero() {
            self.has_seen_rtt = true;
            self.pacing_rate = self.first_rate(micros(flow.srtt));
        }
    }

    fn pace(&mut self, flow: &FlowState, gain: u64) {
        if !self.has_seen_rtt {
            self.pace_by_rtt(flow);
        }
        let rate = self.rate_of(self.bandwidth(), gain);
        if self.is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The bandwidth, in 2^-24 segments a microsecond.
    fn bandwidth(&self) -> u64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    fn update_bandwidth(&mut self, flow: &FlowState, ack: &Ack) {
        self.round_start = false;
        let Some(sample) = ack.rate else { return };
        let interval = micros(sample.interval);
        if interval == 0 {
            return;
        }
        if sample.delivered_at_send >= self.round_end {
            self.round_end = flow.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserves = false;
        }
        self.judge_policer(flow, ack.lost, sample.app_limited);
        let bandwidth = sample.delivered.saturating_mul(BW_UNIT) / interval;
        if !sample.app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(self.bw_window, self.rounds, bandwidth);
        }
    }

    /// Enters the state that the kernel enters at a timeout (`bbr_set_state`).
    fn enter_loss(&mut self, flow: &FlowState) {
        self.before = Phase::Loss;
        self.full_bandwidth = 0;
        self.round_start = true;
        self.judge_policer(flow, 1, false);
    }

    fn judge_policer(&mut self, flow: &FlowState, losses: u64, app_limited: bool) {
        let signs = Signs {
            losses,
            app_limited,
            round_start: self.round_start,
            is_cruising: self.mode == Mode::ProbeBandwidth,
            delivered_ms: jiffies(self.delivered_at),
        };
        match self.policer.judge(flow, signs) {
            Verdict::Nothing => {}
            Verdict::Policed => self.pacing_gain = UNIT,
            Verdict::Over => self.begin_cycle(),
        }
    }

    fn update_aggregation(&mut self, ack: &Ack) {
        let is_valid = ack.rate.is_some_and(|sample| micros(sample.interval) > 0);
        if ack.delivered > 0 && is_valid {
            self.aggregation.on_ack(Acked {
                segments: ack.delivered,
                round_start: self.round_start,
                at: micros_at(self.delivered_at),
                bandwidth: self.bandwidth(),
                cwnd: self.cwnd,
            });
        }
    }

    /// Begins a cycle with a random phase, but never with the phase of a low gain.
    fn begin_cycle(&mut self) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = CYCLE.len() - 1 - self.random.below(BEGINNINGS) as usize;
        self.advance_cycle();
    }

    fn advance_cycle(&mut self) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_began = micros_at(self.delivered_at);
    }

    fn ends_phase(&self, flow: &FlowState, ack: &Ack) -> bool {
        let lasted = micros_at(self.delivered_at).saturating_sub(self.phase_began);
        let is_long = self.min_rtt.is_some_and(|min_rtt| lasted > min_rtt);
        let in_network = || self.in_network_then(flow, ack.in_flight_before);
        match self.pacing_gain.cmp(&UNIT) {
            Ordering::Equal => is_long,
            // Until the gain's multiple of the BDP is in flight, or losses show that the path
            // cannot hold it.
            Ordering::Greater => {
                is_long && (ack.lost > 0 || in_network() >= self.inflight(self.pacing_gain))
            }
            // Until the queue is drained.
            Ordering::Less => is_long || in_network() <= self.inflight(UNIT),
        }
    }

    fn check_full(&mut self, ack: &Ack) {
        let app_limited = ack.rate.is_some_and(|sample| sample.app_limited);
        if self.is_full || !self.round_start || app_limited {
            return;
        }
        let seen = self.bandwidth.get();
        if seen >= self.full_bandwidth.saturating_mul(STILL_GROWING) / UNIT {
            self.full_bandwidth = seen;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, flow: &FlowState) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.ssthresh = self.inflight(UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_network_then(flow, flow.in_flight) <= self.inflight(UNIT)
        {
            self.begin_cycle();
        }
    }

    fn update_min_rtt(&mut self, flow: &FlowState, ack: &Ack) {
        let now = jiffies(flow.now);
        let is_old = now > self.min_rtt_at.saturating_add(self.min_rtt_window);
        let is_delayed = ack.rate.is_some_and(|sample| sample.is_ack_delayed);
        if let Some(rtt) = ack.rtt.map(micros)
            && (self.min_rtt.is_none_or(|least| rtt < least) || (is_old && !is_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if is_old && !self.restarts && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.probe_rtt_until = None;
        }
        self.holds_back = self.mode == Mode::ProbeRtt;
        if self.holds_back {
            if self.probe_rtt_until.is_some() {
                self.probe_rtt_has_round |= self.round_start;
                if self.probe_rtt_has_round {
                    self.leave_probe_rtt(now);
                }
            } else if flow.in_flight <= LEAST_WINDOW {
                self.probe_rtt_until = Some(now.saturating_add(self.probe_rtt));
                self.probe_rtt_has_round = false;
                self.round_end = flow.delivered;
            }
        }
        self.restarts &= ack.delivered == 0;
    }

    fn leave_probe_rtt(&mut self, now: u64) {
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.cwnd_before);
        if self.is_full {
            self.begin_cycle();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Saves the window for the end of recovery, or of the RTT measurement.
    fn save_window(&mut self) {
        self.cwnd_before = if self.before < Phase::Recovery && self.mode != Mode::ProbeRtt {
            self.cwnd
        } else {
            self.cwnd_before.max(self.cwnd)
        };
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => {
                (UNIT, self.cwnd_gain_cruising)
            }
            Mode::ProbeBandwidth => (CYCLE[self.phase], self.cwnd_gain_cruising),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// The value of `ssthresh` (`tcp_current_ssthresh`), which is only shown, as BBR does not use
    /// it.
    fn threshold_in_hindsight(&self, flow: &FlowState) -> u64 {
        let kept = if flow.is_recovering() { 0 } else { (self.cwnd >> 1) + (self.cwnd >> 2) };
        self.ssthresh.max(kept)
    }
}

impl CongestionControl for Bbr {
    fn on_begin(&mut self, flow: &FlowState) {
        self.mss = flow.mss;
        self.min_rtt = (flow.min_rtt < Duration::MAX).then(|| micros(flow.min_rtt));
        self.min_rtt_at = jiffies(flow.now);
        self.pace_by_rtt(flow);
        self.round_end = flow.delivered;
        self.delivered_at = flow.now;
        self.policer.reset(flow, jiffies(flow.now));
        self.aggregation.begin(micros_at(flow.now));
    }

    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        self.mss = flow.mss;
        if ack.delivered > 0 {
            self.delivered_at = flow.now;
        }
        self.update_bandwidth(flow, ack);
        self.update_aggregation(ack);
        if self.mode == Mode::ProbeBandwidth && self.ends_phase(flow, ack) {
            self.advance_cycle();
        }
        self.check_full(ack);
        self.check_drain(flow);
        self.update_min_rtt(flow, ack);
        self.update_gains();
        self.pace(flow, self.pacing_gain);
        self.set_window(flow, ack);
    }

    fn on_congestion(&mut self, flow: &FlowState, event: Congestion) {
        if !event.again {
            self.ssthresh_before = self.threshold_in_hindsight(flow);
            self.save_window();
        }
        if event.cause == Cause::Timeout {
            self.cwnd = self.cwnd.min(flow.in_flight.saturating_add(1));
            self.enter_loss(flow);
        }
    }

    fn on_resized(&mut self, flow: &FlowState) {
        self.enter_loss(flow);
    }

    fn on_undo(&mut self, flow: &FlowState) {
        self.ssthresh = self.ssthresh.max(self.ssthresh_before);
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        self.policer.reset(flow, jiffies(self.delivered_at));
    }

    fn on_transmit_start(&mut self, flow: &FlowState, _idle: Duration) {
        if flow.una >= flow.nxt {
            self.delivered_at = flow.now;
        }
        if !flow.app_limited {
            return;
        }
        self.restarts = true;
        self.aggregation.begin(micros_at(flow.now));
        match self.mode {
            Mode::ProbeBandwidth => self.pace(flow, UNIT),
            Mode::ProbeRtt => self.leave_probe_rtt(jiffies(flow.now)),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn is_holding_back(&self) -> bool {
        self.holds_back
    }

    fn buffered_windows(&self) -> u64 {
        3
    }

    fn control(&self) -> Control {
        Control {
            cwnd: self.cwnd,
            ssthresh: (self.ssthresh < u64::MAX).then_some(self.ssthresh),
            pacing: Some(Rate::from_bits_per_second(self.pacing_rate.max(1).saturating_mul(8))),
            prr: false,
            least_burst: Some(self.least_burst()),
            longest_burst: None,
        }
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        let bytes = (u128::from(self.bandwidth()) * u128::from(self.mss) * 1_000_000) >> BW_SCALE;
        // Estimated bottleneck bandwidth, without the pacing margin, in Mbit/s.
        record("bandwidth_mbit_s", bytes as f64 * 8.0 / 1e6);
        // Recent minimum RTT, in milliseconds; 4294967.295 until there is one, as the kernel shows
        // it.
        record("min_rtt_ms", self.min_rtt.unwrap_or(u64::from(u32::MAX)) as f64 / 1e3);
        // Pacing rate as a multiple of the bandwidth.
        record("pacing_gain", self.pacing_gain as f64 / UNIT as f64);
        // Window as a multiple of the BDP.
        record("cwnd_gain", self.cwnd_gain as f64 / UNIT as f64);
        // State: 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT.
        record("mode", f64::from(self.mode as u8));
    }
}

#[cfg(test)]
mod tests;
