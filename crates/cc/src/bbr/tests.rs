#![expect(clippy::float_cmp, reason = "modes and gains are exact")]

use super::*;
use crate::RateSample;
use crate::testing::{FLOW, LINUX, probe};
use line::{BDP, Line, MBIT_S, RTT};

fn bbr(seed: u64) -> Bbr {
    let mut bbr = Bbr::new(&Init { seed, ..LINUX }, &Config::default());
    bbr.on_begin(&FlowState { srtt: RTT, min_rtt: RTT, ..FLOW });
    bbr
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-3, "{value}, expected {expected}");
}

fn pacing_bytes(cc: &Bbr) -> f64 {
    cc.control().pacing.expect("it paces").bits_per_second() as f64 / 8.0
}

#[test]
fn initial_pacing_rate_is_cwnd_per_rtt_times_startup_gain() {
    // 10 segments of 1460 bytes in 100 ms, times 739/256, less one percent.
    assert_near(pacing_bytes(&bbr(1)), 10.0 * 1460.0 / 0.1 * 739.0 / 256.0 * 0.99);
}

#[test]
fn startup_doubles_the_rate_until_full_pipe_then_drain_empties_queue() {
    let mut cc = bbr(1);
    let mut line = Line::new(&mut cc);
    let mut rates = Vec::new();
    for _ in 0..4 {
        line.run(RTT);
        rates.push(line.probe("bandwidth_mbit_s"));
    }
    // From ten segments a round trip on the rate doubles: 10, 20, 40 of 100 in the fourth round
    // trip.
    assert_near(rates[1], MBIT_S * 10.0 / BDP as f64);
    assert!((1.8..2.2).contains(&(rates[2] / rates[1])), "{rates:?}");
    assert_eq!(line.probe("mode"), 0.0);
    line.run_until(|line| line.probe("mode") == 1.0);
    // 2.89 times the bandwidth for three round trips builds a queue; 0.35 times drains it.
    assert_near(line.probe("bandwidth_mbit_s"), MBIT_S);
    assert!(line.flow.in_flight > 2 * BDP, "{}", line.flow.in_flight);
    line.run_until(|line| line.probe("mode") == 2.0);
    assert!(line.flow.in_flight <= BDP + 10, "{}", line.flow.in_flight);
}

fn cruising(cc: &mut Bbr) -> Line<'_> {
    let mut line = Line::new(cc);
    line.run_until(|line| line.probe("mode") == 2.0);
    line
}

#[test]
fn probe_bw_cwnd_is_twice_the_bdp_plus_burst_allowance() {
    let mut cc = bbr(1);
    let mut line = cruising(&mut cc);
    line.run(Duration::from_secs(3));
    // 200 segments; three bursts of two at 1.4 MB/s in a millisecond; two more in the first phase.
    // ACK aggregation and rounding up to even numbers add some.
    assert!((206..=212).contains(&line.cwnd()), "{}", line.cwnd());
    assert_near(line.probe("bandwidth_mbit_s"), MBIT_S);
}

#[test]
fn probe_bw_never_starts_in_the_low_gain_phase() {
    let beginning = |seed| {
        let mut cc = bbr(seed);
        cc.begin_cycle();
        cc.phase
    };
    let mut counts = [0; CYCLE.len()];
    (0..700).for_each(|seed| counts[beginning(seed)] += 1);
    // Seven of eight phases, a hundred times each, within 40.
    assert_eq!(counts[1], 0);
    let others = counts.iter().enumerate().filter(|&(phase, _)| phase != 1);
    assert!(others.clone().all(|(_, &count)| (60..140).contains(&count)), "{counts:?}");
}

#[test]
fn probe_bw_phase_lasts_min_rtt_and_low_gain_drains_high_gain_queue() {
    let mut cc = bbr(3);
    let mut line = cruising(&mut cc);
    let (mut times, mut most) = ([0; 3], 0);
    for _ in 0..320 {
        line.run(RTT / 10);
        let gain = line.probe("pacing_gain");
        times[usize::from(gain >= 1.0) + usize::from(gain > 1.0)] += 1;
        most = most.max(line.flow.in_flight);
    }
    // Four cycles of eight round trips: one in eight is high, and at most one low. Samples are a
    // tenth of an RTT apart.
    assert!((35..=60).contains(&times[2]), "{times:?}");
    assert!((5..=45).contains(&times[0]), "{times:?}");
    // Five quarters of the BDP, and the bursts.
    assert!((BDP * 5 / 4..BDP * 5 / 4 + 10).contains(&most), "{most}");
}

#[test]
fn probe_rtt_starts_with_four_segments_after_ten_seconds() {
    let mut cc = bbr(1);
    let mut line = cruising(&mut cc);
    // Other flows have built a standing queue.
    line.delay = Duration::from_millis(20);
    let least_until = line.seconds();
    line.run_until(|line| line.probe("mode") == 3.0);
    let began = line.seconds();
    assert!((10.0..least_until + 10.2).contains(&began), "{began}");
    assert_eq!(line.cwnd(), LEAST_WINDOW);
    line.delay = Duration::ZERO;
    line.run_until(|line| line.probe("mode") == 2.0);
    // A round trip until four segments are in flight, then 200 ms, which contain a round trip.
    let lasted = line.seconds() - began;
    assert!((0.2..0.5).contains(&lasted), "{lasted}");
    assert_eq!(line.probe("min_rtt_ms"), 100.0);
    assert!(line.cwnd() > 200, "{}", line.cwnd());
}

#[test]
fn probe_rtt_is_reported_as_holding_back() {
    let mut cc = bbr(1);
    assert!(!cc.is_holding_back());
    let later = Time::ZERO + Duration::from_secs(11);
    let sample = Ack { delivered: 1, rtt: Some(RTT), ..Ack::default() };
    cc.on_ack(&FlowState { now: later, ..FLOW }, &sample);
    assert!(cc.is_holding_back());
}

fn sample(delivered: u64, delivered_at_send: u64) -> RateSample {
    RateSample {
        rate: Rate::from_bits_per_second(1),
        delivered,
        interval: RTT,
        delivered_at_send,
        is_ack_delayed: false,
        app_limited: false,
        in_flight_at_send: 0,
        lost: 0,
    }
}

#[test]
fn recovery_starts_by_packet_conservation_and_restores_cwnd() {
    let mut cc = bbr(1);
    let line = cruising(&mut cc);
    let (before, flow) = (line.cwnd(), line.flow);
    cc.on_congestion(&flow, Congestion { cause: Cause::Loss, flight: before, again: false });
    let repairing = FlowState { phase: Phase::Recovery, in_flight: 90, ..flow };
    let lost = Ack { delivered: 1, lost: 20, rate: Some(sample(100, 0)), ..Ack::default() };
    cc.on_ack(&repairing, &lost);
    assert_eq!(cc.control().cwnd, 91);
    // Everything sent in this round trip is delivered: from now on two segments for each that
    // arrives.
    let later = FlowState { delivered: flow.delivered + 100, in_flight: 89, ..repairing };
    let rate = Some(sample(100, flow.delivered));
    cc.on_ack(&later, &Ack { delivered: 2, rate, ..Ack::default() });
    assert_eq!(cc.control().cwnd, 93);
    cc.on_ack(&FlowState { phase: Phase::Open, ..later }, &Ack { delivered: 1, ..Ack::default() });
    let target = cc.with_room(cc.path(cc.bandwidth(), cc.cwnd_gain));
    assert!(cc.control().cwnd >= before.min(target), "{} of {before}", cc.control().cwnd);
}

#[test]
fn timeout_sets_cwnd_to_one_and_keeps_the_bandwidth() {
    let mut cc = bbr(1);
    let line = cruising(&mut cc);
    let bandwidth = line.probe("bandwidth_mbit_s");
    let flow = FlowState { in_flight: 0, ..line.flow };
    cc.on_congestion(&flow, Congestion { cause: Cause::Timeout, flight: 100, again: false });
    assert_eq!((cc.control().cwnd, probe(&cc, "bandwidth_mbit_s")), (1, bandwidth));
}

#[test]
fn two_lossy_intervals_of_equal_rate_detect_a_policer() {
    let mut cc = bbr(1);
    let (mut flow, mut ends) = (FLOW, Vec::new());
    flow.srtt = RTT;
    // In every round trip of 100 ms, 60 segments arrive and 20 are lost: a third of those
    // delivered.
    for round in 1..=14_u64 {
        flow.now += RTT;
        let rate = Some(sample(60, flow.delivered));
        flow.delivered += 60;
        flow.lost += 20;
        cc.on_ack(&flow, &Ack { delivered: 60, lost: 20, rate, ..Ack::default() });
        if cc.policer.rate().is_some() {
            ends.push(round);
        }
    }
    // The first loss begins the first interval, in the round that counts as its first. That
    // interval ends in the fourth round, and the second one four rounds later.
    assert_eq!(ends.first(), Some(&8));
    assert_eq!(cc.pacing_gain, UNIT);
    assert_near(probe(&cc, "bandwidth_mbit_s"), 60.0 * 1460.0 * 8.0 / 0.1 / 1e6);
}

#[test]
fn ack_aggregation_adds_acked_segments_beyond_expected_to_cwnd() {
    let mut seen = Aggregation::default();
    // One segment a millisecond is expected; 20 come at once, and 10 two milliseconds later.
    let bandwidth = BW_UNIT / 1000 + 1;
    let ack = |at, segments| Acked { segments, round_start: false, at, bandwidth, cwnd: 100 };
    seen.on_ack(ack(1_000, 20));
    assert_eq!(seen.extra(), 20);
    seen.on_ack(ack(3_000, 10));
    assert_eq!(seen.extra(), 28);
    // Five round trips later the value is still the maximum of the last ten; later it is not.
    for round in 0..10 {
        assert_eq!(seen.extra(), 28, "{round}");
        seen.on_ack(Acked { round_start: true, ..ack(1_000_000 * (round + 1), 1) });
    }
    assert_eq!(seen.extra(), 1);
}

#[test]
fn restart_after_app_limited_idle_paces_at_the_estimated_bandwidth() {
    let mut cc = bbr(1);
    let mut line = cruising(&mut cc);
    line.run_until(|line| line.probe("pacing_gain") > 1.0);
    let flow = FlowState { app_limited: true, in_flight: 0, ..line.flow };
    cc.on_transmit_start(&flow, Duration::from_secs(1));
    assert_near(pacing_bytes(&cc), MBIT_S * 1e6 / 8.0 * 0.99);
}
