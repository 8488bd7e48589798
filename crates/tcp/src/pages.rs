//! Memory pages: Linux keeps data in pages, and a packet refers to a limited number of them. That
//! limits packets in the send buffer, and coalescing at both ends.

use std::ops::Range;

/// The pages in which data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Pages of a file, to which the kernel refers (`skb_splice_from_iter`).
    OfFile,
    /// Pages into which the kernel copies a program's writes: blocks of eight
    /// (`SKB_FRAG_PAGE_ORDER`), which count as one page of a packet.
    OfCopies,
}

/// `MAX_SKB_FRAGS`.
pub(crate) const MOST_PAGES: u64 = 17;

impl Pages {
    /// Bytes of a page.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::OfFile => 4096,
            Self::OfCopies => 32_768,
        }
    }

    /// The start of the page that contains this offset. Offset 1 is the first byte of the first
    /// page.
    pub fn start(self, offset: u64) -> u64 {
        offset - (offset - 1) % self.bytes()
    }

    /// The number of pages that these offsets touch.
    pub fn count(self, range: &Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        (range.end - 2) / self.bytes() - (range.start - 1) / self.bytes() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_with_the_first_byte_of_the_stream() {
        let pages = Pages::OfFile;
        assert_eq!([1, 4096, 4097].map(|offset| pages.start(offset)), [1, 1, 4097]);
        let ranges = [1..2, 1..4097, 1..4098, 4096..4098];
        assert_eq!(ranges.map(|range| pages.count(&range)), [1, 1, 2, 2]);
        assert_eq!(pages.count(&(4097..4097)), 0, "a FIN alone");
        assert_eq!([4096..4098, 32_768..32_770].map(|it| Pages::OfCopies.count(&it)), [1, 2]);
    }
}
