use super::*;
use crate::testing::{INIT, Path};
use crate::{CutBase, Flavour};

const BASE: Duration = Duration::from_millis(100);

/// Compound in congestion avoidance with a window of `window`, of which all is NewReno's, on a path of
/// 100 ms.
fn compound(window: u64, config: Config) -> Compound {
    let mut cc = Compound::new(&Init { initial_window: window, ..INIT }, config);
    cc.window.leave_slow_start();
    cc.delay.base_rtt = BASE;
    cc
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
}

#[test]
fn without_a_queue_the_whole_window_grows_by_alpha_win_to_the_k() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    // NewReno adds one: 257^0.75 / 8 = 8.0234, of which one is NewReno's.
    let grown = libm::pow(257.0, 0.75) / 8.0 - 1.0;
    assert_eq!(path.round(), 264);
    assert_near(path.probe("dwnd"), grown);
    assert_near(path.probe("cwnd"), 257.0);
}

#[test]
fn a_queue_of_gamma_takes_it_back_by_what_is_queued() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    for _ in 0..10 {
        path.round();
    }
    let (before, dwnd) = (path.cwnd(), path.probe("dwnd"));
    // A fifth of 125 ms is queueing: a fifth of the window, which is more than 30 of it.
    path.rtt = Duration::from_millis(125);
    path.round();
    let diff = (before + 1) as f64 / 5.0;
    assert_near(path.probe("diff"), diff);
    assert_near(path.probe("dwnd"), (dwnd - diff).max(0.0));
}

#[test]
fn less_than_gamma_is_no_queue() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    // A tenth of 257 is 25.7.
    path.rtt = BASE * 10 / 9;
    path.round();
    assert!(path.probe("dwnd") > 7.0);
}

#[test]
fn a_small_window_is_newrenos() {
    let mut cc = compound(20, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    let windows: Vec<_> = (0..10).map(|_| path.round()).collect();
    assert_eq!(windows, (21..=30).collect::<Vec<_>>());
}

#[test]
fn a_loss_halves_both_windows() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    for _ in 0..10 {
        path.round();
    }
    let (win, cwnd) = (path.cwnd(), path.probe("cwnd"));
    path.congestion(Cause::Loss);
    // win (1 - beta) - cwnd / 2.
    assert_eq!(path.cwnd(), win / 2);
    assert_near(path.probe("dwnd"), (win / 2) as f64 - cwnd / 2.0);
}

#[test]
fn a_timeout_leaves_newreno_and_forgets_the_path() {
    let mut cc = compound(256, Config::default());
    let mut path = Path::new(&mut cc, BASE);
    for _ in 0..10 {
        path.round();
    }
    path.congestion(Cause::Timeout);
    assert_eq!(path.cwnd(), 1);
    for probe in ["dwnd", "base_rtt_ms"] {
        assert_near(path.probe(probe), 0.0);
    }
}

/// Gamma after one loss at a window of 100, with an RTT of 125 ms.
fn tuned(config: Config) -> f64 {
    let mut cc = compound(100, config);
    let mut path = Path::new(&mut cc, BASE);
    path.rtt = Duration::from_millis(125);
    path.round();
    path.congestion(Cause::Loss);
    path.congestion(Cause::Loss);
    path.probe("gamma")
}

#[test]
fn gamma_goes_towards_three_quarters_of_newrenos_queue_once_a_measurement() {
    // NewReno would have a fifth of 101 waiting: 20.2. 3/4 * 30 + 1/4 * 3/4 * 20.2 = 26.2875. The second
    // loss has nothing new to go by.
    assert_near(tuned(Config::default()), 26.2875);
    assert_near(tuned(Config { gamma_tuning: false, ..Config::default() }), 30.0);
}

#[test]
fn gamma_stays_within_its_bounds() {
    assert_near(tuned(Config { gamma_low: 28.0, ..Config::default() }), 28.0);
    assert_near(tuned(Config { gamma_high: 20.0, ..Config::default() }), 20.0);
}

#[test]
fn both_flavours_cut_what_their_stack_says() {
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
