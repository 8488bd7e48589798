//! Distributions of times, as lookup tables for random draws.
//!
//! A distribution is divided into cells of equal probability: the first holds the lowest 1/4096 of
//! all times, and so on. Times are uniform within a cell. Every backend then draws the same time
//! from the same random number, without mathematical functions that a kernel lacks. The last cell
//! of an unbounded distribution is as wide as its mean requires: the overall mean is exact, but
//! times rarer than one in 4096 are bounded by that cell.

use crate::schema::{Normal, ParetoTimes, Spread};
use sha2::{Digest, Sha256};
use tcplab_units::Duration;

/// The number of cells of a continuous distribution.
const CELLS: u32 = 4096;

/// The minimum and maximum of a cell.
pub type Cell = (Duration, Duration);

/// The cells of a distribution, all of equal probability.
pub fn cells(spread: &Spread) -> Vec<Cell> {
    match spread {
        Spread::Uniform(it) => vec![(it.least, it.most)],
        Spread::Normal(it) => normal(it),
        Spread::ParetoTimes(it) => pareto(it),
        Spread::Exponential(it) => continuous(
            |share| -libm::log1p(-share) * it.mean.as_picos() as f64,
            // Memoryless: the mean beyond any time is that time plus the mean.
            |from| from + it.mean.as_picos() as f64,
        ),
        Spread::Measured(it) => {
            let mut times = it.times.clone();
            times.sort_unstable();
            times.into_iter().map(|time| (time, time)).collect()
        }
    }
}

/// The mean of the cells.
pub fn mean(cells: &[Cell]) -> Duration {
    let sum: u128 = cells
        .iter()
        .map(|cell| u128::from(cell.0.as_picos()) + u128::from(cell.1.as_picos()))
        .sum();
    Duration::from_picos((sum / (2 * cells.len().max(1) as u128)) as u64)
}

/// A time for an element of a network, drawn from the run's seed, the element's name and a number,
/// independently of other draws.
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

/// Cells from the inverse of the distribution function and from the conditional mean beyond a time,
/// both in picoseconds.
fn continuous(inverse: impl Fn(f64) -> f64, mean_beyond: impl Fn(f64) -> f64) -> Vec<Cell> {
    // Times are limited to a quarter of the clock's range, 53 days.
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
        // The part beyond a time is a Pareto distribution with that time as the minimum.
        |from| from * shape / (shape - 1.0),
    )
}

fn normal(normal: &Normal) -> Vec<Cell> {
    let (mean, deviation) = (normal.mean.as_picos() as f64, normal.deviation.as_picos() as f64);
    let mut cells = continuous(
        |share| mean + deviation * quantile(share),
        |from| {
            // The mean of a tail is the density where the tail begins over its probability.
            let from = (from - mean) / deviation;
            let density = libm::exp(-from * from / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
            mean + deviation * density / above(from)
        },
    );
    // The lower tail mirrors the upper one, down to zero.
    let last = cells[cells.len() - 1].1;
    cells[0].0 = (normal.mean * 2).saturating_sub(last);
    cells
}

/// The probability that a standard normal variable is above this value.
fn above(value: f64) -> f64 {
    libm::erfc(value / std::f64::consts::SQRT_2) / 2.0
}

/// The value that a standard normal variable is below with this probability, by bisection.
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
