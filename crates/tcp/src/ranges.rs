//! A set of byte ranges: data received, or reported, out of order.

use std::collections::VecDeque;
use std::ops::Range;

/// Disjoint ranges that do not touch, in ascending order.
///
/// Holes are mostly filled from the front and data added at the end, where a deque does both in
/// constant time however many ranges there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
}

impl RangeSet {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().rev().map(|&(start, end)| start..end)
    }

    /// The end of the highest range.
    pub fn end(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.1)
    }

    /// The range that holds `at`.
    pub fn around(&self, at: u64) -> Option<Range<u64>> {
        let index = self.ranges.partition_point(|range| range.1 <= at);
        let &(start, end) = self.ranges.get(index)?;
        (start <= at).then_some(start..end)
    }

    /// Bytes in all of them.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.1 - range.0).sum()
    }

    /// Adds a range and reports its new parts, in ascending order.
    pub fn insert(&mut self, range: Range<u64>, mut on_new: impl FnMut(Range<u64>)) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        // Ranges that touch the new one are merged with it.
        let first = self.ranges.partition_point(|range| range.1 < start);
        let mut after = first;
        let mut reached = start;
        while let Some(&(other_start, other_end)) =
            self.ranges.get(after).filter(|range| range.0 <= end)
        {
            if reached < other_start {
                on_new(reached..other_start);
            }
            reached = reached.max(other_end);
            start = start.min(other_start);
            end = end.max(other_end);
            after += 1;
        }
        if reached < end {
            on_new(reached..end);
        }
        if after == first {
            self.ranges.insert(first, (start, end));
        } else {
            self.ranges[first] = (start, end);
            if after > first + 1 {
                self.ranges.drain(first + 1..after);
            }
        }
    }

    /// Removes everything below `at`.
    pub fn remove_below(&mut self, at: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.1 <= at {
                self.ranges.pop_front();
                continue;
            }
            first.0 = first.0.max(at);
            break;
        }
    }

    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn insert_reports_the_parts_not_held_before() {
        let mut set = RangeSet::default();
        let mut insert = |range| {
            let mut new = Vec::new();
            set.insert(range, |part| new.push((part.start, part.end)));
            new
        };
        assert_eq!(insert(10..20), [(10, 20)]);
        assert_eq!(insert(30..40), [(30, 40)]);
        assert_eq!(insert(5..35), [(5, 10), (20, 30)]);
        assert!(insert(6..39).is_empty());
    }

    proptest! {
        #[test]
        fn range_set_matches_a_set_of_single_bytes(
            inserts in prop::collection::vec((0u64..60, 0u64..12), 0..40),
            below in 0u64..60,
        ) {
            let (mut set, mut bytes) = (RangeSet::default(), BTreeSet::new());
            for (start, length) in inserts {
                let mut new = BTreeSet::new();
                set.insert(start..start + length, |part| new.extend(part));
                let expected: BTreeSet<u64> =
                    (start..start + length).filter(|byte| !bytes.contains(byte)).collect();
                prop_assert_eq!(&new, &expected);
                bytes.extend(new);
            }
            set.remove_below(below);
            bytes.retain(|&byte| byte >= below);
            let held: BTreeSet<u64> = set.descending().flatten().collect();
            prop_assert_eq!(&held, &bytes);
            for byte in 0..80 {
                prop_assert_eq!(set.around(byte).is_some(), bytes.contains(&byte));
            }
            let ranges: Vec<_> = set.descending().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[1].end < pair[0].start));
        }
    }
}
