//! The sent part of the send buffer, in packets that are cut and joined as parts of it arrive or
//! leave again (`tcp_fragment`, `tcp_shift_skb_data`).

use super::{OVERHEAD, SendBuffer};
use crate::pages::{MOST_PAGES, Pages};
use std::ops::Range;
use tcplab_units::Time;

/// A packet that has left, as what is not acknowledged of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub end: u64,
    pub memory: u64,
    pub push: bool,
    /// The receiver has told of it.
    pub has_arrived: bool,
    /// Some of it, or of what it was one with, has left again (`TCPCB_EVER_RETRANS`).
    pub was_retransmitted: bool,
}

impl Sent {
    /// The beginning of it that is acknowledged is no part of it any more.
    fn start(&self) -> u64 {
        self.end + OVERHEAD - self.memory
    }
}

impl SendBuffer {
    /// Data before `una` is acknowledged. Returns the end of the packet that is acknowledged in
    /// part, if one is.
    pub fn acknowledge(&mut self, una: u64) -> Option<u64> {
        while let Some(&mut Sent { end, ref mut memory, .. }) = self.sent.front_mut() {
            if end > una {
                // The beginning of a packet is given back at once.
                let left = (end - una) + OVERHEAD;
                let is_cut = *memory > left;
                self.used -= memory.saturating_sub(left);
                *memory = left.min(*memory);
                return is_cut.then_some(end);
            }
            self.used -= *memory;
            self.sent.pop_front();
        }
        None
    }

    /// The receiver tells of a block. What it told of with the last ACK has been dealt with
    /// (`tcp_sacktag_write_queue`).
    pub fn arrived(&mut self, block: &Range<u64>) {
        let mut from = block.start;
        for number in 0..self.told.len() {
            let told = self.told[number].clone();
            if told.end > from && told.start < block.end {
                self.note_arrival(&(from..told.start));
                from = told.end;
            }
        }
        self.note_arrival(&(from..block.end));
        self.telling.push(block.clone());
    }

    /// All SACK blocks of an ACK have been taken.
    pub fn end_of_blocks(&mut self) {
        std::mem::swap(&mut self.told, &mut self.telling);
        self.telling.clear();
    }

    /// The receiver has dropped what it told of.
    pub fn forget_arrivals(&mut self) {
        self.told.clear();
        for packet in &mut self.sent {
            packet.has_arrived = false;
        }
    }

    /// A part of what has left arrived. Each packet of it becomes one with the packet before it if
    /// that has arrived too, and then with the one behind it; what was cut off is a packet by
    /// itself (`tcp_sacktag_walk`, `tcp_shift_skb_data`, `tcp_match_skb_to_sack`).
    fn note_arrival(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.cut_at(range.start);
        self.cut_at(range.end);
        let mut at = self.ending_behind(range.start);
        while self.sent.get(at).is_some_and(|packet| packet.end <= range.end) {
            self.sent[at].has_arrived = true;
            if at > 0 && self.join_arrived(at - 1) {
                self.join_arrived(at - 1);
            } else {
                at += 1;
            }
        }
    }

    /// This packet and the one behind it become one if both have arrived and their pages fit into
    /// one.
    fn join_arrived(&mut self, at: usize) -> bool {
        let (Some(first), Some(second)) = (self.sent.get(at), self.sent.get(at + 1)) else {
            return false;
        };
        let pages = if self.is_copied { Pages::OfCopies } else { Pages::OfFile };
        let pages = pages.count(&(first.start()..second.end));
        let fits = first.has_arrived && second.has_arrived && pages <= MOST_PAGES;
        if fits {
            self.join(at);
        }
        fits
    }

    /// A part of what has left leaves again, as a packet by itself with what leaves at the same
    /// time, `most` bytes of it (`__tcp_retransmit_skb`). Says whether the receiver's application
    /// is to hear of its end: several segments end there, or what was pushed.
    pub fn again(&mut self, now: Time, range: &Range<u64>, most: u64) -> bool {
        self.cut_at(range.start);
        let follows = self.cut == Some((now, range.start));
        if follows {
            self.join_at(range.start);
        }
        let is_cut = self.cut_at(range.end);
        let at = self.ending_behind(range.start);
        let Some(packet) = self.sent.get_mut(at) else { return false };
        packet.was_retransmitted = true;
        let is_end = !is_cut || packet.memory - OVERHEAD >= most;
        self.cut = (!is_end).then_some((now, range.end));
        is_end && (follows || packet.push)
    }

    /// Whether what was pushed ends here.
    pub fn is_pushed(&self, end: u64) -> bool {
        let at = self.sent.partition_point(|packet| packet.end < end);
        self.sent.get(at).is_some_and(|packet| packet.end == end && packet.push)
    }

    /// Whether this, and nothing else that has left, lies in one packet.
    pub fn is_packet(&self, range: Range<u64>) -> bool {
        let packet = self.sent.get(self.ending_behind(range.start));
        packet.is_some_and(|packet| packet.start() == range.start && packet.end == range.end)
    }

    /// Whether the packet with the data at this place counts as retransmitted.
    pub fn was_retransmitted(&self, place: u64) -> bool {
        self.sent.get(self.ending_behind(place)).is_some_and(|packet| packet.was_retransmitted)
    }

    /// Where each packet ends that has left.
    pub fn ends(&self) -> Vec<u64> {
        self.sent.iter().map(|packet| packet.end).collect()
    }

    /// Where the packet ends that this place is part of; there, if it has not left.
    pub fn packet_end(&self, place: u64) -> u64 {
        self.sent.get(self.ending_behind(place)).map_or(place, |packet| packet.end)
    }

    /// The packet, by number, that ends behind this place.
    fn ending_behind(&self, place: u64) -> usize {
        self.sent.partition_point(|packet| packet.end <= place)
    }

    /// No packet reaches over this place. Says whether one did (`tcp_fragment`).
    fn cut_at(&mut self, place: u64) -> bool {
        let at = self.ending_behind(place);
        let Some(packet) = self.sent.get_mut(at) else { return false };
        let memory = packet.memory;
        let rest = packet.end - place + OVERHEAD;
        // A packet begins here, or behind here if what is here is acknowledged.
        if memory <= rest {
            return false;
        }
        packet.memory = rest;
        let first = memory - (rest - OVERHEAD);
        let part = Sent { end: place, memory: first, push: false, ..*packet };
        self.sent.insert(at, part);
        self.used += OVERHEAD;
        true
    }

    /// The packet that ends at this place and the one that begins there become one.
    pub fn join_at(&mut self, place: u64) {
        let at = self.ending_behind(place);
        if at > 0 && at < self.sent.len() && self.sent[at - 1].end == place {
            self.join(at - 1);
        }
    }

    /// This packet and the one behind it become one.
    fn join(&mut self, at: usize) {
        if let Some(first) = self.sent.remove(at) {
            self.sent[at].memory += first.memory - OVERHEAD;
            self.sent[at].push |= first.push;
            self.sent[at].was_retransmitted |= first.was_retransmitted;
            self.used -= OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Packet;
    use super::*;
    use crate::settings::Settings;

    const MSS: u64 = 1448;

    /// So many packets of so many segments have left, from offset 1 on.
    fn having_sent(packets: u64, segments: u64) -> SendBuffer {
        let settings = Settings { send_buffer: 1 << 20, ..Settings::default() };
        let mut buffer = SendBuffer::new(&settings, 10, 2, 1460);
        for _ in 0..packets {
            buffer.unsent.push_back(Packet { bytes: segments * MSS, push: false });
            buffer.used += segments * MSS + OVERHEAD;
            buffer.send(segments * MSS);
        }
        buffer
    }

    /// Memory of 20 segments in so many packets.
    fn memory(packets: u64) -> u64 {
        20 * MSS + packets * OVERHEAD
    }

    #[test]
    fn what_arrives_in_the_middle_of_a_packet_is_cut_off_and_joins_its_neighbours() {
        let mut buffer = having_sent(10, 2);
        assert_eq!(buffer.used, memory(10));
        // The second segment of the first packet: tcp_fragment makes two of it.
        buffer.arrived(&(1 + MSS..1 + 2 * MSS));
        assert_eq!(buffer.used, memory(11));
        // The next one moves over to it, and the rest of its packet keeps its own memory.
        buffer.arrived(&(1 + MSS..1 + 3 * MSS));
        assert_eq!(buffer.used, memory(11));
        // That too: a packet less.
        buffer.arrived(&(1 + MSS..1 + 4 * MSS));
        assert_eq!(buffer.used, memory(10));
        buffer.acknowledge(1 + 20 * MSS);
        assert_eq!(buffer.used, 0);
    }

    #[test]
    fn packets_grow_together_up_to_seventeen_pages() {
        let mut buffer = having_sent(60, 1);
        buffer.arrived(&(1..buffer.reached));
        // 17 pages of 4096 bytes hold 48 segments of 1448 (69,504 of 69,632); 12 are left.
        let ends = buffer.sent.iter().map(|packet| (packet.end - 1) / MSS);
        assert_eq!(ends.collect::<Vec<_>>(), [48, 60]);
    }

    #[test]
    fn what_becomes_one_with_a_repair_counts_as_one() {
        // tcp_shifted_skb: TCPCB_EVER_RETRANS goes to all that is joined, and with tcp_fragment
        // stays there.
        let mut buffer = having_sent(1, 4);
        buffer.again(Time::ZERO, &(1..1 + MSS), u64::MAX);
        let again =
            |buffer: &SendBuffer| [0, 1, 2, 3].map(|n| buffer.was_retransmitted(1 + n * MSS));
        assert_eq!(again(&buffer), [true, false, false, false]);
        buffer.arrived(&(1..1 + 3 * MSS));
        assert_eq!(again(&buffer), [true, true, true, false]);
        buffer.forget_arrivals();
        buffer.cut_at(1 + 2 * MSS);
        assert_eq!(again(&buffer), [true, true, true, false]);
    }

    #[test]
    fn segments_that_leave_again_at_once_are_one_packet() {
        let at = |millis| Time::ZERO + tcplab_units::Duration::from_millis(millis);
        let mut buffer = having_sent(1, 4);
        let packets = |buffer: &SendBuffer| buffer.sent.len();
        buffer.again(at(1), &(1..1 + MSS), u64::MAX);
        assert_eq!(packets(&buffer), 2);
        buffer.again(at(1), &(1 + MSS..1 + 2 * MSS), u64::MAX);
        assert_eq!(packets(&buffer), 2);
        buffer.again(at(2), &(1 + 2 * MSS..1 + 3 * MSS), u64::MAX);
        assert_eq!((packets(&buffer), buffer.used), (3, 4 * MSS + 3 * OVERHEAD));
    }
}
