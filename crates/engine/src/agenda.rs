//! The event agenda: a priority queue of event sources by due time. A source is a lane or a timer,
//! and has one due time; ties go to the lower number.
//!
//! Ties go by number, not by insertion order. The order of events at one instant then follows from
//! the network alone, and the `linux` backend, which has other data structures, can follow the same
//! rule (`crates/linux/kernel/net/lane.c`).
//!
//! The structure is a tournament tree with four places a node: the winners of four groups stand in
//! one group above them, up to a single root. A source whose time has changed climbs the tree
//! again. The places of its neighbours are known beforehand, so the comparisons do not wait for
//! each other. The climb stops where nothing changes. A group is one cache line.

use std::hint::select_unpredictable;
use tcplab_units::Time;

/// The due time of a source, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: u64,
    source: u32,
}

/// Used instead of `Time::NEVER`, so that one can be added without overflow.
const NEVER: u64 = Time::NEVER.as_picos() - 1;
const NONE: Due = Due { at: NEVER, source: u32::MAX };

impl Due {
    /// The earlier of the two; of equals, `other` if `yields` is 1 and `self` if it is 0.
    /// Branch-free, because a branch here would be mispredicted.
    #[inline]
    fn first(self, other: Self, yields: u64) -> Self {
        let is_other = other.at < self.at + yields;
        Self {
            at: select_unpredictable(is_other, other.at, self.at),
            source: select_unpredictable(is_other, other.source, self.source),
        }
    }
}

/// Four places: the due time and the source of each.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group {
    at: [u64; 4],
    source: [u32; 4],
}

impl Group {
    const EMPTY: Self = Self { at: [NONE.at; 4], source: [NONE.source; 4] };

    #[inline]
    fn get(&self, place: usize) -> Due {
        Due { at: self.at[place], source: self.source[place] }
    }
}

/// The due times of a set of sources.
#[derive(Clone, Debug)]
pub struct Agenda {
    /// Place p of group g has the number 4 g + p, which is also the group whose winner stands
    /// there. The root is group 1, so each level of the tree begins at a power of four.
    groups: Vec<Group>,
    /// The number of the first leaf, and how many leaves there are.
    leaves: usize,
    sources: u32,
    first: Due,
}

impl Default for Agenda {
    fn default() -> Self {
        Self { groups: vec![Group::EMPTY; 2], leaves: 4, sources: 0, first: NONE }
    }
}

impl Agenda {
    /// Adds a source, which is not due until its time is set.
    pub fn add(&mut self) -> u32 {
        let source = self.sources;
        if source as usize == self.leaves {
            let known = self.groups.split_off(self.leaves / 4);
            self.leaves *= 4;
            self.groups = vec![Group::EMPTY; self.leaves / 2];
            let known = known.iter().flat_map(|group| [0, 1, 2, 3].map(|place| group.get(place)));
            for Due { at, source } in known {
                self.set(source, Time::from_picos(at));
            }
        }
        self.sources += 1;
        self.set(source, Time::NEVER);
        source
    }

    /// The source that is due first and its due time; without any, a time beyond all others.
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        (Time::from_picos(self.first.at), self.first.source)
    }

    /// Changes the due time of a source.
    #[inline(never)]
    pub fn set(&mut self, source: u32, at: Time) {
        self.play(source, at, false);
    }

    /// Changes the due time of the source that is due first.
    #[expect(clippy::inline_always, reason = "every packet passes here, and for each lane")]
    #[inline(always)]
    pub fn put_off_first(&mut self, at: Time) {
        self.play(self.first.source, at, true);
    }

    /// Replays the path of a source whose time has changed. A source that was first replays it up
    /// to the root in any case.
    #[expect(clippy::inline_always, reason = "each caller knows what `was_first` is")]
    #[inline(always)]
    fn play(&mut self, source: u32, at: Time, was_first: bool) {
        let mut number = self.leaves + source as usize;
        let mut first = Due { at: at.as_picos().min(NEVER), source };
        loop {
            let place = number % 4;
            number /= 4;
            let known = &mut self.groups[number];
            if !was_first && known.get(place) == first {
                return;
            }
            (known.at[place], known.source[place]) = (first.at, first.source);
            // The neighbour, and the first of the other two.
            let neighbour = known.get(place ^ 1);
            let others = place & 2 ^ 2;
            let others = known.get(others).first(known.get(others + 1), 0);
            first = first.first(neighbour, place as u64 & 1).first(others, place as u64 >> 1);
            if number == 1 {
                self.first = first;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An agenda of sources due at these picoseconds.
    fn agenda(times: &[u64]) -> Agenda {
        let mut agenda = Agenda::default();
        for &time in times {
            let source = agenda.add();
            agenda.set(source, Time::from_picos(time));
        }
        agenda
    }

    fn drain(agenda: &mut Agenda) -> Vec<(u64, u32)> {
        let mut seen = Vec::new();
        while let (at, source) = agenda.first()
            && at.as_picos() < NEVER
        {
            seen.push((at.as_picos(), source));
            agenda.set(source, Time::NEVER);
        }
        seen
    }

    #[test]
    fn an_agenda_without_times_has_no_due_source() {
        assert_eq!(drain(&mut Agenda::default()), []);
        assert_eq!(drain(&mut agenda(&[Time::NEVER.as_picos(); 3])), []);
    }

    #[test]
    fn ties_go_to_the_lower_number() {
        let mut agenda = agenda(&[9, 7, 7, 7, 8]);
        agenda.set(0, Time::from_picos(7));
        assert_eq!(drain(&mut agenda), [(7, 0), (7, 1), (7, 2), (7, 3), (8, 4)]);
    }

    #[test]
    fn a_source_is_due_once_at_the_time_set_last() {
        let mut agenda = agenda(&[1, 5, 3]);
        agenda.set(0, Time::from_picos(4));
        agenda.set(1, Time::from_picos(2));
        assert_eq!(drain(&mut agenda), [(2, 1), (3, 2), (4, 0)]);
    }

    proptest! {
        #[test]
        fn comes_out_sorted_by_time_then_number(
            times in prop::collection::vec(0u64..50, 0..200),
            later in prop::collection::vec((0usize..200, 0u64..50), 0..200),
        ) {
            let (mut agenda, mut times) = (agenda(&times), times);
            for (source, time) in later {
                if source < times.len() {
                    times[source] = time;
                    agenda.set(source as u32, Time::from_picos(time));
                }
            }
            let mut expected: Vec<(u64, u32)> =
                times.iter().enumerate().map(|(source, &time)| (time, source as u32)).collect();
            expected.sort_unstable();
            prop_assert_eq!(drain(&mut agenda), expected);
        }
    }
}
