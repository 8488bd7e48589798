//! Distributions compared with the requested ones: Kolmogorov and Smirnov, and moments.

use super::*;
use tcplab_engine::Random;
use tcplab_model::schema::{Measured, Normal, ParetoTimes, Spread, Uniform};

fn ms(millis: f64) -> Duration {
    Duration::from_secs_f64(millis / 1e3)
}

/// So many times in milliseconds, drawn from cells as by backends, sorted.
fn drawn(spread: &Spread, count: usize) -> Vec<f64> {
    let cells = cells(spread);
    let mut random = Random::new(3, "spread");
    let mut drawn: Vec<_> = (0..count)
        .map(|_| {
            let place = u128::from(random.bits()) * cells.len() as u128;
            let (least, most) = cells[(place >> 64) as usize];
            let share = place as u64 as f64 / 18_446_744_073_709_551_616.0;
            least.as_millis_f64() + share * (most - least).as_millis_f64()
        })
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    drawn
}

/// The probability that a standard normal variable is above this value.
fn above(value: f64) -> f64 {
    libm::erfc(value / std::f64::consts::SQRT_2) / 2.0
}

/// The greatest distance from a distribution function.
fn distance(drawn: &[f64], below: impl Fn(f64) -> f64) -> f64 {
    let count = drawn.len() as f64;
    let distances = drawn.iter().enumerate().map(|(place, &time)| {
        let share = below(time);
        (share - place as f64 / count).abs().max((share - (place + 1) as f64 / count).abs())
    });
    distances.fold(0.0, f64::max)
}

const COUNT: usize = 100_000;

/// With 100,000 numbers the distance is below 1.95/sqrt(n) with a probability of 0.999.
const NEAR: f64 = 0.0062;

#[test]
fn uniform_times_are_uniform() {
    let spread = Spread::Uniform(Uniform { least: ms(2.0), most: ms(7.0) });
    let drawn = drawn(&spread, COUNT);
    assert!(distance(&drawn, |time| (time - 2.0) / 5.0) < NEAR);
}

#[test]
fn normal_times_are_normal() {
    let spread = Spread::Normal(Normal { mean: ms(10.0), deviation: ms(2.0) });
    let drawn = drawn(&spread, COUNT);
    assert!(distance(&drawn, |time| 1.0 - above((time - 10.0) / 2.0)) < NEAR);
    assert!((mean(&cells(&spread)).as_millis_f64() - 10.0).abs() < 1e-3);
}

#[test]
fn negative_draws_are_clamped_to_zero() {
    // Half of a normal distribution around 0 is negative: half of the times are zero.
    let spread = Spread::Normal(Normal { mean: Duration::ZERO, deviation: ms(2.0) });
    let drawn = drawn(&spread, COUNT);
    let none = drawn.iter().filter(|time| **time <= 0.0).count() as f64 / COUNT as f64;
    // Binomial: standard deviation 0.0016; the bound is four of them.
    assert!((none - 0.5).abs() < 0.0064, "{none}");
}

#[test]
fn pareto_times_follow_the_pareto_distribution() {
    let spread = Spread::ParetoTimes(ParetoTimes { shape: 2.5, least: ms(1.0) });
    let drawn = drawn(&spread, COUNT);
    assert!(distance(&drawn, |time| 1.0 - libm::pow(time, -2.5)) < NEAR);
    // The mean of a Pareto distribution: 2.5/1.5. Trapezoids under a convex curve add a little.
    let mean = mean(&cells(&spread)).as_millis_f64();
    assert!((mean / (2.5 / 1.5) - 1.0).abs() < 2e-3, "{mean}");
}

#[test]
fn exponential_times_are_exponential() {
    let spread = Spread::Exponential(tcplab_model::schema::Exponential { mean: ms(4.0) });
    let drawn = drawn(&spread, COUNT);
    assert!(distance(&drawn, |time| 1.0 - libm::exp(-time / 4.0)) < NEAR);
    assert!((mean(&cells(&spread)).as_millis_f64() / 4.0 - 1.0).abs() < 1e-3);
}

#[test]
fn measured_times_are_drawn_as_they_are() {
    let times = [3.0, 1.0, 1.0, 8.0].map(ms).to_vec();
    let drawn = drawn(&Spread::Measured(Measured { times }), 10_000);
    let count = |time: f64| drawn.iter().filter(|drawn| (**drawn - time).abs() < 1e-9).count();
    assert_eq!(count(1.0) + count(3.0) + count(8.0), 10_000);
    // Binomial: mean 5000, standard deviation 50; the bound is four of them.
    assert!((4_800..=5_200).contains(&count(1.0)));
}
