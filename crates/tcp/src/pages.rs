//! Linux keeps data in pages, and a packet refers to so many of them at the most: a limit on how
//! much a sender writes into one, and on how much becomes one at either end.

use std::ops::Range;

/// Where the pages end that data lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// The pages of a file, which the kernel refers to (`skb_splice_from_iter`).
    OfFile,
    /// The pages into which the kernel copies a program's writes: eight at a time
    /// (`SKB_FRAG_PAGE_ORDER`), which are one as far as packets are concerned.
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

    /// Where the page begins that this offset lies in. Offset 1 is the first byte of the first.
    pub fn start(self, offset: u64) -> u64 {
        offset - (offset - 1) % self.bytes()
    }

    /// Pages that these offsets lie in.
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
