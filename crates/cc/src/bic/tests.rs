use super::*;
use crate::testing::{INIT, LINUX, Path, windows};
use crate::{Params, resolve};
use tcplab_units::Duration;

fn bic() -> Bic {
    Bic::new(&LINUX, Config::default())
}

/// In congestion avoidance.
fn avoiding(cwnd: u64, config: Config) -> Bic {
    let mut cc = Bic::new(&Init { initial_window: cwnd, ..LINUX }, config);
    cc.window.leave_slow_start();
    cc
}

fn preset(name: &str) -> Config {
    let (_, params) = resolve(&format!("bic/{name}"), &Params::default()).unwrap();
    params.parse().unwrap()
}

#[test]
fn bic_acks_per_segment_are_cwnd_over_the_search_step() {
    let mut cc = bic();
    cc.search.last_max_cwnd = 200;
    for (cwnd, expected, why) in [
        (100, 6, "a quarter of 100 is more than 16, so 100 / 16"),
        (160, 16, "160 / (40 / 4)"),
        (192, 96, "192 / (8 / 4)"),
        (193, 965, "a quarter of 7 is 1: 193 * 20 / 4"),
        (203, 1015, "within 4 beyond: 203 * 20 / 4"),
        (210, 63, "210 * 3 / 10"),
        (247, 15, "247 * 3 / 47"),
        (248, 15, "48 = 16 * 3 beyond, so 248 / 16"),
    ] {
        assert_eq!(cc.price(cwnd), expected, "{cwnd}: {why}");
    }
}

#[test]
fn grows_by_a_twentieth_at_least_before_the_first_loss() {
    // 1000 / 16 = 62.
    assert_eq!(bic().price(1000), 20);
}

#[test]
fn bic_growth_per_ack_scales_with_the_delayed_ack_ratio() {
    let mut cc = avoiding(160, Config::default());
    cc.search.last_max_cwnd = 200;
    cc.update(0);
    // 32 sixteenths a segment: 16 * 16 / 32.
    assert_eq!(cc.search.cnt, 8);
}

#[test]
fn bic_delayed_ack_ratio_is_a_moving_average_of_sixteen() {
    let mut cc = bic();
    let path = Path::new(&mut cc, Duration::from_millis(100));
    let flow = path.flow;
    for _ in 0..3 {
        // 32 + 4 - 2 = 34, 34 + 4 - 2 = 36, 36 + 4 - 2 = 38.
        cc.on_arrival(&flow, &Ack { acked: 4, ..Ack::default() });
    }
    assert_eq!(cc.search.delayed_ack, 38);
    cc.on_arrival(&FlowState { phase: Phase::Recovery, ..flow }, &Ack::default());
    assert_eq!(cc.search.delayed_ack, 38);
    // tcp_ack: nothing was outstanding, so bictcp_acked is not called.
    cc.on_arrival(&flow, &Ack { is_idle: true, ..Ack::default() });
    assert_eq!(cc.search.delayed_ack, 38);
}

#[test]
fn small_windows_grow_and_shrink_like_reno() {
    // 14 / 2, then one a round trip.
    let seen = windows(&mut avoiding(14, Config::default()), 4, &[14]);
    assert_eq!(seen, [14, 7, 8, 9]);
    // 15 * 819 / 1024 = 11.997
    assert_eq!(windows(&mut avoiding(15, Config::default()), 2, &[15]), [15, 11]);
}

#[test]
fn fast_convergence_lowers_w_max_after_consecutive_losses() {
    for (fast_convergence, expected) in [(true, 899), (false, 999)] {
        let config = Config { fast_convergence, ..Config::default() };
        let mut cc = avoiding(1200, config);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(Cause::Loss);
        assert_eq!(path.probe("w_max") as u64, 1200);
        // 1200 * 819 / 1024 = 959; up to 999, which is below 1200: 999 * (1024 + 819) / 2048 =
        // 899.01.
        cc.window.set(999);
        let mut path = Path::new(&mut cc, Duration::from_millis(100));
        path.congestion(Cause::Loss);
        assert_eq!(path.probe("w_max") as u64, expected);
    }
}

#[test]
fn bic_steps_shrink_towards_w_max_and_grow_beyond() {
    let mut cc = avoiding(400, Config::default());
    let seen = windows(&mut cc, 60, &[400]);
    let steps: Vec<_> = seen[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let nearest = steps.iter().position(|step| *step <= 1).unwrap();
    // From 319 to 400 in steps of a quarter of the rest, until less than 8 are left.
    assert!(steps[..nearest].is_sorted_by(|one, next| one >= next), "{steps:?}");
    assert!((393..=400).contains(&seen[nearest + 1]), "{seen:?}");
    assert!(steps.last() > Some(&4), "{steps:?}");
}

#[test]
fn timeout_resets_w_max_and_segments_per_ack() {
    let mut cc = avoiding(100, Config::default());
    let mut path = Path::new(&mut cc, Duration::from_millis(100));
    path.congestion(Cause::Loss);
    path.congestion(Cause::Timeout);
    assert_eq!((path.probe("w_max"), path.probe("segments_per_ack")), (0.0, 2.0));
}

#[test]
fn slow_start_of_2007_ends_at_a_hundred() {
    let mut cc = Bic::new(&INIT, preset("linux-2.6.20"));
    // 20 of 80 ACKs raise the window to 100. There a segment costs 100 / 16 = 6 segments, or 6 * 16
    // / 31 = 3 ACKs, because segments per ACK fall no lower than 31 / 16. The price stays up to
    // 120: 60 ACKs buy 20.
    assert_eq!(windows(&mut cc, 5, &[]), [10, 20, 40, 80, 120]);
}

#[test]
fn bic_2004_halves_the_distance_to_w_max_and_keeps_seven_eighths() {
    let mut cc = avoiding(400, preset("2004"));
    let event = Congestion { cause: Cause::Loss, flight: 400, again: false };
    let flow = Path::new(&mut cc, Duration::from_millis(100)).flow;
    cc.on_congestion(&flow, event);
    assert_eq!(cc.control().cwnd, 350);
    // 50 below Wmax: half of that is 25, and 350 / 25 = 14. 100 below: at most 32, 300 / 32 = 9.
    assert_eq!((cc.price(350), cc.price(300)), (14, 9));
    // Above Wmax growth doubles: as much as the window is above.
    assert_eq!(cc.price(420), 420 / 20);
}
