//! What happens next: a priority queue of times, in which ties go to the subject with the lower number.
//!
//! Ties by number, not by order of entry: the order of events at one instant then follows from the
//! network alone, and the `linux` backend, which has other data structures, can follow the same rule
//! (`crates/linux/kernel/net/lane.c`).
//!
//! A heap with four children a node: half as deep as a binary one, and the children share a cache
//! line. An entry is one integer (time, subject), so one comparison orders two.
//! What is done leaves its place open for what it causes, which nearly always comes at once: taking
//! one entry out and putting another in is then one walk down the heap.

use tcplab_units::Time;

/// Later than any entry.
const NOTHING: u128 = u128::MAX;

/// A priority queue of (time, subject).
#[derive(Clone, Debug, Default)]
pub struct Agenda {
    /// The entries, and behind them `NOTHING` until the children of every entry are four.
    heap: Vec<u128>,
    length: usize,
    /// The first entry is done with, and its place free.
    is_open: bool,
}

impl Agenda {
    /// The earliest entry.
    #[inline]
    pub fn peek(&mut self) -> Option<(Time, u32)> {
        if self.is_open {
            self.close();
        }
        let &first = self.heap.first().filter(|first| **first != NOTHING)?;
        Some((Time::from_picos((first >> 64) as u64), first as u32))
    }

    /// When the earliest entry is due; `Time::NEVER` if there is none. Keeps an open place open.
    #[inline]
    pub fn next_due(&self) -> Time {
        let candidates = if self.is_open { self.heap.get(1..5) } else { self.heap.get(..1) };
        let least =
            candidates.into_iter().flatten().fold(NOTHING, |least, &entry| least.min(entry));
        Time::from_picos((least >> 64) as u64)
    }

    /// Removes the earliest entry, the one seen by `peek`.
    #[inline]
    pub fn remove_first(&mut self) {
        if self.is_open {
            self.close();
        }
        self.is_open = self.length > 0;
    }

    /// Enters `subject` at a time.
    #[inline]
    pub fn push(&mut self, at: Time, subject: u32) {
        let entry = u128::from(at.as_picos()) << 64 | u128::from(subject);
        if self.is_open {
            self.is_open = false;
            self.sift_down(entry);
        } else {
            if self.heap.len() <= self.length {
                let full = if self.heap.is_empty() { 1 } else { self.heap.len() + 4 };
                self.heap.resize(full, NOTHING);
            }
            self.heap[self.length] = entry;
            self.sift_up(self.length);
            self.length += 1;
        }
    }

    /// Fills the open place with the last entry.
    #[inline]
    fn close(&mut self) {
        self.is_open = false;
        self.length -= 1;
        let last = std::mem::replace(&mut self.heap[self.length], NOTHING);
        if self.length > 0 {
            self.sift_down(last);
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Puts `entry` in the place of the first.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let Some(&[a, b, c, d]) = heap.get(first..first + 4) else { break };
            // Two rounds of a tournament, without branches to mispredict.
            let left = if b < a { (first + 1, b) } else { (first, a) };
            let right = if d < c { (first + 3, d) } else { (first + 2, c) };
            let (child, least) = if right.1 < left.1 { right } else { left };
            if entry <= least {
                break;
            }
            heap[at] = least;
            at = child;
        }
        heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(agenda: &mut Agenda) -> Vec<(u64, u32)> {
        let mut seen = Vec::new();
        while let Some((at, subject)) = agenda.peek() {
            seen.push((at.as_picos(), subject));
            agenda.remove_first();
        }
        seen
    }

    #[test]
    fn ties_go_to_the_lower_number() {
        let mut agenda = Agenda::default();
        for subject in [5, 3, 9] {
            agenda.push(Time::from_picos(7), subject);
        }
        agenda.peek();
        agenda.remove_first();
        agenda.push(Time::from_picos(7), 4);
        assert_eq!(drain(&mut agenda), [(7, 4), (7, 5), (7, 9)]);
    }

    #[test]
    fn tells_when_the_next_is_due_whether_a_place_is_open_or_not() {
        let mut agenda = Agenda::default();
        assert_eq!(agenda.next_due(), Time::NEVER);
        for at in [9, 4, 8, 6, 7, 5] {
            agenda.push(Time::from_picos(at), 0);
        }
        for at in 4..=9 {
            assert_eq!(agenda.next_due(), Time::from_picos(at));
            agenda.peek();
            assert_eq!(agenda.next_due(), Time::from_picos(at));
            agenda.remove_first();
        }
        assert_eq!(agenda.next_due(), Time::NEVER);
    }

    proptest! {
        #[test]
        fn comes_out_sorted_by_time_then_number(times in prop::collection::vec(0u64..50, 0..200)) {
            let mut agenda = Agenda::default();
            for (subject, &time) in times.iter().enumerate() {
                agenda.push(Time::from_picos(time), subject as u32);
            }
            let mut expected: Vec<(u64, u32)> =
                times.iter().enumerate().map(|(subject, &time)| (time, subject as u32)).collect();
            expected.sort_unstable();
            prop_assert_eq!(drain(&mut agenda), expected);
        }
    }
}
