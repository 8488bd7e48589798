//! The state by which an episode may turn out to be a false alarm.
//!
//! Three signs tell: the answer to a retransmission carries a timestamp from before it (Eifel,
//! RFC 3522, RFC 4015), the receiver reports that every retransmission was a duplicate (DSACK,
//! RFC 3708), or after a timeout a segment arrives that was sent only once (F-RTO, RFC 5682).

use super::Loss;
use super::scoreboard::Progress;
use crate::segment::clock;
use std::ops::Range;
use tcplab_units::Time;

/// The state of an episode that may have been a false alarm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// `una` when the episode began; none if it is no longer open to doubt.
    marker: Option<u64>,
    /// Segments sent again in it that were not reported to have come twice; none if none was sent.
    unanswered: Option<u64>,
    /// When the first of them left, by the clock of timestamps.
    first_retransmitted_at: Option<u64>,
    /// The reduction may be taken back: it was not a mark that caused it.
    allowed: bool,
}

impl Undo {
    /// A segment was retransmitted.
    #[inline]
    pub fn on_retransmit(&mut self, now: Time) {
        self.first_retransmitted_at.get_or_insert(clock(now));
        self.unanswered = Some(self.unanswered.unwrap_or(0) + 1);
    }

    /// `count` segments below `end` were reported as duplicates.
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

    /// Clears the undo marker.
    pub fn end(&mut self) {
        self.marker = None;
    }

    /// No segment of the window was sent again.
    #[inline]
    pub fn nothing_again(&mut self) {
        self.first_retransmitted_at = None;
    }
}

impl Loss {
    /// A retransmission of `segments` segments from `start` on failed at the host. Linux counts the
    /// attempt for the undo, and the time of retransmissions begins with it
    /// (`tcp_retransmit_skb`).
    pub fn note_failed_repair(&mut self, start: u64, segments: u64) {
        let Some(left_at) = self.board.left_at(start) else { return };
        self.undo.first_retransmitted_at.get_or_insert(clock(left_at));
        self.undo.unanswered = Some(self.undo.unanswered.unwrap_or(0) + segments);
    }

    /// Sets the undo marker at the start of a recovery that may turn out to be spurious
    /// (`tcp_init_undo`). `reduces`: the reduction of the window may be undone.
    pub fn init_undo(&mut self, una: u64, reduces: bool) {
        let again = self.board.repaired() + u64::from(self.tlp.end.is_some() && self.tlp.is_again);
        self.undo.marker = Some(una);
        self.undo.unanswered = (again > 0).then_some(again);
        self.undo.allowed = reduces;
    }

    /// Clears the undo marker.
    pub fn clear_undo(&mut self) {
        self.undo.end();
    }

    /// A mark caused the reduction: it is not undone, whatever else was a false alarm.
    pub fn forbid_undo(&mut self) {
        self.undo.forbid();
    }

    /// No segment of the window is known to have been sent again, unless one is still outstanding.
    pub fn forget_old_retransmissions(&mut self) {
        if !self.has_retransmitted() {
            self.undo.nothing_again();
        }
    }

    /// No segment of the window was sent again.
    pub fn forget_retransmissions(&mut self) {
        self.undo.nothing_again();
    }

    /// Whether an undo marker is set: the recovery may still turn out to be spurious.
    pub fn has_undo_marker(&self) -> bool {
        self.undo.marker.is_some()
    }

    /// Whether every retransmission of a doubted episode was reported as a duplicate.
    pub fn is_disproved_by_dsack(&self) -> bool {
        self.has_undo_marker() && self.undo.unanswered == Some(0)
    }

    /// Whether the segment that arrived was sent before any retransmission.
    pub fn is_late_original(&self, echoed: Option<u64>, sack: bool, una: u64) -> bool {
        match self.undo.first_retransmitted_at {
            Some(first) => echoed.is_some_and(|echoed| echoed < first),
            None => sack || una < self.recovery.end,
        }
    }

    /// Whether a doubted episode may be undone.
    pub fn may_undo(&self, echoed: Option<u64>, sack: bool, una: u64) -> bool {
        self.has_undo_marker()
            && (self.undo.unanswered == Some(0) || self.is_late_original(echoed, sack, una))
    }

    /// The episode was a false alarm. Says whether its reduction may be undone.
    pub fn undo(&mut self, forget_losses: bool) -> bool {
        if forget_losses {
            self.board.forget_losses();
        }
        self.undo.marker = None;
        self.rack.reconsider();
        self.undo.allowed
    }

    /// A recovery ended that was needed.
    pub fn confirm_recovery(&mut self) {
        self.rack.recovered();
    }

    /// A recovery was undone by DSACK.
    pub fn note_undone_by_dsack(&mut self) {
        self.rack.undone_by_dsack();
    }

    /// The receiver reports a block of `segments` as duplicates. A copy of a segment that was sent
    /// once says nothing of repairs (`tcp_check_dsack`, `tcp_sacktag_one`), unless it has become
    /// part of a packet with some, as `in_repair` says. `marks_late`: for Linux a duplicate above
    /// `una` came late once more.
    pub fn take_duplicates(
        &mut self,
        block: &Range<u64>,
        (segments, una): (u64, u64),
        in_repair: impl Fn(u64) -> bool,
        marks_late: bool,
        progress: &mut Progress,
    ) {
        if block.end <= una {
            self.undo.on_duplicates(segments, block.end);
        } else if block.start > una {
            let Self { board, undo, .. } = self;
            let again =
                board.within(block).filter(|sent| sent.retransmitted || in_repair(sent.start));
            for sent in again {
                undo.on_duplicates(1, sent.end());
                if sent.is_sacked() && marks_late {
                    progress.overtake(sent.start);
                }
            }
        }
    }

    /// A segment other than the probe was delivered twice.
    pub fn note_duplicate(&mut self) {
        self.rack.note_duplicate();
    }
}
