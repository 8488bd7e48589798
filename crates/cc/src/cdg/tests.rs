//! Rules of CDG.

use super::gradient::chance_to_stay;
use super::*;
use crate::testing::{FLOW, LINUX, Path};
use tcplab_units::Duration;

fn cdg(params: Config) -> Cdg {
    Cdg::new(&LINUX, params)
}

/// Whether a back-off followed each of these round trips.
fn rounds(cc: &mut Cdg, rtts_ms: &[u64]) -> Vec<bool> {
    let mut path = Path::new(cc, Duration::from_millis(100));
    let mut wants = Vec::new();
    for &rtt in rtts_ms {
        path.rtt = Duration::from_millis(rtt);
        path.round();
        wants.push(path.probe("backoffs") > 0.0);
    }
    wants
}

#[test]
fn backoff_exponential_is_within_the_kernels_precision() {
    // exp(-x) 2^32 within the precision of 16 bits a factor: 2^-16 for each of up to 16 factors.
    for x in [0_u32, 100, 256, 1000, 50_000, 1_000_000, 3_000_000] {
        let exact = libm::exp(-f64::from(x) * 1e-6) * 4_294_967_295.0;
        let found = f64::from(chance_to_stay(x));
        assert!((found / exact - 1.0).abs() < 16.0 / 65536.0, "{x}: {found} for {exact}");
    }
    // x = 256e-6: 65519 / 65536 of 2^32 - 1.
    assert_eq!(chance_to_stay(256), ((0xffff_ffff_u64 * 65519) >> 16) as u32);
    assert_eq!(chance_to_stay(1 << 24), 0);
}

#[test]
fn a_constant_delay_never_makes_it_back_off() {
    let seen = rounds(&mut cdg(Config { hystart_detect: 0, ..Config::default() }), &[100; 12]);
    assert!(seen.iter().all(|&backed| !backed), "{seen:?}");
}

/// An ACK with 500 ms after a round trip of 100 ms. The first gradient counts for all eight: 8 *
/// 400,000 us * 42 = 134e6 millionths, beyond the range of the exponential.
fn meets_a_steep_gradient(cc: &mut Cdg) {
    let mut path = Path::new(cc, Duration::from_millis(100));
    path.round();
    path.flow.una = path.flow.nxt + 1;
    let rtt = Some(Duration::from_millis(500));
    path.ack(&Ack { acked: 1, credit: 1, delivered: 1, rtt, ..Ack::default() });
}

#[test]
fn steep_delay_gradient_always_causes_a_backoff() {
    let mut cc = cdg(Config { hystart_detect: 0, ..Config::default() });
    meets_a_steep_gradient(&mut cc);
    assert!(cc.wants_reduction());
    let cwnd = cc.control().cwnd;
    let event = Congestion { cause: Cause::Ecn, flight: cwnd, again: false };
    cc.on_congestion(&FLOW, event);
    // 724 / 1024.
    assert_eq!(cc.control().cwnd, cwnd * 724 / 1024);
    assert!(!cc.wants_reduction());
}

#[test]
fn loss_after_a_backoff_halves_the_shadow_window() {
    let mut cc = cdg(Config { hystart_detect: 0, ..Config::default() });
    meets_a_steep_gradient(&mut cc);
    let before = cc.control().cwnd;
    let event = Congestion { cause: Cause::Ecn, flight: before, again: false };
    cc.on_congestion(&FLOW, event);
    let cut = cc.control().cwnd;
    cc.on_recovered(&FLOW);
    cc.on_congestion(&FLOW, Congestion { cause: Cause::Loss, ..event });
    // Half of the window before both, which is more than half of the reduced one.
    assert_eq!(cc.control().cwnd, before / 2);
    assert!(before / 2 > cut / 2);
}

#[test]
fn backoffs_stop_after_five_ineffectual_ones() {
    let mut cc = cdg(Config { hystart_detect: 0, ..Config::default() });
    let mut path = Path::new(&mut cc, Duration::from_millis(100));
    for round in 1..=20 {
        // The delay grows by 400 ms every round, whatever the window.
        path.rtt = Duration::from_millis(100 + 400 * round);
        path.round();
    }
    assert_eq!(path.probe("ineffectual_backoffs") as u64, 19);
    assert_eq!(path.probe("backoffs") as u64, 5);
}

#[test]
fn delayed_ack_updates_only_the_min_rtt_unless_data_is_sacked() {
    // tcp_cdg_acked requires `sacked_out == 0`; lost segments, as after a timeout, do not matter.
    for (sacked, in_flight, greatest) in [(0, 10, 100), (0, 1, 100), (1, 10, 900)] {
        let mut cc = cdg(Config::default());
        let flow = FlowState { in_flight, sacked, ..FLOW };
        for (acked, millis) in [(2, 100), (1, 900)] {
            let rtt = Some(Duration::from_millis(millis));
            cc.on_arrival(&flow, &Ack { acked, rtt, ..Ack::default() });
        }
        assert_eq!(cc.watch.rtt, Span { min: 100_000, max: 1000 * greatest });
    }
}

#[test]
fn queue_is_full_if_min_rtt_rises_and_max_rtt_does_not() {
    let mut gradients = Gradients::new(1);
    let before = Span { min: 1000, max: 5000 };
    let mut queue = |min, max| gradients.take(Span { min, max }, before).queue;
    assert_eq!(queue(2000, 5000), Some(true));
    assert_eq!(queue(2000, 6000), Some(false));
    assert_eq!(queue(1000, 4000), Some(false));
    assert_eq!(queue(1010, 5010), None);
}

#[test]
fn gradients_are_summed_over_the_window() {
    let mut gradients = Gradients::new(2);
    let span = |min| Span { min, max: min };
    // One of two gradients: it counts twice.
    assert_eq!(gradients.take(span(110), span(100)).gradient, 20);
    assert_eq!(gradients.take(span(140), span(110)).gradient, 40);
    // The first gradient is discarded: 30 + 5.
    assert_eq!(gradients.take(span(145), span(140)).gradient, 35);
}

#[test]
fn a_window_that_is_no_power_of_two_is_refused() {
    let error = crate::Params(serde_json::json!({ "window": 6 })).parse::<Config>().unwrap_err();
    assert!(error.to_string().contains("6 is not a power of two up to 256"), "{error}");
}
