//! Timers that cost nothing when re-armed.
//!
//! A TCP sender moves its retransmission timer on every ACK and hardly ever lets it expire. Moving
//! a timer later only notes the new deadline. Its turn on the agenda stays, and when the turn
//! comes, it is put off to the deadline then in force.

use crate::agenda::Agenda;
use tcplab_units::Time;

/// A timer of a connection. At the same picosecond it expires before all other timers and before
/// packets arrive, whenever it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionTimer(pub(crate) u32);

impl ConnectionTimer {
    /// The place among the timers of connections, in the order in which they were added.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A timer that belongs to no connection: one of an application or a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId(pub(crate) u32);

impl TimerId {
    /// The place among the timers that belong to no connection, in the order in which they were
    /// added.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// When the timer is to expire.
    deadline: Time,
    /// When its turn comes on the agenda, no later than the deadline.
    entered: Time,
}

/// The deadlines of a set of timers, and when their turns come.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    timers: Vec<Timer>,
    agenda: Agenda,
}

impl Timers {
    /// Adds a timer, not armed, and returns its index.
    pub fn add(&mut self) -> u32 {
        self.timers.push(Timer { deadline: Time::NEVER, entered: Time::NEVER });
        self.agenda.add()
    }

    /// Arms a timer; `Time::NEVER` stops it.
    #[inline]
    pub fn set(&mut self, index: u32, deadline: Time) {
        let timer = &mut self.timers[index as usize];
        timer.deadline = deadline;
        if deadline < timer.entered {
            timer.entered = deadline;
            self.agenda.set(index, deadline);
        }
    }

    /// When the next turn comes.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.agenda.first().0
    }

    /// Handles the next turn, which has come. Returns the timer if it expires.
    #[inline(never)]
    pub fn turn(&mut self, now: Time) -> Option<u32> {
        let (_, index) = self.agenda.first();
        let timer = &mut self.timers[index as usize];
        let fires = timer.deadline <= now;
        if fires {
            timer.deadline = Time::NEVER;
        }
        timer.entered = timer.deadline;
        self.agenda.put_off_first(timer.deadline);
        fires.then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets one timer at these times, in picoseconds, and lists when it expires.
    fn fires(sets: &[(u64, u64)]) -> Vec<u64> {
        let mut timers = Timers::default();
        let index = timers.add();
        let mut fired = Vec::new();
        let mut run = |timers: &mut Timers, until: u64| {
            while let at = timers.next_due()
                && at.as_picos() <= until
            {
                fired.extend(timers.turn(at).map(|_| at.as_picos()));
            }
        };
        for &(now, deadline) in sets {
            run(&mut timers, now);
            timers.set(index, Time::from_picos(deadline));
        }
        run(&mut timers, 1_000_000);
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
    fn re_arming_later_keeps_the_scheduled_wakeup() {
        let mut timers = Timers::default();
        let index = timers.add();
        for deadline in 100..1_000 {
            timers.set(index, Time::from_picos(deadline));
            assert_eq!(timers.next_due(), Time::from_picos(100));
        }
    }
}
