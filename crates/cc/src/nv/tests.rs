//! Rules of NV.

use super::*;
use crate::testing::{FLOW, LINUX};
use tcplab_units::Time;

const MSS: u64 = LINUX.mss;

fn nv() -> Nv {
    Nv::new(&LINUX, Config::default())
}

/// So many round trips of `segments`, with ACKs of one segment each and this RTT, during which a
/// window was delivered.
fn rounds(cc: &mut Nv, flow: &mut FlowState, rtt: Duration, segments: u64, count: u64) {
    for _ in 0..count * segments {
        flow.now += Duration::from_picos(rtt.as_picos() / segments);
        flow.una += MSS;
        flow.nxt = flow.una + segments * MSS;
        let before = flow.delivered;
        let delivered_at_send = Some((before + 1).saturating_sub(segments));
        let ack = Ack {
            acked: 1,
            credit: 1,
            delivered: 1,
            rtt: Some(rtt),
            delivered_at_send,
            ..Ack::default()
        };
        cc.on_arrival(flow, &ack);
        flow.delivered += 1;
        cc.on_ack(flow, &ack);
    }
}

#[test]
fn queue_above_the_pad_reduces_cwnd_by_thirty_percent_of_the_excess() {
    let mut cc = nv();
    let mut flow = FlowState { cwnd_limited: false, ..FLOW };
    cc.window.slow_start(90);
    // The window of 100 at 100 ms: W is 110, or less due to rounding, and the window is not above.
    rounds(&mut cc, &mut flow, Duration::from_millis(100), 100, 3);
    assert_eq!(cc.control().cwnd, 100);
    // A delivery of 60 at 100 ms: W is 70 once the maximum rate is reset; 30 * 38 / 128 = 8 less.
    rounds(&mut cc, &mut flow, Duration::from_millis(100), 60, 4);
    assert_eq!((cc.control().cwnd, cc.control().ssthresh), (92, Some(70)));
    assert!(!cc.may_grow);
}

#[test]
fn queue_below_the_pad_allows_growth() {
    let mut cc = nv();
    let mut flow = FlowState { cwnd_limited: false, ..FLOW };
    cc.may_grow = false;
    // W is the window of 10 and the pad of 10; twenty samples take two round trips.
    rounds(&mut cc, &mut flow, Duration::from_millis(100), 10, 2);
    assert!(!cc.may_grow);
    rounds(&mut cc, &mut flow, Duration::from_millis(100), 10, 2);
    assert!(cc.may_grow);
    assert_eq!(cc.ideal, 20);
}

#[test]
fn loss_keeps_819_of_1024_of_cwnd_and_disallows_growth() {
    let mut cc = nv();
    cc.window.slow_start(90);
    let event = Congestion { cause: Cause::Loss, flight: 100, again: false };
    cc.on_congestion(&FLOW, event);
    // 100 * 819 / 1024 = 79.98.
    assert_eq!(cc.control().cwnd, 79);
    cc.on_recovered(&FLOW);
    cc.on_ack(&FLOW, &Ack { credit: 200, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 79);
}

#[test]
fn a_timeout_halves_the_speed_of_growth() {
    let mut cc = nv();
    let event = Congestion { cause: Cause::Timeout, flight: 10, again: false };
    cc.on_congestion(&FLOW, event);
    cc.window.set_threshold(2);
    cc.window.set(10);
    cc.may_grow = true;
    cc.on_ack(&FLOW, &Ack { credit: 19, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 10);
    cc.on_ack(&FLOW, &Ack { credit: 1, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 11);
    for _ in 0..20 {
        cc.on_congestion(&FLOW, event);
    }
    assert_eq!(cc.growth, -8);
}

#[test]
fn growth_needs_at_least_four_acks_per_segment() {
    let mut cc = nv();
    cc.window.set_threshold(1);
    cc.window.set(1);
    cc.on_ack(&FLOW, &Ack { credit: 3, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 1);
    cc.on_ack(&FLOW, &Ack { credit: 1, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 2);
}

#[test]
fn min_rtt_is_renewed_after_two_seconds_then_about_every_five() {
    let mut cc = nv();
    cc.next_min_rtt = 7;
    cc.renew(1000);
    cc.renew(2999);
    assert_ne!(cc.min_rtt, 7);
    cc.renew(3000);
    assert_eq!(cc.min_rtt, 7);
    let next = cc.renewal.unwrap() - 3000;
    // 3/4 to 5/4 of 5 s.
    assert!((3750..6250).contains(&next), "{next}");
}

#[test]
fn rate_samples_in_recovery_are_ignored() {
    let mut cc = nv();
    let mut flow = FlowState { phase: Phase::Recovery, ..FLOW };
    let before = cc.clone().round.samples;
    rounds(&mut cc, &mut flow, Duration::from_millis(100), 10, 3);
    assert_eq!(cc.round.samples, before);
    assert_eq!(Time::ZERO, FLOW.now);
}
