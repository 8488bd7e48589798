use super::*;
use crate::testing::{INIT, Path};
use crate::{CutBase, Flavour};

const BASE: Duration = Duration::from_millis(100);

/// Compound in congestion avoidance with a window of `window`, entirely NewReno's, on a path of 100
/// ms.
fn compound(window: u64, config: Config) -> Compound {
    let mut cc = Compound::new(&Init { initial_window: window, ..INIT }, config);
    cc.window.leave_slow_start();
    cc.delay.base_rtt = 100_000;
    cc
}

/// Asserts equality within 1/1024, the unit of the computation.
fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1.5 / 1024.0, "{value} is not {expected}");
}

#[test]
fn without_queue_win_grows_by_alpha_win_to_the_k() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    // NewReno adds one. With the first ACK beyond the round trip 257^0.75 / 8 = 8.0234, of which
    // one is NewReno's.
    assert_eq!(path.round(), 257);
    path.stream(1);
    assert_eq!(path.cwnd(), 264);
    assert_near(path.probe("dwnd"), libm::pow(257.0, 0.75) / 8.0 - 1.0);
    assert_near(path.probe("cwnd"), 257.0);
}

#[test]
fn win_to_the_three_quarters_is_computed_by_square_roots() {
    for win in (1..5000).chain((1..=64).map(|part| part << 16)) {
        let exact = libm::pow(win as f64, 0.75) * 1024.0;
        let found = three_quarters(win) as f64;
        assert!(exact - 1.5 < found && found <= exact, "{win}: {found} is not {exact}");
    }
    assert_eq!([1, 16, 256, 1296].map(three_quarters), [1, 8, 64, 216].map(|it| it * 1024));
    // Other exponents are computed in floating point.
    let growth = |k| compound(256, Config { k, alpha: 1.0, ..Config::default() }).growth(256);
    assert_eq!([0.5, 0.75, 1.0].map(growth), [15, 63, 255].map(|it| it * 1024));
}

#[test]
fn extreme_windows_and_delays_do_not_overflow() {
    let mut cc = compound(u64::from(u32::MAX), Config::default());
    cc.adjust(UNKNOWN - 1);
    assert_near(cc.diff as f64 / ONE as f64, f64::from(1 << 22) * (1.0 - 1e5 / 2_147_483_646.0));
    cc.delay.base_rtt = UNKNOWN - 1;
    cc.adjust(UNKNOWN - 1);
    // 2^16.5 / 8 - 1.
    assert_near(cc.delay.dwnd as f64 / ONE as f64, libm::pow(2.0, 13.5) - 1.0);
}

/// After ten round trips without a queue, with a delay window.
fn grown(cc: &mut Compound) -> Path<'_> {
    let mut path = Path::new(cc, BASE);
    for _ in 0..10 {
        path.round();
    }
    path
}

#[test]
fn queue_above_gamma_reduces_dwnd_by_the_queued_segments() {
    let mut cc = compound(256, Config::default());
    let mut path = grown(&mut cc);
    // A fifth of 125 ms is queueing: a fifth of the window, which is more than 30 segments. The
    // first ACK ends the previous round trip.
    path.rtt = Duration::from_millis(125);
    path.round();
    let (before, dwnd) = (path.cwnd(), path.probe("dwnd"));
    path.stream(1);
    let diff = before as f64 / 5.0;
    assert_near(path.probe("diff"), diff);
    assert_near(path.probe("dwnd"), (dwnd - diff).max(0.0));
    assert!(path.cwnd() < before);
    // Slow start would restore the whole delay window.
    let after = path.cwnd();
    path.stream(after / 2);
    assert!(path.cwnd() <= after + 1);
}

#[test]
fn queue_after_a_loss_does_not_restart_slow_start() {
    let mut cc = compound(256, Config::default());
    let mut path = grown(&mut cc);
    path.loss();
    path.rtt = BASE * 2;
    path.round();
    path.round();
    // With half of the RTT due to queues, half of the window is queued, which exceeds the delay
    // window.
    let newreno = path.probe("cwnd");
    assert_near(path.probe("dwnd"), 0.0);
    assert_eq!(path.cwnd(), newreno as u64);
    path.round();
    assert!(path.cwnd() <= newreno as u64 + 1, "{} from {newreno}", path.cwnd());
}

#[test]
fn queue_below_gamma_does_not_reduce_dwnd() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    // A tenth of 257 is 25.7.
    path.rtt = BASE * 10 / 9;
    path.round();
    path.stream(1);
    assert!(path.probe("dwnd") > 7.0);
}

#[test]
fn rtt_samples_in_recovery_are_ignored() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    path.rtt = BASE * 2;
    path.round();
    path.congestion(Cause::Loss);
    assert_near(path.probe("dwnd"), 0.0);
    // RTTs of the following round trip count: half of the 128 segments is queued.
    path.round();
    assert_near(path.probe("diff"), 0.0);
    path.stream(1);
    assert!((path.probe("diff") - 64.0).abs() < 1.0, "{}", path.probe("diff"));
}

#[test]
fn small_windows_grow_like_newreno() {
    let mut cc = compound(20, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    let windows: Vec<_> = (0..10).map(|_| path.round()).collect();
    assert_eq!(windows, (21..=30).collect::<Vec<_>>());
}

#[test]
fn a_loss_halves_both_windows() {
    let mut cc = compound(256, Config::default());
    let mut path = grown(&mut cc);
    let (win, cwnd) = (path.cwnd(), path.probe("cwnd"));
    path.congestion(Cause::Loss);
    // win (1 - beta) - cwnd / 2.
    assert_eq!(path.cwnd(), win / 2);
    assert_near(path.probe("dwnd"), (win / 2) as f64 - cwnd / 2.0);
}

#[test]
fn timeout_resets_dwnd_and_base_rtt_unless_undone() {
    let mut cc = compound(256, Config::default());
    let mut path = grown(&mut cc);
    let before = path.probe("dwnd");
    path.congestion(Cause::Timeout);
    assert_eq!(path.cwnd(), 1);
    for probe in ["dwnd", "base_rtt_ms"] {
        assert_near(path.probe(probe), 0.0);
    }
    // Unless the loss was spurious.
    path.undo();
    assert_near(path.probe("dwnd"), before);
    assert_near(path.probe("base_rtt_ms"), 100.0);
}

#[test]
fn moderated_window_consists_of_dwnd_alone() {
    let mut cc = compound(256, Config::default());
    grown(&mut cc);
    cc.on_moderated(20);
    assert_eq!((cc.cwnd(), cc.control().cwnd), (0, 20));
    let mut path = Path::new(&mut cc, BASE);
    path.stream(1);
    assert_near(path.probe("dwnd"), 20.0);
}

/// Gamma after one loss at a window of 101, with an RTT of 125 ms.
fn tuned(config: Config) -> f64 {
    let mut cc = compound(100, config);
    let mut path = Path::new(&mut cc, BASE);
    path.rtt = Duration::from_millis(125);
    path.round();
    path.stream(1);
    path.congestion(Cause::Loss);
    path.congestion(Cause::Loss);
    path.probe("gamma")
}

#[test]
fn gamma_tuning_moves_to_three_quarters_of_newreno_queue_per_measure() {
    // NewReno would have a fifth of 101 queued: 20.2. 3/4 * 30 + 1/4 * 3/4 * 20.2 = 26.2875. The
    // second loss has no new measurement.
    assert_near(tuned(Config::default()), 26.2875);
    assert_near(tuned(Config { gamma_tuning: false, ..Config::default() }), 30.0);
}

#[test]
fn gamma_stays_within_its_bounds() {
    assert_near(tuned(Config { gamma_low: 28.0, ..Config::default() }), 28.0);
    assert_near(tuned(Config { gamma_high: 20.0, ..Config::default() }), 20.0);
}

#[test]
fn loss_cuts_flight_size_in_rfc_and_cwnd_in_linux_flavour() {
    for (cut_base, flavour) in
        [(CutBase::FlightSize, Flavour::Rfc), (CutBase::Cwnd, Flavour::Linux)]
    {
        let init = Init { initial_window: 100, cut_base, flavour, ..INIT };
        let mut cc = Compound::new(&init, Config::default());
        let flow = crate::testing::FLOW;
        cc.on_congestion(&flow, Congestion { cause: Cause::Loss, flight: 60, again: false });
        let expected = if cut_base == CutBase::Cwnd { 50 } else { 30 };
        assert_eq!(cc.control().cwnd, expected, "{cut_base:?}");
    }
}
