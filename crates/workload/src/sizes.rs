//! Sizes of transfers.
//!
//! A largest size truncates a distribution: larger sizes are not drawn, and the relative
//! probabilities of the others are unchanged. All mathematical functions are those of `libm`.

use tcplab_engine::Random;
use tcplab_model::schema::{LogNormal, Pareto, Sizes};

/// Draws sizes from a distribution.
#[derive(Clone, Debug)]
pub struct Sampler<'a> {
    sizes: &'a Sizes,
    /// Only for Zipf's law.
    ranks: Option<Ranks>,
}

impl<'a> Sampler<'a> {
    /// A sampler of this distribution.
    pub fn new(sizes: &'a Sizes) -> Self {
        let ranks = match sizes {
            Sizes::Zipf(zipf) => Some(Ranks::new(zipf.exponent, zipf.max.0 / zipf.unit.0.max(1))),
            _ => None,
        };
        Self { sizes, ranks }
    }

    /// The next size in bytes, rounded, at least one.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let size = match self.sizes {
            Sizes::Fixed(fixed) => fixed.size.0,
            Sizes::Zipf(zipf) => {
                let ranks = self.ranks.as_ref().expect("made with the sampler");
                ranks.draw(random) * zipf.unit.0
            }
            Sizes::Pareto(sizes) => pareto(sizes, random.unit()),
            Sizes::LogNormal(sizes) => log_normal(sizes, random),
            Sizes::Empirical(known) => {
                known.sizes[random.up_to(known.sizes.len() as u64 - 1) as usize].0
            }
        };
        size.max(1)
    }
}

/// By the inverse of the distribution function, between the smallest size and the largest.
fn pareto(sizes: &Pareto, unit: f64) -> u64 {
    let min = sizes.min.0 as f64;
    let power = |size: f64| libm::pow(min / size, sizes.shape);
    // The probability of sizes above the limit in the unlimited distribution.
    let above = sizes.max.map_or(0.0, |max| power(max.0 as f64));
    let size = min / libm::pow(above + unit * (1.0 - above), 1.0 / sizes.shape);
    (size.round() as u64).min(sizes.max.map_or(u64::MAX, |max| max.0))
}

/// Drawn until not above the limit, which is never below the median: at most twice on average.
fn log_normal(sizes: &LogNormal, random: &mut Random) -> u64 {
    loop {
        // Box and Muller (1958): two uniform numbers make a normal one.
        let radius = (-2.0 * libm::log(random.unit())).sqrt();
        let normal = radius * libm::cos(std::f64::consts::TAU * random.unit());
        let size = (sizes.median.0 as f64 * libm::exp(sizes.sigma * normal)).round() as u64;
        if sizes.max.is_none_or(|max| size <= max.0) {
            return size;
        }
    }
}

/// Numbers from 1 to `most`, n with a probability of n^-exponent: rejection-inversion, which needs
/// no table (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from monotone
/// discrete distributions").
#[derive(Clone, Debug)]
struct Ranks {
    exponent: f64,
    most: f64,
    /// The limits of the integral, between which draws are uniform.
    from: f64,
    until: f64,
    /// Draws this close below a number are accepted at once.
    at_once: f64,
}

impl Ranks {
    fn new(exponent: f64, most: u64) -> Self {
        let mut ranks =
            Self { exponent, most: most.max(1) as f64, from: 0.0, until: 0.0, at_once: 0.0 };
        ranks.from = ranks.integral(1.5) - 1.0;
        ranks.until = ranks.integral(ranks.most + 0.5);
        ranks.at_once = 2.0 - ranks.inverse(ranks.integral(2.5) - libm::pow(2.0, -exponent));
        ranks
    }

    /// The integral of x^-exponent from 1 to `x`, exact also for exponents near 1.
    fn integral(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 { libm::log(x) } else { libm::expm1(rest * libm::log(x)) / rest }
    }

    /// The inverse of the integral.
    fn inverse(&self, value: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 { libm::exp(value) } else { libm::exp(libm::log1p(rest * value) / rest) }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let value = self.until + random.unit() * (self.from - self.until);
            let x = self.inverse(value);
            let rank = x.round().clamp(1.0, self.most);
            let is_below = || value >= self.integral(rank + 0.5) - libm::pow(rank, -self.exponent);
            if rank - x <= self.at_once || is_below() {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests;
