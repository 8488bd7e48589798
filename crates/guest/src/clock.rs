//! The clock of the guest: `CLOCK_MONOTONIC`, in nanoseconds since boot.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;

pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// Sleeps until then; a time that has passed is no sleep.
pub(crate) fn sleep_until(time: u64) {
    let until = timespec(time);
    while clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {}
}

/// Returns once everything has been done that can be done now: the clock only moves on when nothing
/// is left to run.
pub(crate) fn settle() {
    sleep_until(now() + 1);
}

/// The whole second after the next, or later: the kernel lets packets out of devices that have come up
/// by a hundred a second (`MAX_DO_DEV_PER_LOOP` of `net/core/link_watch.c`).
pub(crate) fn next_start(now: u64, devices: usize) -> u64 {
    (now / SECOND + 2 + devices as u64 / 50) * SECOND
}

pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    Timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_a_whole_second_and_at_least_one_away() {
        assert_eq!(next_start(0, 4), 2 * SECOND);
        assert_eq!(next_start(SECOND - 1, 4), 2 * SECOND);
        assert_eq!(next_start(SECOND, 4), 3 * SECOND);
        assert_eq!(next_start(0, 402), 10 * SECOND);
    }
}
