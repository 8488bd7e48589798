//! Reads the clock of the guest: `CLOCK_MONOTONIC`, in nanoseconds since boot.
//!
//! UML advances this clock (`time-travel=inf-cpu` in `crates/linux/src/boot.rs`).

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;

pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    nanoseconds(now.tv_sec, now.tv_nsec)
}

/// The difference between the real-time clock and this one.
pub(crate) fn real_ahead() -> u64 {
    // Each read advances both clocks by the same amount.
    let before = now();
    let real = clock_gettime(ClockId::Realtime);
    let after = now();
    nanoseconds(real.tv_sec, real.tv_nsec) - u64::midpoint(before, after)
}

pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    seconds as u64 * SECOND + nanoseconds as u64
}

/// Sleeps until then; a past time is no sleep.
pub(crate) fn sleep_until(time: u64) {
    let until = timespec(time);
    while clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {}
}

/// Returns once everything that can run has run: the clock only advances when nothing is left to
/// run.
pub(crate) fn settle() {
    sleep_until(now() + 1);
}

/// The earliest start of experiments.
const FIRST_START: u64 = 2 * SECOND;
/// The kernel's timer wheel repeats after at most this time, and `CoDel` counts in units of 1024
/// ns: starting later by a multiple of both changes nothing. The simulator uses the same constant
/// (`crates/tcp/src/timer/wheel.rs`).
const PLACES: u64 = 4_096_000_000;

/// The start of an experiment: two seconds after boot, or later by whole periods of the timer
/// wheel, because the kernel activates devices that have come up at a hundred a second
/// (`MAX_DO_DEV_PER_LOOP` of `net/core/link_watch.c`).
pub(crate) fn next_start(now: u64, devices: usize) -> u64 {
    let ready = now + SECOND + devices as u64 * SECOND / 50;
    FIRST_START + ready.saturating_sub(FIRST_START).div_ceil(PLACES) * PLACES
}

pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    Timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_at_least_a_second_away_and_aligned_for_timers() {
        assert_eq!(next_start(0, 4), 2 * SECOND);
        assert_eq!(next_start(SECOND - 1, 0), 2 * SECOND);
        assert_eq!(next_start(SECOND, 4), 2 * SECOND + PLACES);
        assert_eq!(next_start(SECOND, 402), 2 * SECOND + 2 * PLACES);
    }
}
