//! Undoes reductions that were not needed: the segments sent again had only been late.

use crate::context::Context;
use crate::loss::Seen;
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
            self.congestion.owe_cwr(false);
        } else if let Some(cwnd) =
            reached.filter(|_| context.settings.behaviour.keeps_partial_reduction)
        {
            // `tcp_undo_cwnd_reduction` without `prior_ssthresh`: the window stays, on its way to
            // the threshold, and `tcp_end_cwnd_reduction` does not move it there without
            // `undo_marker`.
            self.consult(now, |cc, _| cc.on_given_up(cwnd));
        }
        self.congestion.note_decision(now);
    }

    /// The episode is over. Says whether it stays open because a duplicate ACK could still come of
    /// it: without SACK, until something beyond it is acknowledged.
    pub(crate) fn undo_at_end(&mut self, context: Context<'_>, echoed: Option<u64>) -> bool {
        if context.settings.undo && self.may_undo(echoed) {
            self.undo(context, false);
        } else {
            self.loss.confirm_recovery();
            if self.loss.recovery().is_reducing() {
                self.keep_reduction(context);
            }
        }
        if self.stays_open(context) {
            return true;
        }
        self.set_phase(Phase::Open);
        false
    }

    fn stays_open(&mut self, context: Context<'_>) -> bool {
        if !context.settings.behaviour.non_sack_holds_reopen
            || self.sack
            || self.una != self.loss.recovery().end()
        {
            return false;
        }
        self.loss.forget_old_retransmissions();
        true
    }

    /// Everything sent again came twice.
    pub(crate) fn undo_by_dsack(&mut self, context: Context<'_>) -> bool {
        let is_sure = self.loss.is_disproved_by_dsack();
        if context.settings.undo && is_sure {
            self.loss.note_undone_by_dsack();
            self.undo(context, false);
        }
        context.settings.undo && is_sure
    }

    /// A partial acknowledgment came in recovery. Says whether it was of late data: then what else
    /// is missing may be late too.
    pub(crate) fn undo_partial(&mut self, context: Context<'_>, seen: Seen) -> bool {
        if !context.settings.undo
            || !self.loss.has_undo_marker()
            || !self.loss.is_late_original(seen.echoed, self.sack, self.una)
        {
            return false;
        }
        self.note_reordering(context, seen.before);
        if self.loss.scoreboard().repaired() > 0 {
            return true;
        }
        self.loss.forget_old_retransmissions();
        self.undo(context, true);
        self.return_to_open();
        false
    }

    /// An acknowledgment came after a timeout; `proven`: F-RTO has found that it was not needed.
    pub(crate) fn undo_timeout(
        &mut self,
        context: Context<'_>,
        echoed: Option<u64>,
        proven: bool,
    ) -> bool {
        if !(proven || (context.settings.undo && self.may_undo(echoed))) {
            return false;
        }
        self.undo(context, true);
        self.loss.note_progress();
        if self.stays_open(context) {
            return true;
        }
        if proven || self.sack {
            self.set_phase(Phase::Open);
        }
        true
    }
}
