//! Linux keeps data in pages, and a packet refers to so many of them at the most: a limit on how much a
//! sender writes into one, and on how much becomes one at either end.

use std::ops::Range;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// `MAX_SKB_FRAGS`.
pub(crate) const MOST_PAGES: u64 = 17;

/// Where the page begins that this offset lies in. Offset 1 is the first byte of the first.
pub(crate) fn start(offset: u64) -> u64 {
    offset - (offset - 1) % PAGE
}

/// Pages that these offsets lie in.
pub(crate) fn count(range: &Range<u64>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    (range.end - 2) / PAGE - (range.start - 1) / PAGE + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_with_the_first_byte_of_the_stream() {
        assert_eq!([1, 4096, 4097].map(start), [1, 1, 4097]);
        assert_eq!([1..2, 1..4097, 1..4098, 4096..4098].map(|range| count(&range)), [1, 1, 2, 2]);
        assert_eq!(count(&(4097..4097)), 0, "a FIN alone");
    }
}
