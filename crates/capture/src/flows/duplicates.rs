//! Duplicate packets: a mirror port copies a packet where it enters and where it leaves, and a
//! capture at several interfaces has it at each of them.

use crate::decode::{Ip, Tcp};

/// The number of packets remembered for a capture at one interface, as a power of two.
const BITS: u32 = 13;
/// The number of packets remembered for a capture at several interfaces, between which there may
/// be a long queue, as a power of two.
const BITS_SEVERAL_INTERFACES: u32 = 17;
/// The associativity: packets with the same place, of which the oldest is replaced.
const WAYS: usize = 8;
/// The largest distance between copies at one interface, in nanoseconds.
const MAX_DISTANCE: i64 = 2_000_000;

/// Finds duplicates among recent packets.
pub(super) struct DuplicateFilter {
    seen: Vec<[Packet; WAYS]>,
    bits: u32,
}

#[derive(Clone, Copy, Default)]
struct Packet {
    hash: u64,
    time: i64,
    interface: u32,
}

impl Default for DuplicateFilter {
    fn default() -> Self {
        Self::of(BITS)
    }
}

impl DuplicateFilter {
    fn of(bits: u32) -> Self {
        Self { seen: vec![[Packet::default(); WAYS]; (1 << bits) / WAYS], bits }
    }

    /// Whether this packet was captured before; remembers the interface of its first copy. A packet
    /// without an IP identification and without data is a copy only at another interface: at the
    /// same one it may be a repeated ACK.
    #[inline]
    pub fn is_duplicate(&mut self, time: i64, interface: u32, ip: &Ip<'_>, tcp: &Tcp) -> bool {
        let id = ip.id.unwrap_or(0);
        let is_numbered = id != 0 || tcp.payload > 0;
        if !is_numbered && self.bits == BITS {
            return false;
        }
        let (clock, echo) = tcp.options.timestamps.unwrap_or_default();
        let mut hash = 0_u64;
        let words = [
            (ip.from.0 ^ ip.from.0 >> 64) as u64,
            (ip.to.0 ^ ip.to.0 >> 64) as u64,
            u64::from(tcp.from) << 48 | u64::from(tcp.to) << 32 | u64::from(tcp.seq),
            u64::from(tcp.ack) << 32 | u64::from(tcp.payload) << 16 | u64::from(tcp.window),
            u64::from(clock) << 32 | u64::from(echo),
            u64::from(id) << 16 | u64::from(tcp.flags.0),
        ];
        for word in words {
            hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        // Spreads similar packets over all places.
        hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let packet = Packet { hash: hash | 1, time, interface };
        let set = self.place(packet.hash);
        let set = &mut self.seen[set];
        let Some(there) = set.iter().position(|one| one.hash == packet.hash) else {
            set.rotate_right(1);
            set[0] = packet;
            return false;
        };
        let first = &mut set[there];
        if first.interface != interface {
            return true;
        }
        let before = std::mem::replace(&mut first.time, time);
        is_numbered && (time - before).abs() <= MAX_DISTANCE
    }

    fn place(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize / WAYS
    }

    /// The capture has several interfaces.
    pub fn expect_several_interfaces(&mut self) {
        if self.bits == BITS_SEVERAL_INTERFACES {
            return;
        }
        let mut large = Self::of(BITS_SEVERAL_INTERFACES);
        for set in &self.seen {
            for packet in set.iter().rev().filter(|packet| packet.hash != 0) {
                let place = large.place(packet.hash);
                large.seen[place].rotate_right(1);
                large.seen[place][0] = *packet;
            }
        }
        *self = large;
    }
}
