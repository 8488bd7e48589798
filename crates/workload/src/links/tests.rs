//! Rates, delays and outages, checked by arithmetic and theory.

use super::*;
use tcplab_model::{Backend, Profile, from_toml};

const MINUTE: Duration = Duration::from_secs(60);

/// A lane of 10 Mbit/s and 20 ms with these settings.
fn lane(settings: &str) -> LanePlan {
    let toml = format!(
        "duration = \"60 s\"\nflows = [{{ from = \"a\", to = \"b\" }}]\n[[network.links]]\n\
         between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n{settings}\n"
    );
    let backend = Backend {
        name: "sim",
        profile: Profile::Rfc,
        version: &|_| "1".into(),
        unsupported: &|_| Vec::new(),
    };
    from_toml(&toml).unwrap().plans(&backend).unwrap()[0].lanes[0].clone()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn mbit(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 1e6
}

#[test]
fn a_sine_swings_around_the_rate() {
    let lane = lane(
        "rate_changes = { kind = \"sine\", amplitude = \"4 Mbit/s\", period = \"10 s\", every = \"100 ms\" }",
    );
    let steps = rates(&lane, 1, MINUTE);
    assert_eq!(steps.len(), 600);
    // The piece from 2.4 s to 2.5 s has the rate of 2.45 s: 10 + 4 sin(0.49 pi).
    let expected = 10.0 + 4.0 * libm::sin(0.49 * std::f64::consts::PI);
    assert_eq!(steps[24].0, ms(2_400));
    assert!((mbit(steps[24].1) - expected).abs() < 1e-6);
    // Over whole periods the mean is the rate.
    let mean = steps.iter().map(|step| mbit(step.1)).sum::<f64>() / 600.0;
    assert!((mean - 10.0).abs() < 1e-6, "{mean}");
}

#[test]
fn a_bounded_random_walk_is_uniform() {
    let lane = lane(
        "rate_changes = { kind = \"random-walk\", step = \"4 Mbit/s\", least = \"2 Mbit/s\", most = \"18 Mbit/s\", every = \"100 ms\" }",
    );
    let steps = rates(&lane, 1, Duration::from_secs(20_000));
    assert_eq!(steps.len(), 199_999);
    let mut before = 10.0;
    let mut tenths = [0.0; 10];
    for rate in steps.iter().map(|step| mbit(step.1)) {
        assert!((2.0..=18.0).contains(&rate) && (rate - before).abs() <= 4.0);
        before = rate;
        tenths[((rate - 2.0) / 1.6).min(9.0) as usize] += 1.0 / 199_999.0;
    }
    // Steps are symmetric and the limits reflect, so the uniform distribution is stationary. With a
    // root mean square step of 2.3, a range of 16 mixes in some 50 steps: 4000 independent samples
    // with a deviation of 0.005; the bound is four of them.
    assert!(tenths.iter().all(|share| (share - 0.1_f64).abs() < 0.02), "{tenths:?}");
    assert_ne!(rates(&lane, 2, MINUTE), rates(&lane, 1, MINUTE));
    assert_eq!(rates(&lane, 1, MINUTE), steps[..599]);
}

#[test]
fn after_an_outage_the_rate_is_that_of_the_schedule() {
    let lane = lane(
        "rate_changes = [[\"10 s\", \"4 Mbit/s\"], [\"20 s\", \"6 Mbit/s\"]]\n\
         outages = [[\"5 s\", \"1 s\"], [\"15 s\", \"8 s\"], [\"59 s\", \"5 s\"]]",
    );
    let steps: Vec<_> = rates(&lane, 1, MINUTE)
        .into_iter()
        .map(|(at, rate)| (at.as_millis() / 1000, rate.bits_per_second() / 1_000_000))
        .collect();
    assert_eq!(steps, [(5, 0), (6, 10), (10, 4), (15, 0), (23, 6), (59, 0), (64, 6)],);
}

#[test]
fn periodic_outages_begin_after_one_period() {
    let lane = lane("outages = { kind = \"periodic\", every = \"20 s\", lasts = \"500 ms\" }");
    assert_eq!(outages(&lane, 1, MINUTE), [(ms(20_000), ms(500)), (ms(40_000), ms(500))]);
}

#[test]
fn random_outages_have_the_lengths_asked_for() {
    let lane = lane("outages = { kind = \"random\", up = \"9 s\", down = \"1 s\" }");
    let outages = outages(&lane, 1, Duration::from_secs(100_000));
    // One in ten seconds on average, with a deviation below 1 % each; the bound is four of them.
    let number = outages.len() as f64;
    assert!((number / 10_000.0 - 1.0).abs() < 0.04, "{number}");
    let mean = outages.iter().map(|outage| outage.1.as_secs_f64()).sum::<f64>() / number;
    assert!((mean - 1.0).abs() < 0.04, "{mean}");
    assert!(outages.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
}

#[test]
fn handovers_draw_a_delay_each() {
    let lane = lane(
        "delay_changes = { kind = \"handover\", every = \"15 s\", least = \"20 ms\", most = \"45 ms\" }",
    );
    let steps = delays(&lane, 1, MINUTE);
    let times: Vec<_> = steps.iter().map(|step| step.0.as_millis()).collect();
    assert_eq!(times, [0, 15_000, 30_000, 45_000]);
    let steps = delays(&lane, 1, Duration::from_secs(150_000));
    let mean = steps.iter().map(|step| step.1.as_millis_f64()).sum::<f64>() / steps.len() as f64;
    // Uniform: the mean is 32.5, the deviation of the mean 25/sqrt(12)/100 = 0.072; the bound is
    // four of them.
    assert!((mean - 32.5).abs() < 0.29, "{mean}");
    assert!(steps.iter().all(|step| (ms(20)..=ms(45)).contains(&step.1)));
}

#[test]
fn outages_take_opportunities_away() {
    let trace = "rate_changes = { opportunities = [[2, 2], [5, 1]] }";
    assert_eq!(opportunities(&lane(trace), 1, MINUTE), Some((vec![(2, 2), (5, 1)], 5)));
    let lane = lane(&format!("{trace}\noutages = [[\"5 ms\", \"5 ms\"]]"));
    // Without the opportunities at 5 and 7 ms; that at 10 ms is available again.
    let (list, period) = opportunities(&lane, 1, ms(18)).unwrap();
    assert_eq!(list, [(2, 2), (10, 1), (12, 2), (15, 1), (17, 2), (20, 1)]);
    assert_eq!(period, 20);
}
