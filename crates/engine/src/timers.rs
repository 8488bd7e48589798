//! Timers that cost nothing when re-armed.
//!
//! A TCP sender moves its retransmission timer on every ACK and hardly ever lets it run out. Moving
//! a timer later only notes the new deadline; the entry on the agenda stays where it was and, when
//! its turn comes, is put off to the deadline then in force.

use crate::agenda::Agenda;
use tcplab_units::Time;

/// A timer of a connection. Its subject on the agenda is its index, so that at the same picosecond
/// it runs out before all other timers and before packets arrive, whenever it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionTimer(pub(crate) u32);

impl ConnectionTimer {
    /// The place among the timers of connections, in the order in which they were added.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A timer that belongs to no connection: of an application, or of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId(pub(crate) u32);

impl TimerId {
    /// The place among the timers that belong to no connection, in the order in which they were added.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// When it is to fire.
    deadline: Time,
    /// The earliest entry it has on the agenda; later ones are left over and mean nothing.
    entered: Time,
}

/// The deadlines of a set of timers. Their entries stand on an [`Agenda`] shared with others, where
/// `FIRST` is the subject of the first timer.
#[derive(Clone, Debug, Default)]
pub struct Timers<const FIRST: u32> {
    timers: Vec<Timer>,
}

impl<const FIRST: u32> Timers<FIRST> {
    /// The index of a new timer, not armed.
    pub fn add(&mut self) -> u32 {
        self.timers.push(Timer { deadline: Time::NEVER, entered: Time::NEVER });
        self.timers.len() as u32 - 1
    }

    /// Arms a timer, or with `Time::NEVER` stops it.
    #[inline]
    pub fn set(&mut self, index: u32, deadline: Time, agenda: &mut Agenda) {
        let timer = &mut self.timers[index as usize];
        timer.deadline = deadline;
        if deadline < timer.entered {
            timer.entered = deadline;
            agenda.push(deadline, FIRST + index);
        }
    }

    /// The agenda's first entry is this timer's: takes it off, and says whether the timer fires.
    #[inline(never)]
    pub fn turn(&mut self, index: u32, now: Time, agenda: &mut Agenda) -> bool {
        let timer = &mut self.timers[index as usize];
        agenda.remove_first();
        if timer.entered != now {
            return false;
        }
        if timer.deadline <= now {
            *timer = Timer { deadline: Time::NEVER, entered: Time::NEVER };
            return true;
        }
        timer.entered = timer.deadline;
        if timer.deadline != Time::NEVER {
            agenda.push(timer.deadline, FIRST + index);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets one timer as told, in picoseconds, and lists when it fires.
    fn fires(sets: &[(u64, u64)]) -> Vec<u64> {
        let (mut timers, mut agenda) = (Timers::<7>::default(), Agenda::default());
        let index = timers.add();
        let mut fired = Vec::new();
        let mut run = |timers: &mut Timers<7>, agenda: &mut Agenda, until: u64| {
            while let Some((at, _)) = agenda.peek().filter(|(at, _)| at.as_picos() <= until) {
                if timers.turn(index, at, agenda) {
                    fired.push(at.as_picos());
                }
            }
        };
        for &(now, deadline) in sets {
            run(&mut timers, &mut agenda, now);
            timers.set(index, Time::from_picos(deadline), &mut agenda);
        }
        run(&mut timers, &mut agenda, 1_000_000);
        fired
    }

    #[test]
    fn fires_once_at_the_last_deadline_set() {
        assert_eq!(fires(&[(0, 100), (50, 150), (90, 190)]), [190]);
        assert_eq!(fires(&[(0, 100), (10, 40), (20, 80)]), [80]);
        assert_eq!(fires(&[(0, 100), (150, 300)]), [100, 300]);
    }

    #[test]
    fn a_stopped_timer_stays_silent_until_armed_again() {
        let never = Time::NEVER.as_picos();
        assert_eq!(fires(&[(0, 100), (50, never)]), []);
        assert_eq!(fires(&[(0, 100), (50, never), (60, 100)]), [100]);
        assert_eq!(fires(&[(0, 100), (50, 20_000), (60, never), (200, 300)]), [300]);
    }

    #[test]
    fn re_arming_later_leaves_one_entry() {
        let (mut timers, mut agenda) = (Timers::<7>::default(), Agenda::default());
        let index = timers.add();
        for deadline in 100..1_000 {
            timers.set(index, Time::from_picos(deadline), &mut agenda);
        }
        agenda.remove_first();
        assert!(agenda.peek().is_none());
    }
}
