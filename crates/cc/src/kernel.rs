//! The kernel's units: jiffies, of a millisecond here (`HZ` = 1000), and microseconds.

use tcplab_units::{Duration, Time};

/// The kernel's clock of milliseconds.
pub(crate) fn jiffies(time: Time) -> u64 {
    time.since(Time::ZERO).as_millis()
}

/// Whole microseconds, as the kernel keeps RTTs.
pub(crate) fn micros(time: Duration) -> u64 {
    time.as_picos() / 1_000_000
}
