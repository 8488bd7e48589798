//! Linux's list of the last four out-of-order ranges, the latest first (`tcp_sack_new_ofo_skb`). A
//! range that was dropped from the list is not merged when a new one touches it. `receiver`
//! (`with_sack`) builds the SACK blocks of an ACK.

use std::ops::Range;

/// Length of the list (`TCP_NUM_SACKS`).
const MOST: usize = 4;
/// A change of the third block or a later one leaves at once (`TCP_SACK_BLOCKS_EXPECTED`).
const COMPRESSIBLE: usize = 2;

/// The ranges, the most recent first.
#[derive(Clone, Debug, Default)]
pub(super) struct SackBlocks {
    recent: Vec<Range<u64>>,
}

fn touch(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn join(one: &mut Range<u64>, other: &Range<u64>) {
    *one = one.start.min(other.start)..one.end.max(other.end);
}

impl SackBlocks {
    /// Whether a waiting compressed ACK must leave before this range is added.
    pub fn flushes_compressed_ack(&self, range: &Range<u64>) -> bool {
        let place = self.recent.iter().position(|block| touch(block, range));
        place.unwrap_or(self.recent.len()) >= COMPRESSIBLE
    }

    /// A segment extends a block before that becomes the most recent one. An ACK in between reports
    /// both (`tcp_sack_extend`).
    pub fn extend(&mut self, range: &Range<u64>) {
        if let Some(block) = self.recent.iter_mut().find(|block| touch(block, range)) {
            join(block, range);
        }
    }

    /// A segment arrived out of order.
    pub fn add(&mut self, range: Range<u64>) {
        let Some(place) = self.recent.iter().position(|block| touch(block, &range)) else {
            self.recent.truncate(MOST - 1);
            self.recent.insert(0, range);
            return;
        };
        join(&mut self.recent[place], &range);
        self.recent[..=place].rotate_right(1);
        let mut first = self.recent[0].clone();
        let mut at = 1;
        while at < self.recent.len() {
            if touch(&first, &self.recent[at]) {
                join(&mut first, &self.recent.remove(at));
            } else {
                at += 1;
            }
        }
        self.recent[0] = first;
    }

    /// Everything below `next` has been received.
    pub fn advance(&mut self, next: u64) {
        self.recent.retain(|block| block.start > next);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.recent.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut blocks = SackBlocks::default();
        for range in ranges {
            blocks.add(range.clone());
        }
        blocks.recent
    }

    #[test]
    fn latest_sack_block_is_first_and_only_four_are_kept() {
        let five = [10..11, 20..21, 30..31, 40..41, 50..51];
        assert_eq!(blocks(&five), [50..51, 40..41, 30..31, 20..21]);
    }

    #[test]
    fn range_between_two_sack_blocks_merges_them() {
        assert_eq!(blocks(&[10..20, 30..40, 50..51, 20..30]), [10..40, 50..51]);
    }

    #[test]
    fn sack_block_does_not_merge_with_an_evicted_neighbour() {
        let six = [10..20, 30..31, 40..41, 50..51, 60..61, 20..30];
        // 10..20 was forgotten with the fifth; 20..30 meets 30..31 only.
        assert_eq!(blocks(&six), [20..31, 60..61, 50..51, 40..41]);
    }

    #[test]
    fn third_sack_block_flushes_compressed_ack() {
        let mut blocks = SackBlocks::default();
        for (range, is_news) in [(10..20, false), (30..40, false), (50..60, true), (40..45, false)]
        {
            assert_eq!(blocks.flushes_compressed_ack(&range), is_news, "{range:?}");
            blocks.add(range);
        }
        assert!(blocks.flushes_compressed_ack(&(5..10)), "it grows the third");
        blocks.extend(&(5..10));
        assert_eq!(blocks.recent, [30..45, 50..60, 5..20], "and stays the third");
        blocks.add(5..10);
        assert_eq!(blocks.recent, [5..20, 30..45, 50..60]);
    }
}
