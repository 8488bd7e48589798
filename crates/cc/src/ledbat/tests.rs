use super::*;
use crate::Timestamps;
use crate::testing::{FLOW, INIT, LINUX, Path, windows};

/// One ACK of the whole window of ten, after so many milliseconds each way; the window in flight.
fn ack(there: u64, back: u64) -> Ack {
    let stamps = Timestamps { sent: 1000 + there, echoed: 1000 };
    Ack {
        acked: 10,
        delivered: 10,
        credit: 1,
        in_flight_before: 10,
        rtt: Some(Duration::from_millis(there + back)),
        one_way_delay: Some(stamps.one_way_delay()),
        timestamps: Some(stamps),
        ..Ack::default()
    }
}

/// The windows after a first ACK without a queue, four that fill the filter, and one more, all with
/// queues of so many milliseconds on the forward and return path.
fn after(there: u64, back: u64, adjust: impl Fn(Ack) -> Ack) -> (u64, f64) {
    let mut cc = Ledbat::new(&INIT, Config::default());
    cc.on_ack(&FLOW, &adjust(ack(20, 20)));
    for _ in 0..4 {
        cc.delays.take(FLOW.now, cc.delays.base().unwrap());
    }
    for _ in 0..4 {
        let queued = adjust(ack(20 + there, 20 + back));
        cc.measure(&FLOW, &queued);
    }
    let before = cc.window.cwnd();
    cc.on_ack(&FLOW, &adjust(ack(20 + there, 20 + back)));
    (before, cc.window.cwnd() as f64 + cc.window.credit())
}

#[test]
fn without_a_queue_it_grows_by_a_segment_a_round_trip() {
    assert_eq!(after(0, 0, |ack| Ack { in_flight_before: 11, ..ack }), (11, 11.0 + 10.0 / 11.0));
}

#[test]
fn cwnd_change_is_proportional_to_off_target() {
    // gain * off_target * acked / cwnd with 10 acknowledged of 11: at a quarter over the target
    // -0.25, at twice the target -1.
    for (queue, off_target) in [(50, 0.5), (100, 0.0), (125, -0.25), (200, -1.0)] {
        let (before, now) = after(queue, 0, |ack| ack);
        let expected = before as f64 + off_target * 10.0 / before as f64;
        assert!((now - expected).abs() < 1e-9, "{queue} ms: {now}, expected {expected}");
    }
}

#[test]
fn queue_on_the_ack_path_counts_only_without_timestamps() {
    assert_eq!(after(0, 100, |ack| ack), after(0, 0, |ack| ack));
    let without = |ack| Ack { one_way_delay: None, timestamps: None, ..ack };
    assert_eq!(after(0, 100, without), after(100, 0, without));
}

#[test]
fn base_delay_restarts_with_the_first_timestamps() {
    let mut cc = Ledbat::new(&INIT, Config::default());
    cc.measure(&FLOW, &Ack { one_way_delay: None, ..ack(20, 20) });
    cc.measure(&FLOW, &ack(20, 20));
    // Half of the clocks' range, and 20 ms.
    assert_eq!(cc.delays.base(), Some(Duration::from_millis((1 << 31) + 20)));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // §2.4.2: up to what was in flight and ALLOWED_INCREASE.
    for (in_flight_before, expected) in [(9, 10), (10, 11)] {
        let mut cc = Ledbat::new(&INIT, Config::default());
        for _ in 0..9 {
            cc.on_ack(&FLOW, &Ack { in_flight_before, ..ack(20, 20) });
        }
        assert_eq!(cc.control().cwnd, expected);
    }
}

#[test]
fn a_loss_halves_and_a_timeout_starts_over() {
    for (cause, expected) in [(Cause::Loss, 5), (Cause::Timeout, 1)] {
        let mut cc = Ledbat::new(&INIT, Config::default());
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(cause);
        assert_eq!(path.cwnd(), expected, "{cause:?}");
    }
}

#[test]
fn there_is_no_slow_start() {
    for init in [&INIT, &LINUX] {
        let mut cc = Ledbat::new(init, Config::default());
        // A segment a round trip, less the effect of the growing window: 10 times 1/10, 11 times
        // 1/11 and so on.
        let windows = windows(&mut cc, 11, &[]);
        assert!((19..=20).contains(&windows[10]), "{windows:?}");
    }
}
