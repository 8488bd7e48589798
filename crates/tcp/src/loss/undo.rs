//! The undo state: whether an episode of loss recovery was spurious.
//!
//! Three signs show it: the ACK echoes a timestamp older than the first retransmission (Eifel,
//! RFC 3522, RFC 4015); the receiver reports every retransmission as a duplicate (DSACK, RFC 3708);
//! or after a timeout an original transmission is delivered (F-RTO, RFC 5682).

use super::Loss;
use super::scoreboard::Progress;
use crate::segment::clock;
use std::ops::Range;
use tcplab_units::Time;

/// The undo state of an episode.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the names of the kernel's fields")]
pub(crate) struct Undo {
    /// SND.UNA when the episode began (`tp->undo_marker`); none once the episode cannot be undone.
    undo_marker: Option<u64>,
    /// Retransmissions of the episode that were not reported as duplicates (`tp->undo_retrans`);
    /// none if there were none.
    undo_retrans: Option<u64>,
    /// When the first retransmission left, by the timestamp clock (`tp->retrans_stamp`).
    retrans_stamp: Option<u64>,
    /// The window reduction may be undone: no ECN mark caused it.
    allowed: bool,
}

impl Undo {
    /// A segment is retransmitted.
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

    /// The window reduction stays, even if the losses were spurious.
    pub fn forbid(&mut self) {
        self.allowed = false;
    }

    /// The episode can no longer be undone.
    pub fn end(&mut self) {
        self.undo_marker = None;
    }

    /// No segment of the window was retransmitted.
    #[inline]
    pub fn clear_retrans_stamp(&mut self) {
        self.retrans_stamp = None;
    }
}

impl Loss {
    /// A retransmission of `segments` segments from `start` on failed at the host. Linux counts the
    /// attempt (`tp->undo_retrans`), and sets `retrans_stamp` (`tcp_retransmit_skb`).
    pub fn note_failed_retransmission(&mut self, start: u64, segments: u64) {
        let Some(left_at) = self.scoreboard.left_at(start) else { return };
        self.undo.retrans_stamp.get_or_insert(clock(left_at));
        self.undo.undo_retrans = Some(self.undo.undo_retrans.unwrap_or(0) + segments);
    }

    /// Begins an episode that may be undone (`tcp_init_undo`). `reduces`: its window reduction may
    /// be undone, too.
    pub fn init_undo(&mut self, una: u64, reduces: bool) {
        let again = self.scoreboard.retrans_out()
            + u64::from(self.tlp.end.is_some() && self.tlp.is_retransmission);
        self.undo.undo_marker = Some(una);
        self.undo.undo_retrans = (again > 0).then_some(again);
        self.undo.allowed = reduces;
    }

    /// The episode can no longer be undone.
    pub fn end_undo(&mut self) {
        self.undo.end();
    }

    /// An ECN mark caused the reduction: it is not undone, even if the losses were spurious.
    pub fn forbid_undo(&mut self) {
        self.undo.forbid();
    }

    /// Clears the time of the first retransmission, unless a retransmitted segment is outstanding
    /// (`tcp_retrans_stamp_cleanup`).
    pub fn retrans_stamp_cleanup(&mut self) {
        if !self.any_retrans_done() {
            self.undo.clear_retrans_stamp();
        }
    }

    /// No segment of the window was retransmitted.
    pub fn clear_retrans_stamp(&mut self) {
        self.undo.clear_retrans_stamp();
    }

    /// Whether the episode may be undone.
    pub fn has_undo_marker(&self) -> bool {
        self.undo.undo_marker.is_some()
    }

    /// Whether every retransmission of an episode that may be undone was reported as a duplicate.
    pub fn are_all_retransmissions_duplicate(&self) -> bool {
        self.has_undo_marker() && self.undo.undo_retrans == Some(0)
    }

    /// Whether the delivered segment was sent before any retransmission (`tcp_packet_delayed`).
    pub fn is_packet_delayed(&self, echoed: Option<u64>, sack: bool, una: u64) -> bool {
        match self.undo.retrans_stamp {
            Some(first) => echoed.is_some_and(|echoed| echoed < first),
            None => sack || una < self.recovery.end,
        }
    }

    /// Whether the episode is to be undone (`tcp_may_undo`).
    pub fn may_undo(&self, echoed: Option<u64>, sack: bool, una: u64) -> bool {
        self.has_undo_marker()
            && (self.undo.undo_retrans == Some(0) || self.is_packet_delayed(echoed, sack, una))
    }

    /// The episode was spurious. Returns whether its window reduction may be undone.
    pub fn undo(&mut self, forget_losses: bool) -> bool {
        if forget_losses {
            self.scoreboard.forget_losses();
        }
        self.undo.undo_marker = None;
        self.rack.set_advanced();
        self.undo.allowed
    }

    /// A genuine recovery ended.
    pub fn on_recovery_confirmed(&mut self) {
        self.rack.recovered();
    }

    /// A recovery was undone by DSACK.
    pub fn note_undone_by_dsack(&mut self) {
        self.rack.undone_by_dsack();
    }

    /// A DSACK reports `segments`. A duplicate of a segment that was sent once is no sign of a
    /// spurious retransmission (`tcp_check_dsack`, `tcp_sacktag_one`), unless the segment shares a
    /// packet with a retransmitted one (`in_repair`). `marks_late`: as in Linux, a duplicate above
    /// `una` counts as reordering again.
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

    /// A segment other than the tail loss probe was delivered twice.
    pub fn note_duplicate(&mut self) {
        self.rack.note_duplicate();
    }
}
