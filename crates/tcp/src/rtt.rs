//! Round-trip time and retransmission timeout (RFC 6298).

use crate::settings::Settings;
use tcplab_units::Duration;

/// Round-trip times of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    srtt: Duration,
    rttvar: Duration,
    /// RTO without backoff.
    base: Duration,
    /// How often the RTO was doubled since the last sample.
    backoff: u32,
    pub min: Duration,
    pub max: Duration,
    /// In nanoseconds: in picoseconds, a fast connection would pass 64 bits within minutes.
    sum_nanos: u64,
    pub count: u64,
}

impl Rtt {
    pub fn new(settings: &Settings) -> Self {
        Self {
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            base: settings.initial_rto,
            backoff: 0,
            min: Duration::MAX,
            max: Duration::ZERO,
            sum_nanos: 0,
            count: 0,
        }
    }

    /// Takes a measurement of a segment that was sent once (Karn's algorithm, §3).
    #[inline]
    pub fn sample(&mut self, rtt: Duration, settings: &Settings) {
        if self.count == 0 {
            // §2.2
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            // §2.3, with alpha = 1/8 and beta = 1/4.
            self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        // The clock is finer than any G worth adding; §2.4 and §2.5 bound the result.
        self.base = (self.srtt + self.rttvar * 4).max(settings.min_rto).min(settings.max_rto);
        // §5 (5.7): only a new measurement ends the backoff.
        self.backoff = 0;
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.sum_nanos += rtt.as_nanos();
        self.count += 1;
    }

    /// The mean of all samples, of which there is one at least.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos / self.count)
    }

    /// The timeout after so many of one kind, doubled with each.
    pub fn backed_off(&self, times: u32, settings: &Settings) -> Duration {
        self.base.saturating_mul(1 << times.min(32)).min(settings.max_rto)
    }

    /// Zero until the first sample.
    #[inline]
    pub fn srtt(&self) -> Duration {
        self.srtt
    }

    /// The retransmission timeout in force.
    #[inline]
    pub fn rto(&self, settings: &Settings) -> Duration {
        if self.backoff == 0 {
            return self.base;
        }
        self.backed_off(self.backoff, settings)
    }

    /// The timer ran out: the next one is twice as long (§5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// The SYN had to be repeated: data starts with an RTO of at least three seconds (§5.7).
    pub fn after_syn_timeout(&mut self, settings: &Settings) {
        self.backoff = 0;
        self.base = self.base.max(Duration::from_secs(3)).min(settings.max_rto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn settings() -> Settings {
        Settings { min_rto: millis(200), ..Settings::default() }
    }

    #[test]
    fn first_sample_sets_srtt_and_half_of_it_as_variation() {
        let mut rtt = Rtt::new(&settings());
        assert_eq!(rtt.rto(&settings()), Duration::from_secs(1));
        rtt.sample(millis(100), &settings());
        // 100 + 4 * 50
        assert_eq!((rtt.srtt(), rtt.rto(&settings())), (millis(100), millis(300)));
    }

    #[test]
    fn later_samples_move_it_by_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::new(&settings());
        rtt.sample(millis(100), &settings());
        rtt.sample(millis(180), &settings());
        // rttvar = (3 * 50 + |100 - 180|) / 4 = 57.5; srtt = (7 * 100 + 180) / 8 = 110
        assert_eq!(rtt.srtt(), millis(110));
        assert_eq!(rtt.rto(&settings()), millis(110 + 230));
    }

    #[test]
    fn never_below_the_minimum_and_doubled_up_to_the_maximum() {
        let mut rtt = Rtt::new(&settings());
        for _ in 0..100 {
            rtt.sample(millis(10), &settings());
        }
        assert_eq!(rtt.rto(&settings()), millis(200));
        rtt.back_off();
        assert_eq!(rtt.rto(&settings()), millis(400));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(&settings()), settings().max_rto);
        rtt.sample(millis(10), &settings());
        assert_eq!(rtt.rto(&settings()), millis(200));
    }

    #[test]
    fn the_mean_holds_for_as_many_samples_as_a_long_fast_run_has() {
        // 100 ms at 416,667 ACKs a second (10 Gbit/s, every second segment) for an hour.
        let mut rtt = Rtt::new(&settings());
        rtt.sample(millis(100), &settings());
        rtt.count = 416_667 * 3_600;
        rtt.sum_nanos = millis(100).as_nanos() * rtt.count;
        rtt.sample(millis(100), &settings());
        assert_eq!(rtt.mean(), millis(100));
    }
}
