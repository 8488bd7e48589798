//! The sending times of a datagram source: constant and random gaps, with pauses.
//!
//! A separate crate because both sides of the backend `linux` use it: a schedule may have ten
//! million entries, so the guest draws it instead of receiving it. All times are in whole
//! nanoseconds, the kernel's unit, so that every backend sends at the same ones.

use serde::{Deserialize, Serialize};
use tcplab_engine::Random;
use tcplab_units::Duration;

/// The parameters of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The seed of the run and the name of the element, if gaps are random.
    pub seed: u64,
    /// See `seed`.
    pub name: String,
    /// The time between datagrams, or its mean.
    pub gap: Duration,
    /// Whether gaps are exponential instead of constant.
    pub is_random: bool,
    /// The number of datagrams; `None` means unlimited.
    pub packets: Option<u64>,
    /// The on periods of the source: in order, without overlap. `None` means always.
    pub periods: Option<Vec<(Duration, Duration)>>,
}

impl Pace {
    /// The times at which datagrams leave, from the start of the flow, in ascending order with
    /// possible repeats. Without a number of packets or periods they never end.
    pub fn times(&self) -> Times<'_> {
        self.times_in(self.periods.as_deref())
    }

    /// The same times, with periods borrowed from elsewhere.
    pub fn times_in<'a>(&self, periods: Option<&'a [(Duration, Duration)]>) -> Times<'a> {
        const ALWAYS: &[(Duration, Duration)] = &[(Duration::ZERO, Duration::MAX)];
        let mut times = Times {
            gap: self.gap.max(Duration::from_picos(1)),
            random: self.is_random.then(|| Random::new(self.seed, &self.name)),
            left: self.packets.unwrap_or(u64::MAX),
            periods: periods.unwrap_or(ALWAYS).iter(),
            next: Duration::MAX,
            until: Duration::ZERO,
        };
        times.turn_on();
        times
    }
}

/// The times of a [`Pace`], one by one.
#[derive(Clone, Debug)]
pub struct Times<'a> {
    gap: Duration,
    random: Option<Random>,
    left: u64,
    periods: std::slice::Iter<'a, (Duration, Duration)>,
    /// The next time, to the picosecond, and the end of the period in which it must lie.
    next: Duration,
    until: Duration,
}

impl Times<'_> {
    /// Begins the next period, with a datagram or a random gap.
    fn turn_on(&mut self) {
        match self.periods.next() {
            Some(&(from, until)) => {
                self.until = until;
                self.next = from;
                if self.random.is_some() {
                    self.step();
                }
            }
            None => self.left = 0,
        }
    }

    fn step(&mut self) {
        let gap = match &mut self.random {
            None => self.gap,
            Some(random) => exponential(random, self.gap.as_secs_f64()),
        };
        self.next = Duration::from_picos(self.next.as_picos().saturating_add(gap.as_picos()));
    }
}

impl Iterator for Times<'_> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        while self.left > 0 && self.next >= self.until {
            self.turn_on();
        }
        self.left = self.left.checked_sub(1)?;
        let time = nearest_nanosecond(self.next);
        self.step();
        Some(time)
    }
}

/// The time between two events of a Poisson process with this mean in seconds.
pub fn exponential(random: &mut Random, mean_s: f64) -> Duration {
    Duration::from_secs_f64(-libm::log(random.unit()) * mean_s)
}

/// Rounds to nanoseconds, the resolution of kernels.
pub fn nearest_nanosecond(time: Duration) -> Duration {
    Duration::from_picos(time.as_picos().saturating_add(500) / 1000 * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(gap: Duration, is_random: bool) -> Pace {
        Pace { seed: 1, name: "udp".into(), gap, is_random, packets: None, periods: None }
    }

    fn nanos(times: Times<'_>) -> Vec<u64> {
        times.map(|time| time.as_picos() / 1000).collect()
    }

    #[test]
    fn constant_gaps_do_not_drift() {
        // A third of a microsecond, 333.333 ns, each rounded to the nearest nanosecond.
        let pace = Pace { packets: Some(7), ..pace(Duration::from_picos(333_333), false) };
        assert_eq!(nanos(pace.times()), [0, 333, 667, 1000, 1333, 1667, 2000]);
    }

    #[test]
    fn each_period_restarts_and_the_packet_count_spans_all() {
        let micros = Duration::from_micros;
        let periods =
            vec![(micros(1), micros(8)), (micros(8), micros(9)), (micros(20), micros(50))];
        let pace = Pace { packets: Some(6), periods: Some(periods), ..pace(micros(3), false) };
        assert_eq!(nanos(pace.times()), [1000, 4000, 7000, 8000, 20_000, 23_000]);
        let pace = Pace { packets: None, ..pace };
        assert_eq!(pace.times().count(), 4 + 10);
    }

    #[test]
    fn random_gaps_are_exponential() {
        let pace = Pace { packets: Some(100_000), ..pace(Duration::from_micros(20), true) };
        let times: Vec<f64> = pace.times().map(Duration::as_secs_f64).collect();
        let before = std::iter::once(0.0).chain(times.iter().copied());
        let gaps: Vec<f64> = times.iter().zip(before).map(|(time, before)| time - before).collect();
        let count = gaps.len() as f64;
        // Mean and standard deviation are both 20 us; the bound is five standard deviations of the
        // mean.
        let mean = gaps.iter().sum::<f64>() / count;
        assert!((mean / 20e-6 - 1.0).abs() < 5.0 / count.sqrt(), "{mean}");
        // The variance of the square of an exponential variate is 20 times the fourth power of the
        // mean.
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / count;
        let deviation = (20.0 / count).sqrt();
        assert!((square / 400e-12 - 2.0).abs() < 5.0 * deviation, "{square}");
    }

    #[test]
    fn random_gaps_fill_their_periods() {
        // On for 1 ms of every 3, 10,000 times: 10 s with 50,000 datagrams of every 200 us.
        let start = |k: u64| Duration::from_millis(3 * k);
        let periods: Vec<_> =
            (0..10_000).map(|k| (start(k), start(k) + Duration::from_millis(1))).collect();
        let pace =
            Pace { periods: Some(periods.clone()), ..pace(Duration::from_micros(200), true) };
        let times: Vec<Duration> = pace.times().collect();
        let expected = 50_000.0_f64;
        assert!((times.len() as f64 - expected).abs() < 5.0 * expected.sqrt(), "{}", times.len());
        let is_on = |time: &Duration| {
            let at = periods.partition_point(|period| period.0 <= *time) - 1;
            // Rounded to the nearest nanosecond, the last one may be at the end of the period.
            *time <= periods[at].1
        };
        assert!(times.iter().all(is_on));
        assert!(times.is_sorted());
    }
}
