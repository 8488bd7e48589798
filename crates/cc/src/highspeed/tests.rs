use super::*;
use crate::testing::{INIT, LINUX, Path, windows};
use crate::{Cause, CutBase};
use tcplab_units::Duration;

fn avoiding(cwnd: u64) -> HighSpeed {
    let mut cc = HighSpeed::new(&Init { initial_window: cwnd, ..LINUX }, Config::default());
    cc.window.leave_slow_start();
    cc
}

/// Appendix B uses 1 / 12.8 for 0.078, and its line has no upper end.
mod appendix_b {
    pub fn b(w: f64) -> f64 {
        let (low, high) = (libm::log(38.0), libm::log(83_000.0));
        (0.1 - 0.5) * (libm::log(w) - low) / (high - low) + 0.5
    }

    pub fn a(w: f64) -> f64 {
        w * w * 2.0 * b(w) / ((2.0 - b(w)) * libm::pow(w, 1.2) * 12.8)
    }
}

#[test]
fn the_table_follows_from_the_formulas_of_rfc_3649() {
    use appendix_b::{a, b};
    // Appendix B: a step wherever a(w) is more than one above that of the last.
    let mut steps = vec![(38, 128)];
    let mut last = 1.0;
    for window in 38..89_054_u64 {
        let w = window as f64;
        if a(w) > last + 1.0 {
            last = a(w);
            steps.push((window, (b(w) * 256.0) as u64));
        }
    }
    assert_eq!(steps, STEPS);
}

#[test]
fn decrease_steps_match_rfc_3649_appendix_b() {
    // From the table of appendix B.
    for (window, hundredths) in [(118, 44), (1058, 33), (10661, 21), (89053, 10)] {
        let (_, taken) = STEPS[HighSpeed::step_of(window)];
        assert!((taken as f64 / 2.56 - f64::from(hundredths)).abs() < 1.0, "{window}");
    }
}

#[test]
fn is_reno_up_to_38_segments() {
    assert_eq!(windows(&mut avoiding(20), 4, &[22]), [20, 21, 22, 11]);
    assert_eq!(windows(&mut avoiding(36), 3, &[]), [36, 37, 38]);
}

#[test]
fn step_of_a_window_is_the_first_with_bound_not_below() {
    for (window, a) in [(1, 1), (38, 1), (39, 2), (118, 2), (119, 3), (1000, 8), (200_000, 72)] {
        assert_eq!(HighSpeed::step_of(window) + 1, a, "{window}");
    }
}

#[test]
fn growth_adds_a_per_round_trip_and_loss_takes_b() {
    // At 1000, 8 a round trip, less the effect of the growing window: 1000 * 8 / 1004 = 7.97. A
    // loss takes 83 / 256 of 1007: 326.5.
    assert_eq!(windows(&mut avoiding(1000), 3, &[1007]), [1000, 1007, 1007 - 326]);
}

#[test]
fn linux_loss_in_slow_start_uses_the_step_before_it() {
    let mut cc = HighSpeed::new(&LINUX, Config::default());
    assert_eq!(windows(&mut cc, 9, &[1280]), [10, 20, 40, 80, 160, 320, 640, 1280, 640]);
}

#[test]
fn reduction_is_a_share_of_the_configured_cut_base() {
    let init = Init { cut_base: CutBase::FlightSize, ..LINUX };
    let mut cc = HighSpeed::new(&init, Config::default());
    let flow = Path::new(&mut cc, Duration::from_millis(100)).flow;
    cc.on_congestion(&flow, Congestion { cause: Cause::Loss, flight: 8, again: false });
    assert_eq!(cc.control().cwnd, 4);
}

#[test]
fn rfc_flavour_computes_a_and_b_by_formula() {
    // From the table of appendix B, which is rounded: w, a(w), b(w).
    for (w, grows, takes) in
        [(38.0, 1.0, 0.5), (118.0, 2.0, 0.44), (1058.0, 8.0, 0.33), (10661.0, 30.0, 0.21)]
    {
        assert!((a(w) - grows).abs() < 0.1, "{w}: {}", a(w));
        assert!((b(w) - takes).abs() < 0.005, "{w}: {}", b(w));
    }
    assert!((b(1e9) - 0.1).abs() < 1e-9);
    let mut cc = HighSpeed::new(&Init { initial_window: 1058, ..INIT }, Config::default());
    cc.window.leave_slow_start();
    // a is 8.01 there, less the effect of the growing window.
    assert!((1065..=1066).contains(&windows(&mut cc, 2, &[])[1]));
    cc.window.set(1058);
    // b is 0.327 there: of 1058 that leaves 712.1.
    assert_eq!(windows(&mut cc, 2, &[1058])[1], 712);
}
