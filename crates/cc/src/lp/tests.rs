//! Rules of TCP-LP.

use super::*;
use crate::testing::{FLOW, LINUX};
use tcplab_units::Duration;
use tcplab_units::Time;

fn lp(params: &str) -> LowPriority {
    let params = crate::Params(serde_json::from_str(params).unwrap());
    LowPriority::new(&LINUX, params.parse().unwrap())
}

/// The windows after ACKs of two segments, 10 ms apart, with these one-way delays in milliseconds.
/// The return path takes 20 ms. ACKs earn no growth.
fn windows(cc: &mut LowPriority, delays: &[u64]) -> Vec<u64> {
    let acks = delays.iter().enumerate().map(|(number, delay)| {
        let now = 1000 + 10 * number as u64;
        let flow = FlowState { now: Time::ZERO + Duration::from_millis(now), ..FLOW };
        let timestamps = Some(Timestamps { sent: now - 20, echoed: now - 20 - delay });
        let rtt = Some(Duration::from_millis(20 + delay));
        cc.on_arrival(&flow, &Ack { acked: 2, rtt, timestamps, ..Ack::default() });
        cc.control().cwnd
    });
    acks.collect()
}

#[test]
fn delay_above_threshold_halves_cwnd_and_sets_one_in_inference() {
    // The first delays, of 10 ms, have a range of zero and are above it: 5 segments. The range then
    // is 10 to 20 ms, and the threshold 11. After 50 ms the smoothed delay is 15, within three
    // round trips.
    let mut cc = lp(r#"{ "clock_offset_ms": 0 }"#);
    assert_eq!(windows(&mut cc, &[10, 10, 10, 10, 10, 50]), [10, 5, 5, 5, 5, 1]);
    // The window does not grow meanwhile.
    cc.is_inferring = true;
    cc.on_ack(&FLOW, &Ack { credit: 1, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 1);
}

#[test]
fn an_inference_phase_ends_after_three_round_trips() {
    // Three round trips of 30 ms are nine ACKs.
    let mut cc = lp(r#"{ "clock_offset_ms": 0 }"#);
    windows(&mut cc, &[10; 9]);
    assert!(cc.is_inferring);
    let mut cc = lp(r#"{ "clock_offset_ms": 0 }"#);
    windows(&mut cc, &[10; 12]);
    assert!(!cc.is_inferring);
}

#[test]
fn linux_delay_overflow_by_clock_offset_disables_early_backoff() {
    let delays = [10; 20];
    let offset = |offset: u32| format!(r#"{{ "clock_offset_ms": {offset} }}"#);
    // 2^29 and more do not fit 32 bits with three bits of fraction.
    let seen = windows(&mut lp(&offset(1 << 29)), &delays);
    assert!(seen.iter().all(|&cwnd| cwnd == 10), "{seen:?}");
    // Smaller delays fit: the first ones have a range of zero, and are above it. The range then is
    // 10 to 20 ms, and 10 is below the threshold of 11.
    let seen = windows(&mut lp(&offset(0)), &delays);
    assert_eq!((seen[0], &seen[1..]), (10, &[5; 19][..]));
}

#[test]
fn the_receivers_clock_is_estimated_from_ack_to_ack() {
    let mut clock = RemoteClock::default();
    clock.take(100, 50);
    assert_eq!((clock.hz, clock.delay(100, 50)), (0, None));
    // 20 ticks in 10 ms: 2000 Hz, by which 1000 ms are divided to 0: the result is -60.
    clock.take(120, 60);
    assert_eq!((clock.hz, clock.delay(120, 60)), (2000, Some(60_u32.wrapping_neg())));
    // 10 in 10: 1000 is 1000 less; a 64th of that is 15.6.
    clock.take(130, 70);
    assert_eq!(clock.hz, 1984);
}

#[test]
fn one_way_delay_is_the_clock_difference_in_milliseconds() {
    let clock = RemoteClock { hz: 1000, sent: 1, echoed: 1 };
    assert_eq!(clock.delay(70, 50), Some(20));
    let clock = RemoteClock { hz: 500, sent: 1, echoed: 1 };
    assert_eq!(clock.delay(70, 50), Some(90));
}

#[test]
fn remote_clock_above_1000_hz_is_ignored_in_one_way_delay() {
    // tcp_lp_owd_calculator: LP_RESOL / remote_hz is 0 above 1000 Hz, so rcv_tsval does not count.
    // The sender's clock is at 2000 + 59 ms, as the kernel booted two seconds before.
    let mut delays = Delays::new(7);
    delays.take(Timestamps { sent: 100, echoed: 50 });
    delays.take(Timestamps { sent: 120, echoed: 60 });
    assert_eq!((delays.remote.hz, delays.min), (2000, 2059_u32.wrapping_neg()));
}

#[test]
fn without_timestamps_it_is_reno() {
    let mut cc = lp("{}");
    for _ in 0..5 {
        let rtt = Some(Duration::from_millis(500));
        cc.on_arrival(&FLOW, &Ack { acked: 1, rtt, ..Ack::default() });
        cc.on_ack(&FLOW, &Ack { credit: 1, ..Ack::default() });
    }
    assert_eq!(cc.control().cwnd, 15);
}
