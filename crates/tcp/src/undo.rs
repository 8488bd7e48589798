//! Takes back reductions that were not needed: what was sent again had only been late.
//!
//! Three signs tell: the answer to what was sent again carries a timestamp from before (Eifel,
//! RFC 3522, RFC 4015), the receiver reports that everything sent again came twice (DSACK, RFC 3708),
//! or after a timeout something arrives that was sent only once (F-RTO, RFC 5682).

use crate::recovery::{Phase, Seen};
use crate::segment::clock;
use crate::sender::Sender;
use crate::settings::Settings;
use tcplab_units::Time;

/// What is known of an episode that may have been a false alarm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// What was acknowledged when it began; none if it is no longer open to doubt.
    marker: Option<u64>,
    /// Segments sent again in it that were not reported to have come twice; none if none was sent.
    unanswered: Option<u64>,
    /// When the first of them left, by the clock of timestamps.
    first_again: Option<u64>,
    /// The reduction may be taken back: it was not a mark that caused it.
    allowed: bool,
}

impl Undo {
    /// A segment was sent again.
    #[inline]
    pub fn on_again(&mut self, now: Time) {
        self.first_again.get_or_insert(clock(now));
        self.unanswered = Some(self.unanswered.unwrap_or(0) + 1);
    }

    /// So many segments below `end` were reported to have come twice.
    pub fn on_duplicates(&mut self, count: u64, end: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unanswered) = &mut self.unanswered
        {
            *unanswered = unanswered.saturating_sub(count);
        }
    }

    /// Whatever comes out, the window was reduced for a reason.
    pub fn forbid(&mut self) {
        self.allowed = false;
    }

    /// There is nothing to doubt any more.
    pub fn end(&mut self) {
        self.marker = None;
    }

    /// No segment of the window was sent again.
    #[inline]
    pub fn nothing_again(&mut self) {
        self.first_again = None;
    }
}

impl Sender {
    /// An episode begins that may turn out to be a false alarm.
    pub(crate) fn begin_doubt(&mut self, reduces: bool) {
        let again = self.flight.board.repaired()
            + u64::from(self.flight.tlp.end.is_some() && self.flight.tlp.is_again);
        self.flight.undo.marker = Some(self.una);
        self.flight.undo.unanswered = (again > 0).then_some(again);
        self.flight.undo.allowed = reduces;
    }

    /// What arrived was sent before anything was sent again.
    fn is_only_late(&self, echoed: Option<u64>) -> bool {
        match self.flight.undo.first_again {
            Some(first) => echoed.is_some_and(|echoed| echoed < first),
            None => self.sack || self.una < self.flight.recovery.end,
        }
    }

    fn may_undo(&self, echoed: Option<u64>) -> bool {
        self.flight.undo.marker.is_some()
            && (self.flight.undo.unanswered == Some(0) || self.is_only_late(echoed))
    }

    fn undo(&mut self, now: Time, forget_losses: bool, settings: &Settings) {
        if forget_losses {
            self.flight.board.forget_losses();
        }
        let reduction = self.flight.reduction.take();
        if self.flight.undo.allowed {
            self.consult(now, |cc, flow| cc.on_undo(flow));
            self.owes_cwr = false;
        } else if let Some(reduction) =
            reduction.filter(|_| settings.behaviour.keeps_partial_reduction)
        {
            // `tcp_undo_cwnd_reduction` without `prior_ssthresh`: the window stays, on its way to the
            // threshold, and `tcp_end_cwnd_reduction` does not move it there without `undo_marker`.
            self.consult(now, |cc, _| cc.on_given_up(reduction.cwnd));
        }
        self.flight.validation.note_decision(now);
        self.flight.undo.marker = None;
        self.flight.rack.reconsider();
    }

    /// The episode is over. Says whether it stays open because a duplicate ACK could still come of it:
    /// without SACK, until something beyond it is acknowledged.
    pub(crate) fn undo_at_end(
        &mut self,
        now: Time,
        echoed: Option<u64>,
        settings: &Settings,
    ) -> bool {
        if settings.undo && self.may_undo(echoed) {
            self.undo(now, false, settings);
        } else {
            self.flight.rack.recovered();
            if self.flight.recovery.is_reducing() {
                self.keep_reduction(now, settings);
            }
        }
        if self.stays_open(settings) {
            return true;
        }
        self.set_phase(Phase::Open);
        false
    }

    fn stays_open(&mut self, settings: &Settings) -> bool {
        if !settings.behaviour.non_sack_holds_reopen
            || self.sack
            || self.una != self.flight.recovery.end
        {
            return false;
        }
        if !self.has_again() {
            self.flight.undo.nothing_again();
        }
        true
    }

    /// Everything sent again came twice.
    pub(crate) fn undo_by_dsack(&mut self, now: Time, settings: &Settings) -> bool {
        let is_sure = self.flight.undo.marker.is_some() && self.flight.undo.unanswered == Some(0);
        if settings.undo && is_sure {
            self.flight.rack.undone_by_dsack();
            self.undo(now, false, settings);
        }
        settings.undo && is_sure
    }

    /// A partial acknowledgment came in recovery. Says whether it was of late data: then what else is
    /// missing may be late too.
    pub(crate) fn undo_partial(&mut self, now: Time, seen: Seen, settings: &Settings) -> bool {
        if !settings.undo || self.flight.undo.marker.is_none() || !self.is_only_late(seen.echoed) {
            return false;
        }
        self.note_reordering(seen.before, settings);
        if self.flight.board.repaired() > 0 {
            return true;
        }
        if !self.has_again() {
            self.flight.undo.nothing_again();
        }
        self.undo(now, true, settings);
        self.settle();
        false
    }

    /// An acknowledgment came after a timeout; `proven`: F-RTO has found that it was not needed.
    pub(crate) fn undo_timeout(
        &mut self,
        now: Time,
        echoed: Option<u64>,
        proven: bool,
        settings: &Settings,
    ) -> bool {
        if !(proven || (settings.undo && self.may_undo(echoed))) {
            return false;
        }
        self.undo(now, true, settings);
        self.flight.recovery.stalled = false;
        if self.stays_open(settings) {
            return true;
        }
        if proven || self.sack {
            self.set_phase(Phase::Open);
        }
        true
    }
}
