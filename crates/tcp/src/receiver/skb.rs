//! The memory of received data in Linux: consecutive segments are coalesced into one packet with a
//! limited number of fragments (`tcp_try_coalesce`, `MAX_SKB_FRAGS`).

use super::rbtree::{Side, Tree};
use crate::pages::{MOST_PAGES, Pages};
use std::collections::VecDeque;
use std::ops::Range;

pub(crate) use crate::segment::SEGMENT_OVERHEAD as OVERHEAD;

/// The outcome for an out-of-order segment (`tcp_data_queue_ofo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfoOutcome {
    /// A packet of its own.
    Separate,
    /// Joined to another packet.
    Coalesced,
    /// Received before, and dropped.
    Duplicate,
}

#[derive(Clone, Debug)]
struct Packet {
    range: Range<u64>,
    /// End of the data, plus one for a FIN (`end_seq`).
    end: u64,
    fragments: u64,
    /// Socket buffers, each with fragments of its own: several in a list, where one cannot hold all
    /// fragments.
    heads: u64,
}

impl Packet {
    /// A packet of one segment, or of several that GRO merged (`skb_gro_receive`).
    fn new(range: Range<u64>, end: u64, pages: Pages, segment: u64) -> Self {
        let (mut fragments, mut heads) = (0, 1);
        let mut start = range.start;
        while start < range.end {
            let part = start..range.end.min(start.saturating_add(segment.max(1)));
            start = part.end;
            // A fragment does not cross pages.
            let more = pages.count(&part);
            if fragments + more > MOST_PAGES && fragments > 0 {
                (fragments, heads) = (0, heads + 1);
            }
            fragments += more;
        }
        Self { range, end, fragments, heads }
    }

    /// Bytes of memory beside the data.
    fn overhead(&self) -> u64 {
        self.heads * OVERHEAD
    }

    fn memory(&self) -> u64 {
        self.range.end - self.range.start + self.overhead()
    }

    /// Whether `next` follows this packet and fits into it. Lists are never coalesced
    /// (`skb_try_coalesce`).
    fn can_coalesce(&self, next: &Self) -> bool {
        self.end == next.range.start
            && self.fragments + next.fragments <= MOST_PAGES
            && (self.heads, next.heads) == (1, 1)
    }

    /// Appends the following packet, if it fits. Returns whether it does.
    fn coalesce(&mut self, next: &Self) -> bool {
        let fits = self.can_coalesce(next);
        if fits {
            self.range.end = next.range.end;
            self.end = next.end;
            self.fragments += next.fragments;
        }
        fits
    }
}

/// The place of an out-of-order segment.
#[derive(Clone, Copy, Debug)]
enum OfoPlace {
    /// At the end of this packet.
    AppendTo(usize),
    /// A leaf below this node; without one, the root.
    InsertAt(Option<(usize, Side)>),
    /// None: a part of the segment was received before.
    Duplicate,
}

/// Received data that the application has not read: the receive queue and the out-of-order queue.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    /// The memory pages in which the sender's data lies.
    pages: Pages,
    readable: VecDeque<Packet>,
    /// Sorted by the first offset (`out_of_order_queue`).
    out_of_order: Tree<Packet>,
    memory: u64,
}

impl Packets {
    /// None so far; their sender has data in these pages.
    pub fn new(pages: Pages) -> Self {
        Self { pages, readable: VecDeque::new(), out_of_order: Tree::default(), memory: 0 }
    }

    /// Bytes of memory of all packets.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Adds data in order, in segments of `segment` bytes. Returns its memory.
    pub fn add(&mut self, range: Range<u64>, segment: u64) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let end = range.end;
        let packet = Packet::new(range, end, self.pages, segment);
        let memory = packet.memory();
        self.memory += memory;
        self.append(packet);
        memory
    }

    fn append(&mut self, packet: Packet) {
        if self.readable.back_mut().is_some_and(|last| last.coalesce(&packet)) {
            self.memory -= OVERHEAD;
        } else {
            self.readable.push_back(packet);
        }
    }

    /// The place of an out-of-order segment. The last packet is tried first, then the packets on
    /// the way down the tree. The packet that ends where the segment begins may thus be found
    /// before one that already contains the data (`tcp_data_queue_ofo`).
    fn find(&self, packet: &Packet) -> OfoPlace {
        let (start, end) = (packet.range.start, packet.end);
        let Some((last, greatest)) =
            self.out_of_order.last().zip(self.at(self.out_of_order.last()))
        else {
            return OfoPlace::InsertAt(None);
        };
        if greatest.can_coalesce(packet) {
            return OfoPlace::AppendTo(last);
        }
        if start >= greatest.end {
            return OfoPlace::InsertAt(Some((last, Side::Right)));
        }
        let (mut place, mut next) = (None, self.out_of_order.root());
        let mut above = u64::MAX;
        while let Some((number, here)) = next.zip(self.at(next)) {
            let side = if start < here.range.start {
                above = here.range.start;
                Side::Left
            } else if start < here.end {
                return OfoPlace::Duplicate;
            } else if here.can_coalesce(packet) {
                return OfoPlace::AppendTo(number);
            } else {
                Side::Right
            };
            place = Some((number, side));
            next = self.out_of_order.child(number, side);
        }
        if above < end { OfoPlace::Duplicate } else { OfoPlace::InsertAt(place) }
    }

    fn at(&self, number: Option<usize>) -> Option<&Packet> {
        self.out_of_order.get(number?)
    }

    /// Whether an out-of-order segment would join another packet.
    pub fn would_coalesce(&self, range: &Range<u64>, segment: u64) -> bool {
        let packet = Packet::new(range.clone(), range.end, self.pages, segment);
        matches!(self.find(&packet), OfoPlace::AppendTo(_))
    }

    /// Queues an out-of-order segment, or several of `segment` bytes each. `end` includes a FIN.
    /// Returns what became of the data, and its memory.
    pub fn queue_ofo(&mut self, range: Range<u64>, end: u64, segment: u64) -> (OfoOutcome, u64) {
        let packet = Packet::new(range, end, self.pages, segment);
        let (bytes, memory) = (packet.range.end - packet.range.start, packet.memory());
        let early = match self.find(&packet) {
            OfoPlace::Duplicate => OfoOutcome::Duplicate,
            OfoPlace::AppendTo(number) => {
                self.memory += bytes;
                if let Some(before) = self.out_of_order.get_mut(number) {
                    before.coalesce(&packet);
                }
                OfoOutcome::Coalesced
            }
            OfoPlace::InsertAt(place) => {
                self.memory += memory;
                self.out_of_order.insert(place, packet);
                OfoOutcome::Separate
            }
        };
        (early, memory)
    }

    /// RCV.NXT is `next`: packets move from the out-of-order queue to the receive queue, which
    /// ended at `reached`. Packets without new data are dropped (`tcp_ofo_queue`).
    pub fn advance(&mut self, mut reached: u64, next: u64) {
        while self.at(self.out_of_order.first()).is_some_and(|packet| packet.range.start < next) {
            let Some(packet) = self.out_of_order.pop_first() else { break };
            if packet.end > reached {
                reached = packet.end;
                self.append(packet);
            } else {
                self.memory -= packet.memory();
            }
        }
    }

    /// The application has read up to this offset.
    pub fn read(&mut self, consumed: u64) {
        while let Some(first) = self.readable.front_mut() {
            if first.range.end > consumed {
                break;
            }
            self.memory -= first.memory();
            self.readable.pop_front();
        }
    }

    /// The end of the first packet in the receive queue.
    pub fn first_end(&self) -> Option<u64> {
        self.readable.front().map(|packet| packet.range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrival is one segment.
    const WHOLE: u64 = u64::MAX;

    /// Data that something is missing before, without a FIN.
    fn early(packets: &mut Packets, range: Range<u64>) -> OfoOutcome {
        let end = range.end;
        packets.queue_ofo(range, end, WHOLE).0
    }

    /// The n-th segment of 1448 bytes, from 0.
    fn segment(n: u64) -> Range<u64> {
        1 + n * 1448..1 + (n + 1) * 1448
    }

    #[test]
    fn skb_coalesces_up_to_seventeen_fragments() {
        // Segments 10 to 21 take 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1 and 1 fragments, for pages of
        // 4096: 16 together. The next takes two, and has no room; segment 9, which takes one, has.
        let mut packets = Packets::new(Pages::OfFile);
        for n in 10..27 {
            early(&mut packets, segment(n));
        }
        assert_eq!(packets.memory(), 17 * 1448 + 2 * OVERHEAD);
        packets.add(segment(9), WHOLE);
        packets.advance(1 + 10 * 1448, 1 + 27 * 1448);
        assert_eq!(packets.first_end(), Some(1 + 22 * 1448));
        assert_eq!(packets.memory(), 18 * 1448 + 2 * OVERHEAD);
        packets.read(1 + 27 * 1448);
        assert_eq!((packets.memory(), packets.first_end()), (0, None));
    }

    #[test]
    fn skb_of_copied_data_coalesces_up_to_seventeen_segments() {
        // skb_copy_to_page_nocache into 32 kB at a time: segments 0 to 16 lie in one such page
        // each, as 22 and a half of them do, and of tcp_try_coalesce's 17 fragments each takes one.
        let mut packets = Packets::new(Pages::OfCopies);
        for n in 1..20 {
            early(&mut packets, segment(n));
        }
        assert_eq!(packets.memory(), 19 * 1448 + 2 * OVERHEAD);
        packets.add(segment(0), WHOLE);
        packets.advance(1 + 1448, 1 + 20 * 1448);
        // The first has no room for the 17 that follow, which go on as a packet of their own.
        assert_eq!(packets.first_end(), Some(1 + 1448));
        assert_eq!(packets.memory(), 20 * 1448 + 3 * OVERHEAD);
    }

    #[test]
    fn duplicate_out_of_order_segment_may_coalesce_with_the_skb_before_it() {
        // tcp_data_queue_ofo: of 5, 4 and 3, in this order, 4 is at the root of the tree. What
        // begins where it ends becomes part of it, though 5 has that already.
        let mut packets = Packets::new(Pages::OfFile);
        for n in [5, 4, 3] {
            assert_eq!(early(&mut packets, segment(n)), OfoOutcome::Separate);
        }
        assert!(
            packets.would_coalesce(&segment(5), WHOLE)
                && !packets.would_coalesce(&segment(4), WHOLE)
        );
        assert_eq!(early(&mut packets, segment(5)), OfoOutcome::Coalesced);
        assert_eq!(early(&mut packets, segment(5)), OfoOutcome::Duplicate, "4 reaches over it");
        assert_eq!(packets.memory(), 4 * 1448 + 3 * OVERHEAD);
        // tcp_ofo_queue: 3 and both of 4 become one packet with 2, and 5 alone is of no use.
        packets.add(segment(2), WHOLE);
        packets.advance(1 + 3 * 1448, 1 + 6 * 1448);
        assert_eq!(packets.memory(), 4 * 1448 + OVERHEAD);
        assert_eq!(packets.first_end(), Some(1 + 6 * 1448));
        // Where 5 is at the root, it is asked first.
        let mut packets = Packets::new(Pages::OfFile);
        for n in [5, 3] {
            early(&mut packets, segment(n));
        }
        assert_eq!(early(&mut packets, segment(5)), OfoOutcome::Duplicate);
    }

    #[test]
    fn out_of_order_segment_coalesces_only_with_the_skb_before_it() {
        let mut packets = Packets::new(Pages::OfFile);
        assert_eq!(early(&mut packets, segment(3)), OfoOutcome::Separate);
        assert_eq!(early(&mut packets, segment(1)), OfoOutcome::Separate);
        assert_eq!(
            early(&mut packets, segment(2)),
            OfoOutcome::Coalesced,
            "it follows 1; 3 is not asked"
        );
        assert_eq!(early(&mut packets, segment(2)), OfoOutcome::Duplicate);
        assert_eq!(packets.memory(), 3 * 1448 + 2 * OVERHEAD);
    }

    #[test]
    fn repeated_out_of_order_fin_is_a_duplicate() {
        // tcp_data_queue_ofo: a FIN has a sequence number, and a segment of nothing else ends
        // behind it. The repeated FIN is a duplicate, which a DSACK reports.
        let mut packets = Packets::new(Pages::OfFile);
        let mut add = |range, end| packets.queue_ofo(range, end, WHOLE).0;
        assert_eq!(add(5000..5000, 5001), OfoOutcome::Separate);
        assert_eq!(add(5000..5000, 5001), OfoOutcome::Duplicate);
        // With data before it, which is dropped with the FIN.
        assert_eq!(add(4000..4900, 4900), OfoOutcome::Separate);
        assert_eq!(add(4900..5000, 5001), OfoOutcome::Coalesced);
        assert_eq!(add(4900..5000, 5001), OfoOutcome::Duplicate);
    }

    #[test]
    fn gro_packet_has_one_skb_head_per_seventeen_fragments() {
        // skb_gro_receive: segments 10 to 21 take 16 fragments, 22 two, which have no room beside
        // them. A list of two heads is not joined with what follows (skb_try_coalesce).
        let mut packets = Packets::new(Pages::OfFile);
        let all = |from: u64, to: u64| 1 + from * 1448..1 + to * 1448;
        assert_eq!(packets.add(all(10, 22), 1448), 12 * 1448 + OVERHEAD);
        assert_eq!(packets.add(all(22, 35), 1448), 13 * 1448 + 2 * OVERHEAD);
        packets.add(segment(35), WHOLE);
        assert_eq!(packets.memory(), 26 * 1448 + 4 * OVERHEAD);
        packets.read(1 + 35 * 1448);
        assert_eq!(packets.memory(), 1448 + OVERHEAD);
    }
}
