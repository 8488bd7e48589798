//! Pacing: bursts leave at intervals given by the pacing rate. A sender paces by setting, or if its
//! controller decides on a rate (`SK_PACING_NEEDED`). Where the queue of its host's device paces
//! (`SK_PACING_FQ`), bursts go there at once, each with its departure time.

use crate::departure::Departure;
use crate::departure::data::Data;
use tcplab_transport::{Burst, Pacing};
use tcplab_units::{Duration, Time};

impl Departure {
    /// The pacing state.
    #[inline]
    pub fn pacing(&self) -> &Pacing {
        &self.bursts.pacing
    }

    /// When the pacing timer expires; `Time::NEVER` if it is off.
    #[inline]
    pub fn paced_until(&self) -> Time {
        self.bursts.get().map_or(Time::NEVER, |bursts| bursts.pacing.due())
    }

    /// The time that Linux adds to timers of a paced sender, because the packets that they cover
    /// have yet to leave; in whole ticks (`tcp_pacing_delay`).
    #[inline]
    pub fn pacing_delay(&self, now: Time) -> Duration {
        self.bursts.pacing.delay(now)
    }

    /// Whether pacing holds the next burst back (`tcp_pacing_check`); the pacing timer then runs.
    #[expect(clippy::inline_always, reason = "every segment passes here, and few are paced")]
    #[inline(always)]
    pub fn hold_for_pacing(&mut self, now: Time, is_paced: bool) -> bool {
        let paces = is_paced && !self.is_paced_by_device();
        self.bursts.pacing.hold(now, paces)
    }

    /// Timers of the connection expire, the pacing timer among them if it is due. Of all timers,
    /// only the pacing timer may send new data while data is outstanding. Returns whether it is
    /// due.
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

    /// The departure time of a packet that is sent now: with pacing by the device, the time until
    /// which its queue holds the packet (`skb_mstamp_ns`).
    #[inline]
    pub fn leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.bursts.pacing.next().max(now) } else { now }
    }

    /// The departure time of the data that is being sent, after its burst was paced.
    #[inline]
    pub fn data_leaves_at(&self, now: Time) -> Time {
        if self.is_paced_by_device() { self.bursts.pacing.burst_departure() } else { now }
    }

    /// The time in the timestamps option of a segment that the device's queue paces: with data, the
    /// departure time of its burst (`tcp_established_options` reads `skb_mstamp_ns`).
    #[cold]
    pub fn paced_timestamp(&self, now: Time, has_data: bool) -> Time {
        let pacing = &self.bursts.pacing;
        now.max(if has_data { pacing.burst_departure() } else { pacing.next() })
    }

    /// Whether new data, or the retransmission that starts at `repair`, belongs to the same burst
    /// as the previous packet.
    pub(super) fn is_same_burst(&self, now: Time, repair: Option<u64>) -> bool {
        let bursts = &self.bursts.tso;
        repair.map_or(bursts.continues_burst(), |start| bursts.continues_retransmission(now, start))
    }

    /// Data of a paced sender leaves, in the same burst as before or in a new one. A burst that
    /// leaves late shortens the next interval, by at most half. `is_free`: the burst delays
    /// nothing.
    #[inline(never)]
    pub fn pace(&mut self, now: Time, data: Data, is_free: bool) {
        let goes_on = self.is_same_burst(now, data.is_retransmission.then_some(data.start));
        let in_nanos = self.is_paced_by_device();
        let bursts = &mut *self.bursts;
        let rate = if is_free { 0 } else { bursts.tso.rate() };
        bursts.pacing.on_sent(now, Burst { bytes: data.payload.into(), goes_on, rate, in_nanos });
    }
}
