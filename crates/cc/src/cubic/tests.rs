use super::*;
use crate::Params;
use crate::testing::{INIT, Path, probe, windows};

const RTT: Duration = Duration::from_millis(100);
const BETA: f64 = 0.7;
const C: f64 = 0.4;

/// CUBIC in its first slow start with a window of `initial_window`.
fn cubic(initial_window: u64, config: Config) -> Cubic {
    Cubic::new(&Init { initial_window, ..INIT }, config)
}

fn plain() -> Config {
    Config { hystart: false, ..Config::default() }
}

/// The time from a cut to the plateau (RFC 9438 §4.2).
fn k(w_max: f64, cwnd_epoch: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch) / C)
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} +- {tolerance}");
}

#[test]
fn cubic_follows_its_curve_and_reaches_w_max_after_k() {
    // Large enough for the curve to stay above Reno's window.
    let w_max = 1000.0;
    let k = k(w_max, BETA * w_max);
    let mut cc = cubic(1000, plain());
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Loss);
    assert_eq!(path.cwnd(), 700);
    path.round();
    assert_near(path.probe("k"), k, 1e-9);
    assert_near(path.probe("w_max"), w_max, 0.0);
    let mut plateau = 0;
    while path.probe("t") < 1.5 * k {
        let distance = path.probe("t") - k;
        let curve = C * distance * distance * distance + w_max;
        assert_near(path.cwnd() as f64, curve, 2.0);
        if distance.abs() <= RTT.as_secs_f64() {
            assert_near(path.cwnd() as f64, w_max, 1.0);
            plateau += 1;
        }
        path.round();
    }
    assert!(plateau > 0, "the plateau was passed");
}

#[test]
fn cubic_growth_depends_on_time_not_on_rtt() {
    // 2 s after the cut, whatever the RTT; Reno's window is far below by then.
    let at_two_seconds = |rtt: Duration| {
        let mut cc = cubic(1000, Config { tcp_friendly: false, ..plain() });
        let mut path = Path::new(&mut cc, rtt);
        path.congestion(Cause::Loss);
        while path.probe("t") < 2.0 {
            path.round();
        }
        path.cwnd() as f64
    };
    let distance = 2.0 - k(1000.0, 700.0);
    let curve = C * distance * distance * distance + 1000.0;
    for millis in [10, 50, 200] {
        let slope = 3.0 * C * distance * distance;
        let rtt = Duration::from_millis(millis);
        // `t` is read once per round, so the window may be one round further.
        assert_near(at_two_seconds(rtt), curve, 2.0 + slope * rtt.as_secs_f64());
    }
}

#[test]
fn small_windows_follow_the_line_of_reno() {
    // K is 2.5 s, so the curve hardly rises within 20 round trips of 10 ms.
    let w_max = 20.0;
    let alpha = 3.0 * (1.0 - BETA) / (1.0 + BETA);
    let mut cc = cubic(20, plain());
    let mut path = Path::new(&mut cc, Duration::from_millis(10));
    path.congestion(Cause::Loss);
    let mut line = BETA * w_max;
    for round in 1..=20 {
        // alpha per round trip up to the old window, then one, as Reno.
        line += if line < w_max { alpha } else { 1.0 };
        path.round();
        assert_near(path.cwnd() as f64, line, 1.0);
        assert_near(path.probe("w_est"), line, 1.0);
        assert!(round < 13 || line > w_max, "both slopes are seen");
    }
}

#[test]
fn small_windows_follow_the_curve_with_tcp_friendly_off() {
    let mut cc = cubic(20, Config { tcp_friendly: false, ..plain() });
    let mut path = Path::new(&mut cc, Duration::from_millis(10));
    path.congestion(Cause::Loss);
    for _ in 0..20 {
        path.round();
    }
    let distance = path.probe("t") - k(20.0, 14.0);
    let curve = C * distance * distance * distance + 20.0;
    assert_near(path.cwnd() as f64, curve, 1.0);
}

#[test]
fn fast_convergence_lowers_w_max_at_a_second_loss() {
    for (fast_convergence, share) in [(true, f64::midpoint(1.0, BETA)), (false, 1.0)] {
        let mut cc = cubic(1000, Config { fast_convergence, ..plain() });
        let mut path = Path::new(&mut cc, RTT);
        path.congestion(Cause::Loss);
        // Within two of nine seconds the window is still below the old one.
        for _ in 0..20 {
            path.round();
        }
        let cwnd = path.cwnd() as f64;
        assert!(cwnd < 1000.0);
        path.congestion(Cause::Loss);
        assert_near(path.probe("w_max"), cwnd * share, 1e-9);
    }
}

#[test]
fn loss_above_the_plateau_sets_w_max_to_cwnd() {
    let mut cc = cubic(1000, plain());
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Loss);
    while path.cwnd() <= 1000 {
        path.round();
    }
    let cwnd = path.cwnd() as f64;
    path.congestion(Cause::Loss);
    assert_near(path.probe("w_max"), cwnd, 0.0);
}

#[test]
fn grows_by_half_per_round_trip_at_the_most() {
    // A curve so steep that the growth limit applies from the first round on.
    let mut cc = cubic(100, Config { c: 1e6, ..plain() });
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Loss);
    // Away from the plateau at 100, which is reached in K = cbrt(30 / 1e6), 31 ms.
    path.round();
    for _ in 0..10 {
        let cwnd = path.cwnd();
        // An odd window leaves half a segment of credit for the next round.
        assert!((cwnd + cwnd / 2..=cwnd + cwnd.div_ceil(2)).contains(&path.round()));
    }
}

#[test]
fn cubic_never_shrinks_around_the_plateau() {
    let mut cc = cubic(1000, plain());
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Loss);
    let mut last = path.cwnd();
    for _ in 0..200 {
        let next = path.round();
        assert!(next >= last);
        last = next;
    }
}

#[test]
fn timeout_resets_w_max() {
    let mut cc = cubic(100, plain());
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Timeout);
    assert_eq!(path.cwnd(), 1);
    // 1, 2, 4, .. 64, then ssthresh: 0.7 of 100.
    for _ in 0..7 {
        path.round();
    }
    assert_eq!(path.cwnd(), 70);
    assert_near(path.probe("w_max"), 70.0, 0.0);
    assert_near(path.probe("k"), 0.0, 0.0);
    assert_near(path.probe("cwnd_prior"), 100.0, 0.0);
}

#[test]
fn epoch_time_excludes_periods_not_cwnd_limited() {
    let mut cc = cubic(1000, plain());
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Loss);
    path.round();
    let (cwnd, t) = (path.cwnd(), path.probe("t"));
    path.flow.cwnd_limited = false;
    for _ in 0..50 {
        path.round();
    }
    path.flow.cwnd_limited = true;
    let ack = Ack { credit: 1, ..Ack::default() };
    path.ack(&ack);
    assert_near(path.probe("t"), t, 0.0);
    assert_eq!(path.cwnd(), cwnd);
}

#[test]
fn idle_time_counts_as_one_round_trip_at_the_most() {
    let mut cc = cubic(1000, plain());
    let mut path = Path::new(&mut cc, RTT);
    path.congestion(Cause::Loss);
    path.round();
    let t = path.probe("t");
    let ack = Ack { credit: 1, ..Ack::default() };
    path.flow.in_flight = 0;
    path.ack(&ack);
    path.flow.now += Duration::from_secs(30);
    path.ack(&ack);
    assert_near(path.probe("t"), t + RTT.as_secs_f64(), 1e-9);
}

#[test]
fn undo_restores_the_cubic_state() {
    for cause in [Cause::Loss, Cause::Ecn, Cause::Timeout] {
        let mut cc = cubic(1000, plain());
        let mut path = Path::new(&mut cc, RTT);
        path.congestion(Cause::Loss);
        path.round();
        let names = ["w_max", "cwnd_prior", "k", "t", "w_est"];
        let before = (path.cwnd(), names.map(|name| path.probe(name)));
        path.congestion(cause);
        path.undo();
        assert_eq!((path.cwnd(), names.map(|name| path.probe(name))), before, "{cause:?}");
    }
}

#[test]
fn undo_after_cwnd_reached_its_old_value_changes_nothing() {
    let mut cc = cubic(20, plain());
    let mut path = Path::new(&mut cc, Duration::from_millis(10));
    path.congestion(Cause::Loss);
    while path.cwnd() < 20 {
        path.round();
    }
    let before = (path.cwnd(), path.probe("w_est"), path.probe("t"));
    path.undo();
    assert_eq!((path.cwnd(), path.probe("w_est"), path.probe("t")), before);
}

#[test]
fn restart_after_idle_begins_an_epoch_below_the_old_w_max() {
    let mut cc = cubic(10, plain());
    let mut path = Path::new(&mut cc, RTT);
    while path.cwnd() < 160 {
        path.round();
    }
    path.congestion(Cause::Loss);
    for _ in 0..10 {
        path.round();
    }
    path.restart(Duration::from_secs(5));
    assert_eq!(path.cwnd(), 10);
    // Slow start back to ssthresh, 0.7 of 160, and there a new stage below the same plateau.
    for _ in 0..4 {
        path.round();
    }
    assert!(path.probe("t") < RTT.as_secs_f64());
    assert_near(path.probe("k"), k(160.0, 112.0), 1e-9);
}

#[test]
fn hystart_ends_the_first_slow_start_after_css_rounds() {
    let mut cc = cubic(10, Config::default());
    let mut path = Path::new(&mut cc, RTT);
    path.round();
    path.round();
    let cwnd = path.cwnd();
    path.rtt = RTT + RTT / 8;
    // In the first slow round eight samples pass before growth slows to one segment for 4 ACKs.
    assert_eq!(path.round(), cwnd + 8 + (cwnd - 8) / 4);
    for _ in 2..5 {
        assert_near(path.probe("css"), 1.0, 0.0);
        let cwnd = path.cwnd();
        assert_near(path.round() as f64, cwnd as f64 * 1.25, 1.0);
    }
    path.round();
    assert_near(path.probe("css"), 0.0, 0.0);
    let end = path.cwnd() as f64;
    assert_near(path.probe("w_max"), end, 0.0);
    assert_near(path.probe("k"), 0.0, 0.0);
    assert_near(path.probe("cwnd_prior"), end, 0.0);
}

#[test]
fn hystart_is_off_after_the_first_slow_start() {
    let mut cc = cubic(10, Config::default());
    // A loss, then a timeout: slow start up to the known threshold does not end due to delay.
    let mut path = Path::new(&mut cc, RTT);
    for _ in 0..4 {
        path.round();
    }
    path.congestion(Cause::Timeout);
    for expected in [2, 4, 8, 16, 32, 64] {
        path.rtt = path.rtt + path.rtt / 2;
        assert_eq!(path.round(), expected);
    }
}

#[test]
fn without_hystart_slow_start_doubles_until_loss() {
    // 0.7 of 80.
    assert_eq!(windows(&mut cubic(10, plain()), 5, &[80]), [10, 20, 40, 80, 56]);
}

#[test]
fn cubic_probes_are_zero_before_the_first_event() {
    let cc = cubic(10, Config::default());
    for name in ["w_max", "cwnd_prior", "k", "t", "w_est", "css"] {
        assert_near(probe(&cc, name), 0.0, 0.0);
    }
}

#[test]
fn a_flow_costs_little_memory() {
    // A connection has 1 kB for everything.
    assert!(size_of::<Cubic>() <= 512, "{}", size_of::<Cubic>());
}

#[test]
fn slow_start_ends_at_an_initial_threshold() {
    for flavour in [Flavour::Rfc, Flavour::Linux] {
        let params = Params(serde_json::json!({ "initial_ssthresh": 100, "hystart": false }));
        let init = Init { flavour, ..INIT };
        let mut cc = crate::build("cubic", &init, &params).unwrap();
        let seen = windows(cc.as_mut(), 6, &[]);
        // From 10 the window doubles to 80 and slow start ends at 100. Nothing was lost, so the
        // curve begins with a plateau there; the kernel's grows by 5 % a round trip in that case.
        assert_eq!(seen[..4], [10, 20, 40, 80], "{flavour:?}");
        assert!((100..=105).contains(&seen[4]), "{flavour:?}: {seen:?}");
    }
}
