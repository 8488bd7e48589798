//! Pacing: bursts leave as far apart as the rate says that they take, as Linux paces by itself
//! (`tcp_update_pacing_rate`, `tcp_update_skb_after_send`, `tcp_pacing_check`). A sender paces if it is
//! set so, or if its controller decides on a rate (`SK_PACING_NEEDED`). Where the queue of its host's
//! device does that (`SK_PACING_FQ`), bursts go there at once, each with the time at which it may leave.

use crate::output::Data;
use crate::sender::{Flight, Sender};
use crate::settings::Settings;
use tcplab_units::{Duration, Time};

/// So many segments of a connection are not paced.
const FREE: u64 = 10;
const NANOS: u128 = 1_000_000_000;

/// When the next burst may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacing {
    /// Not before this (`tcp_wstamp_ns`).
    next: Time,
    /// Something is held back until then.
    holds: bool,
    /// The sender paces.
    is_on: bool,
    /// Of the burst that is leaving: when it began, how long after it might have, and its bytes.
    began: Time,
    credit: Duration,
    bytes: u64,
}

impl Pacing {
    /// Whether something is held back.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Whether the sender paces, as of what left last.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// When the next burst may leave.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// When what is held back may leave.
    #[inline]
    pub fn due(&self) -> Time {
        if self.holds { self.next } else { Time::NEVER }
    }

    /// How long until the next burst may leave, in whole ticks.
    #[inline(never)]
    fn delay(&self, now: Time) -> Duration {
        Duration::from_millis(self.next.max(now).since(now).as_millis())
    }

    /// Time has passed.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        self.holds &= self.next > now;
    }
}

impl Sender {
    #[inline]
    pub(crate) fn is_paced(&self, settings: &Settings) -> bool {
        settings.pacing || self.control.pacing.is_some()
    }

    /// By how much Linux lets its timers run longer because what they wait for has yet to leave, in
    /// whole ticks (`tcp_pacing_delay`).
    #[inline]
    pub(crate) fn pacing_delay(&self, now: Time, settings: &Settings) -> Duration {
        if settings.behaviour.timers_add_pacing_delay && self.is_paced(settings) {
            self.flight.pacing.delay(now)
        } else {
            Duration::ZERO
        }
    }

    /// Whether it is too early for another burst.
    #[expect(clippy::inline_always, reason = "every segment passes here, and few are paced")]
    #[inline(always)]
    pub(crate) fn is_held_back(&mut self, now: Time, settings: &Settings) -> bool {
        let is_paced = self.is_paced(settings);
        let holds = is_paced && self.flight.pacing.next > now && !self.is_paced_by_device();
        self.flight.pacing.holds = holds;
        holds
    }

    /// Data leaves, of the same burst as what left before or of a new one. What comes later than it
    /// might have makes up for that, by half of its time at the most.
    #[inline]
    pub(crate) fn pace(&mut self, now: Time, data: Data, settings: &Settings) {
        if self.is_paced(settings) {
            self.put_off_next(now, data.payload, data.again.then_some(data.start));
        }
    }

    /// When a packet that is sent now leaves, as far as that is known: paced by the device, when its time
    /// has come (`skb_mstamp_ns`).
    #[inline]
    pub(crate) fn leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.flight.pacing.next.max(now) } else { now }
    }

    /// The same of data that is leaving, once it is paced.
    #[inline]
    pub(crate) fn data_leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.flight.pacing.began } else { now }
    }

    /// The departure time of a segment that is sent now, by which its timestamp goes: the time of its
    /// burst, if it has data (`tcp_established_options` reads `skb_mstamp_ns`).
    #[cold]
    pub(crate) fn departs(&self, now: Time, has_data: bool) -> Time {
        let Pacing { began, next, .. } = self.flight.pacing;
        now.max(if has_data { began } else { next })
    }

    /// Whether data that leaves, or the repair that begins there, is of the same burst as what left
    /// before.
    pub(crate) fn goes_on(&self, now: Time, repair: Option<u64>) -> bool {
        let bursts = &self.flight.tso;
        repair.map_or(bursts.is_going_on(), |start| bursts.repairs_on(now, start))
    }

    #[inline(never)]
    fn put_off_next(&mut self, now: Time, payload: u16, repair: Option<u64>) {
        let goes_on = self.goes_on(now, repair);
        let by_device = self.is_paced_by_device();
        let Flight { pacing, tso, .. } = &mut *self.flight;
        pacing.is_on = true;
        if !goes_on {
            pacing.began = pacing.next.max(now);
            pacing.credit = pacing.began.since(pacing.next);
            pacing.bytes = 0;
        }
        pacing.bytes += u64::from(payload);
        pacing.next = pacing.began;
        let rate = tso.rate();
        if rate > 0 && self.counters.sent_segments >= FREE {
            let nanos = u128::from(pacing.bytes) * NANOS / u128::from(rate);
            let time = Duration::from_nanos(nanos as u64);
            pacing.next += time.saturating_sub(pacing.credit.min(time / 2));
            if by_device {
                // Half of the time is in whole nanoseconds as well.
                pacing.next = pacing.next.in_nanos();
            }
        }
    }
}
