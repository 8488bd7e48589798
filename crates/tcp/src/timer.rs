//! The one timer of the sending half: what it waits for, and until when.

use crate::settings::Settings;
use std::cmp::Reverse;
use tcplab_transport::Clock;
use tcplab_units::{Duration, Time};
use wheel::Expiry;

mod wheel;

/// A jiffy of the kernel's timers.
pub const TICK: Duration = Duration::from_millis(1);

/// The order of timers that expire in one tick: those of SYN-ACKs, which have a wheel of their own
/// (`BASE_LOCAL`, `TIMER_PINNED`), come first; then those of coarser levels; within a bucket, the
/// one that was added last (`__run_timers`, `enqueue_timer`).
pub type Turn = (Wheel, InWheel);

/// The order of timers within a wheel.
pub(crate) type InWheel = (Reverse<u32>, Reverse<Time>);

/// The wheels of Linux, in the order in which they turn (`run_timer_softirq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wheel {
    /// The wheel of requests, which retransmits SYN-ACKs.
    Requests,
    /// The wheel of all other connections.
    Connections,
}

/// The purpose of the sender's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The answer to what was sent: a SYN, data, or a probe of a closed window (RFC 6298 §5).
    Retransmit,
    /// A segment that may only be late (RFC 8985 §6.3).
    Reorder,
    /// The moment for a probe of the tail (RFC 8985 §7.2).
    Probe,
}

/// Where a timer was put last in the wheel of Linux, which nobody takes it out of before its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The tick that it was set for, and when it runs out.
    tick: Option<u64>,
    out: Time,
    /// How coarse the ring is, and since when it has been in this place of it.
    coarse: u32,
    entered: Time,
    /// The timer is in the wheel, whether or not anybody still waits for it.
    is_pending: bool,
    /// When a timer of the kernel ran out last, as far as this one has heard.
    turned: Time,
}

/// The end of a wait that begins now and that no other timer may cut short.
pub(crate) fn waits_until(clock: Clock, now: Time, wait: Duration) -> Time {
    match clock {
        Clock::Exact => now + wait,
        Clock::Kernel => Expiry::new(now, wait).runs_out(false).0,
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::NONE
    }
}

impl Place {
    pub const NONE: Self = Self {
        tick: None,
        out: Time::ZERO,
        coarse: 0,
        entered: Time::ZERO,
        is_pending: false,
        turned: Time::NEVER,
    };

    /// When a timer that is set now runs out. One that is set again for the same tick keeps its
    /// place, however coarse that was when the tick was further away (`__mod_timer`).
    #[inline]
    pub fn set(&mut self, now: Time, delay: Duration, settings: &Settings) -> Time {
        let expiry = match settings.behaviour.clock {
            Clock::Exact => {
                self.out = now + delay;
                return self.out;
            }
            Clock::Kernel => Expiry::new(now, delay),
        };
        if self.tick != Some(expiry.tick) || !self.is_ahead(now) {
            self.put(now, expiry);
        }
        self.out
    }

    /// Puts a timer where it belongs in the wheel.
    #[inline(never)]
    fn put(&mut self, now: Time, expiry: Expiry) {
        let has_turned = self.turned <= now && now.since(self.turned) < TICK;
        let (out, coarse) = expiry.runs_out(has_turned);
        if !(self.is_pending && (out, coarse) == (self.out, self.coarse)) {
            self.entered = now;
        }
        *self = Self { tick: Some(expiry.tick), out, coarse, is_pending: true, ..*self };
    }

    /// Whether it has come to its place now.
    #[inline]
    pub fn was_entered(&self, now: Time) -> bool {
        self.entered == now
    }

    /// A timer of the kernel, be it another one, has run out in this tick.
    #[inline]
    pub fn turn(&mut self, now: Time) {
        self.turned = now;
    }

    /// When it runs out, though nobody may wait for it any more.
    #[inline]
    pub fn pending(&self) -> Time {
        if self.is_pending { self.out } else { Time::NEVER }
    }

    /// The timer's turn among those that run out now, if it does.
    pub fn turn_at(&self, now: Time) -> Option<InWheel> {
        let is_due = self.is_pending && self.out <= now;
        is_due.then_some((Reverse(self.coarse), Reverse(self.entered)))
    }

    /// Says whether it has run out since the last look.
    #[inline]
    pub fn runs_out(&mut self, now: Time) -> bool {
        let is_over = self.is_pending && self.out <= now;
        self.is_pending &= !is_over;
        is_over
    }

    /// Removes the timer from the wheel (`sk_stop_timer`).
    pub fn stop(&mut self) {
        (self.tick, self.is_pending) = (None, false);
    }

    #[inline]
    pub fn is_ahead(&self, now: Time) -> bool {
        self.out > now
    }

    #[inline]
    pub fn out(&self) -> Time {
        self.out
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub kind: Kind,
    pub at: Time,
    pub place: Place,
    /// How often it was set.
    pub sets: u32,
}

impl Timer {
    pub const OFF: Self =
        Self { kind: Kind::Retransmit, at: Time::NEVER, place: Place::NONE, sets: 0 };

    #[inline]
    pub fn set(&mut self, kind: Kind, now: Time, delay: Duration, settings: &Settings) {
        self.kind = kind;
        self.sets = self.sets.wrapping_add(1);
        self.at = self.place.set(now, delay, settings);
    }

    /// Whether the timer runs and is set for a tail loss probe.
    #[inline]
    pub fn is_for_probe(&self) -> bool {
        self.kind == Kind::Probe && self.at != Time::NEVER
    }

    #[inline]
    pub fn stop(&mut self) {
        (self.kind, self.at) = (Kind::Retransmit, Time::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Behaviour;

    #[test]
    fn of_timers_that_run_out_together_the_coarsest_comes_first_and_then_the_last_one_set() {
        let settings = Settings { behaviour: Behaviour::LINUX, ..Settings::default() };
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let set = |micros, millis| {
            let mut place = Place::NONE;
            place.set(at(micros), Duration::from_millis(millis), &settings);
            place
        };
        // `jiffies`: 240 ms from 5 ms on go to a ring of 8 ms and run out at 248 ms; in the finest
        // ring, 40 ms from 207.2 ms on do so too.
        let coarse = set(5_000, 240);
        let (early, mut late) = (set(207_200, 40), set(207_300, 40));
        assert_eq!([coarse.out(), early.out(), late.out()], [at(248_000); 3]);
        let turn = |place: &Place| place.turn_at(at(248_000)).unwrap();
        assert!(turn(&coarse) < turn(&late) && turn(&late) < turn(&early));
        assert_eq!(early.turn_at(at(247_000)), None);
        // Set again for the same tick, it stays where it is (`__mod_timer`).
        let before = turn(&late);
        late.set(at(207_900), Duration::from_millis(40), &settings);
        assert_eq!(turn(&late), before);
    }
}
