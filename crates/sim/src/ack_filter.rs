//! Which ACKs CAKE's filter may drop in favour of a newer one of the same flow
//! (`cake_tcph_may_drop`, `cake_tcph_sack_compare`).

use std::cmp::Ordering;
use tcplab_tcp::{Flags, Segment, SeqNumber};

/// How a segment echoes congestion marks.
pub(crate) fn echo(segment: &Segment) -> u8 {
    let has = |flag| u8::from(segment.flags.has(flag));
    has(Flags::ECE) | has(Flags::CWR) << 1
}

/// Whether an ACK without data is made redundant by a newer segment.
pub(crate) fn is_superseded(older: &Segment, newer: &Segment) -> bool {
    let others = [Flags::SYN, Flags::FIN, Flags::RST, Flags::PUSH, Flags::AE];
    if !older.flags.has(Flags::ACK)
        || others.iter().any(|flag| older.flags.has(*flag))
        || older.payload > 0
        || is_after(older.ack, newer.ack)
    {
        return false;
    }
    let newest = newer.timestamps().unwrap_or_default();
    let is_later = older.timestamps().is_some_and(|older| {
        is_after(SeqNumber(older.value), SeqNumber(newest.value))
            || is_after(SeqNumber(older.echo), SeqNumber(newest.echo))
    });
    // More in SACK blocks, or the same blocks and more acknowledged.
    !is_later
        && match said_more(older, newer) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => older.ack != newer.ack,
            Some(Ordering::Less) | None => false,
        }
}

/// Whether the SACK blocks of a newer segment cover more bytes than those of an older one, provided
/// that they cover all of these. A duplicate reported by the older segment is new information.
fn said_more(older: &Segment, newer: &Segment) -> Option<Ordering> {
    let bytes = |segment: &Segment| -> u32 {
        segment.sack().iter().map(|(start, end)| end.0.wrapping_sub(start.0)).sum()
    };
    if older.sack().is_empty() {
        return Some(newer.sack().len().cmp(&0));
    }
    let is_covered = |&(start, end): &(SeqNumber, SeqNumber)| {
        !is_after(older.ack, start)
            && newer.sack().iter().any(|&(from, to)| !is_after(from, start) && !is_after(end, to))
    };
    let all = older.sack().iter().all(is_covered);
    all.then(|| if bytes(newer) > bytes(older) { Ordering::Greater } else { Ordering::Equal })
}

/// Whether a sequence number follows another one, modulo 2^32.
fn is_after(number: SeqNumber, other: SeqNumber) -> bool {
    (number.0.wrapping_sub(other.0).cast_signed()) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_tcp::Timestamps;

    fn ack(number: u32) -> Segment {
        Segment::new(Flags::ACK, SeqNumber(1), SeqNumber(number))
    }

    fn sack(number: u32, blocks: &[(u32, u32)]) -> Segment {
        ack(number).with_sack(blocks.iter().map(|&(from, to)| (SeqNumber(from), SeqNumber(to))))
    }

    #[test]
    fn an_ack_is_superseded_by_one_with_more_information() {
        // Høiland-Jørgensen et al. 2018, section 3.4: only pure ACKs, and no information is lost.
        let newer = sack(3000, &[(5000, 7000)]);
        for older in
            [ack(2000), ack(3000), sack(3000, &[(5000, 6000)]), sack(2000, &[(5000, 7000)])]
        {
            assert!(is_superseded(&older, &newer), "{older:?}");
        }
        let echo =
            |segment: Segment, value, echo| segment.with_timestamps(Timestamps { value, echo });
        assert!(
            is_superseded(&echo(ack(u32::MAX), 5, 7), &echo(ack(1000), 5, 7)),
            "wrapped around"
        );
        let mut fin = ack(2000);
        fin.flags = Flags::ACK.with(Flags::FIN);
        for older in [
            ack(4000),
            newer,
            sack(3000, &[(8000, 9000)]),
            sack(3000, &[(5000, 8000)]),
            // A duplicate (RFC 2883): the block begins below the ACK.
            sack(3000, &[(1000, 2000), (5000, 6000)]),
            ack(2000).with_payload(1),
            fin,
        ] {
            assert!(!is_superseded(&older, &newer), "{older:?}");
        }
        assert!(!is_superseded(&ack(3000), &ack(3000)), "it may be a duplicate ACK that counts");
        assert!(!is_superseded(&echo(ack(2000), 6, 7), &echo(ack(3000), 5, 7)), "a later clock");
    }
}
