//! Data in flight: sent and not yet acknowledged, in order and without gaps.

use std::collections::VecDeque;

/// The limit of pieces examined for one packet; no sender's segment covers more.
const MAX_PIECES: usize = 1024;
/// Flights with more pieces are not split further.
const MAX_PIECES_TO_SPLIT: usize = 1 << 16;

/// A piece of the flight, usually a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The first byte, and the byte behind the last.
    pub start: u64,
    pub end: u64,
    /// When the piece was first sent, and last.
    pub first: i64,
    pub last: i64,
    /// The timestamp of its first retransmission.
    pub retransmission_timestamp: u32,
    /// The number of transmissions; 0: none was seen.
    pub times: u16,
    pub is_sacked: bool,
}

/// The data in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    pieces: VecDeque<Sent>,
}

impl Flight {
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Frees memory that holds nothing.
    pub fn release(&mut self) {
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }

    /// The first unacknowledged piece.
    pub fn head(&self) -> Option<&Sent> {
        self.pieces.front()
    }

    /// Appends a piece. If there are `most` pieces, it is merged into the last.
    pub fn push(&mut self, piece: Sent, most: usize) {
        let is_full = self.pieces.len() >= most;
        match self.pieces.back_mut() {
            Some(last) if is_full => {
                last.end = piece.end;
                last.times = last.times.max(piece.times);
            }
            _ => self.pieces.push_back(piece),
        }
    }

    /// Removes the first piece if it ends at `to` or before.
    pub fn take_until(&mut self, to: u64) -> Option<Sent> {
        let first = self.pieces.front_mut()?;
        if first.end <= to {
            return self.pieces.pop_front();
        }
        if first.start < to {
            let acked = Sent { end: to, ..*first };
            first.start = to;
            return Some(acked);
        }
        None
    }

    /// Visits the pieces of a range, splitting pieces at its ends.
    pub fn within(&mut self, from: u64, to: u64, mut look: impl FnMut(&mut Sent)) {
        let mut place = self.pieces.partition_point(|piece| piece.end <= from);
        let may_split = self.pieces.len() < MAX_PIECES_TO_SPLIT;
        if may_split && self.split(place, from) {
            place += 1;
        }
        let end = self.pieces.len().min(place + MAX_PIECES);
        while place < end && self.pieces[place].start < to {
            if may_split {
                self.split(place, to);
            }
            look(&mut self.pieces[place]);
            place += 1;
        }
    }

    /// Splits a piece, if `at` is inside it.
    fn split(&mut self, place: usize, at: u64) -> bool {
        let Some(piece) = self.pieces.get_mut(place) else { return false };
        if piece.start >= at || piece.end <= at {
            return false;
        }
        let rest = Sent { start: at, ..*piece };
        piece.end = at;
        self.pieces.insert(place + 1, rest);
        true
    }
}

/// Disjoint ranges in order: data acknowledged out of order.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

/// More ranges than any receiver reports in a flight.
const MAX_RANGES: usize = 4096;

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Frees memory that holds nothing.
    pub fn release(&mut self) {
        if self.ranges.is_empty() {
            self.ranges = Vec::new();
        }
    }

    /// Removes everything before `to`.
    pub fn trim(&mut self, to: u64) {
        if self.ranges.first().is_some_and(|range| range.0 < to) {
            let gone = self.ranges.partition_point(|range| range.1 <= to);
            self.ranges.drain(..gone);
            if let Some(first) = self.ranges.first_mut() {
                first.0 = first.0.max(to);
            }
        }
    }

    /// Adds a range; calls `new` for the parts that were not there.
    pub fn add(&mut self, (from, to): (u64, u64), mut new: impl FnMut(u64, u64)) {
        let first = self.ranges.partition_point(|range| range.1 < from);
        let mut last = first;
        let (mut at, mut low, mut high) = (from, from, to);
        while let Some(&(start, end)) = self.ranges.get(last).filter(|range| range.0 <= to) {
            if at < start {
                new(at, start.min(to));
            }
            at = at.max(end);
            (low, high) = (low.min(start), high.max(end));
            last += 1;
        }
        if at < to {
            new(at, to);
        }
        if last == first + 1 {
            self.ranges[first] = (low, high);
        } else if last > first || self.ranges.len() < MAX_RANGES {
            self.ranges.splice(first..last, [(low, high)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(start: u64, end: u64) -> Sent {
        Sent {
            start,
            end,
            first: 0,
            last: 0,
            retransmission_timestamp: 0,
            times: 1,
            is_sacked: false,
        }
    }

    #[test]
    fn adding_a_range_merges_overlaps_and_reports_new_parts() {
        let mut ranges = Ranges::default();
        let mut add = |from, to| {
            let mut new = Vec::new();
            ranges.add((from, to), |from, to| new.push((from, to)));
            new
        };
        assert_eq!(add(10, 20), [(10, 20)]);
        assert_eq!(add(30, 40), [(30, 40)]);
        assert_eq!(add(15, 18), []);
        assert_eq!(add(5, 50), [(5, 10), (20, 30), (40, 50)]);
        ranges.trim(8);
        assert_eq!(ranges.ranges, [(8, 50)]);
        ranges.trim(50);
        assert!(ranges.is_empty());
    }

    #[test]
    fn within_splits_pieces_at_the_ends_of_the_range() {
        let mut flight = Flight::default();
        flight.push(sent(0, 100), 10);
        flight.push(sent(100, 200), 10);
        let mut seen = Vec::new();
        flight.within(50, 120, |piece| seen.push((piece.start, piece.end)));
        assert_eq!(seen, [(50, 100), (100, 120)]);
        assert_eq!(flight.len(), 4);
        assert_eq!(flight.take_until(60).map(|piece| piece.end), Some(50));
        assert_eq!(flight.take_until(60).map(|piece| (piece.start, piece.end)), Some((50, 60)));
        assert!(flight.take_until(60).is_none());
    }

    #[test]
    fn a_full_flight_merges_new_pieces_into_the_last() {
        let mut flight = Flight::default();
        (0..10).for_each(|n| flight.push(sent(n, n + 1), 3));
        assert_eq!(flight.len(), 3);
        let all: Vec<_> = std::iter::from_fn(|| flight.take_until(10)).collect();
        assert_eq!(all.last().map(|piece| piece.end), Some(10));
    }
}
