//! Round trips: the estimate that a sender makes of them, and their distribution.

/// The minimum variation in Linux's RTO (`TCP_RTO_MIN`), in nanoseconds.
const RTO_MIN: i64 = 200_000_000;
/// The RTO before the first sample (RFC 6298 §2.1).
const RTO_INIT: i64 = 1_000_000_000;

/// The longest plausible round trip, in nanoseconds: 13 days.
pub(super) const LONGEST: i64 = 1 << 50;

/// A sender's RTT estimate (RFC 6298, as in Linux's `tcp_rtt_estimator`), in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// The smoothed RTT.
    srtt: i64,
    /// Four times the mean deviation, and its maximum in this round trip.
    mdev: i64,
    mdev_max: i64,
    rttvar: i64,
    /// The round trip ends when this is acknowledged.
    round: u64,
}

impl Estimate {
    /// Adds a sample; `una` is the first unacknowledged byte, `next` the next new one.
    pub fn add(&mut self, sample: i64, una: u64, next: u64) {
        let sample = sample.clamp(1, LONGEST);
        if self.srtt == 0 {
            self.srtt = sample;
            self.mdev = sample * 2;
            self.rttvar = self.mdev.max(RTO_MIN);
            (self.mdev_max, self.round) = (self.rttvar, next);
            return;
        }
        let error = sample - self.srtt;
        self.srtt += error / 8;
        let mut change = error.abs() - self.mdev / 4;
        // A shorter RTT than expected is no reason for a much longer timeout.
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.mdev += change;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if una > self.round {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) / 4;
            }
            (self.mdev_max, self.round) = (RTO_MIN, next);
        }
    }

    /// The smoothed RTT; 0 before the first sample.
    pub fn smoothed(&self) -> i64 {
        self.srtt
    }

    /// The RTO without backoff.
    pub fn rto(&self) -> i64 {
        if self.srtt == 0 { RTO_INIT } else { self.srtt + self.rttvar }
    }
}

/// The number of buckets for each power of two, as a power of two. Half a bucket is 1/256 of its
/// lower end.
const BITS: u32 = 7;

/// A compact distribution of round trips: mean, minimum and maximum are exact, and percentiles are
/// within 0.4 %.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    count: u64,
    sum: u128,
    least: u64,
    greatest: u64,
    /// Non-empty buckets with their counts.
    buckets: Vec<(u16, u32)>,
}

impl RoundTrips {
    /// Adds a sample, in nanoseconds.
    pub fn add(&mut self, sample: i64) {
        let sample = sample.max(0) as u64;
        self.least = if self.count == 0 { sample } else { self.least.min(sample) };
        self.greatest = self.greatest.max(sample);
        self.count += 1;
        self.sum += u128::from(sample);
        let bucket = bucket(sample);
        match self.buckets.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(place) => self.buckets[place].1 = self.buckets[place].1.saturating_add(1),
            Err(place) => self.buckets.insert(place, (bucket, 1)),
        }
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The minimum, mean and maximum, in milliseconds.
    pub fn range(&self) -> Option<[f64; 3]> {
        let mean = self.sum.checked_div(self.count.into())? as f64;
        Some([self.least as f64, mean, self.greatest as f64].map(|time| time / 1e6))
    }

    /// A percentile (nearest rank), in milliseconds.
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut before = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, count)| {
            before += u64::from(*count);
            before >= rank
        })?;
        Some(middle(*bucket).clamp(self.least, self.greatest) as f64 / 1e6)
    }
}

fn bucket(value: u64) -> u16 {
    let value = value.max(1 << BITS);
    let exponent = value.ilog2() - BITS;
    ((exponent << BITS) + (value >> exponent) as u32 - (1 << BITS)) as u16
}

fn middle(bucket: u16) -> u64 {
    let (exponent, rest) = (u32::from(bucket) >> BITS, u64::from(bucket) & ((1 << BITS) - 1));
    let least = (rest + (1 << BITS)) << exponent;
    least + (1 << exponent) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_half_a_bucket() {
        let mut found = RoundTrips::default();
        (1..=1000).for_each(|ms| found.add(ms * 1_000_000));
        let [least, mean, greatest] = found.range().unwrap();
        assert_eq!((least, mean, greatest), (1.0, 500.5, 1000.0));
        for percent in [1, 50, 95, 99] {
            let expected = percent as f64 * 10.0;
            let found = found.percentile(percent).unwrap();
            assert!((found / expected - 1.0).abs() <= 1.0 / 256.0, "{percent} %: {found}");
        }
    }

    #[test]
    fn rto_follows_rfc_6298_with_the_minimum_of_linux() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.rto(), 1_000_000_000);
        // At the first sample RTTVAR is half of it, and four times that is below Linux's minimum.
        estimate.add(50_000_000, 1, 100);
        assert_eq!(estimate.rto(), 250_000_000);
        let mut slow = Estimate::default();
        slow.add(400_000_000, 1, 100);
        assert_eq!(slow.rto(), 400_000_000 + 2 * 400_000_000);
    }
}
