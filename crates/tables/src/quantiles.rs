//! Percentiles of many values in constant memory.

/// Percentiles are exact up to this many values.
pub const EXACT: usize = 4096;

/// The number of buckets for each power of two, as a power of two. Half a bucket is 1/512 of its
/// lower end.
const BITS: u32 = 8;
const PER_OCTAVE: usize = 1 << BITS;

/// Percentiles of whole numbers: exact up to [`EXACT`] values, within 0.2 % beyond. They do not
/// depend on the order of values.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    values: Vec<u64>,
    buckets: Buckets,
    count: u64,
    sum: u128,
}

/// A histogram with buckets of relative size: 256 for each power of two.
#[derive(Clone, Debug, Default)]
struct Buckets {
    /// The number of the first bucket in `counts`.
    first: usize,
    counts: Vec<u64>,
}

impl Quantiles {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        if self.count as usize <= EXACT {
            self.values.push(value);
            return;
        }
        for value in std::mem::take(&mut self.values) {
            self.buckets.add(value);
        }
        self.buckets.add(value);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, rounded down.
    pub fn mean(&self) -> Option<u64> {
        // The mean of 64-bit numbers fits 64 bits.
        (self.count > 0).then(|| (self.sum / u128::from(self.count)) as u64)
    }

    /// The percentile by nearest rank, with `longer` additional values that exceed all others:
    /// `None` if the rank is one of those, or there are no values.
    pub fn percentile(&self, percent: u64, longer: u64) -> Option<u64> {
        let all = u128::from(self.count) + u128::from(longer);
        let rank = (u128::from(percent) * all).div_ceil(100).max(1);
        if rank > u128::from(self.count) {
            return None;
        }
        let rank = rank as u64;
        if self.values.is_empty() {
            return self.buckets.at(rank);
        }
        let mut values = self.values.clone();
        let (_, value, _) = values.select_nth_unstable(rank as usize - 1);
        Some(*value)
    }
}

impl Buckets {
    fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = self.first - bucket;
            self.counts.splice(..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// The middle of the bucket with this rank, from 1.
    fn at(&self, rank: u64) -> Option<u64> {
        let mut before = 0;
        let place = self.counts.iter().position(|count| {
            before += count;
            before >= rank
        })?;
        Some(middle(self.first + place))
    }
}

fn bucket(value: u64) -> usize {
    if value < PER_OCTAVE as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - BITS;
    shift as usize * PER_OCTAVE + (value >> shift) as usize
}

fn middle(bucket: usize) -> u64 {
    if bucket < PER_OCTAVE {
        return bucket as u64;
    }
    let shift = bucket / PER_OCTAVE - 1;
    let least = ((bucket % PER_OCTAVE + PER_OCTAVE) as u64) << shift;
    least + (((1u64 << shift) - 1) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Quantiles {
        let mut quantiles = Quantiles::default();
        values.into_iter().for_each(|value| quantiles.add(value));
        quantiles
    }

    #[test]
    fn percentiles_of_few_values_are_nearest_rank() {
        // The 95th percentile of 20 values is the 19th, whatever 0.95 is in binary.
        let twenty = of((1..=20).rev());
        assert_eq!(twenty.percentile(50, 0), Some(10));
        assert_eq!(twenty.percentile(95, 0), Some(19));
        assert_eq!(twenty.percentile(99, 0), Some(20));
        assert_eq!(twenty.mean(), Some(10));
        assert_eq!(of([]).percentile(50, 0), None);
        assert_eq!(of([]).mean(), None);
    }

    #[test]
    fn unfinished_values_count_as_longest() {
        // 18 of 20: the median is the 10th, and the 95th percentile is the 19th, which is missing.
        let some = of(1..=18);
        assert_eq!(some.percentile(50, 2), Some(10));
        assert_eq!(some.percentile(90, 2), Some(18));
        assert_eq!(some.percentile(95, 2), None);
        assert_eq!(of([]).percentile(50, 3), None);
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_values() {
        let many = of((0..1_000_000).map(|k| 1_000_000 + k % 1_000_000));
        assert!(many.values.is_empty());
        assert!(many.buckets.counts.len() <= 2 * PER_OCTAVE);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_values_near_its_middle(value: u64) {
            let middle = middle(bucket(value));
            prop_assert!(u128::from(middle.abs_diff(value)) * 512 <= u128::from(value));
        }

        #[test]
        fn percentiles_of_many_values_are_within_a_five_hundredth(
            seed in 1u64..1_000_000, percent in 1u64..=100
        ) {
            // A permutation of 1, 2, ... 9973, which is prime, in steps of 1,000.
            let values = (1..=9973u64).map(|k| (k * seed % 9973 + 1) * 1_000);
            let many = of(values.clone());
            let mut sorted: Vec<u64> = values.collect();
            sorted.sort_unstable();
            let expected = sorted[(percent * 9973).div_ceil(100) as usize - 1];
            let found = many.percentile(percent, 0).unwrap();
            prop_assert!(found.abs_diff(expected) * 500 <= expected, "{found} for {expected}");
        }
    }
}
