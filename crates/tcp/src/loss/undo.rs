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
    undo_marker: Option<u64>,
    /// Segments sent again in it that were not reported to have come twice; none if none was sent.
    undo_retrans: Option<u64>,
    /// When the first of them left, by the clock of timestamps.
    retrans_stamp: Option<u64>,
    /// The reduction may be taken back: it was not a mark that caused it.
    allowed: bool,
}

impl Undo {
    /// A segment was sent again.
    #[inline]
    pub fn on_retransmit(&mut self, now: Time) {
        self.retrans_stamp.get_or_insert(clock(now));
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + 1);
    }

    /// `count` segments below `end` were reported as duplicates.
    pub fn on_duplicates(&mut self, count: u64, end: u64) {
        if self.undo_marker.is_some_and(|marker| end > marker)
            && let Some(undo_retrans) = &mut self.undo_retrans
        {
            *undo_retrans = undo_retrans.saturating_sub(count);
        }
    }

    /// Whatever comes out, the window was reduced for a reason.
    pub fn forbid(&mut self) {
        self.allowed = false;
    }

    /// There is nothing to doubt any more.
    pub fn end(&mut self) {
        self.undo_marker = None;
    }

    /// No segment of the window was sent again.
    #[inline]
    pub fn clear_retrans_stamp(&mut self) {
        self.retrans_stamp = None;
    }
}

impl Loss {
    /// An episode begins that may turn out to be a false alarm; `reduces`: its reduction may be
    /// undone.
    pub fn init_undo(&mut self, una: u64, reduces: bool) {
        let again = self.scoreboard.retrans_out()
            + u64::from(self.tlp.end.is_some() && self.tlp.is_retransmission);
        self.undo.undo_marker = Some(una);
        self.undo.undo_retrans = (again > 0).then_some(again);
        self.undo.allowed = reduces;
    }

    /// There is nothing to doubt any more.
    pub fn end_undo(&mut self) {
        self.undo.end();
    }

    /// A mark caused the reduction: it is not undone, whatever else was a false alarm.
    pub fn forbid_undo(&mut self) {
        self.undo.forbid();
    }

    /// No segment of the window is known to have been sent again, unless one is still outstanding.
    pub fn retrans_stamp_cleanup(&mut self) {
        if !self.any_retrans_done() {
            self.undo.clear_retrans_stamp();
        }
    }

    /// No segment of the window was sent again.
    pub fn clear_retrans_stamp(&mut self) {
        self.undo.clear_retrans_stamp();
    }

    /// Whether an episode is open to doubt.
    pub fn has_undo_marker(&self) -> bool {
        self.undo.undo_marker.is_some()
    }

    /// Whether every retransmission of a doubted episode was reported as a duplicate.
    pub fn are_all_retransmissions_duplicate(&self) -> bool {
        self.has_undo_marker() && self.undo.undo_retrans == Some(0)
    }

    /// Whether the segment that arrived was sent before any retransmission.
    pub fn is_packet_delayed(&self, echoed: Option<u64>, sack: bool, una: u64) -> bool {
        match self.undo.retrans_stamp {
            Some(first) => echoed.is_some_and(|echoed| echoed < first),
            None => sack || una < self.recovery.end,
        }
    }

    /// Whether a doubted episode may be undone.
    pub fn may_undo(&self, echoed: Option<u64>, sack: bool, una: u64) -> bool {
        self.has_undo_marker()
            && (self.undo.undo_retrans == Some(0) || self.is_packet_delayed(echoed, sack, una))
    }

    /// The episode was a false alarm. Says whether its reduction may be undone.
    pub fn undo(&mut self, forget_losses: bool) -> bool {
        if forget_losses {
            self.scoreboard.forget_losses();
        }
        self.undo.undo_marker = None;
        self.rack.set_advanced();
        self.undo.allowed
    }

    /// A recovery ended that was needed.
    pub fn on_recovery_confirmed(&mut self) {
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
            let Self { scoreboard, undo, .. } = self;
            let again =
                scoreboard.within(block).filter(|sent| sent.retransmitted || in_repair(sent.start));
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
