//! Bounds learned from losses, over a round trip and in the long term (draft-ietf-ccwg-bbr,
//! "Updating the Model Upon Packet Loss").

use super::{Bbr3, Mode, STARTUP_LOSSES, rate_of};
use crate::{Ack, FlowState, Lost, Phase, RateSample};

/// The bounds, infinite where there are none, and their inputs.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    pub inflight_longterm: f64,
    pub inflight_shortterm: f64,
    pub bw_shortterm: f64,
    /// The maximum of this round trip.
    bw_latest: f64,
    inflight_latest: f64,
    is_in_round: bool,
    round_end: u64,
    round_start: bool,
    /// ACKs of this round trip that reported losses.
    events: u32,
    /// The state before the losses, for undo: the bounds, and the mode if it was left due to them.
    before: (f64, f64, f64),
    mode_before: Option<Mode>,
}

impl Default for Losses {
    fn default() -> Self {
        let none = f64::INFINITY;
        Self {
            inflight_longterm: none,
            inflight_shortterm: none,
            bw_shortterm: none,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            is_in_round: false,
            round_end: 0,
            round_start: false,
            events: 0,
            before: (none, none, none),
            mode_before: None,
        }
    }
}

impl Losses {
    /// `ResetShortTermModel`.
    pub fn forget_short_term(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// `ResetCongestionSignals`.
    pub fn reset_signals(&mut self) {
        self.is_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// `SaveStateUponLoss`.
    pub fn save(&mut self) {
        self.mode_before = None;
        self.before = (self.inflight_longterm, self.inflight_shortterm, self.bw_shortterm);
    }

    /// `AdvanceLatestDeliverySignals`.
    pub fn advance(&mut self, sample: Option<&RateSample>) {
        if let Some(sample) = sample.filter(|_| self.round_start) {
            self.bw_latest = rate_of(sample);
            self.inflight_latest = sample.delivered as f64;
        }
    }
}

impl Bbr3 {
    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest(&mut self, flow: &FlowState, sample: Option<&RateSample>) {
        let losses = &mut self.losses;
        losses.round_start = false;
        let Some(sample) = sample else { return };
        losses.bw_latest = losses.bw_latest.max(rate_of(sample));
        losses.inflight_latest = losses.inflight_latest.max(sample.delivered as f64);
        if sample.delivered_at_send >= losses.round_end {
            losses.round_end = flow.delivered;
            losses.round_start = true;
        }
    }

    /// `AdaptLowerBoundsFromCongestion`: once in each round trip with losses, unless these were
    /// caused by a probe.
    pub(super) fn adapt_short_term(&mut self) {
        if !self.losses.round_start {
            return;
        }
        if self.losses.is_in_round && !self.mode.is_probing() {
            let (bw, cwnd, beta) = (self.max_bw(), self.cwnd as f64, self.config.beta);
            let losses = &mut self.losses;
            let adapt = |bound: f64, first: f64, latest: f64| {
                let bound = if bound.is_infinite() { first } else { bound };
                latest.max(beta * bound)
            };
            losses.bw_shortterm = adapt(losses.bw_shortterm, bw, losses.bw_latest);
            losses.inflight_shortterm =
                adapt(losses.inflight_shortterm, cwnd, losses.inflight_latest);
        }
        self.losses.is_in_round = false;
    }

    /// `CheckStartupHighLoss`.
    pub(super) fn check_startup_losses(&mut self, flow: &FlowState, ack: &Ack) {
        self.losses.events = self.losses.events.saturating_add(u32::from(ack.lost > 0));
        if !self.losses.round_start {
            return;
        }
        let events = std::mem::take(&mut self.losses.events);
        let is_too_high = ack
            .rate
            .is_some_and(|sample| self.is_too_high(sample.lost, sample.in_flight_at_send as f64));
        let is_repairing = flow.phase == Phase::Recovery;
        if self.mode == Mode::Startup && is_repairing && events >= STARTUP_LOSSES && is_too_high {
            self.losses.mode_before = Some(Mode::Startup);
            self.plateau.was_reached = true;
            self.losses.inflight_longterm =
                self.path(self.bw, 1.0).max(self.losses.inflight_latest);
        }
    }

    /// `IsInflightTooHigh`.
    pub(super) fn is_too_high(&self, lost: u64, in_flight: f64) -> bool {
        lost as f64 > in_flight * self.config.loss_threshold
    }

    /// `NoteLoss`. Saves the state before recovery for a possible undo.
    pub(super) fn note_loss(&mut self, flow: &FlowState) {
        if !std::mem::replace(&mut self.losses.is_in_round, true) {
            self.losses.round_end = flow.delivered;
            if self.before < Phase::Recovery {
                self.losses.save();
            }
        }
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost(&mut self, flow: &FlowState, lost: &Lost) {
        let in_flight = lost.in_flight_at_send as f64;
        if !self.cycle.is_probe_sample || !self.is_too_high(lost.lost, in_flight) {
            return;
        }
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if !lost.app_limited {
            let at_loss = self.inflight_at_loss(lost);
            self.losses.inflight_longterm = at_loss.max(self.target() * self.config.beta);
        }
        if self.mode == Mode::Up {
            self.start_down(flow);
            self.losses.mode_before = Some(Mode::Up);
        }
    }

    /// `InflightAtLoss`: the data in flight at which losses exceeded the threshold.
    fn inflight_at_loss(&self, lost: &Lost) -> f64 {
        let threshold = self.config.loss_threshold;
        let before = lost.in_flight_at_send.saturating_sub(1) as f64;
        let lost_before = lost.lost.saturating_sub(1) as f64;
        (before + (threshold * before - lost_before) / (1.0 - threshold)).max(0.0)
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn take_back(&mut self, flow: &FlowState) {
        self.plateau.reset(0.0);
        let losses = &mut self.losses;
        let (inflight_longterm, inflight_shortterm, bw_shortterm) = losses.before;
        losses.is_in_round = false;
        losses.inflight_longterm = losses.inflight_longterm.max(inflight_longterm);
        losses.inflight_shortterm = losses.inflight_shortterm.max(inflight_shortterm);
        losses.bw_shortterm = losses.bw_shortterm.max(bw_shortterm);
        match losses.mode_before.take() {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.plateau.was_reached = false;
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Mode::Up) if !matches!(self.mode, Mode::Up | Mode::ProbeRtt) => {
                self.start_refill(flow);
            }
            _ => {}
        }
    }
}
