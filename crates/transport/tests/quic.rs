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

struct Quic {
    cc: Box<dyn CongestionControl>,
    rtt: Rtt,
    rates: DeliveryRate,
    rounds: Rounds,
    pacing: Pacing,
    validation: CwndValidation,
    /// Departure of each packet in flight and arrival of its ACK, from packet number `oldest` on.
    sent: VecDeque<(Time, Time)>,
    oldest: u64,
    departures: Vec<Time>,
    samples: Vec<RateSample>,
    ended: Vec<Round>,
}

impl Quic {
    fn new() -> Self {
        Self {
            cc: build("newreno", &INIT, &Params::default()).expect("it is in the table"),
            rtt: Rtt::new(&LIMITS),
            rates: DeliveryRate::new(true),
            rounds: Rounds::default(),
            pacing: Pacing::default(),
            validation: CwndValidation::default(),
            sent: VecDeque::new(),
            oldest: 0,
            departures: Vec::new(),
            samples: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn out(&self) -> Outstanding {
        let segments = self.sent.len() as u64;
        Outstanding { una: self.oldest, nxt: self.oldest + segments, segments }
    }

    /// Sends what window and pacing allow, for an application that keeps at most `most` packets in
    /// flight.
    fn send(&mut self, now: Time, most: u64) {
        let cwnd = self.cc.control().cwnd;
        while self.out().segments < cwnd.min(most) && !self.pacing.hold(now, true) {
            let Outstanding { segments, .. } = self.out();
            let totals = Totals { delivered: self.oldest, lost: 0, in_flight: segments + 1 };
            self.rates.on_sent(now, segments as usize, segments == 0, totals);
            // RFC 9002 §7.7, with N = 1.25.
            let nanos = self.rtt.srtt().as_nanos();
            let rate = (cwnd * PACKET * 1_250_000_000).checked_div(nanos).unwrap_or(0);
            let burst = Burst { bytes: PACKET, goes_on: false, rate, in_nanos: false };
            self.pacing.on_sent(now, burst);
            let queued = self.sent.back().map_or(now, |&(_, acked)| acked + SERVICE);
            self.sent.push_back((now, queued.max(now + DELAY)));
            self.departures.push(now);
        }
        let Outstanding { segments, .. } = self.out();
        self.validation.on_flight(segments >= cwnd, self.out());
        if segments >= most {
            self.rates.mark_app_limited(self.oldest + segments);
        }
    }

    /// The ACK of the oldest packet arrives.
    fn on_ack(&mut self, now: Time, left_at: Time) {
        let in_flight_before = self.out().segments;
        self.sent.pop_front();
        self.oldest += 1;
        self.rates.on_delivered(0, left_at, self.oldest);
        self.rates.remove_oldest(1);
        let Outstanding { una, nxt, segments } = self.out();
        let rtt = now.since(left_at);
        self.rtt.sample(rtt, Progressed { una, nxt }, &LIMITS);
        self.rtt.update_min_rtt(rtt);
        let min_rtt = self.rtt.min_rtt();
        let state =
            SenderState { delivered: una, lost: 0, mss: PACKET, min_rtt, clock: Clock::Exact };
        let rate = self.rates.sample(now, Delivery { count: 1, is_delayed: false }, state);
        let counts = Ack { acked: 1, credit: 1, delivered: 1, ..Ack::default() };
        let ack = Ack { rtt: Some(rtt), rate, in_flight_before, ..counts };
        let round = self.rounds.on_ack(now, una, nxt, &ack);
        let control = self.cc.control();
        let (srtt, cwnd_limited) = (self.rtt.srtt(), self.validation.is_full(&control));
        let flow = FlowState {
            now,
            cwnd: control.cwnd,
            in_flight: segments,
            delivered: una,
            srtt,
            min_rtt,
            una,
            nxt,
            cwnd_limited,
            ..FLOW
        };
        self.cc.on_ack(&flow, &Ack { round, ..ack });
        self.samples.extend(rate);
        self.ended.extend(round);
    }

    fn run(most: u64) -> Self {
        let (mut quic, mut now) = (Self::new(), Time::ZERO);
        while now < Time::ZERO + Duration::from_secs(1) {
            quic.pacing.on_timer(now);
            if let Some(&(left_at, _)) = quic.sent.front().filter(|&&(_, acked)| acked <= now) {
                quic.on_ack(now, left_at);
            }
            quic.send(now, most);
            let acked = quic.sent.front().map_or(Time::NEVER, |&(_, acked)| acked);
            now = acked.min(quic.pacing.due());
        }
        quic
    }
}

#[test]
fn a_bulk_sender_measures_its_path() {
    let quic = Quic::run(u64::MAX);
    // A packet a millisecond.
    let rate = quic.samples.last().expect("there are samples").rate;
    assert_eq!(rate, Rate::from_bits_per_second(PACKET * 8 * 1000));
    assert_eq!(quic.rtt.min_rtt(), DELAY);
    assert!(quic.rtt.rto(&LIMITS) >= quic.rtt.srtt());
    // A window of packets leaves in each round, and no round is shorter than the path.
    assert!(quic.ended.len() > 3);
    assert!(quic.ended[1..].iter().all(|round| round.duration >= DELAY), "{:?}", quic.ended);
    // The initial window has no pacing rate yet. After it no two packets leave together.
    let paced = &quic.departures[2 * INIT.initial_window as usize..];
    assert!(paced.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(quic.cc.control().cwnd > 40, "more than the path holds");
}

#[test]
fn a_window_that_the_application_does_not_use_does_not_grow() {
    let quic = Quic::run(5);
    assert_eq!(quic.cc.control().cwnd, INIT.initial_window);
    // Samples of the first flight began before the application became the limit.
    assert!(quic.samples[5..].iter().all(|sample| sample.app_limited));
}
