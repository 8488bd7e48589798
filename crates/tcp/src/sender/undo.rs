//! Undoes unneeded window reductions: the segments were delayed or reordered, not lost.

use crate::context::Context;
use crate::loss::AckSigns;
use crate::sender::Sender;
use tcplab_cc::Phase;

impl Sender {
    fn may_undo(&self, echoed: Option<u64>) -> bool {
        self.loss.may_undo(echoed, self.sack, self.una)
    }

    fn undo(&mut self, context: Context<'_>, forget_losses: bool) {
        let now = context.now;
        let is_allowed = self.loss.undo(forget_losses);
        let reached = self.congestion.end_reduction();
        if is_allowed {
            self.consult(now, |cc, flow| cc.on_undo(flow));
            self.congestion.set_cwr_pending(false);
        } else if let Some(cwnd) =
            reached.filter(|_| context.settings.behaviour.keeps_partial_reduction)
        {
            // `tcp_undo_cwnd_reduction` without `prior_ssthresh`: the window stays, on its way to
            // the threshold, and `tcp_end_cwnd_reduction` does not move it there without
            // `undo_marker`.
            self.consult(now, |cc, _| cc.on_given_up(cwnd));
        }
        self.congestion.stamp_cwnd(now);
    }

    /// The recovery point is acknowledged: undoes the reduction if it was spurious
    /// (`tcp_try_undo_recovery`). Returns whether the episode stays open: without SACK, duplicate
    /// ACKs of it may still arrive until data beyond the recovery point is acknowledged.
    pub(crate) fn try_undo_recovery(&mut self, context: Context<'_>, echoed: Option<u64>) -> bool {
        if context.settings.undo && self.may_undo(echoed) {
            self.undo(context, false);
        } else {
            self.loss.on_recovery_confirmed();
            if self.loss.recovery().is_reducing() {
                self.complete_reduction(context);
            }
        }
        if self.prevents_reopen(context) {
            return true;
        }
        self.set_phase(Phase::Open);
        false
    }

    fn prevents_reopen(&mut self, context: Context<'_>) -> bool {
        if !context.settings.behaviour.non_sack_holds_reopen
            || self.sack
            || self.una != self.loss.recovery().end()
        {
            return false;
        }
        self.loss.retrans_stamp_cleanup();
        true
    }

    /// Undoes the reduction if every retransmission was reported as a duplicate
    /// (`tcp_try_undo_dsack`).
    pub(crate) fn try_undo_dsack(&mut self, context: Context<'_>) -> bool {
        let is_sure = self.loss.are_all_retransmissions_duplicate();
        if context.settings.undo && is_sure {
            self.loss.note_undone_by_dsack();
            self.undo(context, false);
        }
        context.settings.undo && is_sure
    }

    /// A partial ACK arrived in recovery (`tcp_try_undo_partial`). Returns whether it acknowledged
    /// a late original while retransmissions are outstanding: then the other missing segments may
    /// be late, too.
    pub(crate) fn try_undo_partial(&mut self, context: Context<'_>, seen: AckSigns) -> bool {
        if !context.settings.undo
            || !self.loss.has_undo_marker()
            || !self.loss.is_packet_delayed(seen.echoed, self.sack, self.una)
        {
            return false;
        }
        self.note_reordering(context, seen.before);
        if self.loss.scoreboard().retrans_out() > 0 {
            return true;
        }
        self.loss.retrans_stamp_cleanup();
        self.undo(context, true);
        self.try_keep_open();
        false
    }

    /// An ACK arrived after a timeout: undoes the reduction if the timeout was spurious
    /// (`tcp_try_undo_loss`). `proven`: F-RTO has found it spurious.
    pub(crate) fn try_undo_loss(
        &mut self,
        context: Context<'_>,
        echoed: Option<u64>,
        proven: bool,
    ) -> bool {
        if !(proven || (context.settings.undo && self.may_undo(echoed))) {
            return false;
        }
        self.undo(context, true);
        self.loss.clear_stalled();
        if self.prevents_reopen(context) {
            return true;
        }
        if proven || self.sack {
            self.set_phase(Phase::Open);
        }
        true
    }
}
