//! The memory that received data takes in Linux: segments that follow each other become one packet,
//! of so many fragments at the most (`tcp_try_coalesce`, `MAX_SKB_FRAGS`).

use crate::pages::{self, MOST_PAGES};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of memory that a packet takes beside its data: its head and two descriptions.
pub(super) const OVERHEAD: u64 = 960;

/// What becomes of a segment that something is missing before (`tcp_data_queue_ofo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    /// The segment lies in a packet of its own.
    Apart,
    /// The segment has become part of another packet.
    Merged,
    /// The segment was there before, and is dropped.
    Known,
}

#[derive(Clone, Debug)]
struct Packet {
    range: Range<u64>,
    fragments: u64,
}

impl Packet {
    fn new(range: Range<u64>) -> Self {
        // A fragment ends with its page.
        let fragments = pages::count(&range);
        Self { range, fragments }
    }

    /// Takes what follows into itself, if it has room.
    fn merge(&mut self, next: &Self) -> bool {
        let fits =
            self.range.end == next.range.start && self.fragments + next.fragments <= MOST_PAGES;
        if fits {
            self.range.end = next.range.end;
            self.fragments += next.fragments;
        }
        fits
    }
}

/// Data that waits: for the application, or for what is missing before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    readable: VecDeque<Packet>,
    /// In ascending order.
    early: Vec<Packet>,
    memory: u64,
}

impl Packets {
    /// Bytes of memory that all of it takes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// A segment in order.
    pub fn add(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.memory += range.end - range.start + OVERHEAD;
            self.append(Packet::new(range));
        }
    }

    fn append(&mut self, packet: Packet) {
        if self.readable.back_mut().is_some_and(|last| last.merge(&packet)) {
            self.memory -= OVERHEAD;
        } else {
            self.readable.push_back(packet);
        }
    }

    /// A segment that something is missing before.
    pub fn add_early(&mut self, range: Range<u64>) -> Early {
        let at = self.early.partition_point(|packet| packet.range.start < range.start);
        let touches =
            |packet: &Packet| packet.range.start < range.end && range.start < packet.range.end;
        if self.early.iter().any(touches) {
            return Early::Known;
        }
        let packet = Packet::new(range);
        self.memory += packet.range.end - packet.range.start;
        if at > 0 && self.early[at - 1].merge(&packet) {
            return Early::Merged;
        }
        self.memory += OVERHEAD;
        self.early.insert(at, packet);
        Early::Apart
    }

    /// Everything before `next` has arrived.
    pub fn advance(&mut self, next: u64) {
        while self.early.first().is_some_and(|packet| packet.range.start < next) {
            let packet = self.early.remove(0);
            self.append(packet);
        }
    }

    /// The application has read up to this offset.
    pub fn read(&mut self, consumed: u64) {
        while let Some(first) = self.readable.front_mut() {
            if first.range.end > consumed {
                break;
            }
            self.memory -= first.range.end - first.range.start + OVERHEAD;
            self.readable.pop_front();
        }
    }

    /// Where the first packet ends that waits for the application.
    pub fn first_end(&self) -> Option<u64> {
        self.readable.front().map(|packet| packet.range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The n-th segment of 1448 bytes, from 0.
    fn segment(n: u64) -> Range<u64> {
        1 + n * 1448..1 + (n + 1) * 1448
    }

    #[test]
    fn a_packet_ends_with_its_seventeenth_fragment() {
        // Segments 10 to 21 take 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1 and 1 fragments, for pages of 4096:
        // 16 together. The next takes two, and has no room; segment 9, which takes one, has.
        let mut packets = Packets::default();
        for n in 10..27 {
            packets.add_early(segment(n));
        }
        assert_eq!(packets.memory(), 17 * 1448 + 2 * OVERHEAD);
        packets.add(segment(9));
        packets.advance(1 + 27 * 1448);
        assert_eq!(packets.first_end(), Some(1 + 22 * 1448));
        assert_eq!(packets.memory(), 18 * 1448 + 2 * OVERHEAD);
        packets.read(1 + 27 * 1448);
        assert_eq!((packets.memory(), packets.first_end()), (0, None));
    }

    #[test]
    fn what_does_not_follow_is_a_packet_of_its_own() {
        let mut packets = Packets::default();
        assert_eq!(packets.add_early(segment(3)), Early::Apart);
        assert_eq!(packets.add_early(segment(1)), Early::Apart);
        assert_eq!(packets.add_early(segment(2)), Early::Merged, "it follows 1; 3 is not asked");
        assert_eq!(packets.add_early(segment(2)), Early::Known);
        assert_eq!(packets.memory(), 3 * 1448 + 2 * OVERHEAD);
    }
}
