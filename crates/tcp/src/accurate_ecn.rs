//! Accurate feedback of marks (RFC 9768): the receiver counts marked packets, and every segment
//! carries the last three bits of its count in the flags AE, CWR and ECE.
//!
//! The option with byte counters, which is not required (§3.2.3), is left out: where an ACK covers
//! more than seven segments, the counter is assumed to have wrapped as often as it can have
//! (§3.2.2.5.2). Tests for paths that mangle flags (§3.2.2.3, §3.2.2.4) are left out: no path here
//! does.

use crate::segment::{Flags, Segment};

/// The initial value of the counters, by which a path that clears the flags shows (§3.2.2).
const FIRST: u8 = 5;
/// The bits of the counter that a segment carries.
const BITS: u8 = 0b111;
/// The code of a CE-marked SYN in the SYN-ACK, and of a marked SYN-ACK in the first ACK (§3.1.1,
/// §3.2.2.1).
const CAME_MARKED: u8 = 0b110;
/// Marks after which an ACK leaves at once: while data waits for an ACK, and otherwise
/// (§3.2.2.5.1).
const UNREPORTED_WITH_DATA: u8 = 2;
const UNREPORTED_ALONE: u8 = 3;

/// The flags that carry these three bits.
fn flags_of(bits: u8) -> Flags {
    let one = |bit: u8, flag: Flags| if bits & bit == 0 { Flags::NONE } else { flag };
    one(4, Flags::AE).with(one(2, Flags::CWR)).with(one(1, Flags::ECE))
}

/// The three bits that the flags AE, CWR and ECE carry.
pub(crate) const fn bits_of(flags: Flags) -> u8 {
    (flags.has(Flags::AE) as u8) << 2
        | (flags.has(Flags::CWR) as u8) << 1
        | flags.has(Flags::ECE) as u8
}

/// The code by which the handshake reports how the peer's SYN arrived (§3.1.1, table 2).
const fn how_arrived(flags: Flags) -> u8 {
    if flags.has(Flags::CE) {
        CAME_MARKED
    } else if flags.has(Flags::ECT1) {
        0b011
    } else if flags.has(Flags::ECT) {
        0b100
    } else {
        0b010
    }
}

/// Both ends' counters, as far as one end knows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccurateEcn {
    /// CE-marked packets received (`r.cep`), modulo 8.
    received: u8,
    /// Sent packets that the peer reported as marked (`s.cep`), modulo 8.
    known: u8,
    /// CE-marked packets received since anything was last sent.
    unreported: u8,
    /// Whether the last packet was marked, and the one before it.
    last: [bool; 2],
    /// The code of the ECN field of the peer's SYN or SYN-ACK, until it is reported.
    pending_arrival: Option<u8>,
}

impl AccurateEcn {
    /// The peer's SYN or SYN-ACK has arrived.
    pub fn new(segment: &Segment) -> Self {
        let arrival = how_arrived(segment.flags);
        // §3.2.2.2: a mark on the SYN is reported by the SYN-ACK alone, and not counted.
        let counts = segment.flags.has(Flags::ACK) && arrival == CAME_MARKED;
        Self {
            received: FIRST + u8::from(counts),
            known: FIRST,
            unreported: 0,
            last: [false; 2],
            pending_arrival: Some(arrival),
        }
    }

    /// The flags of our SYN-ACK.
    pub fn syn_ack_flags(self) -> Flags {
        flags_of(self.pending_arrival.unwrap_or(FIRST))
    }

    /// The flags of a segment after the handshake.
    pub fn segment_flags(self) -> Flags {
        flags_of(self.received)
    }

    /// The flags of an ACK without data. The client's first one reports the ECN field of the
    /// SYN-ACK (§3.2.2.1).
    pub fn ack_flags(self) -> Flags {
        flags_of(self.pending_arrival.unwrap_or(self.received))
    }

    /// A segment left.
    pub fn on_segment_sent(&mut self) {
        (self.unreported, self.pending_arrival) = (0, None);
    }

    /// A packet arrived after the handshake. Returns whether its marks are to be reported at once
    /// (§3.2.2.5.1).
    pub fn on_packet(&mut self, segment: &Segment) -> bool {
        let is_marked = segment.flags.has(Flags::CE);
        // GRO merges only packets with the same mark.
        let marked = if is_marked { segment.segments() as u8 } else { 0 };
        self.received = (self.received + marked) & BITS;
        self.unreported = self.unreported.saturating_add(marked);
        self.last = [is_marked, self.last[0]];
        segment.payload == 0 && self.unreported >= UNREPORTED_ALONE
    }

    /// Whether the marks of a data segment call for an immediate ACK.
    pub fn must_report_now(self) -> bool {
        self.last == [true, false] || self.unreported >= UNREPORTED_WITH_DATA
    }

    /// The client's first ACK. Without data and SACK, it reports the ECN field of our SYN-ACK.
    pub fn on_first_ack(&mut self, segment: &Segment) {
        self.pending_arrival = None;
        let is_alone = segment.payload == 0 && segment.sack().is_empty();
        if is_alone && bits_of(segment.flags) == CAME_MARKED {
            self.known = FIRST + 1;
        }
    }

    /// Of the segments that an ACK with these bits delivers, how many were marked (§3.2.2.5.2,
    /// appendix A.2.1).
    pub fn newly_marked(&mut self, bits: u8, delivered: u64) -> u64 {
        let least = bits.wrapping_sub(self.known) & BITS;
        self.known = bits;
        let least = u64::from(least);
        if delivered <= u64::from(BITS) {
            return least;
        }
        delivered - ((delivered - least) & u64::from(BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::SeqNumber;

    fn counts() -> AccurateEcn {
        let syn = Segment::new(Flags::SYN, SeqNumber(0), SeqNumber(0));
        AccurateEcn::new(&syn)
    }

    #[test]
    fn ace_counter_starts_at_five_and_wraps() {
        let mut counts = counts();
        let bits = [5, 6, 1, 1, 0];
        let marked: Vec<u64> = bits.iter().map(|&bits| counts.newly_marked(bits, 7)).collect();
        // 6 - 5, then 9 - 6, nothing, and 16 - 9.
        assert_eq!(marked, [0, 1, 3, 0, 7]);
    }

    #[test]
    fn ack_of_many_segments_may_hide_ace_counter_wraps() {
        // Appendix A.2.1: of 12 delivered, at least 2 were marked: 2 or 10, and so 10. Of 9 with
        // none it may be 8.
        assert_eq!(counts().newly_marked(7, 12), 10);
        assert_eq!(counts().newly_marked(5, 9), 8);
        assert_eq!(counts().newly_marked(5, 7), 0);
        assert_eq!(counts().newly_marked(4, 8), 7);
    }
}
