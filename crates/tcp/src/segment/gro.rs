//! Generic receive offload (GRO): consecutive segments of a flow that are received together are
//! merged (`tcp_gro_receive`, `inet_gro_receive`, `skb_gro_receive`).
//!
//! The kernel also compares IP identification numbers, which are consecutive unless a packet in
//! between was lost. Segments have no such number here.

use super::{Flags, Segment};

/// A merged packet stays below this size (`GRO_LEGACY_MAX_SIZE`).
const TOO_LONG: u32 = 65_536;

/// Flags that end a merged packet: its last segment has them.
const ENDING: Flags = Flags::FIN.with(Flags::PUSH);

/// What became of a segment that follows a held one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The segments are not merged, and the held one is received first.
    Apart,
    /// The segments are merged, and the packet is held for more.
    Open,
    /// The segments are merged, and the packet is received.
    Complete,
}

impl Segment {
    /// Whether the segment may be held, to merge following segments with it.
    pub fn may_be_held(&self) -> bool {
        let ends = [Flags::FIN, Flags::PUSH, Flags::RST, Flags::SYN];
        self.payload > 0 && !ends.iter().any(|&flag| self.flags.has(flag))
    }

    /// Appends a segment to this held one, if they can be merged.
    pub fn merge(&mut self, next: &Self) -> Merged {
        let size = self.segment_size();
        let differing = (self.flags.0 ^ next.flags.0) & !ENDING.with(Flags::CWR).0;
        let follows = next.seq.0 == self.seq.0.wrapping_add(self.payload.into());
        let is_one = differing == 0
            && follows
            && !next.flags.has(Flags::CWR)
            && (1..=size).contains(&next.payload)
            && (self.ack, self.window) == (next.ack, next.window)
            && (self.timestamps, self.sack()) == (next.timestamps, next.sack())
            && self.wire_bytes() + u32::from(next.payload) < TOO_LONG;
        if !is_one {
            return Merged::Apart;
        }
        self.mss = size;
        self.payload += next.payload;
        let ending = Flags(next.flags.0 & ENDING.0);
        self.flags = self.flags.with(ending);
        if next.payload < size || ending != Flags::NONE { Merged::Complete } else { Merged::Open }
    }

    /// Payload bytes of each merged segment; the last may have fewer.
    #[inline]
    pub fn segment_size(&self) -> u16 {
        // In a SYN this field is the MSS option. A SYN is never merged.
        if self.mss == 0 || self.flags.has(Flags::SYN) { self.payload } else { self.mss }
    }

    /// How many segments were merged into this one.
    #[inline]
    pub fn segments(&self) -> u64 {
        if self.mss == 0 {
            return 1;
        }
        u64::from(self.payload.div_ceil(self.segment_size().max(1))).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{SynOptions, Timestamps};
    use crate::seq::SeqNumber;

    fn segment(seq: u32, payload: u16) -> Segment {
        let timestamps = Timestamps { value: 7, echo: 3 };
        let bare = Segment::new(Flags::ACK, SeqNumber(seq), SeqNumber(1));
        bare.with_timestamps(timestamps).with_payload(payload).with_window(500)
    }

    fn with(segment: Segment, flag: Flags) -> Segment {
        Segment { flags: segment.flags.with(flag), ..segment }
    }

    #[test]
    fn full_segments_become_one_of_64_kib_at_the_most() {
        // IP and TCP take 52 bytes: (65,535 - 52) / 1448 is 45.
        let mut one = segment(1, 1448);
        for n in 1..45 {
            assert_eq!(one.merge(&segment(1 + n * 1448, 1448)), Merged::Open, "{n}");
        }
        assert_eq!((one.payload, one.segments(), one.segment_size()), (45 * 1448, 45, 1448));
        assert_eq!(one.merge(&segment(1 + 45 * 1448, 1448)), Merged::Apart);
        assert_eq!(one.segments(), 45);
    }

    #[test]
    fn gro_ends_a_packet_with_a_short_or_pushed_segment() {
        for (last, size) in [
            (segment(1449, 100), 1548),
            (with(segment(1449, 1448), Flags::PUSH), 2896),
            (with(segment(1449, 1448), Flags::FIN), 2896),
        ] {
            let mut one = segment(1, 1448);
            assert_eq!(one.merge(&last), Merged::Complete);
            assert_eq!((one.payload, one.segments(), one.segment_size()), (size, 2, 1448));
            let ends = one.flags.has(Flags::PUSH) || one.flags.has(Flags::FIN);
            assert_eq!(ends, last.payload == 1448);
        }
        // tcp_gro_receive: `(len - 1) >= mss`, where the first was short.
        assert_eq!(segment(1, 100).merge(&segment(101, 101)), Merged::Apart);
    }

    #[test]
    fn gro_does_not_merge_segments_with_different_headers() {
        let next = segment(1449, 1448);
        let others = [
            segment(1450, 1448),
            segment(1449, 0),
            with(next, Flags::CE),
            with(next, Flags::ECE),
            with(next, Flags::CWR),
            next.with_window(501),
            next.with_sack([(SeqNumber(5), SeqNumber(6))]),
            Segment { ack: SeqNumber(2), ..next },
            Segment { timestamps: Timestamps { value: 8, echo: 3 }, ..next },
        ];
        for other in others {
            assert_eq!(segment(1, 1448).merge(&other), Merged::Apart, "{other:?}");
        }
        // CWR is set on one segment alone (RFC 3168 §6.1.2), be it the first of several.
        let mut first = with(segment(1, 1448), Flags::CWR);
        assert_eq!(first.merge(&next), Merged::Open);
        assert!(first.flags.has(Flags::CWR));
    }

    #[test]
    fn gro_holds_only_data_without_flush() {
        assert!(segment(1, 1).may_be_held() && with(segment(1, 1), Flags::CWR).may_be_held());
        assert!(!segment(1, 0).may_be_held());
        for flag in [Flags::SYN, Flags::FIN, Flags::RST, Flags::PUSH] {
            assert!(!with(segment(1, 1), flag).may_be_held());
        }
    }

    #[test]
    fn a_syn_is_one_segment() {
        let options = SynOptions { mss: 536, window_scale: None, sack_permitted: true };
        let syn = with(segment(1, 0), Flags::SYN).with_syn_options(options).with_payload(1000);
        assert_eq!((syn.segments(), syn.segment_size()), (1, 1000));
    }
}
