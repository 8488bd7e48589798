//! Distributions of times, as tables that are drawn from.
//!
//! A distribution becomes cells of the same probability: the first holds the least 1/4096 of all
//! times, and so on. Within a cell times are evenly spread. So every backend draws the same time from
//! the same random number, without mathematics that a kernel does not have. The last cell of a
//! distribution without an end is as wide as gives its times their mean: the mean of all is exact, and
//! what is rarer than one in 4096 is not longer than that cell.

use crate::schema::{Normal, ParetoTimes, Spread};
use sha2::{Digest, Sha256};
use tcplab_units::Duration;

/// Into how many cells a continuous distribution is divided.
const CELLS: u32 = 4096;

/// The least and the greatest time of a cell.
pub type Cell = (Duration, Duration);

/// The cells of a distribution, all of the same probability.
pub fn cells(spread: &Spread) -> Vec<Cell> {
    match spread {
        Spread::Uniform(it) => vec![(it.least, it.most)],
        Spread::Normal(it) => normal(it),
        Spread::ParetoTimes(it) => pareto(it),
        Spread::Exponential(it) => continuous(
            |share| -libm::log1p(-share) * it.mean.as_picos() as f64,
            // Without memory: beyond any time, the mean is that time and one mean more.
            |from| from + it.mean.as_picos() as f64,
        ),
        Spread::Measured(it) => {
            let mut times = it.times.clone();
            times.sort_unstable();
            times.into_iter().map(|time| (time, time)).collect()
        }
    }
}

/// The mean of what is drawn from cells.
pub fn mean(cells: &[Cell]) -> Duration {
    let sum: u128 = cells
        .iter()
        .map(|cell| u128::from(cell.0.as_picos()) + u128::from(cell.1.as_picos()))
        .sum();
    Duration::from_picos((sum / (2 * cells.len().max(1) as u128)) as u64)
}

/// A time for an element of a network, drawn from the run's seed, the name of what asks and a number: the
/// same whatever else is drawn.
pub(crate) fn drawn(cells: &[Cell], seed: u64, name: &str, number: u64) -> Duration {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(number.to_le_bytes());
    let hash = hash.chain_update(name).finalize();
    let word = |from: usize| {
        let bytes = hash[from..from + 8].iter().rev();
        bytes.fold(0_u128, |word, byte| word << 8 | u128::from(*byte))
    };
    let (least, most) = cells[((word(0) * cells.len() as u128) >> 64) as usize];
    let width = u128::from((most.saturating_sub(least)).as_picos());
    least + Duration::from_picos(((word(8) * (width + 1)) >> 64) as u64)
}

/// From the inverse of the distribution function, and the mean of all that is more than a time, both in
/// picoseconds.
fn continuous(inverse: impl Fn(f64) -> f64, mean_beyond: impl Fn(f64) -> f64) -> Vec<Cell> {
    // The greatest time of all is a quarter of the clock's range, 53 days.
    let picos = |picos: f64| Duration::from_picos((picos.clamp(0.0, 4.6e18)) as u64);
    let edge = |cell: u32| inverse(f64::from(cell) / f64::from(CELLS));
    let mut cells: Vec<_> = (0..CELLS - 1).map(|cell| (edge(cell), edge(cell + 1))).collect();
    let last = edge(CELLS - 1);
    cells.push((last, 2.0 * mean_beyond(last) - last));
    cells.into_iter().map(|(least, most)| (picos(least), picos(most))).collect()
}

fn pareto(pareto: &ParetoTimes) -> Vec<Cell> {
    let (least, shape) = (pareto.least.as_picos() as f64, pareto.shape);
    continuous(
        |share| least / libm::pow(1.0 - share, 1.0 / shape),
        // What lies beyond a time is a Pareto distribution again, with that time as the least.
        |from| from * shape / (shape - 1.0),
    )
}

fn normal(normal: &Normal) -> Vec<Cell> {
    let (mean, deviation) = (normal.mean.as_picos() as f64, normal.deviation.as_picos() as f64);
    let mut cells = continuous(
        |share| mean + deviation * quantile(share),
        |from| {
            // The mean of a tail is the density where it begins over its probability.
            let from = (from - mean) / deviation;
            let density = libm::exp(-from * from / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
            mean + deviation * density / above(from)
        },
    );
    // The lower tail is as the upper one, down to nothing.
    let last = cells[cells.len() - 1].1;
    cells[0].0 = (normal.mean * 2).saturating_sub(last);
    cells
}

/// The probability that a standard normal number is above this.
fn above(value: f64) -> f64 {
    libm::erfc(value / std::f64::consts::SQRT_2) / 2.0
}

/// Below which a standard normal number is with this probability, found by halving.
fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if 1.0 - above(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}
