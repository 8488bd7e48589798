//! The delays that LEDBAT remembers: the minimum of each of the last minutes, and the last few
//! samples (RFC 6817 §2.4.2).

use std::collections::VecDeque;
use std::num::NonZeroU64;
use tcplab_units::{Duration, Time};

/// The period of one entry of the history.
const PERIOD: Duration = Duration::from_secs(60);

/// The minimum of the newest `span` values. Values that a later one undercuts are not kept, so the
/// minimum is the first.
#[derive(Clone, Debug)]
struct Least {
    /// Numbered in order of arrival, each above the one before it.
    values: VecDeque<(u64, Duration)>,
    taken: u64,
    span: u64,
}

impl Least {
    fn new(span: NonZeroU64) -> Self {
        Self { values: VecDeque::new(), taken: 0, span: span.get() }
    }

    fn take(&mut self, value: Duration) {
        self.taken += 1;
        self.keep(value);
        let is_old = |&(number, _): &(u64, Duration)| self.taken - number >= self.span;
        if self.values.front().is_some_and(is_old) {
            self.values.pop_front();
        }
    }

    /// Lowers the newest value to `value`; false if there is none.
    fn lower(&mut self, value: Duration) -> bool {
        let Some(&(_, newest)) = self.values.back() else { return false };
        if value < newest {
            self.keep(value);
        }
        true
    }

    fn keep(&mut self, value: Duration) {
        while self.values.back().is_some_and(|&(_, other)| other >= value) {
            self.values.pop_back();
        }
        self.values.push_back((self.taken, value));
    }

    fn get(&self) -> Option<Duration> {
        self.values.front().map(|&(_, least)| least)
    }

    fn clear(&mut self) {
        self.values.clear();
    }
}

/// The remembered delays of a flow.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// `base_delays`: of minutes.
    base: Least,
    /// When the newest entry was begun: `last_rollover`.
    begun: Time,
    /// `current_delays`: of samples.
    current: Least,
}

impl Delays {
    /// Remembers so many minutes, and so many samples.
    pub fn new(history: NonZeroU64, filter: NonZeroU64) -> Self {
        Self { base: Least::new(history), begun: Time::ZERO, current: Least::new(filter) }
    }

    /// Takes a sample.
    pub fn take(&mut self, now: Time, delay: Duration) {
        let is_old = now.since(Time::ZERO) >= self.begun.since(Time::ZERO) + PERIOD;
        if is_old || !self.base.lower(delay) {
            self.begun = now;
            self.base.take(delay);
        }
        self.current.take(delay);
    }

    /// The minimum delay of the history.
    pub fn base(&self) -> Option<Duration> {
        self.base.get()
    }

    /// The queueing part of the current delay, once there is a sample.
    pub fn queueing(&self) -> Option<Duration> {
        Some(self.current.get()?.saturating_sub(self.base()?))
    }

    /// Starts over, for another kind of delay.
    pub fn forget(&mut self) {
        self.base.clear();
        self.current.clear();
    }

    /// Discards recent samples, which no longer apply.
    pub fn forget_current(&mut self) {
        self.current.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn delays() -> Delays {
        Delays::new(NonZeroU64::new(10).unwrap(), NonZeroU64::new(4).unwrap())
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn queueing_delay_is_the_minimum_of_the_last_four_samples() {
        let mut delays = delays();
        delays.take(at(0), MS * 10);
        for (delay, queueing) in [(50, 0), (40, 0), (60, 0), (70, 30), (80, 30), (80, 50)] {
            delays.take(at(0), MS * delay);
            assert_eq!(delays.queueing(), Some(MS * queueing), "{delay}");
        }
    }

    #[test]
    fn base_delay_expires_after_ten_minutes() {
        let mut delays = delays();
        delays.take(at(0), MS * 10);
        // The minute of second 0 is the first of ten until the eleventh begins, at 600 s.
        for minute in 1..=10 {
            delays.take(at(minute * 60), MS * 20);
            let base = if minute < 10 { 10 } else { 20 };
            assert_eq!(delays.base(), Some(MS * base), "{minute}");
        }
    }

    #[test]
    fn lower_delay_updates_the_base_delay_at_once() {
        let mut delays = delays();
        delays.take(at(0), MS * 20);
        delays.take(at(30), MS * 10);
        assert_eq!(delays.base(), Some(MS * 10));
    }
}
