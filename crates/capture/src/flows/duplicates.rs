//! Duplicate packets: a mirror port copies a packet where it enters and where it leaves, and a
//! capture at several interfaces has it at each of them.

use super::segment::Segment;

/// The number of packets remembered for a capture at one interface, as a power of two.
const BITS: u32 = 13;
/// The number of packets remembered for a capture at several interfaces, between which there may
/// be a long queue, as a power of two.
const BITS_SEVERAL_INTERFACES: u32 = 17;
/// The associativity: packets with the same place, of which the oldest is replaced.
const WAYS: usize = 8;
/// The largest distance between copies at one interface, in nanoseconds.
const MAX_DISTANCE: i64 = 2_000_000;

/// Digits of pi, for hashes.
const SEEDS: [u64; 6] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
];

/// Both halves of a product, mixed: a hash of two words.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Finds duplicates among recent packets.
pub(super) struct DuplicateFilter {
    sets: Vec<Set>,
    bits: u32,
}

/// Packets with the same place. Nearly all packets are new: only the hashes are looked at then,
/// which share a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Set {
    hashes: [u64; WAYS],
    seen: [Seen; WAYS],
    /// The oldest packet.
    oldest: u8,
}

/// Where and when a packet was last seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    time: i64,
    interface: u32,
}

impl Set {
    #[inline]
    fn insert(&mut self, hash: u64, seen: Seen) {
        let place = usize::from(self.oldest);
        (self.hashes[place], self.seen[place]) = (hash, seen);
        self.oldest = (self.oldest + 1) % WAYS as u8;
    }

    /// All packets, the oldest first.
    fn packets(&self) -> impl Iterator<Item = (u64, Seen)> {
        let places = (0..WAYS).map(|n| (usize::from(self.oldest) + n) % WAYS);
        places.map(|place| (self.hashes[place], self.seen[place])).filter(|&(hash, _)| hash != 0)
    }
}

impl Default for DuplicateFilter {
    fn default() -> Self {
        Self::of(BITS)
    }
}

impl DuplicateFilter {
    fn of(bits: u32) -> Self {
        Self { sets: vec![Set::default(); (1 << bits) / WAYS], bits }
    }

    /// Whether this packet was captured before; remembers the interface of its first copy. A packet
    /// without an IP identification and without data is a copy only at another interface: at the
    /// same one it may be a repeated ACK.
    #[inline]
    pub fn is_duplicate(&mut self, segment: &Segment) -> bool {
        let &Segment { time, interface, ref tcp, .. } = segment;
        let id = segment.id.unwrap_or(0);
        let is_numbered = id != 0 || tcp.payload > 0;
        if !is_numbered && self.bits == BITS {
            return false;
        }
        let (clock, echo) = tcp.options.timestamps.unwrap_or_default();
        let words = [
            (segment.from.0 ^ segment.from.0 >> 64) as u64,
            (segment.to.0 ^ segment.to.0 >> 64) as u64,
            u64::from(tcp.from) << 48 | u64::from(tcp.to) << 32 | u64::from(tcp.seq),
            u64::from(tcp.ack) << 32 | u64::from(tcp.payload) << 16 | u64::from(tcp.window),
            u64::from(clock) << 32 | u64::from(echo),
            u64::from(id) << 16 | u64::from(tcp.flags.0),
        ];
        let seeded: [u64; 6] = std::array::from_fn(|n| words[n] ^ SEEDS[n]);
        let pair = |n: usize| folded(seeded[n], seeded[n + 1]);
        // 0 is no packet.
        let hash = folded(pair(0) ^ pair(2) ^ pair(4), SEEDS[0]) | 1;
        let place = self.place(hash);
        let set = &mut self.sets[place];
        let Some(there) = set.hashes.iter().position(|&one| one == hash) else {
            set.insert(hash, Seen { time, interface });
            return false;
        };
        let first = &mut set.seen[there];
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
        for (hash, seen) in self.sets.iter().flat_map(Set::packets) {
            let place = large.place(hash);
            large.sets[place].insert(hash, seen);
        }
        *self = large;
    }
}
