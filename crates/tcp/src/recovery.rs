//! Leads the sender through trouble: duplicate ACKs, loss and its repair, timeouts, and back.
//!
//! One machine for all stacks; what finds losses is a setting: SACK blocks (RFC 6675, or FACK) or time
//! (RACK, RFC 8985), or without SACK duplicate and partial ACKs (RFC 6582, or its forerunners).
//!
//! Without SACK each duplicate ACK stands for one segment that arrived, as if it had been SACKed.
//! That makes the window inflation of RFC 5681 §3.2 and its deflation by partial ACKs (RFC 6582
//! §3.2) a matter of counting what is in flight, the same for both.

use crate::cwnd_reduction::CwndReduction;
use crate::scoreboard::{Progress, Scoreboard};
use crate::sender::{Flight, Sender};
use crate::settings::{LossRecovery, Settings, WindowReduction};
pub(crate) use tcplab_cc::Phase;
use tcplab_cc::{Cause, Congestion, CongestionControl};
use tcplab_units::Time;

/// What may be sent in answer to the last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// New data only.
    Nothing,
    /// What is lost, and then new data.
    Lost,
    /// New data, and only if there is none what is lost (F-RTO, RFC 5682 §3.1 step 2b).
    NewFirst,
}

/// What an ACK was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// It acknowledged data, and what had been acknowledged before.
    pub advanced: bool,
    pub before: u64,
    /// It acknowledges nothing, carries nothing and changes nothing (RFC 5681 §2).
    pub duplicate: bool,
    /// The ACK reports segments, and some for the first time.
    pub reports: bool,
    /// When what it answers had left, by the clock of its timestamp.
    pub echoed: Option<u64>,
    /// The receiver got marks of congestion.
    pub marked: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub phase: Phase,
    /// `RecoveryPoint` (RFC 6675), `recover` (RFC 6582): acknowledging this ends the episode.
    pub end: u64,
    pub dup_acks: u32,
    /// Segments outstanding when the first of those ACKs came.
    pub flight: u64,
    /// Without SACK: segments that duplicate ACKs have reported.
    pub dup_delivered: u64,
    /// The first retransmission of the episode does not wait for the window.
    pub owes_retransmission: bool,
    /// The one rescue of this episode has been sent (RFC 6675 §4 rule 4).
    pub rescued: bool,
    partial_acks: u32,
    /// The timer ran out and nothing was acknowledged since.
    pub stalled: bool,
    /// The timeout may have been spurious (F-RTO).
    frto: bool,
    repair: Repair,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            dup_acks: 0,
            flight: 0,
            dup_delivered: 0,
            owes_retransmission: false,
            rescued: false,
            partial_acks: 0,
            stalled: false,
            frto: false,
            repair: Repair::Nothing,
        }
    }
}

impl Recovery {
    /// Segments that left the network according to duplicate ACKs.
    #[inline]
    pub fn dup_delivered(&self) -> u64 {
        self.dup_delivered
    }

    /// FlightSize when the loss showed itself. What limited transmit has sent since is not part of it
    /// (RFC 5681 §3.2 step 2).
    #[inline]
    fn flight(&self, board: &Scoreboard) -> u64 {
        if self.dup_acks > 0 { self.flight } else { board.outstanding() }
    }

    /// Some ACKs reported later data, too few to call a loss.
    #[inline]
    pub fn in_doubt(&self) -> bool {
        self.phase <= Phase::Disorder && self.dup_acks > 0
    }

    #[inline]
    pub fn is_in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Losses are being repaired.
    #[inline]
    pub fn is_repairing(&self) -> bool {
        self.phase >= Phase::Recovery
    }

    /// The window is led to a smaller one, and does not grow.
    #[inline]
    pub fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Whether what is lost may be sent again, before new data or after it.
    #[inline]
    pub fn may_repair(&self, before_new: bool) -> bool {
        match self.repair {
            Repair::Nothing => false,
            Repair::Lost => before_new,
            Repair::NewFirst => !before_new,
        }
    }

    /// What is lost may be sent again.
    pub fn repair_lost(&mut self) {
        self.repair = Repair::Lost;
    }

    /// The timer ran out for a SYN; whether that was needed is looked at by F-RTO, if it is on.
    #[cold]
    pub fn doubt_timeout(&mut self, frto: bool) {
        self.frto = frto;
    }

    /// New data was sent first; what arrives will tell more.
    #[inline]
    pub fn on_new_data(&mut self) {
        if self.repair == Repair::NewFirst {
            self.repair = Repair::Nothing;
        }
    }

    /// Nothing new can be sent: F-RTO is given up (RFC 5682 §3.1 step 2b).
    #[inline]
    pub fn give_up_new_data(&mut self) {
        if self.repair == Repair::NewFirst {
            self.frto = false;
            self.repair = Repair::Lost;
        }
    }

    /// Whether the next segment is the first retransmission of an episode: the timer starts again with
    /// it, but not with those that later partial ACKs ask for.
    #[inline]
    pub fn begins_repair(&self) -> bool {
        self.owes_retransmission && self.partial_acks == 0
    }

    /// Whether the ACK just taken moves the retransmission timer. Partial ACKs after the first do
    /// not, without SACK (RFC 6582 §3.2), unless the sender is steady.
    #[inline]
    pub fn moves_timer(&self, settings: &Settings, sack: bool) -> bool {
        sack || settings.recovery == LossRecovery::NewRenoSteady
            || self.phase != Phase::Recovery
            || self.partial_acks <= 1
    }
}

impl Sender {
    pub(crate) fn set_phase(&mut self, phase: Phase) {
        let (before, grave) = (self.flight.recovery.phase, Phase::Reduced);
        let is_worse =
            (phase >= grave && before < grave) || (phase == Phase::Loss && before < Phase::Loss);
        self.counters.episodes += u64::from(is_worse);
        let Flight { recovery, reduction, .. } = &mut *self.flight;
        recovery.phase = phase;
        recovery.owes_retransmission &= recovery.is_repairing();
        if !recovery.is_reducing() {
            *reduction = None;
        }
    }

    /// Something in the window was sent more than once.
    pub(crate) fn has_again(&self) -> bool {
        self.flight.board.repaired() > 0
            || self.flight.board.front().is_some_and(|oldest| oldest.retransmitted)
    }

    /// Back to `Open`, or `Disorder` while something is out of order.
    pub(crate) fn settle(&mut self) {
        let left = self.flight.board.sacked()
            + self.flight.recovery.dup_delivered
            + self.flight.board.lost()
            > 0;
        let phase = if left || self.has_again() { Phase::Disorder } else { Phase::Open };
        self.set_phase(phase);
    }

    /// What an ACK that may be a sign of trouble means (RFC 5681, RFC 6582, RFC 6675, RFC 8985; in its
    /// order the kernel's `tcp_fastretrans_alert`).
    #[inline(never)]
    pub(crate) fn look_for_trouble(
        &mut self,
        now: Time,
        seen: Seen,
        progress: &Progress,
        settings: &Settings,
    ) {
        self.flight.recovery.repair = Repair::Nothing;
        if seen.marked {
            // Whatever else was a false alarm, the mark was none (`tcp_fastretrans_alert`).
            self.flight.undo.forbid();
        }
        if self.flight.recovery.phase == Phase::Open {
            self.flight.undo.nothing_again();
        } else if self.una >= self.flight.recovery.end || self.leaves_early(seen, settings) {
            match self.flight.recovery.phase {
                Phase::Reduced if self.una > self.flight.recovery.end => {
                    self.end_reduction(now, settings);
                }
                Phase::Recovery => {
                    self.flight.recovery.dup_delivered = 0;
                    self.flight.recovery.dup_acks = 0;
                    self.flight.recovery.owes_retransmission = false;
                    if self.undo_at_end(now, seen.echoed, settings) {
                        return;
                    }
                    self.consult(now, |cc, flow| cc.on_recovered(flow));
                }
                _ => {}
            }
        }
        match self.flight.recovery.phase {
            Phase::Recovery => {
                if seen.advanced && self.undo_partial(now, seen, settings) {
                    return;
                }
                if self.undo_by_dsack(now, settings) {
                    self.settle();
                }
                self.find_losses(now, seen, settings);
                if self.flight.recovery.phase != Phase::Recovery {
                    if self.flight.board.lost() == 0 {
                        return;
                    }
                    self.enter_recovery(now, seen.marked, settings);
                }
            }
            Phase::Loss => {
                self.go_on_after_timeout(now, seen, progress, settings);
                if self.flight.recovery.phase == Phase::Open && seen.advanced {
                    self.flight.recovery.dup_delivered = 0;
                }
                let repairs = self.find_losses(now, seen, settings);
                if self.flight.recovery.phase != Phase::Open && repairs == 0 {
                    return;
                }
                if !self.begin_if_lost(now, seen.marked, settings) {
                    return;
                }
            }
            _ => {
                if seen.advanced && settings.behaviour.emulates_sack {
                    // `tcp_reset_reno_sack`.
                    self.flight.recovery.dup_delivered = 0;
                }
                if self.flight.recovery.phase <= Phase::Disorder {
                    self.undo_by_dsack(now, settings);
                }
                self.find_losses(now, seen, settings);
                if !self.begin_if_lost(now, seen.marked, settings) {
                    return;
                }
            }
        }
        self.flight.recovery.repair = Repair::Lost;
    }

    /// Linux without RACK begins when enough is reported, whether or not anything is lost by that
    /// (`tcp_time_to_recover`).
    fn is_time_to_recover(&self, settings: &Settings) -> bool {
        let counts = settings.behaviour.counts_sacked_segments
            && self.sack
            && !settings.rack
            && !settings.fack;
        counts && self.flight.board.sacked() >= self.reordering(settings).into()
    }

    /// Reno's recovery ends with the first ACK of new data, whatever else is missing (RFC 2581 §3.2
    /// step 5).
    fn leaves_early(&self, seen: Seen, settings: &Settings) -> bool {
        let is_reno = !self.sack && settings.recovery == LossRecovery::Reno;
        is_reno && seen.advanced && self.flight.recovery.phase == Phase::Recovery
    }

    /// Recovery begins if a loss is proven, and a smaller window if congestion was `marked`.
    fn begin_if_lost(&mut self, now: Time, marked: bool, settings: &Settings) -> bool {
        if self.flight.board.lost() == 0 && !self.is_time_to_recover(settings) {
            if marked && self.flight.recovery.phase <= Phase::Disorder {
                self.reduce_for_mark(now, settings);
            }
            if self.flight.recovery.phase != Phase::Reduced {
                if !self.has_again() {
                    self.flight.undo.nothing_again();
                }
                self.settle();
            }
            return false;
        }
        if self.path.is_some() && self.is_probe_too_large(now) {
            return true;
        }
        if !self.sack && settings.recovery == LossRecovery::Tahoe {
            self.start_over(now, self.flight.recovery.flight(&self.flight.board), settings);
        } else {
            self.enter_recovery(now, marked, settings);
        }
        true
    }

    /// Congestion was marked, or the controller took something for it: the window shrinks once for what is
    /// outstanding (RFC 3168 §6.1.2).
    #[cold]
    pub(crate) fn reduce_for_mark(&mut self, now: Time, settings: &Settings) {
        if !self.has_again() {
            self.flight.undo.nothing_again();
        }
        self.flight.undo.end();
        self.begin_reduction(now, Cause::Ecn, self.flight.board.outstanding(), settings);
        self.set_phase(Phase::Reduced);
    }

    /// Finds what is lost. Returns how many repairs are among it.
    fn find_losses(&mut self, now: Time, seen: Seen, settings: &Settings) -> u64 {
        if !self.has_outstanding() {
            return 0;
        }
        let in_recovery = self.flight.recovery.phase == Phase::Recovery;
        let calm = self.flight.recovery.phase < Phase::Recovery;
        let enough = self.has_enough_duplicates(settings);
        let mut lost = 0;
        if !self.sack {
            // Duplicates of what the last episode sent twice do not begin another (RFC 6582 §4.1).
            // Reno knew nothing of that.
            let heeded = self.una > self.flight.recovery.end
                || !settings.behaviour.avoids_repeated_fast_retransmit
                || settings.recovery == LossRecovery::Reno;
            if calm && enough && heeded {
                lost = self.flight.board.lose_front();
            } else if in_recovery && seen.advanced {
                // A partial ACK: the next hole is lost too (RFC 6582 §3.2 step 3).
                self.flight.recovery.partial_acks += 1;
                self.flight.recovery.owes_retransmission =
                    settings.reduction == WindowReduction::AtOnce;
                lost = self.flight.board.lose_front();
            }
        } else if settings.rack {
            return self.detect_by_time(now, settings).repairs;
        } else if settings.behaviour.counts_sacked_segments && !settings.fack {
            if calm || in_recovery {
                lost = self.find_losses_as_linux(seen, self.reordering(settings).into());
            }
        } else if calm || in_recovery {
            if self.flight.board.sacked() > 0 {
                lost = if settings.fack {
                    self.flight.board.judge_forward(settings.dup_thresh)
                } else {
                    self.flight.board.judge(settings.dup_thresh, u64::from(self.mss))
                };
            }
            if calm && (lost > 0 || enough) {
                lost += self.flight.board.lose_front();
            }
        }
        self.lost += lost;
        self.report_losses(now);
        0
    }

    /// Segments are counted, not bytes or blocks, and only what might be lost because of this ACK is looked
    /// at (`tcp_time_to_recover`, `tcp_update_scoreboard`).
    fn find_losses_as_linux(&mut self, seen: Seen, reordering: u64) -> u64 {
        let Flight { board, recovery, .. } = &mut *self.flight;
        let is_calm = recovery.phase < Phase::Recovery;
        if is_calm && board.lost() == 0 && board.sacked() < reordering {
            return 0;
        }
        // `tcp_force_fast_retransmit`.
        let is_far = board.highest_sacked().unwrap_or(self.una)
            > self.una + reordering * u64::from(self.mss);
        let is_shown = is_far && (seen.reports || !is_calm);
        if seen.advanced && !is_shown {
            0
        } else if board.sacked() >= reordering {
            board.judge_by_count(reordering)
        } else if is_calm {
            board.lose_front()
        } else {
            0
        }
    }

    /// A loss was found, and not by the timer.
    pub(crate) fn enter_recovery(&mut self, now: Time, marked: bool, settings: &Settings) {
        if !self.has_again() {
            self.flight.undo.nothing_again();
        }
        let reduces = !self.flight.recovery.is_reducing();
        self.begin_doubt(reduces && !marked);
        let flight = self.flight.recovery.flight(&self.flight.board);
        self.set_phase(Phase::Recovery);
        self.flight.recovery.owes_retransmission = settings.reduction == WindowReduction::AtOnce;
        self.flight.recovery.rescued = false;
        self.flight.recovery.partial_acks = 0;
        if reduces {
            self.begin_reduction(now, Cause::Loss, flight, settings);
        } else {
            self.deepen_reduction(now);
        }
    }

    /// A loss was found while the window gets smaller for a mark: a controller may go further down.
    fn deepen_reduction(&mut self, now: Time) {
        let cwnd = self.cwnd();
        self.consult(now, |cc, _| cc.on_deepened(cwnd));
        let target = self.control.ssthresh.unwrap_or(self.control.cwnd);
        if let Some(reduction) = &mut self.flight.reduction {
            reduction.aim_at(target);
        }
    }

    /// The window is to become smaller, at once or by and by.
    pub(crate) fn begin_reduction(
        &mut self,
        now: Time,
        cause: Cause,
        flight: u64,
        settings: &Settings,
    ) {
        self.flight.recovery.end = self.nxt;
        self.flight.tlp.end = None;
        self.owes_cwr = true;
        let before = self.cwnd();
        let event = Congestion { cause, flight, again: false };
        self.consult(now, |cc, flow| cc.on_congestion(flow, event));
        let target = self.control.ssthresh.unwrap_or(self.control.cwnd);
        let floor = self.cc().and_then(CongestionControl::floor).unwrap_or(target);
        self.flight.reduction = Some(settings.reduction)
            .filter(|_| self.control.prr)
            .and_then(|way| CwndReduction::begin(way, before, target, floor));
    }

    /// A reduction is over. Where it led further down than it had to, the window goes on from there,
    /// and no more than a few segments leave at once (`tcp_complete_cwr`, `tcp_moderate_cwnd`).
    pub(crate) fn keep_reduction(&mut self, now: Time, settings: &Settings) {
        let (in_flight, burst) = (self.in_flight(), u64::from(settings.dup_thresh));
        if let Some(cwnd) = self.flight.reduction.and_then(|it| it.reached(in_flight, burst)) {
            self.consult(now, |cc, _| cc.on_moderated(cwnd));
        }
    }

    fn end_reduction(&mut self, now: Time, settings: &Settings) {
        self.keep_reduction(now, settings);
        self.set_phase(Phase::Open);
        self.consult(now, |cc, flow| cc.on_recovered(flow));
        self.flight.validation.note_decision(now);
    }

    /// A probe of the tail repaired a loss: the window shrinks for it (RFC 8985 §7.4.2).
    #[cold]
    pub(crate) fn reduce_for_probe(&mut self, now: Time, settings: &Settings) {
        // What was outstanding when the loss showed itself; since then all of it was acknowledged.
        let flight = self.flight.tlp.flight;
        self.set_phase(Phase::Reduced);
        self.begin_reduction(now, Cause::Loss, flight, settings);
        self.flight.reduction = None;
        self.consult(now, |cc, flow| cc.on_recovered(flow));
        self.flight.validation.note_decision(now);
        self.settle();
    }

    /// Moves the window of a reduction.
    #[inline]
    pub(crate) fn reduce(&mut self, delivered: u64, lost: u64, advanced: bool) {
        let in_flight = self.in_flight();
        if let Some(reduction) = &mut self.flight.reduction {
            reduction.on_ack(delivered, lost, advanced, in_flight);
        }
    }

    /// An ACK after a timeout: the end, F-RTO (RFC 5682 §3.1, with SACK §3.2), or more repairs.
    fn go_on_after_timeout(
        &mut self,
        now: Time,
        seen: Seen,
        progress: &Progress,
        settings: &Settings,
    ) {
        let recovered = self.una >= self.flight.recovery.end;
        if seen.advanced && self.undo_timeout(now, seen.echoed, false, settings) {
            return;
        }
        if self.flight.recovery.frto {
            // Not all is lost: something arrived that was sent only once.
            let originals = progress.originals && (self.sack || !progress.repairs_acked);
            if originals && self.undo_timeout(now, seen.echoed, true, settings) {
                return;
            }
            if self.nxt > self.flight.recovery.end {
                if progress.sacked > 0 || seen.duplicate {
                    self.flight.recovery.frto = false;
                }
            } else if seen.advanced && !recovered {
                self.flight.recovery.end = self.nxt;
                if self.unsent() > 0 && self.una + self.window > self.nxt {
                    self.flight.recovery.repair = Repair::NewFirst;
                    return;
                }
                self.flight.recovery.frto = false;
            }
        }
        if recovered {
            self.flight.recovery.dup_acks = 0;
            self.flight.recovery.dup_delivered = 0;
            self.flight.recovery.owes_retransmission = false;
            if !self.undo_at_end(now, seen.echoed, settings) {
                self.consult(now, |cc, flow| cc.on_recovered(flow));
            }
            return;
        }
        if !self.sack && seen.advanced {
            self.flight.recovery.dup_delivered = 0;
        }
        self.flight.recovery.repair = Repair::Lost;
    }

    /// The retransmission timer ran out.
    pub fn on_timeout(&mut self, now: Time, settings: &Settings) {
        self.counters.timeouts += 1;
        // FlightSize is what is outstanding in the network (RFC 5681 §3.1, equation 4). In a recovery
        // that ends so, most of what was sent may have been SACKed long ago.
        let delivered = self.flight.board.sacked() + self.flight.recovery.dup_delivered;
        let flight = self.flight.board.outstanding().saturating_sub(delivered);
        let (before, stalled) = (self.flight.recovery.phase, self.flight.recovery.stalled);
        self.rtt.back_off();
        self.start_over(now, flight, settings);
        self.flight.recovery.stalled = true;
        self.flight.recovery.frto = settings.frto && (before < Phase::Recovery || stalled);
    }

    /// All is lost, and slow start begins anew.
    fn start_over(&mut self, now: Time, flight: u64, settings: &Settings) {
        let (before, stalled) = (self.flight.recovery.phase, self.flight.recovery.stalled);
        let was_over = self.una >= self.flight.recovery.end;
        let recent = self.recent(now, settings);
        if let Some(buffer) = self.buffer.as_mut().filter(|_| self.flight.board.is_front_sacked()) {
            buffer.forget_arrivals();
        }
        self.lost +=
            self.flight.board.lose_all(recent, settings.behaviour.timeout_spares_unlost_repairs);
        self.report_losses(now);
        if settings.behaviour.adapts_dup_thresh && before <= Phase::Disorder {
            self.distrust_reordering(settings);
        }
        let is_new = if settings.behaviour.kernel_loss_state {
            before <= Phase::Disorder || was_over || (before == Phase::Loss && !stalled)
        } else {
            // Another timeout of the same data is the same episode (RFC 5681 §3.1).
            !(before == Phase::Loss && stalled)
        };
        self.flight.recovery = Recovery {
            phase: before,
            end: self.nxt,
            owes_retransmission: true,
            repair: Repair::Lost,
            ..Recovery::default()
        };
        if is_new {
            self.begin_doubt(true);
        }
        let reduction = self.flight.reduction.take();
        self.flight.tlp.end = None;
        if let Some(reduction) =
            reduction.filter(|_| is_new && settings.behaviour.keeps_partial_reduction)
        {
            // The episode was over but in name, as without SACK: what is reduced is the window to which it had
            // led by then (`tcp_is_non_sack_preventing_reopen`, `tcp_enter_loss`).
            self.consult(now, |cc, _| cc.on_given_up(reduction.cwnd));
        }
        if is_new || settings.behaviour.kernel_loss_state {
            let event = Congestion { cause: Cause::Timeout, flight, again: !is_new };
            self.consult(now, |cc, flow| cc.on_congestion(flow, event));
        }
        self.flight.validation.note_decision(now);
        self.owes_cwr = true;
        self.set_phase(Phase::Loss);
    }

    /// Data arrived after later data: the path reorders, by so much.
    pub(crate) fn note_reordering(&mut self, lowest: u64, settings: &Settings) {
        if !self.sack && settings.behaviour.emulates_sack {
            // Without blocks, all might have arrived when anything has (`tcp_highest_sack_seq`).
            let highest = if self.flight.recovery.dup_delivered > 0 { self.nxt } else { self.una };
            self.widen_reordering((highest - lowest).div_ceil(self.mss.into()), settings);
        }
        let highest = self.flight.board.highest_sacked().unwrap_or(self.una).max(self.una);
        if self.sack && lowest < highest {
            self.flight.rack.reordering_seen |= settings.rack;
            if settings.behaviour.adapts_dup_thresh {
                self.widen_reordering((highest - lowest).div_ceil(self.mss.into()), settings);
            }
        }
    }
}
