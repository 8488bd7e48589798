//! Simulated time, in whole picoseconds.
//!
//! A byte at 100 Gbit/s takes 80 ps, so no common rate needs rounding that adds up. 2^64 ps are 213
//! days, longer than any experiment.

use crate::decimal::{Notation, written_as};
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A point in time, counted from the start of the experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

const NOTATION: Notation = Notation {
    quantity: "time",
    example: "25 ms",
    limit: "213 days",
    step: "a picosecond",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
    also: &[("µs", 1_000_000), ("min", 60_000_000_000_000), ("h", 3_600_000_000_000_000)],
};

written_as!(Duration, NOTATION);

impl Time {
    /// The start of the experiment.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const NEVER: Self = Self(u64::MAX);

    /// The time this many picoseconds after the start.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Picoseconds since the start.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for tables and formulas.
    pub fn as_secs_f64(self) -> f64 {
        Duration(self.0).as_secs_f64()
    }

    /// This time in whole nanoseconds, rounded up.
    #[must_use]
    #[inline]
    pub const fn in_nanos(self) -> Self {
        // `NEVER` is not a multiple of a nanosecond, and stays unchanged.
        match self.0.checked_add(999) {
            Some(picos) => Self(picos / 1_000 * 1_000),
            None => self,
        }
    }

    /// This time in whole nanoseconds, rounded down.
    #[must_use]
    #[inline]
    pub const fn floor_nanos(self) -> Self {
        Self(self.0 / 1_000 * 1_000)
    }

    /// This time in whole microseconds, rounded down.
    #[must_use]
    #[inline]
    pub const fn floor_micros(self) -> Self {
        Self(self.0 / 1_000_000 * 1_000_000)
    }

    /// The time since `earlier`, or zero if that lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero time.
    pub const ZERO: Self = Self(0);
    /// The longest duration.
    pub const MAX: Self = Self(u64::MAX);

    /// A duration of this many picoseconds.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// A duration of this many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos * 1_000)
    }

    /// A duration of this many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000_000)
    }

    /// A duration of this many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000_000)
    }

    /// A duration of this many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000_000)
    }

    /// The duration nearest to this many seconds; negative numbers count as zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e12) as u64)
    }

    /// Whole picoseconds.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Seconds, for tables and formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Milliseconds, for tables.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This many times the duration, saturating.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// The distance between two durations.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(after.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, after: Duration) {
        *self = *self + after;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl std::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(durations: I) -> Self {
        durations.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitError;
    use proptest::prelude::*;

    #[test]
    fn reads_every_unit_exactly() {
        for (text, picos) in [
            ("1 ps", 1),
            ("80 ns", 80_000),
            ("1.5us", 1_500_000),
            ("25 ms", 25_000_000_000),
            ("0.1 s", 100_000_000_000),
            ("2 min", 120_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Duration::from_picos(picos)), "{text}");
        }
    }

    #[test]
    fn messages_say_what_is_allowed() {
        let error = |text: &str| text.parse::<Duration>().unwrap_err().to_string();
        assert_eq!(
            error("25 msec"),
            "`msec` is not a unit of time; the units are ps, ns, us, ms, s, µs, min, h"
        );
        assert_eq!(error("25"), "`25` has no unit; the units are ps, ns, us, ms, s, µs, min, h");
        assert_eq!(error("-1 ms"), "`-1 ms` is negative; write it like `25 ms`");
        assert_eq!(error("soon"), "`soon` does not begin with a number; write it like `25 ms`");
        assert!(matches!("0.1 ps".parse::<Duration>(), Err(UnitError::TooFine { .. })));
        assert!(matches!("9999999 h".parse::<Duration>(), Err(UnitError::TooLarge { .. })));
    }

    #[test]
    fn too_fine_and_too_large_times_have_different_messages() {
        for (text, message) in [
            (
                "2.0999999999999996 s",
                "`2.0999999999999996 s` is finer than a picosecond; write `2.1 s`",
            ),
            ("0.1 ps", "`0.1 ps` is finer than a picosecond"),
            (
                "1.00000000000000000001 h",
                "`1.00000000000000000001 h` is finer than a picosecond; write `3600 s`",
            ),
            ("9999999 h", "`9999999 h` is more than 213 days, the most there is"),
            (
                "100000000000000000000000 s",
                "`100000000000000000000000 s` is more than 213 days, the most there is",
            ),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn prints_in_the_unit_people_would_use() {
        for text in ["0 ms", "1.5 s", "250 ms", "90 s", "80 ps", "1.000000000001 s"] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn printed_values_are_read_back(picos: u64) {
            let duration = Duration::from_picos(picos);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Duration>();
        }
    }
}
