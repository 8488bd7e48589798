//! Sends again what was too large: data that the path has no room for, or that a peer did not take with
//! a SYN. That says nothing of congestion (`tcp_simple_retransmit`,
//! `tcp_non_congestion_loss_retransmit`; RFC 1191 §6.4).

use crate::recovery::Phase;
use crate::scoreboard::Sent;
use crate::sender::Sender;

/// A size of segments that everything is too large for.
pub(crate) const NONE: u16 = 0;

impl Sender {
    /// All segments under way with more than `most` bytes of data are lost, and leave again in segments
    /// of the size that is right now. The window stays as it is. Says whether there were any.
    pub fn resend_larger(&mut self, most: u16) -> bool {
        if !self.has_outstanding() {
            return false;
        }
        let (written, mss) = (self.written, self.mss);
        let found = self.flight.board.lose_larger(written, most, mss);
        if found == 0 {
            return false;
        }
        self.lost += found;
        if self.flight.recovery.phase != Phase::Loss {
            self.flight.recovery.end = self.nxt;
            self.flight.undo.end();
            self.flight.reduction = None;
            // No episode of congestion, so that it does not count as one.
            self.flight.recovery.phase = Phase::Loss;
        }
        self.flight.tail.end = None;
        self.flight.recovery.repair_lost();
        true
    }

    /// The next segment to be sent again, in the size that is right now (`__tcp_retransmit_skb`).
    pub fn next_lost(&mut self) -> Option<Sent> {
        let lost = self.flight.board.next_lost()?;
        if lost.end().min(self.written) - lost.start <= u64::from(self.mss) {
            return Some(lost);
        }
        self.flight.board.cut_lost(self.mss);
        self.flight.board.next_lost()
    }
}
