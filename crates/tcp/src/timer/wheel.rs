//! The timer wheel of Linux: timers count jiffies and expire late rather than early
//! (`kernel/time/timer.c`).

use super::TICK;
use tcplab_units::{Duration, Time};

/// Slots of each level, and the factor in granularity between levels, as a shift.
const PLACES: u64 = 63;
const COARSER: u32 = 3;
/// Jiffies at the start of an experiment, modulo the span of the wheel: they count from five
/// minutes before boot (`INITIAL_JIFFIES`), and experiments start two seconds after boot.
const AT_BEGINNING: u64 = (1 << 24) - 298_000;

/// A timer's expiry in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    /// Ticks from now on.
    ticks: u64,
    /// The tick for which it is set.
    pub tick: u64,
}

impl Expiry {
    #[inline]
    pub fn new(now: Time, delay: Duration) -> Self {
        let ticks = delay.as_picos().div_ceil(TICK.as_picos());
        Self { ticks, tick: AT_BEGINNING + now.as_picos() / TICK.as_picos() + ticks }
    }

    /// When the timer expires, and the granularity of its level as a shift. If another timer has
    /// expired in this tick, the wheel has already advanced (`__run_timers`).
    #[inline]
    pub fn expires(self, has_turned: bool) -> (Time, u32) {
        let ticks = self.ticks.saturating_sub(has_turned.into());
        let mut shift = 0;
        while ticks >= PLACES << shift && shift < 8 * COARSER {
            shift += COARSER;
        }
        let rings = ((self.tick >> shift) + 1) << shift;
        (Time::ZERO + TICK.saturating_mul(rings - AT_BEGINNING), shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs_out(now: Time, delay: Duration, has_turned: bool) -> (Time, u32) {
        Expiry::new(now, delay).expires(has_turned)
    }

    #[test]
    fn wheel_timer_expires_at_the_next_level_tick_and_never_early() {
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let out = |micros, millis| runs_out(at(micros), Duration::from_millis(millis), false).0;
        // 40 ms from 0.2 ms: the tick of 40 ms may be early, the one of 41 ms is not.
        assert_eq!(out(200, 40), at(41_000));
        // The second ring has places of 8 ms: 5 + 240 = 245, so 248 ms.
        assert_eq!(out(5_000, 240), at(248_000));
        // The third has places of 64 ms, which begin at 16 ms: 600 -> 656 = 16 + 10 * 64.
        assert_eq!(out(0, 600), at(656_000));
        // 63 ticks are for the second ring, or as 62 more for the first: 8 + 63, or 9 + 62.
        let delay = Duration::from_millis(63);
        assert_eq!(runs_out(at(9_300), delay, false), (at(80_000), 3));
        assert_eq!(runs_out(at(9_300), delay, true), (at(73_000), 0));
    }
}
