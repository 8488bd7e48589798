use super::*;
use crate::testing::{FLOW, LINUX, Path, windows};

fn htcp() -> HTcp {
    HTcp::new(&LINUX, Config::default())
}

fn at(millis: u64) -> FlowState {
    FlowState { now: Time::ZERO + Duration::from_millis(millis), ..FLOW }
}

fn loss(flight: u64) -> Congestion {
    Congestion { cause: Cause::Loss, flight, again: false }
}

/// The growth in whole segments a round trip, this long after a loss that kept a half.
fn growth(millis: u32, min_rtt: u32, config: Config) -> u32 {
    let mut cc = HTcp::new(&LINUX, config);
    cc.min_rtt = min_rtt;
    cc.update_alpha(millis);
    assert_eq!(cc.alpha % ONE, 0);
    cc.alpha / ONE
}

#[test]
fn grows_faster_the_longer_no_loss_came() {
    // 1 + 10 (D - 1) + ((D - 1) / 2)^2, in whole segments; times 2 * (1 - 1/2) = 1.
    for (millis, expected) in [(0, 1), (1000, 1), (2000, 11), (3000, 22), (5000, 45)] {
        assert_eq!(growth(millis, 100, Config::default()), expected, "{millis} ms");
    }
}

#[test]
fn rtt_scaling_multiplies_growth_by_rtt_over_100_ms_within_limits() {
    // RTT / 100 ms, between a tenth and two: 11 / 2, 11 * 2 and no more, 11 / 10 and no less.
    for (rtt, expected) in [(50, 5), (200, 22), (400, 22), (10, 1), (1, 1)] {
        assert_eq!(growth(2000, rtt, Config::default()), expected, "{rtt} ms");
    }
    let config = Config { use_rtt_scaling: false, ..Config::default() };
    assert_eq!(growth(2000, 400, config), 11);
}

#[test]
fn max_rtt_rises_only_to_samples_within_20_ms() {
    let mut cc = htcp();
    // 50 is the minimum. 70 is within 20 ms of it, 95 is not within 20 ms of 70, and 88 is.
    for (rtt, greatest) in [(50, 50), (70, 70), (95, 70), (88, 88), (60, 88)] {
        cc.take_rtt(&FLOW, Duration::from_millis(rtt));
        assert_eq!((cc.min_rtt, cc.history.max_rtt), (50, greatest), "{rtt} ms");
    }
    cc.take_rtt(&FLOW, Duration::from_micros(49_001));
    // Rounded up.
    assert_eq!(cc.min_rtt, 50);
}

#[test]
fn first_loss_halves_and_second_uses_beta_of_min_over_max_rtt() {
    let config = Config { use_bandwidth_switch: false, ..Config::default() };
    let mut cc = HTcp::new(&Init { initial_window: 100, ..LINUX }, config);
    cc.min_rtt = 60;
    cc.history.max_rtt = 100;
    cc.on_congestion(&FLOW, loss(100));
    assert_eq!(cc.control().cwnd, 50);
    // The maximum RTT moved 5 % closer: 60 + 40 * 0.95 = 98. 60 * 128 / 98 = 78, and 50 * 78 /
    // 128 = 30.
    assert_eq!(cc.history.max_rtt, 98);
    cc.on_congestion(&FLOW, loss(50));
    assert_eq!((cc.beta, cc.control().cwnd), (78, 30));
}

#[test]
fn a_loss_leaves_four_fifths_at_the_most() {
    let config = Config { use_bandwidth_switch: false, ..Config::default() };
    let mut cc = HTcp::new(&Init { initial_window: 1000, ..LINUX }, config);
    (cc.min_rtt, cc.history.max_rtt, cc.is_adaptive) = (99, 100, true);
    cc.on_congestion(&FLOW, loss(1000));
    // 102 / 128 of 1000 = 796.9
    assert_eq!(cc.control().cwnd, 796);
}

#[test]
fn throughput_change_above_a_fifth_sets_beta_to_half() {
    // A fifth more or less than 1000 is within bounds.
    for (new, expected) in [(799, 64), (800, 102), (1200, 102), (1201, 64)] {
        let mut cc = htcp();
        (cc.min_rtt, cc.history.max_rtt, cc.is_adaptive) = (99, 100, true);
        (cc.history.old_max, cc.throughput.max) = (1000, new);
        cc.update_beta();
        assert_eq!(cc.beta, expected, "{new}");
    }
}

#[test]
fn throughput_is_measured_by_windows_of_data() {
    let mut cc = htcp();
    cc.min_rtt = 100;
    // The first sample covers the time since zero, and is nearly nothing. Then 9 segments, the
    // window less one, in 100 ms: 90 a second.
    cc.take_packets(&at(1000), 9);
    assert_eq!(cc.throughput.smoothed, 0);
    cc.take_packets(&at(1050), 9);
    assert_eq!(cc.throughput.smoothed, 0);
    cc.take_packets(&at(1100), 0);
    // More than three round trips after the last loss: the sample has a weight of a quarter.
    assert_eq!((cc.throughput.smoothed, cc.throughput.max), (22, 22));
    cc.history.last_cong = 1100;
    cc.take_packets(&at(1200), 9);
    assert_eq!((cc.throughput.smoothed, cc.throughput.max), (90, 90));
}

#[test]
fn time_counts_from_the_end_of_recovery() {
    let mut cc = htcp();
    cc.on_congestion(&at(1000), loss(10));
    assert_eq!(cc.history.last_cong, 1000);
    cc.on_recovered(&at(1300));
    assert_eq!(cc.history.last_cong, 1300);
}

#[test]
fn undo_restores_the_time_of_the_last_loss() {
    let mut cc = htcp();
    cc.on_congestion(&at(1000), loss(10));
    cc.on_undo(&at(1100));
    cc.on_recovered(&at(1100));
    assert_eq!((cc.history.last_cong, cc.control().cwnd), (0, 10));
}

#[test]
fn grows_by_one_within_a_second_of_a_loss() {
    let mut cc = htcp();
    // 100 ms a round trip: a segment for as many ACKs as the window, and one more ACK to see it.
    let seen = windows(&mut cc, 8, &[40]);
    assert_eq!(seen[..4], [10, 20, 40, 20]);
    assert!((22..=24).contains(&seen[7]), "{seen:?}");
}

#[test]
fn growth_after_seconds_is_many_segments_a_round_trip() {
    let mut cc = HTcp::new(&Init { initial_window: 400, ..LINUX }, Config::default());
    windows(&mut cc, 1, &[400]);
    let mut path = Path::new(&mut cc, Duration::from_millis(100));
    // 3.9 s after the end of recovery; the first segment is bought at the old price.
    path.flow.now = Time::ZERO + Duration::from_secs(4);
    let (_, before) = (path.round(), path.round());
    // 1 + 10 * 3.1 + 1.55^2 = 34.4: seven ACKs make 238 segments, and the one after them buys.
    let grown = path.round() - before;
    assert!((20..=before / 8).contains(&grown), "{before} and {grown}");
}
