//! Pacing: a burst takes as long as the rate says, and the next one leaves when that time is over
//! (`tcp_update_skb_after_send`, `tcp_pacing_check`).

use tcplab_units::{Duration, Time};

const NANOS: u128 = 1_000_000_000;

/// The departure time of the next burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    /// The next burst leaves no earlier (`tcp_wstamp_ns`).
    next: Time,
    /// A burst is held back until then.
    is_holding: bool,
    /// The sender paces.
    is_on: bool,
    /// The departure time of the burst that is leaving, how late it was, and its bytes so far.
    burst_departure: Time,
    credit: Duration,
    bytes: u64,
}

/// A packet that leaves, as pacing sees it.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Bytes that the rate counts.
    pub bytes: u64,
    /// The packet belongs to the same burst as the one before.
    pub goes_on: bool,
    /// Bytes a second; 0 paces nothing.
    pub rate: u64,
    /// Departure times are whole nanoseconds.
    pub in_nanos: bool,
}

impl Pacing {
    /// Whether a burst is held back.
    #[inline]
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Whether the packet that left last was paced.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The earliest departure of the next burst.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The departure of the burst that is leaving.
    #[inline]
    #[must_use]
    pub fn burst_departure(&self) -> Time {
        self.burst_departure
    }

    /// The departure of the burst that is held back; never, if none is.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Time {
        if self.is_holding { self.next } else { Time::NEVER }
    }

    /// The time until the next burst, in whole jiffies (`tcp_pacing_delay`).
    #[inline(never)]
    #[must_use]
    pub fn delay(&self, now: Time) -> Duration {
        Duration::from_millis(self.next.max(now).since(now).as_millis())
    }

    /// The pacing timer ran out.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        self.is_holding &= self.next > now;
    }

    /// Whether a burst must wait, if bursts are paced here at all; the timer then runs for it.
    #[inline]
    pub fn hold(&mut self, now: Time, paces: bool) -> bool {
        self.is_holding = paces && self.next > now;
        self.is_holding
    }

    /// A packet leaves, and the next burst is put off by the time that its bytes take. A burst that
    /// leaves late makes up for that, by half of its own time at the most.
    #[inline]
    pub fn on_sent(&mut self, now: Time, burst: Burst) {
        self.is_on = true;
        if !burst.goes_on {
            self.burst_departure = self.next.max(now);
            self.credit = self.burst_departure.since(self.next);
            self.bytes = 0;
        }
        self.bytes += burst.bytes;
        self.next = self.burst_departure;
        if burst.rate > 0 {
            let nanos = u128::from(self.bytes) * NANOS / u128::from(burst.rate);
            let time = Duration::from_nanos(nanos as u64);
            self.next += time.saturating_sub(self.credit.min(time / 2));
            if burst.in_nanos {
                // Half of the time is in whole nanoseconds as well.
                self.next = self.next.in_nanos();
            }
        }
    }
}
