//! Distributions of delays, as lookup tables for random draws.

use tcplab_units::Duration;

pub use tcplab_model::spread::{Cell, cells, mean};

/// An exponentially distributed time, from a number between 0 and 1. At least a nanosecond.
pub(crate) fn exponential(mean: Duration, unit: f64) -> Duration {
    let picos = -libm::log(unit) * mean.as_picos() as f64;
    Duration::from_picos(picos as u64).max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests;
