use super::*;
use crate::testing::{FLOW, INIT, LINUX, Path};
use tcplab_units::Time;

const MS: Duration = Duration::from_millis(1);

/// Copa after slow start, with a window of ten and an RTT of 100 ms without queueing.
fn copa(config: Config) -> Copa {
    let mut cc = Copa::new(&INIT, config);
    cc.steering.in_slow_start = false;
    cc.delays.take(&at(0), MS * 100, 10);
    cc
}

/// The state after so many milliseconds.
fn at(millis: u64) -> FlowState {
    FlowState { now: Time::ZERO + MS * millis, srtt: MS * 100, ..FLOW }
}

fn ack(rtt: u64) -> Ack {
    Ack { delivered: 1, rtt: Some(MS * rtt), ..Ack::default() }
}

/// The window with its fractional part.
fn exact(cc: &Copa) -> f64 {
    cc.window.cwnd() as f64 + cc.window.credit()
}

#[test]
fn the_window_grows_below_the_target_rate_and_shrinks_above() {
    // With a queue of q ms: 10 / (100 + q) against 1 / (0.5 q) segments a millisecond, equal where
    // 5 q = 100 + q, q = 25.
    for (queue, expected) in [(24, 10.2), (26, 9.8)] {
        let mut cc = copa(Config::default());
        cc.on_ack(&at(200), &ack(100 + queue));
        // v / (delta cwnd) = 1 / (0.5 * 10).
        assert!((exact(&cc) - expected).abs() < 1e-9, "{queue} ms: {}", exact(&cc));
    }
}

#[test]
fn cwnd_changes_by_v_over_delta_per_round_trip() {
    for (delta, expected) in [(0.5, 12), (0.25, 14), (1.0, 11)] {
        let mut cc = copa(Config { delta, ..Config::default() });
        let mut path = Path::new(&mut cc, MS * 100);
        let cwnd = path.round();
        // A little less, because later ACKs are relative to a larger window.
        assert!(cwnd == expected || cwnd + 1 == expected, "{delta}: {cwnd}");
    }
}

#[test]
fn slow_start_ends_when_the_rate_is_above_the_target() {
    let mut cc = Copa::new(&INIT, Config::default());
    let mut path = Path::new(&mut cc, MS * 100);
    assert_eq!([path.round(), path.round()], [20, 40]);
    // A window of 40 may have 40 * q = 2 * (100 + q) ms: 5.3 ms of queue. There was no queue half
    // an RTT ago, so half of the round trip is slow start.
    path.rtt = MS * 106;
    let cwnd = path.round();
    assert!((56..=62).contains(&cwnd), "{cwnd}");
    assert!(path.round() < cwnd);
}

#[test]
fn pacing_rate_is_two_cwnd_per_standing_rtt() {
    for init in [&INIT, &LINUX] {
        let mut cc = Copa::new(init, Config::default());
        assert_eq!(cc.control().pacing, None);
        cc.on_ack(&FlowState { cwnd_limited: false, ..at(0) }, &ack(100));
        // 2 * 10 * 1460 * 8 bits in 0.1 s.
        assert_eq!(cc.control().pacing, Some(Rate::from_bits_per_second(2_336_000)));
    }
}

/// Copa in competitive mode: an RTT of 200 to 300 ms for a second.
fn competing(config: Config) -> Copa {
    let mut cc = copa(config);
    for step in 1..=10 {
        cc.on_ack(&at(step * 100), &ack(200 + 10 * step));
    }
    cc
}

fn weight(cc: &Copa) -> f64 {
    cc.weight()
}

#[test]
fn queue_that_does_not_empty_enters_competitive_mode() {
    assert!(competing(Config::default()).steering.competing.is_some());
    let alone = Config { competitive: false, ..Config::default() };
    assert!(competing(alone).steering.competing.is_none());
}

#[test]
fn competitive_mode_adapts_one_over_delta_by_aimd() {
    let mut cc = competing(Config::default());
    assert!((weight(&cc) - 2.0).abs() < 1e-9);
    let round = Some(crate::Round::default());
    for _ in 0..6 {
        cc.on_ack(&at(1100), &Ack { round, ..ack(300) });
    }
    assert!((weight(&cc) - 8.0).abs() < 1e-9);
    let loss = Congestion { cause: Cause::Loss, flight: 10, again: false };
    for expected in [4.0, 2.0, 2.0] {
        // Delta is never above that of default mode.
        cc.on_congestion(&at(1100), loss);
        assert!((weight(&cc) - expected).abs() < 1e-9);
    }
    // The queue is empty: back to default mode.
    cc.on_ack(&at(1300), &ack(100));
    assert!(cc.steering.competing.is_none());
}

#[test]
fn loss_keeps_cwnd_and_timeout_resets_it_to_one() {
    for (cause, expected) in [(Cause::Loss, 10), (Cause::Timeout, 1)] {
        let mut cc = copa(Config::default());
        cc.on_congestion(&at(0), Congestion { cause, flight: 10, again: false });
        assert_eq!(cc.control().cwnd, expected, "{cause:?}");
        cc.on_undo(&at(0));
        assert_eq!(cc.control().cwnd, 10, "{cause:?}");
    }
}
