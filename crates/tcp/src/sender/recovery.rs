//! The state machine of loss recovery: duplicate ACKs, fast recovery, timeouts, and the return to
//! `Open`.
//!
//! All stacks share it. Loss detection is a setting (`loss::detection`, `loss::rack`).

use crate::context::Context;
use crate::loss::{AckSigns, Progress, SequenceSpace};
use crate::sender::Sender;
use crate::settings::{LossRecovery, WindowReduction};
use tcplab_cc::{Cause, Congestion, Phase};
use tcplab_units::Time;

impl Sender {
    pub(crate) fn set_phase(&mut self, phase: Phase) {
        self.counters.episodes += u64::from(self.loss.set_phase(phase));
        if !self.loss.recovery().is_reducing() {
            self.congestion.end_reduction();
        }
    }

    /// The sequence space, for loss detection.
    pub(crate) fn sequence_space(&self) -> SequenceSpace {
        SequenceSpace { una: self.una, nxt: self.nxt, mss: self.mss.into(), sack: self.sack }
    }

    /// Returns to `Open`, or to `Disorder` while a segment is out of order, lost or retransmitted
    /// (`tcp_try_keep_open`).
    pub(crate) fn try_keep_open(&mut self) {
        self.set_phase(self.loss.open_or_disorder());
    }

    /// Handles an ACK that may show a loss, a mark or a spurious retransmission (RFC 5681, RFC
    /// 6582, RFC 6675, RFC 8985; in the order of `tcp_fastretrans_alert`).
    #[inline(never)]
    pub(crate) fn fastretrans_alert(
        &mut self,
        context: Context<'_>,
        seen: AckSigns,
        progress: &Progress,
    ) {
        self.loss.hold_retransmissions();
        if seen.marked {
            // Congestion was marked: the reduction is not undone (`tcp_fastretrans_alert`).
            self.loss.forbid_undo();
        }
        if self.loss.phase() == Phase::Open {
            self.loss.clear_retrans_stamp();
        } else if self.una >= self.loss.recovery().end()
            || self.is_reno_recovery_over(context, seen)
        {
            match self.loss.phase() {
                Phase::Reduced if self.una > self.loss.recovery().end() => {
                    self.end_reduction(context);
                }
                Phase::Recovery => {
                    self.loss.end_episode();
                    if self.try_undo_recovery(context, seen.echoed) {
                        return;
                    }
                    self.consult(context.now, |cc, flow| cc.on_recovered(flow));
                }
                _ => {}
            }
        }
        match self.loss.phase() {
            Phase::Recovery => {
                if seen.advanced && self.try_undo_partial(context, seen) {
                    return;
                }
                if self.try_undo_dsack(context) {
                    self.try_keep_open();
                }
                self.identify_losses(context, seen);
                if self.loss.phase() != Phase::Recovery {
                    if self.loss.scoreboard().lost() == 0 {
                        return;
                    }
                    self.enter_recovery(context, seen.marked);
                }
            }
            Phase::Loss => {
                self.process_loss(context, seen, progress);
                if self.loss.phase() == Phase::Open && seen.advanced {
                    self.loss.reset_reno_sack();
                }
                let retransmissions = self.identify_losses(context, seen);
                if self.loss.phase() != Phase::Open && retransmissions == 0 {
                    return;
                }
                if !self.enter_recovery_if_lost(context, seen.marked) {
                    return;
                }
            }
            _ => {
                if seen.advanced && context.settings.behaviour.emulates_sack {
                    // `tcp_reset_reno_sack`.
                    self.loss.reset_reno_sack();
                }
                if self.loss.phase() <= Phase::Disorder {
                    self.try_undo_dsack(context);
                }
                self.identify_losses(context, seen);
                if !self.enter_recovery_if_lost(context, seen.marked) {
                    return;
                }
            }
        }
        self.loss.retransmit_lost();
    }

    /// Linux without RACK enters recovery once enough segments are SACKed, even if none is marked
    /// lost (`tcp_time_to_recover`).
    fn is_time_to_recover(&self, context: Context<'_>) -> bool {
        let settings = context.settings;
        let counts = settings.behaviour.counts_sacked_segments
            && self.sack
            && !settings.rack
            && !settings.fack;
        counts && self.loss.scoreboard().sacked() >= self.loss.reordering(settings).into()
    }

    /// Reno leaves recovery with the first ACK of new data, even if more is missing (RFC 2581 §3.2
    /// step 5).
    fn is_reno_recovery_over(&self, context: Context<'_>, seen: AckSigns) -> bool {
        let is_reno = !self.sack && context.settings.recovery == LossRecovery::Reno;
        is_reno && seen.advanced && self.loss.phase() == Phase::Recovery
    }

    /// Enters recovery if a loss is proven, or reduces the window if congestion was `marked`.
    /// Returns whether recovery begins.
    fn enter_recovery_if_lost(&mut self, context: Context<'_>, marked: bool) -> bool {
        if self.loss.scoreboard().lost() == 0 && !self.is_time_to_recover(context) {
            if marked && self.loss.phase() <= Phase::Disorder {
                self.reduce_for_mark(context);
            }
            if self.loss.phase() != Phase::Reduced {
                self.loss.retrans_stamp_cleanup();
                self.try_keep_open();
            }
            return false;
        }
        if self.departure.has_path_mtu() && self.is_mtu_probe_lost(context.now) {
            return true;
        }
        if !self.sack && context.settings.recovery == LossRecovery::Tahoe {
            self.enter_loss(context, self.loss.flight_size());
        } else {
            self.enter_recovery(context, marked);
        }
        true
    }

    /// Reduces the window for an ECN mark, or because the controller asks for it, once per window
    /// (RFC 3168 §6.1.2; `tcp_enter_cwr`).
    #[cold]
    pub(crate) fn reduce_for_mark(&mut self, context: Context<'_>) {
        self.loss.retrans_stamp_cleanup();
        self.loss.end_undo();
        self.begin_reduction(context, Cause::Ecn, self.loss.scoreboard().outstanding());
        self.set_phase(Phase::Reduced);
    }

    /// Marks lost segments. Returns how many retransmissions are among them.
    fn identify_losses(&mut self, context: Context<'_>, seen: AckSigns) -> u64 {
        if !self.has_outstanding() {
            return 0;
        }
        if self.sack && context.settings.rack {
            return self.rack_mark_lost(context).retransmissions;
        }
        let space = self.sequence_space();
        self.lost += self.loss.detect_by_counting(seen, space, context.settings);
        self.report_losses(context.now);
        0
    }

    /// Enters fast recovery (`tcp_enter_recovery`): a loss was detected before the timer expired.
    pub(crate) fn enter_recovery(&mut self, context: Context<'_>, marked: bool) {
        self.loss.retrans_stamp_cleanup();
        let reduces = !self.loss.recovery().is_reducing();
        self.loss.init_undo(self.una, reduces && !marked);
        let flight = self.loss.flight_size();
        self.set_phase(Phase::Recovery);
        self.loss.begin_recovery(context.settings.reduction == WindowReduction::AtOnce);
        if reduces {
            self.begin_reduction(context, Cause::Loss, flight);
        } else {
            self.deepen_reduction(context.now);
        }
    }

    /// A loss was detected in a reduction for an ECN mark: the controller may reduce further.
    fn deepen_reduction(&mut self, now: Time) {
        let cwnd = self.cwnd();
        self.consult(now, |cc, _| cc.on_deepened(cwnd));
        self.congestion.deepen_reduction();
    }

    /// Begins a window reduction, at once or spread over a round trip.
    pub(crate) fn begin_reduction(&mut self, context: Context<'_>, cause: Cause, flight: u64) {
        self.loss.begin_episode(self.nxt);
        self.congestion.set_cwr_pending(true);
        let before = self.cwnd();
        let event = Congestion { cause, flight, again: false };
        self.consult(context.now, |cc, flow| cc.on_congestion(flow, event));
        self.congestion.begin_reduction(context.settings.reduction, before);
    }

    /// A reduction ends. Where it went below its target, the window continues from there and allows
    /// only a small burst (`tcp_complete_cwr`, `tcp_moderate_cwnd`).
    pub(crate) fn complete_reduction(&mut self, context: Context<'_>) {
        let (in_flight, burst) = (self.in_flight(), u64::from(context.settings.dup_thresh));
        if let Some(cwnd) = self.congestion.final_cwnd(in_flight, burst) {
            self.consult(context.now, |cc, _| cc.on_moderated(cwnd));
        }
    }

    fn end_reduction(&mut self, context: Context<'_>) {
        let now = context.now;
        self.complete_reduction(context);
        self.set_phase(Phase::Open);
        self.consult(now, |cc, flow| cc.on_recovered(flow));
        self.congestion.stamp_cwnd(now);
    }

    /// A tail loss probe repaired a loss: the window is reduced for it (RFC 8985 §7.4.2).
    #[cold]
    pub(crate) fn reduce_for_probe(&mut self, context: Context<'_>) {
        let now = context.now;
        // FlightSize when the probe left; everything is acknowledged by now.
        let flight = self.loss.probe_flight();
        self.set_phase(Phase::Reduced);
        self.begin_reduction(context, Cause::Loss, flight);
        self.congestion.end_reduction();
        self.consult(now, |cc, flow| cc.on_recovered(flow));
        self.congestion.stamp_cwnd(now);
        self.try_keep_open();
    }

    /// Updates the window of a reduction in progress (`tcp_cwnd_reduction`).
    #[inline]
    pub(crate) fn update_reduction(&mut self, delivered: u64, lost: u64, advanced: bool) {
        let in_flight = self.in_flight();
        self.congestion.update_reduction(delivered, lost, advanced, in_flight);
    }

    /// An ACK in the loss state: its end, F-RTO (RFC 5682 §3.1, with SACK §3.2), or further
    /// retransmissions (`tcp_process_loss`).
    fn process_loss(&mut self, context: Context<'_>, seen: AckSigns, progress: &Progress) {
        let recovered = self.una >= self.loss.recovery().end();
        if seen.advanced && self.try_undo_loss(context, seen.echoed, false) {
            return;
        }
        if self.loss.recovery().is_frto() {
            // Step 3.b: an original transmission was delivered, so the timeout was spurious.
            let originals =
                progress.originals_delivered && (self.sack || !progress.retransmissions_acked);
            if originals && self.try_undo_loss(context, seen.echoed, true) {
                return;
            }
            if self.nxt > self.loss.recovery().end() {
                if progress.sacked > 0 || seen.duplicate {
                    self.loss.end_frto();
                }
            } else if seen.advanced && !recovered {
                let has_new_data = self.unsent() > 0 && self.una + self.window > self.nxt;
                if self.loss.send_new_for_frto(self.nxt, has_new_data) {
                    return;
                }
            }
        }
        if recovered {
            self.loss.end_episode();
            if !self.try_undo_recovery(context, seen.echoed) {
                self.consult(context.now, |cc, flow| cc.on_recovered(flow));
            }
            return;
        }
        if !self.sack && seen.advanced {
            self.loss.reset_reno_sack();
        }
        self.loss.retransmit_lost();
    }

    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, context: Context<'_>) {
        self.counters.timeouts += 1;
        // FlightSize is the data outstanding in the network (RFC 5681 §3.1, equation 4). After a
        // recovery that ends in a timeout, most of the window may have been SACKed long ago.
        let delivered = self.loss.out_of_order();
        let flight = self.loss.scoreboard().outstanding().saturating_sub(delivered);
        let (before, stalled) = (self.loss.phase(), self.loss.recovery().is_stalled());
        self.rtt.back_off();
        self.enter_loss(context, flight);
        self.loss.on_rto(context.settings.frto && (before < Phase::Recovery || stalled));
    }

    /// Marks everything lost and restarts slow start (`tcp_enter_loss`).
    fn enter_loss(&mut self, context: Context<'_>, flight: u64) {
        let Context { now, settings } = context;
        let (before, stalled) = (self.loss.phase(), self.loss.recovery().is_stalled());
        let was_over = self.una >= self.loss.recovery().end();
        let recent = self.loss.spared_after(context, self.sack);
        if self.loss.scoreboard().is_front_sacked() {
            self.departure.forget_sacks();
        }
        self.lost += self
            .loss
            .mark_all_lost(recent, settings.behaviour.timeout_spares_unlost_retransmissions);
        self.report_losses(now);
        if settings.behaviour.adapts_dup_thresh && before <= Phase::Disorder {
            self.reset_reordering(context);
        }
        let is_new = if settings.behaviour.kernel_loss_state {
            before <= Phase::Disorder || was_over || (before == Phase::Loss && !stalled)
        } else {
            // A repeated timeout of the same data belongs to the same episode (RFC 5681 §3.1).
            !(before == Phase::Loss && stalled)
        };
        self.loss.enter_loss(self.nxt);
        if is_new {
            self.loss.init_undo(self.una, true);
        }
        let reached = self.congestion.end_reduction();
        self.loss.forget_probe();
        if let Some(cwnd) = reached.filter(|_| is_new && settings.behaviour.keeps_partial_reduction)
        {
            // Without SACK the episode may stay open after its recovery point is acknowledged. The
            // new reduction then starts from the window that the old one had reached
            // (`tcp_is_non_sack_preventing_reopen`, `tcp_enter_loss`).
            self.consult(now, |cc, _| cc.on_given_up(cwnd));
        }
        if is_new || settings.behaviour.kernel_loss_state {
            let event = Congestion { cause: Cause::Timeout, flight, again: !is_new };
            self.consult(now, |cc, flow| cc.on_congestion(flow, event));
        }
        self.congestion.stamp_cwnd(now);
        self.congestion.set_cwr_pending(true);
        self.set_phase(Phase::Loss);
    }

    /// A segment was delivered after later ones: records the degree of reordering.
    pub(crate) fn note_reordering(&mut self, context: Context<'_>, lowest: u64) {
        let settings = context.settings;
        if !self.sack && settings.behaviour.emulates_sack {
            // Without SACK, any duplicate ACK may stand for the highest segment sent
            // (`tcp_highest_sack_seq`).
            let highest =
                if self.loss.recovery().dup_delivered() > 0 { self.nxt } else { self.una };
            self.raise_reordering(context, (highest - lowest).div_ceil(self.mss.into()));
        }
        let highest = self.loss.scoreboard().highest_sacked().unwrap_or(self.una).max(self.una);
        if self.sack && lowest < highest {
            if settings.rack {
                self.loss.set_reordering_seen();
            }
            if settings.behaviour.adapts_dup_thresh {
                self.raise_reordering(context, (highest - lowest).div_ceil(self.mss.into()));
            }
        }
    }
}
