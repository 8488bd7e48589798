//! When bursts leave: as far apart as the pacing rate says. A sender paces if it is set so, or if its
//! controller decides on a rate (`SK_PACING_NEEDED`). Where the queue of its host's device paces
//! (`SK_PACING_FQ`), bursts go there at once, each with its departure time.

use crate::sender::data::Data;
use crate::sender::{Flight, Sender};
use crate::settings::Settings;
use tcplab_transport::Burst;
use tcplab_units::{Duration, Time};

/// The first segments of a connection, which are not paced (`tcp_update_skb_after_send`).
const FREE: u64 = 10;

impl Sender {
    #[inline]
    pub(crate) fn is_paced(&self, settings: &Settings) -> bool {
        settings.pacing || self.congestion.pacing().is_some()
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
        let paces = self.is_paced(settings) && !self.is_paced_by_device();
        self.flight.pacing.hold(now, paces)
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
        if self.is_paced_by_device() { self.flight.pacing.next().max(now) } else { now }
    }

    /// The same of data that is leaving, once it is paced.
    #[inline]
    pub(crate) fn data_leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.flight.pacing.began() } else { now }
    }

    /// The departure time of a segment that is sent now, by which its timestamp goes: the time of its
    /// burst, if it has data (`tcp_established_options` reads `skb_mstamp_ns`).
    #[cold]
    pub(crate) fn departs(&self, now: Time, has_data: bool) -> Time {
        let pacing = &self.flight.pacing;
        now.max(if has_data { pacing.began() } else { pacing.next() })
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
        let in_nanos = self.is_paced_by_device();
        let is_free = self.counters.sent_segments < FREE;
        let Flight { pacing, tso, .. } = &mut *self.flight;
        let rate = if is_free { 0 } else { tso.rate() };
        pacing.on_sent(now, Burst { bytes: payload.into(), goes_on, rate, in_nanos });
    }
}
