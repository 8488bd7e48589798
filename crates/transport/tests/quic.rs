//! A sender with packet numbers, as in QUIC, built on the parts of this crate alone. The path
//! delivers one packet a millisecond after a round trip of 40 ms, and loses none.

use std::collections::VecDeque;
use tcplab_cc::testing::{FLOW, INIT};
use tcplab_cc::{Ack, CongestionControl, FlowState, Params, RateSample, Round, build};
use tcplab_transport::{
    Burst, Clock, CwndValidation, Delivery, DeliveryRate, Outstanding, Pacing, Progressed, Rounds,
    RtoEstimator, RtoLimits, Rtt, SenderState, Totals,
};
use tcplab_units::{Duration, Rate, Time};

const PACKET: u64 = 1250;
const SERVICE: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(40);
/// RFC 9002 §6.2.2: kInitialRtt of 333 ms, tripled. QUIC has neither minimum nor maximum.
const LIMITS: RtoLimits = RtoLimits {
    estimator: RtoEstimator::Rfc6298,
    initial: Duration::from_millis(999),
    min: Duration::ZERO,
    max: Duration::MAX,
};

/// The sender. `sent` has the departure of each packet in flight, from packet number `una` on.
struct Quic {
    cc: Box<dyn CongestionControl>,
    rtt: Rtt,
    rates: DeliveryRate,
    rounds: Rounds,
    pacing: Pacing,
    validation: CwndValidation,
    sent: VecDeque<Time>,
    una: u64,
}

impl Quic {
    fn out(&self) -> Outstanding {
        let segments = self.sent.len() as u64;
        Outstanding { una: self.una, nxt: self.una + segments, segments }
    }

    /// Sends a packet if window and pacing allow it. The application keeps at most `most` in
    /// flight.
    fn send(&mut self, now: Time, most: u64) -> bool {
        let (cwnd, Outstanding { nxt, segments, .. }) = (self.cc.control().cwnd, self.out());
        if segments >= cwnd.min(most) || self.pacing.hold(now, true) {
            self.validation.on_flight(segments >= cwnd, self.out());
            if segments >= most {
                self.rates.mark_app_limited(nxt);
            }
            return false;
        }
        let totals = Totals { delivered: self.una, lost: 0, in_flight: segments + 1 };
        self.rates.on_sent(now, self.sent.len(), segments == 0, totals);
        // RFC 9002 §7.7, with N = 1.25.
        let srtt_nanos = self.rtt.srtt().as_nanos();
        let rate = (cwnd * PACKET * 1_250_000_000).checked_div(srtt_nanos).unwrap_or(0);
        self.pacing.on_sent(now, Burst { bytes: PACKET, goes_on: false, rate, in_nanos: false });
        self.sent.push_back(now);
        true
    }

    /// The oldest packet is acknowledged.
    fn on_ack(&mut self, now: Time) -> (Option<RateSample>, Option<Round>) {
        let in_flight_before = self.out().segments;
        let left_at = self.sent.pop_front().expect("a packet is in flight");
        self.una += 1;
        self.rates.on_delivered(0, left_at, self.una);
        self.rates.remove_oldest(1);
        let (rtt, Outstanding { una, nxt, segments }) = (now.since(left_at), self.out());
        self.rtt.sample(rtt, Progressed { una, nxt }, &LIMITS);
        self.rtt.update_min_rtt(rtt);
        let (srtt, min_rtt) = (self.rtt.srtt(), self.rtt.min_rtt());
        let state =
            SenderState { delivered: una, lost: 0, mss: PACKET, min_rtt, clock: Clock::Exact };
        let rate = self.rates.sample(now, Delivery { count: 1, is_delayed: false }, state);
        let counts = Ack { acked: 1, credit: 1, delivered: 1, ..Ack::default() };
        let ack = Ack { rtt: Some(rtt), rate, in_flight_before, ..counts };
        let round = self.rounds.on_ack(now, una, nxt, &ack);
        let control = self.cc.control();
        let (cwnd, cwnd_limited) = (control.cwnd, self.validation.is_full(&control));
        let measured = FlowState { now, cwnd, srtt, min_rtt, cwnd_limited, ..FLOW };
        let flow = FlowState { in_flight: segments, delivered: una, una, nxt, ..measured };
        self.cc.on_ack(&flow, &Ack { round, ..ack });
        (rate, round)
    }
}

/// One run over the path.
struct Run {
    quic: Quic,
    departures: Vec<Time>,
    samples: Vec<RateSample>,
    ended: Vec<Round>,
}

fn run(most: u64) -> Run {
    let quic = Quic {
        cc: build("newreno", &INIT, &Params::default()).expect("it is in the table"),
        rtt: Rtt::new(&LIMITS),
        rates: DeliveryRate::new(true),
        rounds: Rounds::default(),
        pacing: Pacing::default(),
        validation: CwndValidation::default(),
        sent: VecDeque::new(),
        una: 0,
    };
    let mut run = Run { quic, departures: Vec::new(), samples: Vec::new(), ended: Vec::new() };
    let (mut now, mut acks) = (Time::ZERO, VecDeque::new());
    while now < Time::ZERO + Duration::from_secs(1) {
        run.quic.pacing.on_timer(now);
        if acks.front().is_some_and(|&acked| acked <= now) {
            acks.pop_front();
            let (sample, round) = run.quic.on_ack(now);
            run.samples.extend(sample);
            run.ended.extend(round);
        }
        while run.quic.send(now, most) {
            run.departures.push(now);
            let served = acks.back().map_or(now, |&acked| acked + SERVICE);
            acks.push_back(served.max(now + DELAY));
        }
        now = run.quic.pacing.due().min(acks.front().copied().unwrap_or(Time::NEVER));
    }
    run
}

#[test]
fn quic_bulk_sender_measures_bandwidth_rtt_and_rounds() {
    let Run { quic, departures, samples, ended } = run(u64::MAX);
    // A packet a millisecond.
    let rate = samples.last().expect("there are samples").rate;
    assert_eq!(rate, Rate::from_bits_per_second(PACKET * 8 * 1000));
    assert_eq!(quic.rtt.min_rtt(), DELAY);
    assert!(quic.rtt.rto(&LIMITS) >= quic.rtt.srtt());
    // A window of packets leaves in each round, and no round is shorter than the path.
    assert!(ended.len() > 3);
    assert!(ended[1..].iter().all(|round| round.duration >= DELAY), "{ended:?}");
    // The initial window has no pacing rate yet. After it no two packets leave together.
    let paced = &departures[2 * INIT.initial_window as usize..];
    assert!(paced.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(quic.cc.control().cwnd > 40, "more than the path holds");
}

#[test]
fn a_window_that_the_application_does_not_use_does_not_grow() {
    let Run { quic, samples, .. } = run(5);
    assert_eq!(quic.cc.control().cwnd, INIT.initial_window);
    // Samples of the first flight began before the application became the limit.
    assert!(samples[5..].iter().all(|sample| sample.app_limited));
}
