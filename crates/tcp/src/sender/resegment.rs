//! Sends again what was too large: data that the path has no room for, or that a peer did not take
//! with a SYN. That says nothing of congestion (`tcp_simple_retransmit`,
//! `tcp_non_congestion_loss_retransmit`; RFC 1191 §6.4).

use crate::loss::Sent;
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_units::Time;

/// A size of segments that everything is too large for.
pub(crate) const NONE: u16 = 0;

impl Sender {
    /// All segments under way with more than `most` bytes of data are lost, and leave again in
    /// segments of the size that is right then. The window stays as it is. Says whether anything
    /// is.
    pub fn resend_larger(&mut self, now: Time, most: u16) -> bool {
        if !self.has_outstanding() {
            return false;
        }
        let (written, ends) = (self.written, self.packet_ends());
        self.lost += self.loss.lose_larger(written, most, &ends);
        if self.loss.scoreboard().lost() == 0 {
            return false;
        }
        if self.loss.phase() != Phase::Loss {
            self.congestion.end_reduction();
            self.loss.begin_resegmentation(self.nxt);
            self.consult(now, |cc, flow| cc.on_resized(flow));
        }
        self.loss.forget_probe();
        self.loss.repair_lost();
        true
    }

    /// Where the packets of the send buffer end, where there is one: what leaves again is cut at
    /// them.
    fn packet_ends(&self) -> Vec<u64> {
        let mut ends = self.departure.packet_ends();
        let has_fin = |last: &Sent| last.start < self.written && last.end() > self.written;
        if self.loss.scoreboard().back().is_some_and(has_fin)
            && let Some(last) = ends.last_mut()
        {
            // A FIN that left with data is part of its packet.
            *last = self.written + 1;
        }
        ends
    }

    /// The next segment to be sent again, in the size that is right now (`__tcp_retransmit_skb`).
    pub fn next_lost(&mut self, now: Time) -> Option<Sent> {
        let board = self.loss.scoreboard();
        let is_owed = self.loss.recovery().owes_retransmission();
        if self.departure.has_packets() && board.repaired() >= board.lost() && !is_owed {
            // As many have been sent again as are lost, be it others: after a false alarm, what was
            // sent again for it counts (`tcp_xmit_retransmit_queue`). The timer does not ask
            // (`tcp_retransmit_timer`).
            return None;
        }
        let lost = self.loss.next_lost()?;
        let (payload, mss) = (self.payload(&lost), u64::from(self.mss));
        if payload > mss {
            let ends = self.packet_ends();
            self.loss.cut_lost(lost.start, self.mss, &ends);
        } else if payload < mss
            && self.departure.has_packets()
            && !self.departure.repairs_on(now, lost.start)
        {
            // A small segment that ends a packet of several is part of that packet.
            while self.join_with_next(lost.start) {}
        } else {
            return Some(lost);
        }
        self.loss.next_lost()
    }

    /// Bytes of data of a segment: a FIN takes a place, but is none.
    fn payload(&self, segment: &Sent) -> u64 {
        segment.end().min(self.written).saturating_sub(segment.start)
    }

    /// Two small segments leave again as one if each is a packet by itself and both fit into one
    /// (`tcp_retrans_try_collapse`). Says whether they do.
    fn join_with_next(&mut self, start: u64) -> bool {
        let Some((first, second)) = self.loss.scoreboard().pair(start) else { return false };
        let (one, other) = (self.payload(&first), self.payload(&second));
        let fits = one + other <= u64::from(self.mss)
            && second.end() <= self.una + self.window
            && self.departure.is_packet(start..start + one)
            && (other == 0 || self.departure.is_packet(second.start..second.start + other));
        if fits {
            if other > 0 {
                self.departure.join_at(second.start);
            }
            self.loss.join(start);
        }
        fits
    }
}
