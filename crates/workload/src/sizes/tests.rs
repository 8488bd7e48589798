//! Means and quantiles of drawn sizes, compared with those of the distributions.

use super::*;
use tcplab_model::schema::{Empirical, Fixed, Zipf};
use tcplab_units::Bytes;

const COUNT: usize = 200_000;

fn drawn(sizes: &Sizes) -> Vec<u64> {
    let (sampler, mut random) = (Sampler::new(sizes), Random::new(1, "test"));
    (0..COUNT).map(|_| sampler.draw(&mut random)).collect()
}

fn mean(values: &[u64]) -> f64 {
    values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64
}

/// Asserts that the mean is within five of its standard deviations, estimated from the values.
fn assert_mean(values: &[u64], expected: f64) {
    let mean = mean(values);
    let squares = values.iter().map(|&value| (value as f64 - mean) * (value as f64 - mean));
    let deviation = squares.sum::<f64>().sqrt() / values.len() as f64;
    assert!((mean - expected).abs() < 5.0 * deviation, "{mean} +- {deviation}, not {expected}");
}

/// Asserts the share of values with a property.
fn assert_share(values: &[u64], is_so: impl Fn(u64) -> bool, expected: f64) {
    let share = values.iter().filter(|&&value| is_so(value)).count() as f64 / values.len() as f64;
    let deviation = (expected * (1.0 - expected) / values.len() as f64).sqrt();
    assert!((share - expected).abs() < 5.0 * deviation, "{share}, not {expected}");
}

#[test]
fn fixed_sizes_are_all_the_same() {
    let values = drawn(&Sizes::Fixed(Fixed { size: Bytes(20_000) }));
    assert!(values.iter().all(|&value| value == 20_000));
}

#[test]
fn zipf_follows_its_law() {
    for exponent in [0.7, 1.0, 1.7, 3.0] {
        let zipf = Zipf { exponent, unit: Bytes(1000), max: Bytes(500_999) };
        let values = drawn(&Sizes::Zipf(zipf));
        let weight = |rank: u64| libm::pow(rank as f64, -exponent);
        let all: f64 = (1..=500).map(weight).sum();
        let sum: f64 = (1..=500).map(|rank| rank as f64 * weight(rank)).sum();
        assert_mean(&values, 1000.0 * sum / all);
        for rank in [1, 2, 3, 10, 500] {
            assert_share(&values, |value| value == rank * 1000, weight(rank) / all);
        }
        assert!(values.iter().all(|value| value % 1000 == 0 && *value <= 500_000));
    }
}

#[test]
fn zipf_of_one_size_is_that_size() {
    let zipf = Zipf { exponent: 1.2, unit: Bytes(1000), max: Bytes(1999) };
    assert!(drawn(&Sizes::Zipf(zipf)).iter().all(|&value| value == 1000));
}

#[test]
fn pareto_is_cut_off_at_its_largest() {
    let (shape, min, max) = (1.2, 4000.0_f64, 1e6);
    let pareto = Pareto { shape, min: Bytes(4000), max: Some(Bytes(1_000_000)) };
    let values = drawn(&Sizes::Pareto(pareto));
    assert!(values.iter().all(|value| (4000..=1_000_000).contains(value)));
    // Mean of the truncated distribution: the integral of x times its density.
    let kept = 1.0 - libm::pow(min / max, shape);
    let whole = libm::pow(min, 1.0 - shape) - libm::pow(max, 1.0 - shape);
    assert_mean(&values, shape * libm::pow(min, shape) / kept * whole / (shape - 1.0));
    assert_share(&values, |value| value <= 8000, (1.0 - libm::pow(0.5, shape)) / kept);
}

#[test]
fn pareto_without_a_largest_has_its_tail() {
    let pareto = Pareto { shape: 2.5, min: Bytes(4000), max: None };
    let values = drawn(&Sizes::Pareto(pareto));
    assert_mean(&values, 4000.0 * 2.5 / 1.5);
    assert_share(&values, |value| value > 40_000, libm::pow(10.0, -2.5));
}

#[test]
fn log_normal_has_its_median_and_its_cut() {
    let (median, sigma) = (Bytes(10_000), 1.5);
    let values = drawn(&Sizes::LogNormal(LogNormal { median, sigma, max: None }));
    // Mean: median times exp(sigma^2 / 2). Above exp(sigma) times the median: one deviation, 15.87
    // %.
    assert_mean(&values, 10_000.0 * libm::exp(1.125));
    assert_share(&values, |value| value <= 10_000, 0.5);
    assert_share(&values, |value| value > 44_817, 0.158_655);
    // Limited to the median, half of the distribution is left, and a quarter of the whole is below
    // the lower quartile.
    let cut = drawn(&Sizes::LogNormal(LogNormal { median, sigma, max: Some(median) }));
    assert!(cut.iter().all(|&value| value <= 10_000));
    // The lower quartile is 0.67449 deviations below the median.
    assert_share(&cut, |value| value <= 3636, 0.5);
}

#[test]
fn measured_sizes_are_equally_likely() {
    let sizes = [4000, 21_000, 120_000];
    let values = drawn(&Sizes::Empirical(Empirical { sizes: sizes.map(Bytes).into() }));
    for size in sizes {
        assert_share(&values, |value| value == size, 1.0 / 3.0);
    }
}

#[test]
fn sizes_are_at_least_one_byte() {
    assert!(drawn(&Sizes::Fixed(Fixed { size: Bytes(0) })).iter().all(|&value| value == 1));
}

#[test]
fn means_are_those_that_loads_are_computed_from() {
    let max = Some(Bytes(100_000));
    for sizes in [
        Sizes::Zipf(Zipf { exponent: 0.7, unit: Bytes(10), max: Bytes(50_000) }),
        Sizes::Zipf(Zipf { exponent: 1.2, unit: Bytes(10), max: Bytes(5_000) }),
        Sizes::Pareto(Pareto { shape: 0.9, min: Bytes(1_000), max }),
        Sizes::Pareto(Pareto { shape: 3.5, min: Bytes(1_000), max: None }),
        Sizes::LogNormal(LogNormal { median: Bytes(5_000), sigma: 1.3, max }),
        Sizes::LogNormal(LogNormal { median: Bytes(5_000), sigma: 0.5, max: None }),
    ] {
        let (sampler, mut random) = (Sampler::new(&sizes), Random::new(1, "test"));
        let drawn: Vec<f64> = (0..200_000).map(|_| sampler.draw(&mut random) as f64).collect();
        let count = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / count;
        let variance = drawn.iter().map(|size| (size - mean) * (size - mean)).sum::<f64>() / count;
        // Five standard deviations of the mean, plus half a byte for rounding.
        let bound = 5.0 * (variance / count).sqrt() + 0.5;
        let expected = sizes.mean().unwrap();
        assert!((mean - expected).abs() < bound, "{sizes:?}: {mean} and {expected}");
    }
}
