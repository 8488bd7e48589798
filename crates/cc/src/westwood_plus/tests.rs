//! Rules of Westwood+.

use super::*;
use crate::testing::{FLOW, LINUX, Path};

fn westwood_plus(params: &str) -> WestwoodPlus {
    let params = crate::Params(serde_json::from_str(params).unwrap());
    WestwoodPlus::new(&LINUX, params.parse().unwrap())
}

/// So many round trips of 100 ms with ten segments each.
fn steady(cc: &mut WestwoodPlus, rounds: usize) {
    let mut path = Path::new(cc, Duration::from_millis(100));
    path.flow.cwnd_limited = false;
    for _ in 0..rounds {
        path.round();
    }
}

fn event(cause: Cause) -> Congestion {
    Congestion { cause, flight: 10, again: false }
}

#[test]
fn linux_estimate_passes_two_integer_filters_of_seven_eighths() {
    let config = Config::default();
    let mut estimate = Estimate::new(Filter::Linux);
    estimate.take(1000, 10, (0.0, &config));
    assert!(matches!(estimate, Estimate::Twice { first: 100, second: 100 }), "{estimate:?}");
    // (700 + 180) / 8 = 110, and (700 + 110) / 8 = 101.25.
    estimate.take(1809, 10, (100.0, &config));
    assert!(matches!(estimate, Estimate::Twice { first: 110, second: 101 }), "{estimate:?}");
}

#[test]
fn the_filter_of_the_paper_keeps_nine_tenths() {
    let value = |filter| {
        let config = Config { filter, alpha: 0.9 };
        let mut estimate = Estimate::new(filter);
        estimate.take(1000, 10, (0.0, &config));
        estimate.take(2000, 10, (100.0, &config));
        let Estimate::Once { estimate } = estimate else { panic!("{estimate:?}") };
        estimate
    };
    // The estimate begins with the first sample: 0.9 * 100 + 0.1 * 200.
    assert!((value(Filter::Paper) - 110.0).abs() < 1e-9);
    // The estimate begins at 0: 0.1 * (100 + 0) / 2 = 5, and 0.9 * 5 + 0.1 * (200 + 100) / 2.
    assert!((value(Filter::Tustin) - 19.5).abs() < 1e-9);
}

#[test]
fn recovery_ends_with_cwnd_of_bandwidth_times_min_rtt() {
    // An ACK of 1460 bytes each 10 ms is 146 bytes a jiffy, and 146 * 100 / 1460 = 10 segments.
    let mut cc = westwood_plus("{}");
    steady(&mut cc, 5);
    cc.on_congestion(&FLOW, event(Cause::Loss));
    assert_eq!((cc.control().cwnd, cc.control().ssthresh), (5, Some(5)));
    cc.on_recovered(&FLOW);
    assert_eq!((cc.control().cwnd, cc.control().ssthresh), (10, Some(10)));
}

#[test]
fn paper_sets_cwnd_to_bandwidth_times_min_rtt_at_loss() {
    let mut cc = westwood_plus(r#"{ "filter": "paper" }"#);
    steady(&mut cc, 5);
    cc.window.slow_start(30);
    cc.on_congestion(&FLOW, event(Cause::Loss));
    assert_eq!((cc.control().cwnd, cc.control().ssthresh), (10, Some(10)));
}

#[test]
fn timeout_resets_the_min_rtt() {
    let mut cc = westwood_plus("{}");
    steady(&mut cc, 5);
    cc.on_congestion(&FLOW, event(Cause::Timeout));
    // `tcp_enter_loss`: one more than the segments in flight, which are none here.
    assert_eq!((cc.control().cwnd, cc.control().ssthresh), (1, Some(10)));
    cc.on_recovered(&FLOW);
    assert_eq!(cc.control().cwnd, 1);
    let rtt = Some(Duration::from_micros(150_001));
    cc.on_arrival(&FLOW, &Ack { rtt, ..Ack::default() });
    // Rounded up to a jiffy.
    assert_eq!(cc.rtt_min, 151);
}

#[test]
fn nothing_is_sampled_in_less_than_fifty_milliseconds() {
    let mut cc = westwood_plus("{}");
    let rtt = Some(Duration::from_millis(1));
    // The sample covers the 50 segments of the second ACK: 1460 * 50 / 51 = 1431 bytes a jiffy.
    for (at, expected) in [(0, 0.0), (50, 0.0), (51, 1431.0 * 8.0 / 1e3)] {
        let now = FLOW.now + Duration::from_millis(at);
        let flow = crate::FlowState { now, una: 1460 * (1 + at), ..FLOW };
        cc.on_arrival(&flow, &Ack { rtt, is_predicted: at == 0, ..Ack::default() });
        let seen = crate::testing::probe(&cc, "bandwidth_mbit_s");
        assert!((seen - expected).abs() < 1e-9, "{at} ms: {seen}");
        // The sample itself is not rounded.
        let sample = if at == 51 { 1460.0 * 50.0 / 51.0 * 8.0 / 1e3 } else { 0.0 };
        let seen = crate::testing::probe(&cc, "sample_mbit_s");
        assert!((seen - sample).abs() < 1e-9, "{at} ms: {seen}");
    }
}
