//! The cycle that probes for more bandwidth: down, cruise, refill, up (draft-ietf-ccwg-bbr,
//! "`ProbeBW` Algorithm Details").

use super::{Bbr3, LEAST_WINDOW, Mode, rate_of};
use crate::{Ack, FlowState};
use tcplab_units::{Duration, Time};

/// The minimum time between probes, to which up to a second is added at random, and the most round
/// trips.
const LEAST_WAIT: Duration = Duration::from_secs(2);
const MOST_ROUNDS: f64 = 63.0;
/// The most doublings of the step by which the bound is raised.
const MOST_DOUBLINGS: u32 = 30;

/// The packets that ACKs are for (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Others,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    began: Time,
    /// The time until the next probe (`bw_probe_wait`).
    wait: Duration,
    /// Round trips since the last probe (`rounds_since_probe_up`).
    pub rounds: u64,
    acks: Acks,
    /// Delivered segments that count for the next raise of the bound, and how many raise it by one.
    up_acked: u64,
    up_acked_per_step: u64,
    doublings: u32,
    /// Whether ACKs are of packets sent by a probe, none of which was too much so far
    /// (`is_bw_probe_sample`).
    pub is_probe_sample: bool,
    /// Whether the last probe lost too much, and this one ended at the safe amount.
    pub was_too_high: bool,
    is_precautionary: bool,
}

impl Cycle {
    /// Ends the samples of a probe with the round trip.
    pub fn stop_probing(&mut self) {
        self.acks = Acks::ProbeStopping;
    }
}

impl Bbr3 {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, flow: &FlowState) {
        self.losses.reset_signals();
        self.cycle.up_acked_per_step = u64::MAX;
        self.cycle.rounds = self.random.below(2);
        self.cycle.wait = LEAST_WAIT + Duration::from_micros(self.random.below(1_000_001));
        self.cycle.began = flow.now;
        self.cycle.stop_probing();
        self.start_round(flow);
        self.mode = Mode::Down;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self, flow: &FlowState) {
        self.losses.forget_short_term();
        self.cycle.doublings = 0;
        self.cycle.up_acked = 0;
        self.cycle.is_precautionary = false;
        self.cycle.acks = Acks::Refilling;
        self.start_round(flow);
        self.mode = Mode::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, flow: &FlowState, rate: f64) {
        self.cycle.is_probe_sample = true;
        self.cycle.acks = Acks::ProbeStarting;
        self.start_round(flow);
        self.plateau.reset(rate);
        self.mode = Mode::Up;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, flow: &FlowState, ack: &Ack) {
        if !self.plateau.was_reached || ack.delivered == 0 || self.adapt_long_term(flow, ack) {
            return;
        }
        let rate = ack.rate.as_ref().map_or(0.0, rate_of);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(flow) => self.start_refill(flow),
            Mode::Down if self.is_time_to_cruise(flow) => self.mode = Mode::Cruise,
            Mode::Refill if self.round_start => self.start_up(flow, rate),
            Mode::Up => self.go_down_in_time(flow, ack, rate),
            _ => {}
        }
    }

    /// `AdaptLongTermModel`. Returns whether another phase has begun.
    fn adapt_long_term(&mut self, flow: &FlowState, ack: &Ack) -> bool {
        let app_limited = ack.rate.is_some_and(|sample| sample.app_limited);
        if self.cycle.acks == Acks::ProbeStarting && self.round_start {
            self.cycle.acks = Acks::ProbeFeedback;
        }
        if self.cycle.acks == Acks::ProbeStopping && self.round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.acks = Acks::Others;
            if self.mode.is_cycle() && !app_limited {
                self.advance_max_bw();
            }
            if self.mode.is_cycle() && self.cycle.is_precautionary && !self.cycle.was_too_high {
                self.start_refill(flow);
                return true;
            }
        }
        let Some(sample) = ack.rate else { return false };
        let in_flight = sample.in_flight_at_send as f64;
        if self.is_too_high(sample.lost, in_flight) || self.losses.inflight_longterm.is_infinite() {
            return false;
        }
        self.losses.inflight_longterm = self.losses.inflight_longterm.max(in_flight);
        if self.mode == Mode::Up {
            self.raise_long_term(flow, ack);
        }
        false
    }

    /// `RaiseInflightLongtermSlope`: 1, 2, 4, ... segments a round trip.
    pub(super) fn raise_slope(&mut self) {
        let growth = 1_u64 << self.cycle.doublings;
        self.cycle.doublings = (self.cycle.doublings + 1).min(MOST_DOUBLINGS);
        self.cycle.up_acked_per_step = (self.cwnd / growth).max(1);
    }

    /// `ProbeInflightLongtermUpward`.
    pub(super) fn raise_long_term(&mut self, flow: &FlowState, ack: &Ack) {
        if !flow.cwnd_limited || (self.cwnd as f64) < libm::floor(self.losses.inflight_longterm) {
            return;
        }
        self.cycle.up_acked = self.cycle.up_acked.saturating_add(ack.delivered);
        let steps = self.cycle.up_acked / self.cycle.up_acked_per_step.max(1);
        self.cycle.up_acked -= steps * self.cycle.up_acked_per_step.max(1);
        self.losses.inflight_longterm += steps as f64;
        if self.round_start {
            self.raise_slope();
        }
    }

    /// `IsTimeToProbeBW`: after two to three seconds, or when Reno would have filled the path.
    fn is_time_to_probe(&self, flow: &FlowState) -> bool {
        flow.now.since(self.cycle.began) > self.cycle.wait
            || self.cycle.rounds as f64 >= self.target().min(MOST_ROUNDS)
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, flow: &FlowState) -> bool {
        let in_flight = flow.in_flight as f64;
        in_flight <= self.with_headroom() && in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    fn go_down_in_time(&mut self, flow: &FlowState, ack: &Ack, rate: f64) {
        if self.is_time_to_go_down(flow, ack, rate) {
            self.cycle.was_too_high = false;
            self.start_down(flow);
        }
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, flow: &FlowState, ack: &Ack, rate: f64) -> bool {
        let bound = self.losses.inflight_longterm;
        // The data in flight before the ACK: after it there is always room.
        if self.cycle.was_too_high && ack.in_flight_before as f64 >= libm::floor(bound) {
            self.cycle.is_precautionary = true;
            return true;
        }
        if flow.cwnd_limited && self.cwnd as f64 >= libm::floor(bound) {
            // The limit is the bound, not the path.
            self.plateau.reset(rate);
            return false;
        }
        self.plateau.is_now
    }

    /// `InflightWithHeadroom`.
    pub(super) fn with_headroom(&self) -> f64 {
        let bound = self.losses.inflight_longterm;
        if bound.is_infinite() {
            return bound;
        }
        (bound - (self.config.headroom * bound).max(1.0)).max(LEAST_WINDOW)
    }
}
