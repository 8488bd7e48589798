//! Round-trip time and retransmission timeout: RFC 6298, or the estimator of Linux.

use tcplab_units::Duration;

/// An eighth of a microsecond: the unit of Linux's smoothed RTT.
pub const EIGHTH: Duration = Duration::from_nanos(125);

/// How RTT samples become a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoEstimator {
    /// RFC 6298 §2.
    Rfc6298,
    /// `tcp_rtt_estimator` and `tcp_set_rto` of Linux.
    Linux,
}

/// The estimator of an RTO and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// The estimator.
    pub estimator: RtoEstimator,
    /// Before the first sample (RFC 6298 §2.1).
    pub initial: Duration,
    /// Minimum (RFC 6298 §2.4).
    pub min: Duration,
    /// Maximum (RFC 6298 §2.5).
    pub max: Duration,
}

/// RTT estimation and RTO of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    srtt: Duration,
    /// Linux: 8 times the smoothed RTT, in microseconds.
    srtt_eighths: u32,
    estimate: Estimate,
    /// RTO without backoff.
    base: Duration,
    /// Doublings of the RTO since the last sample.
    backoff: u32,
    /// Minimum and maximum RTT of the newest segments delivered, whose ACKs were delayed least.
    min: Duration,
    max: Duration,
    /// The latest RTT; zero until there is one.
    latest: Duration,
    /// The sum in nanoseconds: in picoseconds, a fast connection would pass 64 bits within minutes.
    sum_nanos: u64,
    count: u64,
    /// Minimum RTT of the path, the handshake included; [`Duration::MAX`] until there is one.
    min_of_path: Duration,
}

/// The variation of RTTs.
#[derive(Clone, Copy, Debug)]
enum Estimate {
    None,
    /// RFC 6298.
    Rfc {
        rttvar: Duration,
    },
    Linux(Deviation),
}

/// Linux's RTT variation in microseconds: four times the mean deviation (`mdev`), its maximum in
/// the present round trip (`mdev_max`), and the variation in force.
#[derive(Clone, Copy, Debug)]
struct Deviation {
    now: u32,
    max: u32,
    rttvar: u32,
    /// The round trip ends when more than this is acknowledged.
    end: u64,
}

/// The sequence space when an RTT is measured.
#[derive(Clone, Copy, Debug)]
pub struct Progressed {
    /// The oldest that is not acknowledged.
    pub una: u64,
    /// The next to be sent.
    pub nxt: u64,
}

impl Rtt {
    /// No sample yet.
    #[must_use]
    pub fn new(limits: &RtoLimits) -> Self {
        Self {
            srtt: Duration::ZERO,
            srtt_eighths: 0,
            estimate: Estimate::None,
            base: limits.initial,
            backoff: 0,
            min: Duration::MAX,
            max: Duration::ZERO,
            latest: Duration::ZERO,
            sum_nanos: 0,
            count: 0,
            min_of_path: Duration::MAX,
        }
    }

    /// Takes the RTT of a segment that was sent once (Karn's algorithm, §3).
    #[inline]
    pub fn sample(&mut self, rtt: Duration, at: Progressed, limits: &RtoLimits) {
        let rto = match limits.estimator {
            RtoEstimator::Linux => self.sample_as_linux(rtt, at, limits),
            RtoEstimator::Rfc6298 => self.sample_as_rfc(rtt),
        };
        self.base = rto.max(limits.min).min(limits.max);
        // §5 (5.7): only a new sample ends the backoff.
        self.backoff = 0;
    }

    fn sample_as_rfc(&mut self, rtt: Duration) -> Duration {
        let rttvar = if let Estimate::Rfc { rttvar } = self.estimate {
            // §2.3, with alpha = 1/8 and beta = 1/4.
            let rttvar = (rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
            rttvar
        } else {
            // §2.2
            self.srtt = rtt;
            rtt / 2
        };
        self.estimate = Estimate::Rfc { rttvar };
        // The clock granularity G is negligible; §2.4 and §2.5 bound the result.
        self.srtt + rttvar * 4
    }

    /// `tcp_rtt_estimator` and `__tcp_set_rto`: the variation is the maximum deviation of each
    /// round trip, at least the minimum RTO; it falls slowly, and an RTT below the smoothed one
    /// raises it little.
    fn sample_as_linux(&mut self, rtt: Duration, at: Progressed, limits: &RtoLimits) -> Duration {
        let measured = micros(rtt).max(1);
        let least = micros(limits.min);
        let deviation = if let Estimate::Linux(mut deviation) = self.estimate {
            let error = i64::from(measured) - i64::from(self.srtt_eighths >> 3);
            self.srtt_eighths = in_32_bits(i64::from(self.srtt_eighths) + error).max(1);
            let mut change = error.abs() - i64::from(deviation.now >> 2);
            if error < 0 && change > 0 {
                change >>= 3;
            }
            deviation.now = in_32_bits(i64::from(deviation.now) + change);
            if deviation.now > deviation.max {
                deviation.max = deviation.now;
                deviation.rttvar = deviation.rttvar.max(deviation.max);
            }
            if at.una > deviation.end {
                if deviation.max < deviation.rttvar {
                    deviation.rttvar -= (deviation.rttvar - deviation.max) >> 2;
                }
                deviation.end = at.nxt;
                deviation.max = least;
            }
            deviation
        } else {
            self.srtt_eighths = measured.saturating_mul(8);
            let now = measured.saturating_mul(2);
            Deviation { now, max: now.max(least), rttvar: now.max(least), end: at.nxt }
        };
        self.estimate = Estimate::Linux(deviation);
        self.srtt = Duration::from_micros(u64::from(self.srtt_eighths >> 3));
        let rto = u64::from(self.srtt_eighths >> 3) + u64::from(deviation.rttvar);
        // In whole ticks.
        Duration::from_millis(rto.div_ceil(1000))
    }

    /// Minimum RTT of the path; [`Duration::MAX`] until there is one.
    #[inline]
    #[must_use]
    pub fn min_rtt(&self) -> Duration {
        self.min_of_path
    }

    /// Takes an RTT of the path (`tcp_update_rtt_min`).
    #[inline]
    pub fn update_min_rtt(&mut self, rtt: Duration) {
        self.min_of_path = self.min_of_path.min(rtt);
    }

    /// The latest RTT of a segment sent once; zero until there is one.
    #[must_use]
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Minimum, maximum, number and sum in nanoseconds of the recorded RTTs.
    #[must_use]
    pub fn recorded(&self) -> (Duration, Duration, u64, u64) {
        (self.min, self.max, self.count, self.sum_nanos)
    }

    /// Clears the recorded RTTs.
    pub fn restart_record(&mut self) {
        (self.min, self.max) = (Duration::MAX, Duration::ZERO);
        (self.sum_nanos, self.count) = (0, 0);
    }

    /// Records an RTT for the statistics of the connection.
    #[inline]
    pub fn record(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.latest = rtt;
        self.sum_nanos = self.sum_nanos.saturating_add(rtt.as_nanos());
        self.count += 1;
    }

    /// Mean of the recorded RTTs.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos / self.count)
    }

    /// The RTO after `times` timeouts in a row: doubled with each.
    #[cold]
    pub fn backed_off(&self, times: u32, limits: &RtoLimits) -> Duration {
        self.base.saturating_mul(1 << times.min(32)).min(limits.max)
    }

    /// The smoothed RTT; zero until the first sample.
    #[inline]
    pub fn srtt(&self) -> Duration {
        self.srtt
    }

    /// The smoothed RTT to the eighth of a microsecond, as Linux keeps it.
    #[inline]
    pub fn exact_srtt(&self) -> Duration {
        match self.estimate {
            Estimate::Linux(_) => EIGHTH * u64::from(self.srtt_eighths),
            _ => self.srtt,
        }
    }

    /// The retransmission timeout in force.
    #[inline]
    pub fn rto(&self, limits: &RtoLimits) -> Duration {
        if self.backoff == 0 {
            return self.base;
        }
        self.backed_off(self.backoff, limits)
    }

    /// The RTO without backoff.
    pub fn base_rto(&self) -> Duration {
        self.base
    }

    /// The retransmission timer expired: the next RTO is twice as long (§5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// The host refused the retransmission: the last timeout does not double the RTO.
    #[cold]
    pub fn undo_backoff(&mut self) {
        self.backoff = self.backoff.saturating_sub(1);
    }

    /// The SYN was retransmitted: data starts with an RTO of at least three seconds (§5.7;
    /// `TCP_TIMEOUT_FALLBACK` in Linux).
    pub fn after_syn_timeout(&mut self, limits: &RtoLimits) {
        self.backoff = 0;
        self.base = self.base.max(Duration::from_secs(3)).min(limits.max);
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_picos() / 1_000_000).unwrap_or(u32::MAX)
}

/// A value in the kernel's 32 bits. An RTT above 537 s wraps in the kernel and saturates here.
fn in_32_bits(value: i64) -> u32 {
    value.clamp(0, i64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// Nothing acknowledged: all samples are of one round trip.
    const AT: Progressed = Progressed { una: 1, nxt: 1_000_000 };

    fn rfc() -> RtoLimits {
        let (initial, max) = (Duration::from_secs(1), Duration::from_secs(60));
        RtoLimits { estimator: RtoEstimator::Rfc6298, initial, min: millis(200), max }
    }

    #[test]
    fn first_sample_sets_srtt_and_half_of_it_as_variation() {
        let mut rtt = Rtt::new(&rfc());
        assert_eq!(rtt.rto(&rfc()), Duration::from_secs(1));
        rtt.sample(millis(100), AT, &rfc());
        // 100 + 4 * 50
        assert_eq!((rtt.srtt(), rtt.rto(&rfc())), (millis(100), millis(300)));
    }

    #[test]
    fn later_samples_move_srtt_by_an_eighth_and_rttvar_by_a_quarter() {
        let mut rtt = Rtt::new(&rfc());
        rtt.sample(millis(100), AT, &rfc());
        rtt.sample(millis(180), AT, &rfc());
        // rttvar = (3 * 50 + |100 - 180|) / 4 = 57.5; srtt = (7 * 100 + 180) / 8 = 110
        assert_eq!(rtt.srtt(), millis(110));
        assert_eq!(rtt.rto(&rfc()), millis(110 + 230));
    }

    #[test]
    fn rto_is_at_least_the_minimum_and_doubles_up_to_the_maximum() {
        let mut rtt = Rtt::new(&rfc());
        for _ in 0..100 {
            rtt.sample(millis(10), AT, &rfc());
        }
        assert_eq!(rtt.rto(&rfc()), millis(200));
        rtt.back_off();
        assert_eq!(rtt.rto(&rfc()), millis(400));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(&rfc()), rfc().max);
        rtt.sample(millis(10), AT, &rfc());
        assert_eq!(rtt.rto(&rfc()), millis(200));
    }

    #[test]
    fn mean_rtt_does_not_overflow_with_billions_of_samples() {
        // 100 ms at 416,667 ACKs a second (10 Gbit/s, every second segment) for an hour.
        let mut rtt = Rtt::new(&rfc());
        rtt.count = 416_667 * 3_600;
        rtt.sum_nanos = millis(100).as_nanos() * rtt.count;
        rtt.record(millis(100));
        assert_eq!(rtt.mean(), millis(100));
    }

    fn linux() -> RtoLimits {
        RtoLimits { estimator: RtoEstimator::Linux, ..rfc() }
    }

    #[test]
    fn linux_adds_the_minimum_rto_to_a_steady_rtt() {
        let mut rtt = Rtt::new(&linux());
        for una in 0..100 {
            rtt.sample(millis(40), Progressed { una: 2 * una, nxt: 2 * una + 1 }, &linux());
        }
        // 40 ms + rttvar, which is never below 200 ms.
        assert_eq!((rtt.srtt(), rtt.rto(&linux())), (millis(40), millis(240)));
    }

    #[test]
    fn linux_rttvar_is_the_largest_mdev_of_a_round_trip() {
        let mut rtt = Rtt::new(&linux());
        rtt.sample(millis(100), AT, &linux());
        // mdev = 2 * 100 = 200 ms. One of 300 ms: the error is 200, so mdev = 200 + 200 - 50 = 350
        // ms and srtt = 100 + 200 / 8 = 125 ms.
        rtt.sample(millis(300), AT, &linux());
        assert_eq!((rtt.srtt(), rtt.rto(&linux())), (millis(125), millis(125 + 350)));
        // One of 125 ms lowers mdev, but not the maximum of the round trip.
        rtt.sample(millis(125), AT, &linux());
        assert_eq!(rtt.rto(&linux()), millis(125 + 350));
    }

    #[test]
    fn srtt_saturates_at_32_bits() {
        // 2^32 eighths of a microsecond, rounded down to whole ones.
        let longest = Duration::from_micros((1 << 29) - 1);
        let mut rtt = Rtt::new(&linux());
        rtt.sample(Duration::from_secs(600), AT, &linux());
        assert_eq!(rtt.srtt(), longest);
        let mut rtt = Rtt::new(&linux());
        for _ in 0..200 {
            rtt.sample(Duration::from_secs(100), AT, &linux());
        }
        for _ in 0..200 {
            let before = rtt.srtt();
            rtt.sample(Duration::MAX, AT, &linux());
            assert!(rtt.srtt() >= before);
        }
        assert_eq!(rtt.srtt(), longest);
    }

    #[test]
    fn linux_damps_rttvar_when_rtt_falls() {
        let mut rtt = Rtt::new(&linux());
        rtt.sample(millis(400), AT, &linux());
        // mdev = 800. One of 100 ms: error 300, 300 - 200 = 100, of which an eighth: 812.5 ms;
        // srtt = 400 - 300 / 8 = 362.5 ms; together 1175 ms.
        rtt.sample(millis(100), AT, &linux());
        assert_eq!(rtt.rto(&linux()), millis(1175));
    }
}
