//! Sequence numbers: 32 bits that wrap on the wire, offsets that do not inside.
//!
//! Everything inside an endpoint counts in offsets of 64 bits from the initial sequence number: the
//! SYN is at 0, the first byte of data at 1. Only segments carry wrapped numbers, and only this
//! file converts, so no other can get the arithmetic wrong.

/// A sequence number as it stands in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeqNumber(pub u32);

/// The initial sequence number of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin(pub u32);

impl Origin {
    /// The number of the byte at `offset`.
    #[inline]
    pub fn number(self, offset: u64) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(offset as u32))
    }

    /// The offset of `number`: the one within 2^31 of `near`. None if that lies before the start.
    #[inline]
    pub fn offset(self, number: SeqNumber, near: u64) -> Option<u64> {
        let distance = number.0.wrapping_sub(self.number(near).0).cast_signed();
        near.checked_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_wrapping() {
        let origin = Origin(u32::MAX - 10);
        for offset in [0, 5, 11, 4_294_967_296, 10_000_000_000] {
            let number = origin.number(offset);
            for near in [offset.saturating_sub(1 << 30), offset, offset + (1 << 30)] {
                assert_eq!(origin.offset(number, near), Some(offset));
            }
        }
    }

    #[test]
    fn sequence_number_before_the_origin_has_no_offset() {
        let origin = Origin(100);
        assert_eq!(origin.offset(SeqNumber(99), 0), None);
        assert_eq!(origin.offset(SeqNumber(99), 1), None);
    }
}
