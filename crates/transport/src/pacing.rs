//! Pacing: each burst takes the time that its bytes need at the pacing rate, and the next one
//! leaves after that time (`tcp_update_skb_after_send`, `tcp_pacing_check`).

use tcplab_units::{Duration, Time};

const NANOS: u128 = 1_000_000_000;

/// The pacing of a sender's bursts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    /// The earliest departure of the next burst (`tcp_wstamp_ns`).
    next: Time,
    /// A burst waits for that time.
    is_holding: bool,
    /// The sender paces.
    is_on: bool,
    /// The departure of the present burst, by how much it was late, and its bytes so far.
    burst_departure: Time,
    credit: Duration,
    /// Bytes that count for the rate.
    bytes: u64,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Bytes that the rate counts.
    pub bytes: u64,
    /// The packet belongs to the same burst as the one before it.
    pub goes_on: bool,
    /// The pacing rate in bytes a second; 0 does not delay the next burst.
    pub rate: u64,
    /// Departure times are rounded to whole nanoseconds.
    pub in_nanos: bool,
}

impl Pacing {
    /// Whether a burst is waiting.
    #[inline]
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Whether the last packet was paced.
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

    /// The departure of the present burst.
    #[inline]
    #[must_use]
    pub fn burst_departure(&self) -> Time {
        self.burst_departure
    }

    /// The departure of the waiting burst; never, if there is none.
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

    /// The pacing timer expired.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        self.is_holding &= self.next > now;
    }

    /// Whether the next burst must wait, if the sender paces here at all; the timer then runs.
    #[inline]
    pub fn hold(&mut self, now: Time, paces: bool) -> bool {
        self.is_holding = paces && self.next > now;
        self.is_holding
    }

    /// A packet leaves, and delays the next burst by the time that its bytes take. A burst that
    /// leaves late shortens that by its delay, by at most half.
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
                // Halves are rounded to whole nanoseconds, too.
                self.next = self.next.in_nanos();
            }
        }
    }
}
