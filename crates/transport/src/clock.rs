//! The granularity of a sender's clock.
//!
//! The standards leave it open. Linux measures round trips in whole microseconds and idle times in
//! jiffies of a millisecond, and results differ with that.

use tcplab_units::{Duration, Time};

const PICOS_PER_MICRO: u64 = 1_000_000;
const PICOS_PER_JIFFY: u64 = 1_000_000_000;

/// The granularity of a sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// As fine as the simulation's clock.
    Exact,
    /// That of Linux: microseconds (`tcp_clock_us`), and jiffies of a millisecond.
    Kernel,
}

impl Clock {
    /// A segment's departure time, as it is compared with others (`tcp_skb_sent_after`).
    #[inline]
    #[must_use]
    pub fn departure(self, left_at: Time) -> Time {
        match self {
            Self::Exact => left_at,
            Self::Kernel => left_at.floor_micros(),
        }
    }

    /// The time from `then` to `now`, as the clock shows it (`tcp_stamp_us_delta`).
    #[inline]
    #[must_use]
    pub fn elapsed(self, now: Time, then: Time) -> Duration {
        match self {
            Self::Exact => now.since(then),
            Self::Kernel => Duration::from_micros(micros(now) - micros(then)),
        }
    }

    /// A duration in the ticks of [`Self::elapsed`], rounded down.
    #[inline]
    #[must_use]
    pub fn in_ticks(self, length: Duration) -> Duration {
        match self {
            Self::Exact => length,
            Self::Kernel => Duration::from_micros(length.as_picos() / PICOS_PER_MICRO),
        }
    }

    /// The latest time for which [`Self::elapsed`] returns `ago` or more at `now`.
    #[must_use]
    pub fn before(self, now: Time, ago: Duration) -> Time {
        match self {
            Self::Exact => Time::ZERO + now.since(Time::ZERO).saturating_sub(ago),
            Self::Kernel => {
                let ticks = (micros(now) + 1).saturating_sub(ago.as_picos() / PICOS_PER_MICRO);
                Time::from_picos((ticks * PICOS_PER_MICRO).saturating_sub(1))
            }
        }
    }

    /// The idle time since `then`: Linux subtracts jiffies (`tcp_jiffies32`).
    #[must_use]
    pub fn idle(self, now: Time, then: Time) -> Duration {
        match self {
            Self::Exact => now.since(then),
            Self::Kernel => {
                let jiffies = |time: Time| time.as_picos() / PICOS_PER_JIFFY;
                Duration::from_millis(jiffies(now) - jiffies(then))
            }
        }
    }

    /// A timeout as it is stored: Linux rounds up to whole jiffies (`usecs_to_jiffies`).
    #[must_use]
    pub fn in_jiffies(self, timeout: Duration) -> Duration {
        match self {
            Self::Exact => timeout,
            Self::Kernel => Duration::from_millis(timeout.as_picos().div_ceil(PICOS_PER_JIFFY)),
        }
    }
}

fn micros(time: Time) -> u64 {
    time.as_picos() / PICOS_PER_MICRO
}
