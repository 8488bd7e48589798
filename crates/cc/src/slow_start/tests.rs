use super::*;
use crate::testing::{FLOW, INIT};
use crate::{Phase, Round};
use tcplab_units::{Duration, Time};

const MAX_SSTHRESH: NonZeroU64 = NonZeroU64::new(100).unwrap();
const ACK: Ack = Ack {
    acked: 1,
    credit: 1,
    delivered: 1,
    lost: 0,
    ce: 0,
    rtt: None,
    one_way_delay: None,
    timestamps: None,
    is_idle: false,
    is_predicted: false,
    delivered_at_send: None,
    in_flight_before: 0,
    rate: None,
    round: None,
};

/// A window and its slow start.
struct Begun {
    window: Window,
    slow_start: SlowStart,
    flow: FlowState,
}

impl Begun {
    fn new(kind: Kind) -> Self {
        let flow = FlowState { min_rtt: Duration::from_millis(100), ..FLOW };
        Self { window: Window::new(&INIT), slow_start: SlowStart::new(kind, MAX_SSTHRESH), flow }
    }

    fn ack(&mut self, ack: &Ack) -> u64 {
        self.slow_start.on_ack(&mut self.window, &self.flow, ack)
    }

    /// A window of ACKs of one segment each, 3 ms apart, with RTTs of so many milliseconds. Returns
    /// the next window.
    fn round(&mut self, millis: u64) -> u64 {
        let rtt = Some(Duration::from_millis(millis));
        for left in (0..self.window.cwnd()).rev() {
            self.flow.now += Duration::from_millis(3);
            let round = Round { min_rtt: rtt, ..Round::default() };
            self.ack(&Ack { rtt, round: (left == 0).then_some(round), ..ACK });
            self.flow.una += 1;
        }
        self.flow.nxt = self.flow.una + self.window.cwnd();
        self.window.cwnd()
    }
}

const KINDS: [Kind; 4] = [Kind::Standard, Kind::HyStart, Kind::HyStartPlusPlus, Kind::Limited];

#[test]
fn every_slow_start_doubles_a_small_window_at_constant_delay() {
    for kind in KINDS {
        let mut begun = Begun::new(kind);
        assert_eq!(
            [begun.round(100), begun.round(100), begun.round(100)],
            [20, 40, 80],
            "{kind:?}"
        );
    }
}

#[test]
fn only_hystart_variants_leave_slow_start_on_rising_delay() {
    // An eighth of 100 ms is 12.5 ms.
    for kind in KINDS {
        let mut begun = Begun::new(kind);
        let looks_at_delay = matches!(kind, Kind::HyStart | Kind::HyStartPlusPlus);
        begun.round(100);
        // HyStart++ exits after five rounds of CSS, which the first of these begins.
        for _ in 0..5 {
            begun.round(120);
        }
        assert_eq!(begun.window.in_slow_start(), !looks_at_delay, "{kind:?}");
    }
}

#[test]
fn limited_slow_start_adds_at_most_half_its_limit_a_round() {
    let mut begun = Begun::new(Kind::Limited);
    let windows: Vec<_> = (0..8).map(|_| begun.round(100)).collect();
    // RFC 3742 §2: at most max_ssthresh / 2 = 50 a round trip beyond 100. K is rounded down, so
    // growth is a little faster just below the next K: cwnd / K for 149 and K = 2 is 75.
    assert_eq!(windows[..3], [20, 40, 80]);
    for pair in windows[3..].windows(2) {
        let grown = pair[1] - pair[0];
        assert!((40..=75).contains(&grown), "{windows:?}");
    }
}

#[test]
fn credit_left_at_ssthresh_goes_to_congestion_avoidance() {
    for kind in KINDS {
        let mut begun = Begun::new(kind);
        begun.window.set_threshold(12);
        assert_eq!(begun.ack(&Ack { credit: 5, ..ACK }), 3, "{kind:?}");
        assert_eq!(begun.window.cwnd(), 12, "{kind:?}");
        assert_eq!(begun.ack(&Ack { credit: 5, ..ACK }), 5, "{kind:?}");
    }
}

#[test]
fn nothing_grows_in_recovery_nor_while_the_window_is_not_used() {
    for kind in KINDS {
        for flow in [
            FlowState { phase: Phase::Recovery, ..FLOW },
            FlowState { cwnd_limited: false, ..FLOW },
        ] {
            let mut begun = Begun { flow, ..Begun::new(kind) };
            assert_eq!((begun.ack(&ACK), begun.window.cwnd()), (0, 10), "{kind:?}");
        }
    }
}

#[test]
fn only_hystart_2008_restarts_after_a_timeout() {
    for (kind, ends) in [(Kind::HyStart, true), (Kind::HyStartPlusPlus, false)] {
        let mut begun = Begun::new(kind);
        begun.window.set_threshold(1000);
        begun.slow_start.on_congestion(
            &FlowState { now: Time::ZERO, ..begun.flow },
            Congestion { cause: Cause::Timeout, flight: 10, again: false },
        );
        for _ in 0..3 {
            begun.round(150);
        }
        assert_eq!(!begun.window.in_slow_start(), ends, "{kind:?}");
    }
}
