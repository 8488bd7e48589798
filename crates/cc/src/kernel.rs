//! The kernel's units.

use tcplab_units::{Duration, Time};

/// The kernel's clock of milliseconds (`tcp_jiffies32`, with 1000 a second).
pub(crate) fn jiffies(time: Time) -> u64 {
    time.since(Time::ZERO).as_millis()
}

/// Whole microseconds, the kernel's unit of RTTs.
pub(crate) fn micros(time: Duration) -> u64 {
    time.as_picos() / 1_000_000
}
