//! Retransmits segments in another size, without a congestion response: segments above the path
//! MTU, and data of a SYN that the server ignored (`tcp_simple_retransmit`,
//! `tcp_non_congestion_loss_retransmit`; RFC 1191 §6.4).

use crate::loss::Sent;
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_units::Time;

/// As a limit for [`Sender::simple_retransmit`]: every segment is too large.
pub(crate) const RESEND_ALL: u16 = 0;

impl Sender {
    /// Marks all outstanding segments with more than `most` bytes of data lost. They leave again in
    /// segments of the present MSS, and the window stays as it is. Returns whether any segment is
    /// marked lost.
    pub fn simple_retransmit(&mut self, now: Time, most: u16) -> bool {
        if !self.has_outstanding() {
            return false;
        }
        let (written, ends) = (self.written, self.packet_ends());
        self.lost += self.loss.mark_larger_lost(written, most, &ends);
        if self.loss.scoreboard().lost() == 0 {
            return false;
        }
        if self.loss.phase() != Phase::Loss {
            self.congestion.end_reduction();
            self.loss.begin_resegmentation(self.nxt);
            self.consult(now, |cc, flow| cc.on_resized(flow));
        }
        self.loss.forget_probe();
        self.loss.retransmit_lost();
        true
    }

    /// The ends of the send buffer's packets, if there is one: retransmissions are cut there.
    fn packet_ends(&self) -> Vec<u64> {
        let mut ends = self.departure.packet_ends();
        let has_fin = |last: &Sent| last.start < self.written && last.end() > self.written;
        if self.loss.scoreboard().back().is_some_and(has_fin)
            && let Some(last) = ends.last_mut()
        {
            // A FIN that left with data belongs to its packet.
            *last = self.written + 1;
        }
        ends
    }

    /// The next segment to retransmit, in the present MSS (`__tcp_retransmit_skb`).
    pub fn next_lost(&mut self, now: Time) -> Option<Sent> {
        let board = self.loss.scoreboard();
        let is_owed = self.loss.recovery().is_retransmission_pending();
        if self.departure.has_packets() && board.retrans_out() >= board.lost() && !is_owed {
            // Linux stops once the number of retransmissions reaches the number of lost segments,
            // even if they are others: retransmissions before an undo count
            // (`tcp_xmit_retransmit_queue`). The retransmission timer does not check this
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
            && !self.departure.continues_retransmission(now, lost.start)
        {
            // A small last segment of a packet is no packet by itself.
            while self.try_collapse(lost.start) {}
        } else {
            return Some(lost);
        }
        self.loss.next_lost()
    }

    /// Bytes of data of a segment, without the FIN.
    fn payload(&self, segment: &Sent) -> u64 {
        segment.end().min(self.written).saturating_sub(segment.start)
    }

    /// Two small segments leave again as one, if each is a packet by itself and one packet holds
    /// both (`tcp_retrans_try_collapse`). Returns whether they do.
    fn try_collapse(&mut self, start: u64) -> bool {
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
