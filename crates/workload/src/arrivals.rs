//! Transfers that begin at random: a Poisson process.

use crate::sizes::Sampler;
use tcplab_engine::Random;
use tcplab_model::schema::Arrivals;
use tcplab_units::Duration;

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When it begins, after the flow's start.
    pub after: Duration,
    /// Its size in bytes.
    pub size: u64,
}

/// The transfers of a flow in their order, drawn as they are asked for. They end with the number that
/// the experiment gives, if it gives one.
#[derive(Clone, Debug)]
pub struct Transfers<'a> {
    /// Gaps are exponential with this mean.
    mean_gap_s: f64,
    left: Option<u64>,
    sampler: Sampler<'a>,
    last: Duration,
    /// Times and sizes have generators of their own: other sizes come at the same times.
    gaps: Random,
    sizes: Random,
}

impl<'a> Transfers<'a> {
    /// The transfers of the flow called `name` in a run with this seed.
    pub fn new(arrivals: &'a Arrivals, seed: u64, name: &str) -> Self {
        Self {
            mean_gap_s: 1.0 / arrivals.per_second,
            left: arrivals.transfers,
            sampler: Sampler::new(&arrivals.sizes),
            last: Duration::ZERO,
            gaps: Random::new(seed, &format!("arrivals {name}")),
            sizes: Random::new(seed, &format!("sizes {name}")),
        }
    }
}

impl Iterator for Transfers<'_> {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let gap_s = -libm::log(self.gaps.unit()) * self.mean_gap_s;
        let picos = Duration::from_secs_f64(gap_s).as_picos();
        self.last = Duration::from_picos(self.last.as_picos().saturating_add(picos));
        Some(Transfer { after: self.last, size: self.sampler.draw(&mut self.sizes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_model::schema::{Fixed, Sizes, Zipf};
    use tcplab_units::Bytes;

    fn arrivals(per_second: f64, transfers: Option<u64>) -> Arrivals {
        let sizes = Sizes::Fixed(Fixed { size: Bytes(20_000) });
        Arrivals { per_second, sizes, transfers }
    }

    fn times(arrivals: &Arrivals, seed: u64) -> Vec<f64> {
        Transfers::new(arrivals, seed, "a").take(100_000).map(|it| it.after.as_secs_f64()).collect()
    }

    #[test]
    fn gaps_are_exponential() {
        let times = times(&arrivals(50.0, None), 1);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = gaps.len() as f64;
        // The mean is 1/50 s, and so is the standard deviation; five of that of the mean.
        let mean = gaps.iter().sum::<f64>() / count;
        assert!((mean * 50.0 - 1.0).abs() < 5.0 / count.sqrt(), "{mean}");
        // More than twice the mean: exp(-2); binomial.
        let share = gaps.iter().filter(|&&gap| gap > 0.04).count() as f64 / count;
        let expected = 0.135_335;
        let deviation = (expected * (1.0 - expected) / count).sqrt();
        assert!((share - expected).abs() < 5.0 * deviation, "{share}");
    }

    #[test]
    fn a_number_of_transfers_ends_them() {
        assert_eq!(times(&arrivals(1.0, Some(7)), 1).len(), 7);
    }

    #[test]
    fn seed_and_name_decide_and_sizes_do_not_move_times() {
        let fixed = arrivals(10.0, Some(100));
        assert_eq!(times(&fixed, 1), times(&fixed, 1));
        assert_ne!(times(&fixed, 1), times(&fixed, 2));
        let zipf = Zipf { exponent: 1.5, unit: Bytes(1000), max: Bytes(1_000_000) };
        let zipf = Arrivals { sizes: Sizes::Zipf(zipf), ..fixed.clone() };
        assert_eq!(times(&fixed, 1), times(&zipf, 1));
        let first = |name| Transfers::new(&fixed, 1, name).next().unwrap().after;
        assert_ne!(first("a"), first("b"));
    }
}
