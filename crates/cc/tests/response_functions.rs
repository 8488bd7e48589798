//! Response functions: the mean window with one loss every so many segments, evenly spaced,
//! compared with the formulas in the algorithms' documents.
//!
//! The formulas assume windows that grow without interruption between losses. A loss therefore
//! takes no time here: the window is reduced at once, and grows with the next ACK.

use serde_json::{Value, json};
use tcplab_cc::testing::{INIT, LINUX, Path};
use tcplab_cc::{Init, Params, build};
use tcplab_units::Duration;

/// Losses before the mean is taken. Each loss reduces the initial error by the square of the share
/// that it keeps.
const SETTLING: usize = 10;
const MEASURED: usize = 4;

/// Segments per loss, over three decades.
const DISTANCES: [u64; 5] = [1000, 3000, 10_000, 100_000, 1_000_000];

/// The mean window over time, if every `distance`-th segment is lost, starting from `init`.
fn average((cc, params): (&str, Value), init: &Init, rtt: Duration, distance: u64) -> f64 {
    let mut cc = build(cc, init, &Params(params)).expect("these are allowed");
    let mut path = Path::new(cc.as_mut(), rtt);
    let mut cycle = || {
        path.loss();
        path.stream(distance)
    };
    for _ in 0..SETTLING {
        cycle();
    }
    let passed: f64 = (0..MEASURED).map(|_| cycle().as_secs_f64()).sum();
    (distance * MEASURED as u64) as f64 * rtt.as_secs_f64() / passed
}

fn within(share: f64, found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() <= share
}

#[test]
fn highspeed_keeps_to_the_line_of_rfc_3649() {
    // §5: from 38 segments at one loss in 10^3 to 83,000 at one in 10^7, a line in logarithms:
    // w = 38 * (p / 10^-3)^S with S = ln(83,000 / 38) / ln(10^-7 / 10^-3) = -0.835.
    let slope = libm::log(83_000.0 / 38.0) / libm::log(1e4);
    for distance in DISTANCES {
        let line = 38.0 * libm::pow(distance as f64 / 1e3, slope);
        let init = Init { initial_window: line as u64, ..INIT };
        let rtt = Duration::from_millis(100);
        let found = average(("highspeed", json!({})), &init, rtt, distance);
        assert!(within(0.1, found, line), "1 in {distance}: {found} for {line}");
    }
}

#[test]
fn linux_highspeed_average_exceeds_rfc_3649_in_small_windows() {
    // Between 39 and 118 segments it adds a = 2 and takes b = 112 / 256. A window that adds a per
    // round trip and takes b is sqrt(a (2 - b) / 2b / p) on average: 59.8 for the line's 38.
    let rtt = Duration::from_millis(100);
    let found = average(("highspeed", json!({})), &LINUX, rtt, 1000);
    assert!(within(0.05, found, 59.8), "{found}");
    // Larger windows are affected less by rounding up: 1795 by the line at one in 10^5.
    let init = Init { initial_window: 1795, ..LINUX };
    let found = average(("highspeed", json!({})), &init, rtt, 100_000);
    assert!(within(0.1, found, 1795.0), "{found}");
}

#[test]
fn cubic_keeps_to_the_average_window_of_rfc_9438() {
    // §5.1: (C (3 + beta) / (4 (1 - beta)))^(1/4) * (RTT / p)^(3/4), where CUBIC is not Reno: so
    // without §4.3. With C = 0.4 and beta = 0.7 the first factor is 1.054. A round trip of a second
    // keeps the window above Reno's 1.2 / sqrt(p) from one loss in 500 on, one of 100 ms from one
    // in 5,000 on.
    //
    // The mean is (3 + beta) / 4 of the plateau. The plateau hardly moves: a cycle of T seconds
    // ends C (T - K)^3 segments above the last one, which is less than one whole segment if T is
    // within 1.4 s of K. So the test starts at the plateau of the expected mean.
    let (c, beta) = (0.4, 0.7);
    let factor = libm::pow(c * (3.0 + beta) / (4.0 * (1.0 - beta)), 0.25);
    let params = json!({ "tcp_friendly": false, "hystart": false, "fast_convergence": false });
    for (millis, distances) in [(1000, &DISTANCES[..]), (100, &DISTANCES[2..])] {
        let rtt = Duration::from_millis(millis);
        for &distance in distances {
            let average_window = factor * libm::pow(rtt.as_secs_f64() * distance as f64, 0.75);
            let plateau = average_window * 4.0 / (3.0 + beta);
            let init = Init { initial_window: plateau as u64, ..INIT };
            let found = average(("cubic", params.clone()), &init, rtt, distance);
            assert!(
                within(0.1, found, average_window),
                "{millis} ms, 1 in {distance}: {found} for {average_window}"
            );
        }
    }
}

#[test]
fn scalable_has_a_window_in_inverse_proportion_to_loss() {
    // A cycle takes an eighth and adds a hundredth for each ACK: W / 8 = 0.01 / p before a loss. A
    // cycle lasts ln(8/7) / ln(1 + 0.01) = 13.4 round trips, or ln(8/7) / 0.01 if each ACK counts
    // at once. That is 1 / p segments in 13.35 round trips: 0.0749 / p, if that is more than 100
    // segments.
    for distance in &DISTANCES[1..] {
        let expected = 0.01 / libm::log(8.0 / 7.0) * *distance as f64;
        let init = Init { initial_window: expected as u64, ..INIT };
        let rtt = Duration::from_millis(100);
        let found = average(("scalable", json!({})), &init, rtt, *distance);
        assert!(within(0.02, found, expected), "1 in {distance}: {found} for {expected}");
    }
}
