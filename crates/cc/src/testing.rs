//! A path of constant delay, to drive a controller by hand: whole windows, one ACK per segment.
//!
//! There is no sender and no queue: the test decides when congestion is signalled. The path shows
//! the effect of a rule on a window, not the performance of an algorithm on a network.

use crate::{
    Ack, Cause, Congestion, CongestionControl, CutBase, Flavour, FlowState, Init, Phase,
    RateSample, Round,
};
use tcplab_units::{Duration, Rate, Time};

/// A connection of 1460-byte segments that starts with ten, on the rules of the RFCs.
pub const INIT: Init = Init {
    mss: 1460,
    initial_window: 10,
    cut_base: CutBase::FlightSize,
    flavour: Flavour::Rfc,
    seed: 1,
    max_pacing: None,
};

/// The same in the kernel's way.
pub const LINUX: Init = Init { cut_base: CutBase::Cwnd, flavour: Flavour::Linux, ..INIT };

/// A flow that fills its window, with no other state.
pub const FLOW: FlowState = FlowState {
    now: Time::ZERO,
    mss: INIT.mss,
    cwnd: INIT.initial_window,
    rate: 0,
    is_paced: false,
    in_flight: 0,
    sacked: 0,
    delivered: 0,
    srtt: Duration::ZERO,
    min_rtt: Duration::MAX,
    rto: Duration::from_millis(300),
    una: 0,
    nxt: 0,
    lost: 0,
    next_departure: Time::ZERO,
    app_limited: false,
    cwnd_limited: true,
    phase: Phase::Open,
};

/// The rate of the path in rate samples, in segments per round trip. Without a limit, algorithms
/// that follow the rate would double for ever.
pub const MOST_A_ROUND: u64 = 100;

/// A controller with an always full window, on a path of constant delay.
#[derive(Debug)]
pub struct Path<'a> {
    cc: &'a mut dyn CongestionControl,
    /// The state passed with each event.
    pub flow: FlowState,
    /// The delay of the path; it may change from round to round.
    pub rtt: Duration,
}

impl<'a> Path<'a> {
    /// A path on which nothing has been sent.
    pub fn new(cc: &'a mut dyn CongestionControl, rtt: Duration) -> Self {
        let flow = FlowState { srtt: rtt, min_rtt: rtt, ..FLOW };
        Self { cc, flow, rtt }
    }

    /// The controller's window.
    pub fn cwnd(&self) -> u64 {
        self.cc.control().cwnd
    }

    /// The value of the controller's probe called `name`.
    pub fn probe(&self, name: &str) -> f64 {
        probe(self.cc, name)
    }

    /// Hands the controller an ACK.
    pub fn ack(&mut self, ack: &Ack) {
        let ack = Ack { rate: self.rate(ack.delivered), ..*ack };
        let ack = &ack;
        if self.cc.wants_in_ack_event() {
            let before = FlowState { delivered: self.flow.delivered - ack.delivered, ..self.flow };
            self.cc.on_arrival(&before, &Ack { lost: 0, round: None, ..*ack });
        }
        self.cc.on_ack(&self.flow, ack);
    }

    /// The rate sample of an ACK of so many segments: the path delivers the data in flight in a
    /// round trip, up to its rate.
    fn rate(&self, acked: u64) -> Option<RateSample> {
        let delivered = self.flow.in_flight.saturating_add(acked).clamp(1, MOST_A_ROUND);
        let wanted = self.cc.samples_rate() && acked > 0 && !self.rtt.is_zero();
        let bits = delivered as f64 * self.flow.mss as f64 * 8.0 / self.rtt.as_secs_f64();
        wanted.then(|| RateSample {
            rate: Rate::from_bits_per_second(bits as u64),
            delivered,
            interval: self.rtt,
            delivered_at_send: self.flow.delivered.saturating_sub(delivered),
            is_ack_delayed: false,
            app_limited: false,
            in_flight_at_send: delivered,
            lost: 0,
        })
    }

    /// Delivers the window in one round trip, with evenly spread ACKs. Returns the next window.
    pub fn round(&mut self) -> u64 {
        let segments = self.cwnd();
        let start = self.flow.now;
        // Algorithms that follow the rate of the path are limited to it: the rest is a queue.
        let filled = if self.cc.samples_rate() { segments.div_ceil(MOST_A_ROUND) } else { 1 };
        let time = self.rtt * filled;
        for number in 1..=segments {
            self.flow.now = start
                + Duration::from_secs_f64(time.as_secs_f64() * number as f64 / segments as f64);
            self.flow.delivered += 1;
            self.flow.una = self.flow.delivered * self.flow.mss;
            let in_flight_before = self.cwnd();
            self.flow.in_flight = in_flight_before - 1;
            self.flow.nxt = self.flow.una + self.flow.in_flight * self.flow.mss;
            let round = (number == segments).then_some(Round {
                duration: self.rtt,
                min_rtt: Some(self.rtt),
                mean_rtt: Some(self.rtt),
                max_rtt: Some(self.rtt),
                rtt_samples: segments as u32,
                delivered: segments,
                lost: 0,
                ce: 0,
            });
            let (acked, rtt) = (1, Some(self.rtt));
            let (credit, delivered) = (1, 1);
            self.ack(&Ack {
                acked,
                credit,
                delivered,
                rtt,
                in_flight_before,
                round,
                ..Ack::default()
            });
        }
        self.cwnd()
    }

    /// Delivers so many segments one after the other, each a part of a round trip after the one
    /// before: a window fills one round trip. Returns the time that this took.
    pub fn stream(&mut self, segments: u64) -> Duration {
        let start = self.flow.now;
        for _ in 0..segments {
            self.flow.now += self.rtt / self.cwnd();
            self.flow.delivered += 1;
            self.flow.una = self.flow.delivered * self.flow.mss;
            self.flow.in_flight = self.cwnd() - 1;
            self.flow.nxt = self.flow.una + self.flow.in_flight * self.flow.mss;
            let (acked, rtt) = (1, Some(self.rtt));
            self.ack(&Ack { acked, credit: 1, delivered: 1, rtt, ..Ack::default() });
        }
        self.flow.now.since(start)
    }

    /// Signals a loss that is repaired at once.
    pub fn loss(&mut self) {
        let event = Congestion { cause: Cause::Loss, flight: self.cwnd(), again: false };
        self.cc.on_congestion(&self.flow, event);
        self.cc.on_recovered(&self.flow);
    }

    /// Signals congestion with a full window in flight, and recovers from it in one round trip.
    pub fn congestion(&mut self, cause: Cause) {
        let flight = self.cwnd();
        self.cc.on_congestion(&self.flow, Congestion { cause, flight, again: false });
        self.flow.now += self.rtt;
        self.flow.delivered += flight;
        if cause != Cause::Timeout {
            self.flow.phase = Phase::Recovery;
            self.ack(&Ack { acked: flight, credit: flight, delivered: flight, ..Ack::default() });
            self.flow.phase = Phase::Open;
            self.cc.on_recovered(&self.flow);
        }
    }

    /// Reports that the last congestion was spurious.
    pub fn undo(&mut self) {
        self.cc.on_undo(&self.flow);
    }

    /// Lets time pass with nothing in flight, after which the sender restarts.
    pub fn restart(&mut self, idle: Duration) {
        self.flow.now += idle;
        self.flow.in_flight = 0;
        self.cc.on_restart(&self.flow, idle);
    }
}

/// The windows of `rounds` round trips of 100 ms, the first included. A window that reaches the
/// next of `lose_at` has a loss instead of growing.
pub fn windows(cc: &mut dyn CongestionControl, rounds: usize, lose_at: &[u64]) -> Vec<u64> {
    let mut path = Path::new(cc, Duration::from_millis(100));
    let mut lose_at = lose_at.iter().peekable();
    let mut round = || {
        let cwnd = path.cwnd();
        if lose_at.next_if(|limit| cwnd >= **limit).is_some() {
            path.congestion(Cause::Loss);
        } else {
            path.round();
        }
        cwnd
    };
    (0..rounds).map(|_| round()).collect()
}

/// The value of the controller's probe called `name`.
pub fn probe(cc: &dyn CongestionControl, name: &str) -> f64 {
    let mut found = None;
    cc.probe(&mut |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no probe is called `{name}`"))
}
