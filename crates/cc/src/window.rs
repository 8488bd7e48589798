//! The window of an ack-clocked algorithm: growth, reduction and undo.
//!
//! - RFC 5681 §3.1: slow start, congestion avoidance, the minima of `ssthresh` and of the window.
//! - RFC 5681 §4.1: restart after idle.
//! - RFC 4015, RFC 9438 §4.9: undo of a spurious reduction.
//!
//! The growth credit of an ACK (`Ack::credit`) is the stack's setting; algorithms decide the price
//! of a segment.

use crate::{Cause, Congestion, Control, CutBase, Flavour, FlowState, Init, Left};
use tcplab_units::Duration;

/// The initial `ssthresh` (RFC 5681 §3.1: arbitrarily high).
const UNKNOWN: u64 = u64::MAX;

/// A congestion window with its slow-start threshold, in whole segments.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: u64,
    ssthresh: u64,
    /// Credit towards the next segment of congestion avoidance.
    credit: f64,
    /// `cwnd` and `ssthresh` before the last decrease.
    before: Option<(u64, u64)>,
    initial: u64,
    cut_base: CutBase,
    flavour: Flavour,
}

impl Window {
    /// The initial window of a connection.
    pub fn new(init: &Init) -> Self {
        let initial = init.initial_window.max(1);
        Self {
            cwnd: initial,
            ssthresh: UNKNOWN,
            credit: 0.0,
            before: None,
            initial,
            cut_base: init.cut_base,
            flavour: init.flavour,
        }
    }

    /// Segments that may be in flight.
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The end of slow start; `u64::MAX` until known.
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Whether the window is below `ssthresh`.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether `ssthresh` has not been set yet: the first slow start of the connection.
    pub fn in_first_slow_start(&self) -> bool {
        self.ssthresh == UNKNOWN
    }

    /// The credit towards the next segment of congestion avoidance.
    pub fn credit(&self) -> f64 {
        self.credit
    }

    /// Sets the credit towards the next segment, for algorithms that count it themselves.
    pub fn set_credit(&mut self, credit: f64) {
        self.credit = credit;
    }

    /// The base of a decrease: the window or the flight, by the stack's setting.
    pub fn cut_from(&self, event: Congestion) -> u64 {
        match self.cut_base {
            CutBase::Cwnd => self.cwnd,
            CutBase::FlightSize => event.flight,
        }
    }

    /// The decision of an algorithm with only a window.
    pub fn control(&self) -> Control {
        Control {
            cwnd: self.cwnd,
            ssthresh: (self.ssthresh != UNKNOWN).then_some(self.ssthresh),
            pacing: None,
            prr: true,
            least_burst: None,
            longest_burst: None,
        }
    }

    /// Slow start: a segment for each of `credit`, up to `ssthresh`. Returns the credit left for
    /// congestion avoidance.
    pub fn slow_start(&mut self, credit: u64) -> u64 {
        if !self.in_slow_start() {
            return credit;
        }
        let grown = self.cwnd.saturating_add(credit).min(self.ssthresh);
        let rest = credit - (grown - self.cwnd);
        self.cwnd = grown;
        rest
    }

    /// Additive increase: one segment for every `per` of `credit`.
    pub fn grow(&mut self, per: f64, credit: u64) {
        if self.flavour == Flavour::Linux && self.credit >= per {
            // Credit saved at a higher price buys one segment at this price (tcp_cong_avoid_ai).
            self.credit = 0.0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.credit += credit as f64;
        if self.credit >= per {
            self.cwnd = self.cwnd.saturating_add((self.credit / per) as u64);
            self.credit %= per;
        }
    }

    /// Reno's growth, if the window is the limit: slow start, then a segment for each window of
    /// credit.
    pub fn grow_as_reno(&mut self, flow: &FlowState, credit: u64) {
        if !flow.cwnd_limited {
            return;
        }
        let rest = self.slow_start(credit);
        if rest > 0 {
            self.grow(self.cwnd as f64, rest);
        }
    }

    /// Moves the window by so many segments up or down, but not below `least`; fractions are kept.
    /// For algorithms that do not [`grow`](Self::grow).
    pub fn drift(&mut self, segments: f64, least: u64) {
        let total = self.credit + segments;
        let whole = libm::floor(total);
        self.credit = total - whole;
        self.cwnd = if whole < 0.0 {
            self.cwnd.saturating_sub(-whole as u64)
        } else {
            self.cwnd.saturating_add(whole as u64)
        };
        if self.cwnd < least {
            self.cwnd = least;
            self.credit = 0.0;
        }
    }

    /// Raises the window to `cwnd`, unless it is larger.
    pub fn raise(&mut self, cwnd: u64) {
        if cwnd > self.cwnd {
            self.cwnd = cwnd;
            self.credit = 0.0;
        }
    }

    /// Ends slow start at the current window.
    pub fn leave_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Sets the window, for algorithms that compute it.
    pub fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(1);
    }

    /// Sets `ssthresh`, where slow start ends.
    pub fn set_threshold(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(1);
    }

    /// Multiplicative decrease: `ssthresh` is the `kept` share of the window or the flight, and the
    /// window follows; after a timeout to one segment.
    ///
    /// Where the flight is larger than the window, RFC 5681 would raise the window. This function
    /// does not.
    pub fn shrink(&mut self, flow: &FlowState, event: Congestion, kept: f64) {
        self.shrink_to(flow, event, share_of(self.cut_from(event), kept));
    }

    /// Decreases to a threshold of `kept` segments computed by the algorithm; at least two.
    pub fn shrink_to(&mut self, flow: &FlowState, event: Congestion, kept: u64) {
        if !event.again {
            self.before = Some((self.cwnd, self.threshold_in_hindsight()));
            // RFC 5681 §3.1, equation 4.
            self.ssthresh = kept.max(2);
        }
        // A threshold above the window, like that of Westwood's estimate, does not raise the
        // window.
        self.cwnd = match (event.cause, self.flavour) {
            (Cause::Loss, Flavour::Rfc) => self.cwnd.min(self.ssthresh),
            // tcp_end_cwnd_reduction: the minimum threshold raises a window of one segment to two.
            (Cause::Loss | Cause::Ecn, Flavour::Linux) => self.cwnd.max(2).min(self.ssthresh),
            // RFC 9438 §4.6: nothing is lost with a mark, so one segment keeps the ACK clock
            // running.
            (Cause::Ecn, Flavour::Rfc) => self.cwnd.min(kept.max(1)),
            // RFC 5681 §3.1: the loss window.
            (Cause::Timeout, Flavour::Rfc) => 1,
            // tcp_enter_loss: one more than the segments that may still arrive.
            (Cause::Timeout, Flavour::Linux) => flow.in_flight.saturating_add(1),
        };
        self.credit = 0.0;
    }

    /// The threshold to remember. In Linux a window in congestion avoidance justifies a threshold
    /// of three quarters of itself (`tcp_current_ssthresh`).
    fn threshold_in_hindsight(&self) -> u64 {
        match self.flavour {
            Flavour::Rfc => self.ssthresh,
            Flavour::Linux => self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2)),
        }
    }

    /// Keeps `ssthresh` at the threshold to remember.
    pub fn vouch(&mut self) {
        self.ssthresh = self.threshold_in_hindsight();
    }

    /// Undoes the last decrease and returns whether it did.
    ///
    /// A window that has outgrown its earlier size stays (RFC 9438 §4.9.2).
    pub fn undo(&mut self) -> bool {
        let Some((cwnd, ssthresh)) = self.before.take() else { return false };
        let is_smaller = self.cwnd < cwnd;
        self.cwnd = self.cwnd.max(cwnd);
        match self.flavour {
            // tcp_undo_cwnd_reduction: whatever the window is now.
            Flavour::Linux => self.ssthresh = self.ssthresh.max(ssthresh),
            Flavour::Rfc if is_smaller => (self.ssthresh, self.credit) = (ssthresh, 0.0),
            Flavour::Rfc => {}
        }
        is_smaller
    }

    /// Restart after idle: without an ACK clock, the flow begins again with the initial window (RFC
    /// 5681 §4.1). Earlier reductions can no longer be undone.
    ///
    /// Linux instead halves the window for each RTO that has passed (`tcp_cwnd_restart`).
    pub fn restart(&mut self, flow: &FlowState, idle: Duration) {
        match self.flavour {
            Flavour::Rfc => self.cwnd = self.cwnd.min(self.initial),
            Flavour::Linux => {
                self.ssthresh = self.threshold_in_hindsight();
                let least = self.initial.min(self.cwnd);
                let (mut left, step) = (idle, flow.rto.max(Duration::from_nanos(1)));
                while left > step && self.cwnd > least {
                    left = left - step;
                    self.cwnd >>= 1;
                }
                self.cwnd = self.cwnd.max(least);
            }
        }
        self.before = None;
        // Linux keeps its count.
        if self.flavour == Flavour::Rfc {
            self.credit = 0.0;
        }
    }

    /// Continues with the window of another algorithm, and with the algorithm's own threshold. The
    /// last decrease can no longer be undone: `tcp_init_congestion_control` clears
    /// `prior_ssthresh`.
    pub fn take_over(&mut self, left: &Left) {
        self.cwnd = left.cwnd.max(1);
        if self.ssthresh == UNKNOWN {
            self.ssthresh = left.ssthresh.unwrap_or(UNKNOWN);
        }
        (self.credit, self.initial, self.before) = (left.credit, left.initial, None);
    }

    /// Limits the window to `cwnd`.
    pub fn cap(&mut self, cwnd: u64) {
        self.cwnd = self.cwnd.min(cwnd.max(1));
    }

    /// Reduces a window that was not filled for an RTO half the way to its `used` part (RFC 2861,
    /// `tcp_cwnd_application_limited`).
    pub fn narrow(&mut self, used: u64) {
        let used = used.max(self.initial);
        if used < self.cwnd {
            self.ssthresh = self.threshold_in_hindsight();
            self.cwnd = self.cwnd.midpoint(used);
        }
    }
}

/// The whole segments in a share of `segments`.
///
/// Most decimal shares have no exact binary form: without the correction, 0.7 of 90 would be 62.
fn share_of(segments: u64, share: f64) -> u64 {
    (segments as f64 * share * (1.0 + 2.0 * f64::EPSILON)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FLOW, INIT};
    use proptest::prelude::*;

    fn loss(flight: u64) -> Congestion {
        Congestion { cause: Cause::Loss, flight, again: false }
    }

    #[test]
    fn slow_start_stops_at_ssthresh_and_returns_the_rest() {
        let mut window = Window::new(&INIT);
        assert_eq!(window.slow_start(10), 0);
        window.shrink(&FLOW, Congestion { cause: Cause::Timeout, flight: 20, again: false }, 0.5);
        // From 1 to ssthresh 10 takes 9 of 12.
        assert_eq!((window.slow_start(12), window.cwnd()), (3, 10));
        assert_eq!(window.slow_start(5), 5);
    }

    #[test]
    fn credit_adds_up_to_whole_segments() {
        let mut window = Window::new(&INIT);
        for _ in 0..9 {
            window.grow(10.0, 1);
        }
        assert_eq!(window.cwnd(), 10);
        // 9 + 12 = 2 * 10 + 1, and 1 + 9 = 10.
        window.grow(10.0, 12);
        assert_eq!(window.cwnd(), 12);
        window.grow(10.0, 9);
        assert_eq!(window.cwnd(), 13);
    }

    #[test]
    fn drift_moves_cwnd_by_fractions_down_to_the_minimum() {
        let mut window = Window::new(&INIT);
        let mut drift = |segments: f64| {
            window.drift(segments, 2);
            window.cwnd()
        };
        // 10.5, 11, 10.75, 9.75, and 2 instead of -90.25, of which no fraction is kept.
        assert_eq!([0.5, 0.5, -0.25, -1.0, -100.0, 0.875].map(&mut drift), [10, 11, 10, 9, 2, 2]);
    }

    #[test]
    fn reduction_is_a_share_of_the_configured_cut_base() {
        for (cut_base, expected) in [(CutBase::FlightSize, 3), (CutBase::Cwnd, 5)] {
            let mut window = Window::new(&Init { cut_base, ..INIT });
            window.shrink(&FLOW, loss(6), 0.5);
            assert_eq!(window.cwnd(), expected, "{cut_base:?}");
        }
    }

    #[test]
    fn minimum_cwnd_is_two_after_loss_and_one_after_ecn_or_timeout() {
        for (cause, expected) in [(Cause::Loss, 2), (Cause::Ecn, 1), (Cause::Timeout, 1)] {
            let mut window = Window::new(&INIT);
            window.shrink(&FLOW, Congestion { cause, flight: 1, again: false }, 0.5);
            let control = window.control();
            assert_eq!((control.cwnd, control.ssthresh), (expected, Some(2)), "{cause:?}");
        }
    }

    #[test]
    fn a_flight_beyond_the_window_does_not_widen_it() {
        for flavour in [Flavour::Rfc, Flavour::Linux] {
            let mut window = Window::new(&Init { flavour, ..INIT });
            window.shrink(&FLOW, loss(100), 0.5);
            let control = window.control();
            assert_eq!((control.cwnd, control.ssthresh), (10, Some(50)), "{flavour:?}");
        }
    }

    #[test]
    fn linux_raises_cwnd_of_one_to_two_by_a_reduction() {
        // RFC 5681 equation 4 has a threshold of two; tcp_end_cwnd_reduction raises the window to
        // it.
        for (flavour, expected) in [(Flavour::Rfc, 1), (Flavour::Linux, 2)] {
            for cut_base in [CutBase::Cwnd, CutBase::FlightSize] {
                let mut window =
                    Window::new(&Init { initial_window: 1, flavour, cut_base, ..INIT });
                window.shrink(&FLOW, loss(1), 0.5);
                let control = window.control();
                assert_eq!((control.cwnd, control.ssthresh), (expected, Some(2)), "{flavour:?}");
            }
        }
    }

    #[test]
    fn undo_works_once() {
        let mut window = Window::new(&INIT);
        let before = window.control();
        window.shrink(&FLOW, loss(10), 0.5);
        assert!(window.undo());
        assert_eq!(window.control(), before);
        window.leave_slow_start();
        assert!(!window.undo());
        assert_eq!(window.control().ssthresh, Some(10));
    }

    #[test]
    fn undo_keeps_cwnd_that_exceeds_the_old_one() {
        let mut window = Window::new(&INIT);
        window.shrink(&FLOW, loss(10), 0.5);
        window.grow(1.0, 7);
        let outgrown = window.control();
        assert!(!window.undo());
        assert_eq!(window.control(), outgrown);
    }

    #[test]
    fn linux_undo_restores_ssthresh_even_if_cwnd_was_not_reduced() {
        // tcp_undo_cwnd_reduction: two segments stay two, and the larger threshold applies.
        for (flavour, restored) in [(Flavour::Linux, 11), (Flavour::Rfc, 2)] {
            let mut window = Window::new(&Init { initial_window: 2, flavour, ..INIT });
            window.set_threshold(11);
            window.shrink(&FLOW, loss(2), 0.875);
            assert_eq!((window.cwnd(), window.ssthresh()), (2, 2));
            assert!(!window.undo());
            assert_eq!((window.cwnd(), window.ssthresh()), (2, restored), "{flavour:?}");
        }
    }

    #[test]
    fn restart_narrows_to_the_first_window_and_never_widens() {
        let mut window = Window::new(&INIT);
        window.slow_start(50);
        window.restart(&FLOW, Duration::from_secs(1));
        assert_eq!(window.cwnd(), INIT.initial_window);
        window.shrink(&FLOW, loss(8), 0.5);
        window.restart(&FLOW, Duration::from_secs(1));
        assert_eq!(window.cwnd(), 4);
        assert!(!window.undo());
    }

    #[test]
    fn a_decimal_share_is_floored_exactly() {
        for percent in 1..100 {
            for segments in (0..1000).chain((1 << 32) - 1000..1 << 32) {
                let exact = segments * percent / 100;
                assert_eq!(
                    share_of(segments, percent as f64 / 100.0),
                    exact,
                    "{percent} % of {segments}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn growth_is_the_credit_over_its_price(
            per in 1..1000_u64,
            credits in prop::collection::vec(0..1000_u64, 0..50),
        ) {
            let mut window = Window::new(&INIT);
            for credit in &credits {
                window.grow(per as f64, *credit);
            }
            let bought = credits.iter().sum::<u64>() / per;
            prop_assert_eq!(window.cwnd(), INIT.initial_window + bought);
        }
    }
}
