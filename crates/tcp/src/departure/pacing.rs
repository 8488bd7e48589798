//! When bursts leave: as far apart as the pacing rate says. A sender paces if it is set so, or if
//! its controller decides on a rate (`SK_PACING_NEEDED`). Where the queue of its host's device
//! paces (`SK_PACING_FQ`), bursts go there at once, each with its departure time.

use crate::departure::Departure;
use crate::departure::data::Data;
use tcplab_transport::{Burst, Pacing};
use tcplab_units::{Duration, Time};

impl Departure {
    /// How bursts are paced.
    #[inline]
    pub fn pacing(&self) -> &Pacing {
        &self.bursts.pacing
    }

    /// When the pacing timer runs out; `Time::NEVER` if it does not run.
    #[inline]
    pub fn paced_until(&self) -> Time {
        self.bursts.get().map_or(Time::NEVER, |bursts| bursts.pacing.due())
    }

    /// By how much Linux lets its timers of a paced sender run longer because what they wait for
    /// has yet to leave, in whole ticks (`tcp_pacing_delay`).
    #[inline]
    pub fn pacing_delay(&self, now: Time) -> Duration {
        self.bursts.pacing.delay(now)
    }

    /// Whether it is too early for another burst.
    #[expect(clippy::inline_always, reason = "every segment passes here, and few are paced")]
    #[inline(always)]
    pub fn hold_for_pacing(&mut self, now: Time, is_paced: bool) -> bool {
        let paces = is_paced && !self.is_paced_by_device();
        self.bursts.pacing.hold(now, paces)
    }

    /// Timers of the connection run out; that of pacing, if it is due. Of all timers only that one
    /// looks for new data while some is under way. Says whether it is.
    #[inline]
    pub fn on_timers(&mut self, now: Time, has_outstanding: bool) -> bool {
        let is_paced = self.bursts.pacing.due() <= now;
        if let Some(buffer) = self.buffer.as_mut() {
            if is_paced {
                buffer.resume();
            } else if has_outstanding {
                buffer.suppress_sending();
            }
        }
        if is_paced {
            self.bursts.pacing.on_timer(now);
        }
        is_paced
    }

    /// When a packet that is sent now leaves, as far as that is known: paced by the device, when
    /// its time has come (`skb_mstamp_ns`).
    #[inline]
    pub fn leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.bursts.pacing.next().max(now) } else { now }
    }

    /// The departure time of the data that is leaving, once it is paced.
    #[inline]
    pub fn data_leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.bursts.pacing.burst_departure() } else { now }
    }

    /// The departure time of a segment that is sent now, by which its timestamp goes: the time of
    /// its burst, if it has data (`tcp_established_options` reads `skb_mstamp_ns`).
    #[cold]
    pub fn paced_timestamp(&self, now: Time, has_data: bool) -> Time {
        let pacing = &self.bursts.pacing;
        now.max(if has_data { pacing.burst_departure() } else { pacing.next() })
    }

    /// Whether data that leaves, or the repair that begins there, is of the same burst as what left
    /// before.
    pub(super) fn is_same_burst(&self, now: Time, repair: Option<u64>) -> bool {
        let bursts = &self.bursts.tso;
        repair.map_or(bursts.continues_burst(), |start| bursts.continues_retransmission(now, start))
    }

    /// Data of a paced sender leaves, of the same burst as what left before or of a new one. What
    /// comes later than it might have makes up for that, by half of its time at the most.
    /// `is_free`: it puts nothing off.
    #[inline(never)]
    pub fn pace(&mut self, now: Time, data: Data, is_free: bool) {
        let goes_on = self.is_same_burst(now, data.is_retransmission.then_some(data.start));
        let in_nanos = self.is_paced_by_device();
        let bursts = &mut *self.bursts;
        let rate = if is_free { 0 } else { bursts.tso.rate() };
        bursts.pacing.on_sent(now, Burst { bytes: data.payload.into(), goes_on, rate, in_nanos });
    }
}
