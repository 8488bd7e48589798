//! The sizes of transfers.

use super::{POSITIVE, invalid};
use crate::mistake::Problem;
use crate::read::{choice, table};
use tcplab_units::Bytes;

choice! {
    /// The sizes of transfers: one size (`"20 kB"`), or a table with the `kind` of distribution.
    #[what("distribution of sizes")]
    #[short(only_size)]
    pub enum Sizes {
        /// One size.
        "fixed" => Fixed,
        /// Zipf's law: the n-th smallest size, n times `unit`, has a probability of n^-exponent.
        "zipf" => Zipf,
        /// The Pareto distribution: many small sizes, and a few very large ones.
        "pareto" => Pareto,
        /// The log-normal distribution.
        "lognormal" => LogNormal,
        /// Measured sizes.
        "empirical" => Empirical,
    }
}

table! {
    /// One size.
    pub struct Fixed {
        /// The size: "20 kB".
        pub size: Bytes,
    }
}

table! {
    /// Zipf's law.
    pub struct Zipf {
        /// The exponent: 1.7.
        pub exponent: f64 [POSITIVE],
        /// The step between sizes, which is also the smallest: "1 kB".
        pub unit: Bytes = Bytes(1000),
        /// The largest size: "1 GB".
        pub max: Bytes,
    }
}

table! {
    /// The Pareto distribution, cut off at `max`.
    pub struct Pareto {
        /// The shape: 1.2. Smaller shapes put more of the data into large transfers.
        pub shape: f64 [POSITIVE],
        /// The smallest size: "4 kB".
        pub min: Bytes,
        /// The largest size: "100 MB".
        pub max: Option<Bytes> = None,
    }
}

table! {
    /// The log-normal distribution.
    pub struct LogNormal {
        /// The median size: "10 kB".
        pub median: Bytes,
        /// The standard deviation of the logarithm: 1.5.
        pub sigma: f64 [POSITIVE],
        /// The largest size: "100 MB".
        pub max: Option<Bytes> = None,
    }
}

table! {
    /// Measured sizes.
    pub struct Empirical {
        /// Equally likely sizes: `["4 kB", "21 kB", "120 kB"]`.
        pub sizes: Vec<Bytes>,
    }
}

/// A text that begins like a number is one size for all transfers.
fn only_size(value: &serde_json::Value) -> Option<serde_json::Value> {
    let text = value.as_str()?;
    let is_word = text.trim_start().starts_with(|c: char| c.is_alphabetic());
    (!is_word).then(|| serde_json::json!({ "kind": "fixed", "size": text }))
}

impl Sizes {
    pub(super) fn check(&self) -> Result<(), Problem> {
        let is_upside_down = |min: Bytes, max: Option<Bytes>| max.is_some_and(|max| max < min);
        match self {
            Self::Zipf(zipf) if is_upside_down(zipf.unit, Some(zipf.max)) => {
                Err(invalid("has sizes whose `max` is less than their `unit`"))
            }
            Self::Pareto(pareto) if is_upside_down(pareto.min, pareto.max) => {
                Err(invalid("has sizes whose `max` is less than their `min`"))
            }
            Self::LogNormal(sizes) if is_upside_down(sizes.median, sizes.max) => {
                Err(invalid("has sizes whose `max` is less than their `median`"))
            }
            Self::Empirical(sizes) if sizes.sizes.is_empty() => Err(invalid("has no sizes")),
            _ => Ok(()),
        }
    }

    /// The mean in bytes, if there is one. Rounding to whole bytes is neglected.
    pub fn mean(&self) -> Option<f64> {
        Some(match self {
            Self::Fixed(fixed) => fixed.size.0 as f64,
            Self::Zipf(zipf) => zipf.mean(),
            Self::Pareto(pareto) => return pareto.mean(),
            Self::LogNormal(sizes) => sizes.mean(),
            Self::Empirical(known) => {
                known.sizes.iter().map(|size| size.0 as f64).sum::<f64>() / known.sizes.len() as f64
            }
        })
    }
}

impl Zipf {
    fn mean(&self) -> f64 {
        let most = (self.max.0 / self.unit.0.max(1)).max(1);
        let unit = self.unit.0 as f64;
        unit * sum_of_powers(most, self.exponent - 1.0) / sum_of_powers(most, self.exponent)
    }
}

/// The number of terms added one by one; the error of the rest is below 1e-12 of the sum.
const TERMS: u64 = 1000;

/// The sum of n^-exponent for n from 1 to `most`: the first terms one by one, and the rest by the
/// Euler-Maclaurin formula, to the first derivative.
fn sum_of_powers(most: u64, exponent: f64) -> f64 {
    let power = |n: f64| libm::pow(n, -exponent);
    let direct: f64 = (1..=most.min(TERMS)).rev().map(|n| power(n as f64)).sum();
    if most <= TERMS {
        return direct;
    }
    let (from, to) = (TERMS as f64, most as f64);
    let rest = 1.0 - exponent;
    let integral = if rest.abs() < 1e-9 {
        libm::log(to / from)
    } else {
        (libm::pow(to, rest) - libm::pow(from, rest)) / rest
    };
    let slope = |n: f64| -exponent * power(n) / n;
    direct + integral + (power(to) - power(from)) / 2.0 + (slope(to) - slope(from)) / 12.0
}

impl Pareto {
    /// The mean does not exist without a largest size if the shape is 1 or less.
    fn mean(&self) -> Option<f64> {
        let (min, shape) = (self.min.0 as f64, self.shape);
        let Some(max) = self.max else {
            return (shape > 1.0).then(|| min * shape / (shape - 1.0));
        };
        let log = libm::log(max.0 as f64 / min);
        if log <= 0.0 {
            return Some(min);
        }
        // The integral of x times the density, over the part that is not cut off. Near a shape of 1
        // it is a logarithm.
        let rest = 1.0 - shape;
        let integral = if (rest * log).abs() < 1e-9 { log } else { libm::expm1(rest * log) / rest };
        Some(min * shape * integral / -libm::expm1(-shape * log))
    }
}

impl LogNormal {
    fn mean(&self) -> f64 {
        let uncut = self.median.0 as f64 * libm::exp(self.sigma * self.sigma / 2.0);
        let Some(max) = self.max else { return uncut };
        let cut = libm::log(max.0 as f64 / self.median.0 as f64) / self.sigma;
        uncut * normal_below(cut - self.sigma) / normal_below(cut)
    }
}

/// The probability that a standard normal variable is below this value.
fn normal_below(value: f64) -> f64 {
    libm::erfc(-value / std::f64::consts::SQRT_2) / 2.0
}
