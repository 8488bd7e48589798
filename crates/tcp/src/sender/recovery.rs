//! Leads the sender through trouble: duplicate ACKs, losses and their repair, timeouts, and back.
//!
//! One machine for all stacks; what finds losses is a setting (`loss::detection`, `loss::rack`).

use crate::context::Context;
use crate::loss::{Progress, Seen, Space};
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

    /// The sequence space, as far as losses depend on it.
    pub(crate) fn space(&self) -> Space {
        Space { una: self.una, nxt: self.nxt, mss: self.mss.into(), sack: self.sack }
    }

    /// Returns to the state `Open`, or to `Disorder` if segments are SACKed.
    pub(crate) fn return_to_open(&mut self) {
        self.set_phase(self.loss.settled_phase());
    }

    /// Detects losses on an ACK that may report some (RFC 5681, RFC 6582, RFC 6675, RFC 8985), in
    /// the order of the kernel's `tcp_fastretrans_alert`.
    #[inline(never)]
    pub(crate) fn detect_loss_on_ack(
        &mut self,
        context: Context<'_>,
        seen: Seen,
        progress: &Progress,
    ) {
        self.loss.hold_retransmissions();
        if seen.marked {
            // Whatever else was a false alarm, the mark was none (`tcp_fastretrans_alert`).
            self.loss.forbid_undo();
        }
        if self.loss.phase() == Phase::Open {
            self.loss.forget_retransmissions();
        } else if self.una >= self.loss.recovery().end() || self.leaves_early(context, seen) {
            match self.loss.phase() {
                Phase::Reduced if self.una > self.loss.recovery().end() => {
                    self.end_reduction(context);
                }
                Phase::Recovery => {
                    self.loss.end_episode();
                    if self.undo_at_end(context, seen.echoed) {
                        return;
                    }
                    self.consult(context.now, |cc, flow| cc.on_recovered(flow));
                }
                _ => {}
            }
        }
        match self.loss.phase() {
            Phase::Recovery => {
                if seen.advanced && self.undo_partial(context, seen) {
                    return;
                }
                if self.undo_by_dsack(context) {
                    self.return_to_open();
                }
                self.find_losses(context, seen);
                if self.loss.phase() != Phase::Recovery {
                    if self.loss.scoreboard().lost() == 0 {
                        return;
                    }
                    self.enter_recovery(context, seen.marked);
                }
            }
            Phase::Loss => {
                self.go_on_after_timeout(context, seen, progress);
                if self.loss.phase() == Phase::Open && seen.advanced {
                    self.loss.forget_duplicates();
                }
                let repairs = self.find_losses(context, seen);
                if self.loss.phase() != Phase::Open && repairs == 0 {
                    return;
                }
                if !self.begin_if_lost(context, seen.marked) {
                    return;
                }
            }
            _ => {
                if seen.advanced && context.settings.behaviour.emulates_sack {
                    // `tcp_reset_reno_sack`.
                    self.loss.forget_duplicates();
                }
                if self.loss.phase() <= Phase::Disorder {
                    self.undo_by_dsack(context);
                }
                self.find_losses(context, seen);
                if !self.begin_if_lost(context, seen.marked) {
                    return;
                }
            }
        }
        self.loss.repair_lost();
    }

    /// Linux without RACK begins when enough is reported, whether or not anything is lost by that
    /// (`tcp_time_to_recover`).
    fn is_time_to_recover(&self, context: Context<'_>) -> bool {
        let settings = context.settings;
        let counts = settings.behaviour.counts_sacked_segments
            && self.sack
            && !settings.rack
            && !settings.fack;
        counts && self.loss.scoreboard().sacked() >= self.loss.reordering(settings).into()
    }

    /// Reno's recovery ends with the first ACK of new data, whatever else is missing (RFC 2581 §3.2
    /// step 5).
    fn leaves_early(&self, context: Context<'_>, seen: Seen) -> bool {
        let is_reno = !self.sack && context.settings.recovery == LossRecovery::Reno;
        is_reno && seen.advanced && self.loss.phase() == Phase::Recovery
    }

    /// Recovery begins if a loss is proven, and a smaller window if congestion was `marked`.
    fn begin_if_lost(&mut self, context: Context<'_>, marked: bool) -> bool {
        if self.loss.scoreboard().lost() == 0 && !self.is_time_to_recover(context) {
            if marked && self.loss.phase() <= Phase::Disorder {
                self.reduce_for_mark(context);
            }
            if self.loss.phase() != Phase::Reduced {
                self.loss.forget_old_retransmissions();
                self.return_to_open();
            }
            return false;
        }
        if self.departure.has_path() && self.is_probe_too_large(context.now) {
            return true;
        }
        if !self.sack && context.settings.recovery == LossRecovery::Tahoe {
            self.start_over(context, self.loss.flight_size());
        } else {
            self.enter_recovery(context, marked);
        }
        true
    }

    /// Congestion was marked, or the controller took something for it: the window shrinks once for
    /// what is outstanding (RFC 3168 §6.1.2).
    #[cold]
    pub(crate) fn reduce_for_mark(&mut self, context: Context<'_>) {
        self.loss.forget_old_retransmissions();
        self.loss.clear_undo();
        self.begin_reduction(context, Cause::Ecn, self.loss.scoreboard().outstanding());
        self.set_phase(Phase::Reduced);
    }

    /// Finds what is lost. Returns how many repairs are among it.
    fn find_losses(&mut self, context: Context<'_>, seen: Seen) -> u64 {
        if !self.has_outstanding() {
            return 0;
        }
        if self.sack && context.settings.rack {
            return self.detect_by_time(context).repairs;
        }
        let space = self.space();
        self.lost += self.loss.find_by_count(seen, space, context.settings);
        self.report_losses(context.now);
        0
    }

    /// A loss was found, and not by the timer.
    pub(crate) fn enter_recovery(&mut self, context: Context<'_>, marked: bool) {
        self.loss.forget_old_retransmissions();
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

    /// A loss was found while the window gets smaller for a mark: a controller may go further down.
    fn deepen_reduction(&mut self, now: Time) {
        let cwnd = self.cwnd();
        self.consult(now, |cc, _| cc.on_deepened(cwnd));
        self.congestion.deepen_reduction();
    }

    /// The window is to become smaller, at once or by and by.
    pub(crate) fn begin_reduction(&mut self, context: Context<'_>, cause: Cause, flight: u64) {
        self.loss.begin_episode(self.nxt);
        self.congestion.owe_cwr(true);
        let before = self.cwnd();
        let event = Congestion { cause, flight, again: false };
        self.consult(context.now, |cc, flow| cc.on_congestion(flow, event));
        self.congestion.begin_reduction(context.settings.reduction, before);
    }

    /// A reduction is over. Where it led further down than it had to, the window goes on from
    /// there, and no more than a few segments leave at once (`tcp_complete_cwr`,
    /// `tcp_moderate_cwnd`).
    pub(crate) fn keep_reduction(&mut self, context: Context<'_>) {
        let (in_flight, burst) = (self.in_flight(), u64::from(context.settings.dup_thresh));
        if let Some(cwnd) = self.congestion.reached(in_flight, burst) {
            self.consult(context.now, |cc, _| cc.on_moderated(cwnd));
        }
    }

    fn end_reduction(&mut self, context: Context<'_>) {
        let now = context.now;
        self.keep_reduction(context);
        self.set_phase(Phase::Open);
        self.consult(now, |cc, flow| cc.on_recovered(flow));
        self.congestion.note_decision(now);
    }

    /// A probe of the tail repaired a loss: the window shrinks for it (RFC 8985 §7.4.2).
    #[cold]
    pub(crate) fn reduce_for_probe(&mut self, context: Context<'_>) {
        let now = context.now;
        // The flight when the loss showed itself; all of it is acknowledged since.
        let flight = self.loss.probe_flight();
        self.set_phase(Phase::Reduced);
        self.begin_reduction(context, Cause::Loss, flight);
        self.congestion.end_reduction();
        self.consult(now, |cc, flow| cc.on_recovered(flow));
        self.congestion.note_decision(now);
        self.return_to_open();
    }

    /// Moves the window of a reduction.
    #[inline]
    pub(crate) fn reduce(&mut self, delivered: u64, lost: u64, advanced: bool) {
        let in_flight = self.in_flight();
        self.congestion.reduce(delivered, lost, advanced, in_flight);
    }

    /// An ACK after a timeout: the end, F-RTO (RFC 5682 §3.1, with SACK §3.2), or more repairs.
    fn go_on_after_timeout(&mut self, context: Context<'_>, seen: Seen, progress: &Progress) {
        let recovered = self.una >= self.loss.recovery().end();
        if seen.advanced && self.undo_timeout(context, seen.echoed, false) {
            return;
        }
        if self.loss.recovery().suspects_timeout() {
            // Not all is lost: something arrived that was sent only once.
            let originals = progress.originals && (self.sack || !progress.repairs_acked);
            if originals && self.undo_timeout(context, seen.echoed, true) {
                return;
            }
            if self.nxt > self.loss.recovery().end() {
                if progress.sacked > 0 || seen.duplicate {
                    self.loss.confirm_timeout();
                }
            } else if seen.advanced && !recovered {
                let has_new_data = self.unsent() > 0 && self.una + self.window > self.nxt;
                if self.loss.test_timeout(self.nxt, has_new_data) {
                    return;
                }
            }
        }
        if recovered {
            self.loss.end_episode();
            if !self.undo_at_end(context, seen.echoed) {
                self.consult(context.now, |cc, flow| cc.on_recovered(flow));
            }
            return;
        }
        if !self.sack && seen.advanced {
            self.loss.forget_duplicates();
        }
        self.loss.repair_lost();
    }

    /// The retransmission timer ran out.
    pub fn on_timeout(&mut self, context: Context<'_>) {
        self.counters.timeouts += 1;
        // FlightSize is what is outstanding in the network (RFC 5681 §3.1, equation 4). In a
        // recovery that ends so, most of what was sent may have been SACKed long ago.
        let delivered = self.loss.out_of_order();
        let flight = self.loss.scoreboard().outstanding().saturating_sub(delivered);
        let (before, stalled) = (self.loss.phase(), self.loss.recovery().is_stalled());
        self.rtt.back_off();
        self.start_over(context, flight);
        self.loss.note_timeout(context.settings.frto && (before < Phase::Recovery || stalled));
    }

    /// All is lost, and slow start begins anew.
    fn start_over(&mut self, context: Context<'_>, flight: u64) {
        let Context { now, settings } = context;
        let (before, stalled) = (self.loss.phase(), self.loss.recovery().is_stalled());
        let was_over = self.una >= self.loss.recovery().end();
        let recent = self.loss.recent(now, self.sack, settings);
        if self.loss.scoreboard().is_front_sacked() {
            self.departure.forget_arrivals();
        }
        self.lost += self.loss.lose_all(recent, settings.behaviour.timeout_spares_unlost_repairs);
        self.report_losses(now);
        if settings.behaviour.adapts_dup_thresh && before <= Phase::Disorder {
            self.distrust_reordering(context);
        }
        let is_new = if settings.behaviour.kernel_loss_state {
            before <= Phase::Disorder || was_over || (before == Phase::Loss && !stalled)
        } else {
            // Another timeout of the same data is the same episode (RFC 5681 §3.1).
            !(before == Phase::Loss && stalled)
        };
        self.loss.start_over(self.nxt);
        if is_new {
            self.loss.init_undo(self.una, true);
        }
        let reached = self.congestion.end_reduction();
        self.loss.forget_probe();
        if let Some(cwnd) = reached.filter(|_| is_new && settings.behaviour.keeps_partial_reduction)
        {
            // The episode was over but in name, as without SACK: what is reduced is the window to
            // which it had led by then (`tcp_is_non_sack_preventing_reopen`, `tcp_enter_loss`).
            self.consult(now, |cc, _| cc.on_given_up(cwnd));
        }
        if is_new || settings.behaviour.kernel_loss_state {
            let event = Congestion { cause: Cause::Timeout, flight, again: !is_new };
            self.consult(now, |cc, flow| cc.on_congestion(flow, event));
        }
        self.congestion.note_decision(now);
        self.congestion.owe_cwr(true);
        self.set_phase(Phase::Loss);
    }

    /// Data arrived after later data: the path reorders, by so much.
    pub(crate) fn note_reordering(&mut self, context: Context<'_>, lowest: u64) {
        let settings = context.settings;
        if !self.sack && settings.behaviour.emulates_sack {
            // Without blocks, all might have arrived when anything has (`tcp_highest_sack_seq`).
            let highest =
                if self.loss.recovery().dup_delivered() > 0 { self.nxt } else { self.una };
            self.widen_reordering(context, (highest - lowest).div_ceil(self.mss.into()));
        }
        let highest = self.loss.scoreboard().highest_sacked().unwrap_or(self.una).max(self.una);
        if self.sack && lowest < highest {
            if settings.rack {
                self.loss.see_reordering();
            }
            if settings.behaviour.adapts_dup_thresh {
                self.widen_reordering(context, (highest - lowest).div_ceil(self.mss.into()));
            }
        }
    }
}
