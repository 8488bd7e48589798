//! The sent part of the send buffer: packets that are cut and joined when parts of them are SACKed
//! or retransmitted (`tcp_fragment`, `tcp_shift_skb_data`).

use super::{OVERHEAD, SendBuffer};
use crate::pages::{MOST_PAGES, Pages};
use std::ops::Range;
use tcplab_units::Time;

/// A packet that has left, without its acknowledged part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub end: u64,
    pub memory: u64,
    pub push: bool,
    /// The packet is SACKed.
    pub has_arrived: bool,
    /// The packet, or one that was joined to it, was retransmitted (`TCPCB_EVER_RETRANS`).
    pub was_retransmitted: bool,
}

impl Sent {
    /// The start of the packet, without its acknowledged part.
    fn start(&self) -> u64 {
        self.end + OVERHEAD - self.memory
    }
}

impl SendBuffer {
    /// Data below `una` is acknowledged. Returns the end of a packet that is partly acknowledged.
    pub fn acknowledge(&mut self, una: u64) -> Option<u64> {
        while let Some(&mut Sent { end, ref mut memory, .. }) = self.sent.front_mut() {
            if end > una {
                // The memory of the acknowledged part is freed at once.
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

    /// A SACK block arrived. Parts that the last ACK reported too are skipped
    /// (`tcp_sacktag_write_queue`).
    pub fn on_sack_block(&mut self, block: &Range<u64>) {
        let mut from = block.start;
        for number in 0..self.sack_cache.len() {
            let sack_cache = self.sack_cache[number].clone();
            if sack_cache.end > from && sack_cache.start < block.end {
                self.mark_arrived(&(from..sack_cache.start));
                from = sack_cache.end;
            }
        }
        self.mark_arrived(&(from..block.end));
        self.sack_current.push(block.clone());
    }

    /// All SACK blocks of an ACK are processed.
    pub fn end_of_blocks(&mut self) {
        std::mem::swap(&mut self.sack_cache, &mut self.sack_current);
        self.sack_current.clear();
    }

    /// Discards all SACK information, after reneging.
    pub fn forget_sacks(&mut self) {
        self.sack_cache.clear();
        for packet in &mut self.sent {
            packet.has_arrived = false;
        }
    }

    /// Marks a range SACKed. Each packet of it joins the packet before it if that is SACKed too,
    /// and then the one after it. Parts that were cut off become packets of their own
    /// (`tcp_sacktag_walk`, `tcp_shift_skb_data`, `tcp_match_skb_to_sack`).
    fn mark_arrived(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.cut_at(range.start);
        self.cut_at(range.end);
        let mut at = self.index_of_packet_behind(range.start);
        while self.sent.get(at).is_some_and(|packet| packet.end <= range.end) {
            self.sent[at].has_arrived = true;
            if at > 0 && self.join_arrived(at - 1) {
                self.join_arrived(at - 1);
            } else {
                at += 1;
            }
        }
    }

    /// Joins this packet and the next one if both are SACKed and their pages fit into one packet.
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

    /// A range is retransmitted, as one packet with the other data of the same burst, at most
    /// `most` bytes (`__tcp_retransmit_skb`). Returns whether its end is pushed: several segments
    /// end there, or pushed data.
    pub fn retransmit(&mut self, now: Time, range: &Range<u64>, most: u64) -> bool {
        self.cut_at(range.start);
        let follows = self.last_cut == Some((now, range.start));
        if follows {
            self.join_at(range.start);
        }
        let is_cut = self.cut_at(range.end);
        let at = self.index_of_packet_behind(range.start);
        let Some(packet) = self.sent.get_mut(at) else { return false };
        packet.was_retransmitted = true;
        let is_end = !is_cut || packet.memory - OVERHEAD >= most;
        self.last_cut = (!is_end).then_some((now, range.end));
        is_end && (follows || packet.push)
    }

    /// Whether a pushed packet ends here.
    pub fn is_pushed(&self, end: u64) -> bool {
        let at = self.sent.partition_point(|packet| packet.end < end);
        self.sent.get(at).is_some_and(|packet| packet.end == end && packet.push)
    }

    /// Whether one packet consists of exactly this range.
    pub fn is_packet(&self, range: Range<u64>) -> bool {
        let packet = self.sent.get(self.index_of_packet_behind(range.start));
        packet.is_some_and(|packet| packet.start() == range.start && packet.end == range.end)
    }

    /// Whether the packet that contains this offset counts as retransmitted.
    pub fn was_retransmitted(&self, place: u64) -> bool {
        self.sent
            .get(self.index_of_packet_behind(place))
            .is_some_and(|packet| packet.was_retransmitted)
    }

    /// The ends of all packets that have left.
    pub fn ends(&self) -> Vec<u64> {
        self.sent.iter().map(|packet| packet.end).collect()
    }

    /// The end of the packet that contains this offset; the offset itself if it has not left.
    pub fn packet_end(&self, place: u64) -> u64 {
        self.sent.get(self.index_of_packet_behind(place)).map_or(place, |packet| packet.end)
    }

    /// The index of the first packet that ends behind this offset.
    fn index_of_packet_behind(&self, place: u64) -> usize {
        self.sent.partition_point(|packet| packet.end <= place)
    }

    /// Cuts the packet that extends over this offset. Returns whether one did (`tcp_fragment`).
    fn cut_at(&mut self, place: u64) -> bool {
        let at = self.index_of_packet_behind(place);
        let Some(packet) = self.sent.get_mut(at) else { return false };
        let memory = packet.memory;
        let rest = packet.end - place + OVERHEAD;
        // A packet begins here, or behind it if data here is acknowledged.
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

    /// Joins the packet that ends at this offset and the one that begins there.
    pub fn join_at(&mut self, place: u64) {
        let at = self.index_of_packet_behind(place);
        if at > 0 && at < self.sent.len() && self.sent[at - 1].end == place {
            self.join(at - 1);
        }
    }

    /// Joins this packet and the next one.
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
    fn sacked_part_of_a_packet_is_split_off_and_merged_with_sacked_neighbours() {
        let mut buffer = having_sent(10, 2);
        assert_eq!(buffer.used, memory(10));
        // The second segment of the first packet: tcp_fragment makes two of it.
        buffer.on_sack_block(&(1 + MSS..1 + 2 * MSS));
        assert_eq!(buffer.used, memory(11));
        // The next one moves over to it, and the rest of its packet keeps its own memory.
        buffer.on_sack_block(&(1 + MSS..1 + 3 * MSS));
        assert_eq!(buffer.used, memory(11));
        // That too: a packet less.
        buffer.on_sack_block(&(1 + MSS..1 + 4 * MSS));
        assert_eq!(buffer.used, memory(10));
        buffer.acknowledge(1 + 20 * MSS);
        assert_eq!(buffer.used, 0);
    }

    #[test]
    fn packets_grow_together_up_to_seventeen_pages() {
        let mut buffer = having_sent(60, 1);
        buffer.on_sack_block(&(1..buffer.sent_end));
        // 17 pages of 4096 bytes hold 48 segments of 1448 (69,504 of 69,632); 12 are left.
        let ends = buffer.sent.iter().map(|packet| (packet.end - 1) / MSS);
        assert_eq!(ends.collect::<Vec<_>>(), [48, 60]);
    }

    #[test]
    fn packet_merged_with_a_retransmission_counts_as_retransmitted() {
        // tcp_shifted_skb: TCPCB_EVER_RETRANS goes to all that is joined, and with tcp_fragment
        // stays there.
        let mut buffer = having_sent(1, 4);
        buffer.retransmit(Time::ZERO, &(1..1 + MSS), u64::MAX);
        let again =
            |buffer: &SendBuffer| [0, 1, 2, 3].map(|n| buffer.was_retransmitted(1 + n * MSS));
        assert_eq!(again(&buffer), [true, false, false, false]);
        buffer.on_sack_block(&(1..1 + 3 * MSS));
        assert_eq!(again(&buffer), [true, true, true, false]);
        buffer.forget_sacks();
        buffer.cut_at(1 + 2 * MSS);
        assert_eq!(again(&buffer), [true, true, true, false]);
    }

    #[test]
    fn segments_retransmitted_at_the_same_time_form_one_packet() {
        let at = |millis| Time::ZERO + tcplab_units::Duration::from_millis(millis);
        let mut buffer = having_sent(1, 4);
        let packets = |buffer: &SendBuffer| buffer.sent.len();
        buffer.retransmit(at(1), &(1..1 + MSS), u64::MAX);
        assert_eq!(packets(&buffer), 2);
        buffer.retransmit(at(1), &(1 + MSS..1 + 2 * MSS), u64::MAX);
        assert_eq!(packets(&buffer), 2);
        buffer.retransmit(at(2), &(1 + 2 * MSS..1 + 3 * MSS), u64::MAX);
        assert_eq!((packets(&buffer), buffer.used), (3, 4 * MSS + 3 * OVERHEAD));
    }
}
