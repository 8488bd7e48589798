//! The window of an ack-clocked algorithm: how it grows, shrinks and comes back.
//!
//! - RFC 5681 §3.1: slow start, congestion avoidance, the floors of `ssthresh` and of the window.
//! - RFC 5681 §4.1: restart after idle.
//! - RFC 4015, RFC 9438 §4.9: undo of a false alarm.
//!
//! How much an ACK is worth (`Ack::credit`) is the stack's setting; algorithms decide what to buy.

use crate::{Cause, Congestion, Control, CutBase, Flavour, FlowState, Init, Left};
use tcplab_units::Duration;

/// What `ssthresh` is until something sets it (RFC 5681 §3.1: arbitrarily high).
const UNKNOWN: u64 = u64::MAX;

/// A congestion window with its slow-start threshold, in whole segments.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: u64,
    ssthresh: u64,
    /// What has been earned towards the next segment of congestion avoidance.
    credit: f64,
    /// `cwnd` and `ssthresh` before the last decrease.
    before: Option<(u64, u64)>,
    initial: u64,
    cut_base: CutBase,
    flavour: Flavour,
}

impl Window {
    /// The window a connection begins with.
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

    /// Where slow start ends; `u64::MAX` until that is known.
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Whether the window is below `ssthresh`.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether nothing has set `ssthresh` yet: the first slow start of the connection.
    pub fn in_first_slow_start(&self) -> bool {
        self.ssthresh == UNKNOWN
    }

    /// What has been earned towards the next segment of congestion avoidance.
    pub fn credit(&self) -> f64 {
        self.credit
    }

    /// Sets what has been earned towards the next segment, for algorithms that buy it themselves.
    pub fn set_credit(&mut self, credit: f64) {
        self.credit = credit;
    }

    /// What a decrease starts from: the window or the flight, as the stack is set.
    pub fn cut_from(&self, event: Congestion) -> u64 {
        match self.cut_base {
            CutBase::Cwnd => self.cwnd,
            CutBase::FlightSize => event.flight,
        }
    }

    /// The decision of an algorithm that has only a window.
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

    /// Slow start: a segment for each of `credit`, up to `ssthresh`. Returns what is left for
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
            // What was saved towards a dearer segment buys one of this price (tcp_cong_avoid_ai).
            self.credit = 0.0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.credit += credit as f64;
        if self.credit >= per {
            self.cwnd = self.cwnd.saturating_add((self.credit / per) as u64);
            self.credit %= per;
        }
    }

    /// Reno's growth, if the window is full: slow start, then a segment for each window of credit.
    pub fn grow_as_reno(&mut self, flow: &FlowState, credit: u64) {
        if !flow.cwnd_limited {
            return;
        }
        let rest = self.slow_start(credit);
        if rest > 0 {
            self.grow(self.cwnd as f64, rest);
        }
    }

    /// Moves the window by so many segments up or down, but not below `least`; what is less than one is
    /// kept. For algorithms that do not [`grow`](Self::grow).
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

    /// Widens the window to `cwnd`, unless it is wider.
    pub fn raise(&mut self, cwnd: u64) {
        if cwnd > self.cwnd {
            self.cwnd = cwnd;
            self.credit = 0.0;
        }
    }

    /// Ends slow start where the window stands.
    pub fn leave_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Sets the window, for algorithms that compute it.
    pub fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(1);
    }

    /// Slow start ends at `ssthresh`.
    pub fn set_threshold(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(1);
    }

    /// Multiplicative decrease: `ssthresh` is the `kept` share of the window or the flight, and the
    /// window follows, after a timeout to one segment.
    ///
    /// Where the flight was larger than the window, RFC 5681 would widen the window. This does not.
    pub fn shrink(&mut self, flow: &FlowState, event: Congestion, kept: f64) {
        self.shrink_to(flow, event, share_of(self.cut_from(event), kept));
    }

    /// The same, to a threshold of `kept` segments that the algorithm computed; at least two.
    pub fn shrink_to(&mut self, flow: &FlowState, event: Congestion, kept: u64) {
        if !event.again {
            self.before = Some((self.cwnd, self.threshold_in_hindsight()));
            // RFC 5681 §3.1, equation 4.
            self.ssthresh = kept.max(2);
        }
        // A threshold above the window, like that of Westwood's estimate, does not widen it.
        self.cwnd = match (event.cause, self.flavour) {
            (Cause::Loss, Flavour::Rfc) => self.cwnd.min(self.ssthresh),
            // tcp_end_cwnd_reduction: the least threshold leads from one segment up to two.
            (Cause::Loss | Cause::Ecn, Flavour::Linux) => self.cwnd.max(2).min(self.ssthresh),
            // RFC 9438 §4.6: a mark lost nothing, so one segment keeps the ACKs coming.
            (Cause::Ecn, Flavour::Rfc) => self.cwnd.min(kept.max(1)),
            // RFC 5681 §3.1: the loss window.
            (Cause::Timeout, Flavour::Rfc) => 1,
            // tcp_enter_loss: room for one more than what may still arrive.
            (Cause::Timeout, Flavour::Linux) => flow.in_flight.saturating_add(1),
        };
        self.credit = 0.0;
    }

    /// What `ssthresh` was worth. In Linux a window in congestion avoidance vouches for three quarters
    /// of itself (`tcp_current_ssthresh`).
    fn threshold_in_hindsight(&self) -> u64 {
        match self.flavour {
            Flavour::Rfc => self.ssthresh,
            Flavour::Linux => self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2)),
        }
    }

    /// Keeps `ssthresh` at what it was worth.
    pub fn vouch(&mut self) {
        self.ssthresh = self.threshold_in_hindsight();
    }

    /// Takes back the last decrease and returns whether it did.
    ///
    /// A window that has outgrown what it was before keeps what it has (RFC 9438 §4.9.2).
    pub fn undo(&mut self) -> bool {
        let Some((cwnd, ssthresh)) = self.before.take() else { return false };
        let is_smaller = self.cwnd < cwnd;
        self.cwnd = self.cwnd.max(cwnd);
        match self.flavour {
            // tcp_undo_cwnd_reduction: whatever became of the window.
            Flavour::Linux => self.ssthresh = self.ssthresh.max(ssthresh),
            Flavour::Rfc if is_smaller => (self.ssthresh, self.credit) = (ssthresh, 0.0),
            Flavour::Rfc => {}
        }
        is_smaller
    }

    /// After idle no ACKs clock the flow: it begins again with the first window (RFC 5681 §4.1).
    /// What went before says nothing of the path any more, so there is no undo across it.
    ///
    /// Linux halves the window for each timeout that has passed instead (`tcp_cwnd_restart`).
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
        // Linux goes on counting where it was.
        if self.flavour == Flavour::Rfc {
            self.credit = 0.0;
        }
    }

    /// Goes on from where another algorithm has led the window, with a threshold that is the algorithm's
    /// own. The last decrease cannot be taken back any more: `tcp_init_congestion_control` forgets
    /// `prior_ssthresh`.
    pub fn take_over(&mut self, left: &Left) {
        self.cwnd = left.cwnd.max(1);
        if self.ssthresh == UNKNOWN {
            self.ssthresh = left.ssthresh.unwrap_or(UNKNOWN);
        }
        (self.credit, self.initial, self.before) = (left.credit, left.initial, None);
    }

    /// Goes on from `cwnd`, unless the window is smaller.
    pub fn cap(&mut self, cwnd: u64) {
        self.cwnd = self.cwnd.min(cwnd.max(1));
    }

    /// A window that was not filled for a timeout goes half the way to the `used` part of it
    /// (RFC 2861, `tcp_cwnd_application_limited`).
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
/// Most decimal shares have no exact binary form: without the nudge, 0.7 of 90 would be 62.
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
    fn drifts_by_parts_of_a_segment_and_stops_at_the_least() {
        let mut window = Window::new(&INIT);
        let mut drift = |segments: f64| {
            window.drift(segments, 2);
            window.cwnd()
        };
        // 10.5, 11, 10.75, 9.75, and 2 instead of -90.25, of which no part is kept.
        assert_eq!([0.5, 0.5, -0.25, -1.0, -100.0, 0.875].map(&mut drift), [10, 11, 10, 9, 2, 2]);
    }

    #[test]
    fn the_cut_starts_from_the_base_of_the_stack() {
        for (cut_base, expected) in [(CutBase::FlightSize, 3), (CutBase::Cwnd, 5)] {
            let mut window = Window::new(&Init { cut_base, ..INIT });
            window.shrink(&FLOW, loss(6), 0.5);
            assert_eq!(window.cwnd(), expected, "{cut_base:?}");
        }
    }

    #[test]
    fn a_loss_leaves_two_segments_a_mark_or_a_timeout_one() {
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
    fn a_window_of_one_segment_ends_a_reduction_at_two_where_linux_does() {
        // RFC 5681 equation 4 has a threshold of two; tcp_end_cwnd_reduction goes up to it.
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
    fn a_window_that_outgrew_the_old_one_is_kept() {
        let mut window = Window::new(&INIT);
        window.shrink(&FLOW, loss(10), 0.5);
        window.grow(1.0, 7);
        let outgrown = window.control();
        assert!(!window.undo());
        assert_eq!(window.control(), outgrown);
    }

    #[test]
    fn linux_restores_the_threshold_of_a_window_that_was_no_larger() {
        // tcp_undo_cwnd_reduction: two segments stay two, and the larger threshold counts.
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
