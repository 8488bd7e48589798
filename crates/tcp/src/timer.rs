//! The timer of the sending half, and its place in the kernel's timer wheel.

use crate::context::Context;
use std::cmp::Reverse;
use tcplab_transport::Clock;
use tcplab_units::{Duration, Time};
use wheel::Expiry;

mod wheel;

/// A jiffy of the kernel's timers.
pub const TICK: Duration = Duration::from_millis(1);

/// The order of timers that expire in the same tick: timers of SYN-ACKs, which have a wheel of
/// their own (`BASE_LOCAL`, `TIMER_PINNED`), come first; then those of coarser levels; within a
/// bucket, the one added last (`__run_timers`, `enqueue_timer`).
pub type ExpiryOrder = (Wheel, OrderInWheel);

/// The order of timers within a wheel.
pub(crate) type OrderInWheel = (Reverse<u32>, Reverse<Time>);

/// The timer wheels of Linux, in the order in which they run (`run_timer_softirq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wheel {
    /// The wheel of request sockets, which retransmits SYN-ACKs.
    Requests,
    /// The wheel of all other connections.
    Connections,
}

/// The purpose of the sender's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The RTO of a SYN or of data, or the persist timer (RFC 6298 §5).
    Retransmit,
    /// RACK's reordering timer (RFC 8985 §6.3).
    Reorder,
    /// The timer of a tail loss probe (RFC 8985 §7.2).
    Probe,
}

/// A timer's slot in the kernel's timer wheel, where a stopped timer stays until it expires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WheelSlot {
    /// The tick for which the timer was set, and when it expires.
    tick: Option<u64>,
    expires: Time,
    /// The granularity of the level (as a shift), and since when the timer has been in this slot.
    level_shift: u32,
    enqueued_at: Time,
    /// The timer is in the wheel, whether or not it is still needed.
    is_pending: bool,
    /// When a timer of the kernel last expired, as far as known here.
    last_expiry: Time,
}

/// The end of a wait that begins now and is never shortened.
pub(crate) fn waits_until(clock: Clock, now: Time, wait: Duration) -> Time {
    match clock {
        Clock::Exact => now + wait,
        Clock::Kernel => Expiry::new(now, wait).expires(false).0,
    }
}

impl Default for WheelSlot {
    fn default() -> Self {
        Self::NONE
    }
}

impl WheelSlot {
    pub const NONE: Self = Self {
        tick: None,
        expires: Time::ZERO,
        level_shift: 0,
        enqueued_at: Time::ZERO,
        is_pending: false,
        last_expiry: Time::NEVER,
    };

    /// Sets the timer and returns when it expires. A timer that is set again for the same tick
    /// keeps its slot and granularity (`__mod_timer`).
    #[inline]
    pub fn set(&mut self, context: Context<'_>, delay: Duration) -> Time {
        let Context { now, settings } = context;
        let expiry = match settings.behaviour.clock {
            Clock::Exact => {
                self.expires = now + delay;
                return self.expires;
            }
            Clock::Kernel => Expiry::new(now, delay),
        };
        if self.tick != Some(expiry.tick) || !self.expires_after(now) {
            self.enqueue(now, expiry);
        }
        self.expires
    }

    /// Puts the timer into its slot (`enqueue_timer`).
    #[inline(never)]
    fn enqueue(&mut self, now: Time, expiry: Expiry) {
        let has_turned = self.last_expiry <= now && now.since(self.last_expiry) < TICK;
        let (expires, level_shift) = expiry.expires(has_turned);
        if !(self.is_pending && (expires, level_shift) == (self.expires, self.level_shift)) {
            self.enqueued_at = now;
        }
        *self = Self { tick: Some(expiry.tick), expires, level_shift, is_pending: true, ..*self };
    }

    /// Whether the timer was put into its slot at this time.
    #[inline]
    pub fn was_enqueued(&self, now: Time) -> bool {
        self.enqueued_at == now
    }

    /// A timer of the kernel, this one or another, expired in this tick.
    #[inline]
    pub fn note_expiry(&mut self, now: Time) {
        self.last_expiry = now;
    }

    /// When the timer expires, even if it is no longer needed.
    #[inline]
    pub fn pending(&self) -> Time {
        if self.is_pending { self.expires } else { Time::NEVER }
    }

    /// The timer's position among those that expire now, if it does.
    pub fn expiry_order(&self, now: Time) -> Option<OrderInWheel> {
        let is_due = self.is_pending && self.expires <= now;
        is_due.then_some((Reverse(self.level_shift), Reverse(self.enqueued_at)))
    }

    /// Whether the timer has expired since the last call.
    #[inline]
    pub fn take_expiry(&mut self, now: Time) -> bool {
        let is_over = self.is_pending && self.expires <= now;
        self.is_pending &= !is_over;
        is_over
    }

    /// Removes the timer from the wheel (`sk_stop_timer`).
    pub fn cancel(&mut self) {
        (self.tick, self.is_pending) = (None, false);
    }

    #[inline]
    pub fn expires_after(&self, now: Time) -> bool {
        self.expires > now
    }

    #[inline]
    pub fn expires(&self) -> Time {
        self.expires
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub kind: Kind,
    pub at: Time,
    pub slot: WheelSlot,
    /// How often the timer was set.
    pub sets: u32,
}

impl Timer {
    pub const OFF: Self =
        Self { kind: Kind::Retransmit, at: Time::NEVER, slot: WheelSlot::NONE, sets: 0 };

    #[inline]
    pub fn set(&mut self, context: Context<'_>, kind: Kind, delay: Duration) {
        self.kind = kind;
        self.sets = self.sets.wrapping_add(1);
        self.at = self.slot.set(context, delay);
    }

    /// Whether the timer runs for a tail loss probe.
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
    use crate::settings::{Behaviour, Settings};

    #[test]
    fn timers_of_one_tick_expire_coarsest_level_first_then_last_set_first() {
        let settings = Settings { behaviour: Behaviour::LINUX, ..Settings::default() };
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let context = |micros| Context { now: at(micros), settings: &settings };
        let set = |micros, millis| {
            let mut slot = WheelSlot::NONE;
            slot.set(context(micros), Duration::from_millis(millis));
            slot
        };
        // `jiffies`: 240 ms from 5 ms on go to a ring of 8 ms and run out at 248 ms; in the finest
        // ring, 40 ms from 207.2 ms on do so too.
        let coarse = set(5_000, 240);
        let (early, mut late) = (set(207_200, 40), set(207_300, 40));
        assert_eq!([coarse.expires(), early.expires(), late.expires()], [at(248_000); 3]);
        let turn = |slot: &WheelSlot| slot.expiry_order(at(248_000)).unwrap();
        assert!(turn(&coarse) < turn(&late) && turn(&late) < turn(&early));
        assert_eq!(early.expiry_order(at(247_000)), None);
        // Set again for the same tick, it stays where it is (`__mod_timer`).
        let before = turn(&late);
        late.set(context(207_900), Duration::from_millis(40));
        assert_eq!(turn(&late), before);
    }
}
