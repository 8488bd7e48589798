//! A bottleneck with an unlimited queue, for tests of pacing controllers: one segment a
//! millisecond, a round trip of 100 ms, an ACK for each segment, and no losses except in
//! `flow.lost`.

use crate::testing::{FLOW, INIT, probe};
use crate::{Ack, CongestionControl, FlowState, RateSample};
use std::collections::VecDeque;
use tcplab_units::{Duration, Rate, Time};

pub(crate) const RTT: Duration = Duration::from_millis(100);
const PER_SEGMENT: Duration = Duration::from_millis(1);
/// The capacity, as controllers show it: payload.
pub(crate) const MBIT_S: f64 = INIT.mss as f64 * 8.0 * 1e3 / 1e6;
/// The BDP in segments.
pub(crate) const BDP: u64 = 100;

struct Sent {
    left: Time,
    acked: Time,
    delivered: u64,
    delivered_at: Time,
    sending_since: Time,
    in_flight: u64,
    lost: u64,
}

pub(crate) struct Line<'a> {
    pub cc: &'a mut dyn CongestionControl,
    pub flow: FlowState,
    /// An addition to the round trip, as by queues of other flows.
    pub delay: Duration,
    under_way: VecDeque<Sent>,
    free_at: Time,
    sending_since: Time,
    delivered_at: Time,
}

impl<'a> Line<'a> {
    pub fn new(cc: &'a mut dyn CongestionControl) -> Self {
        let flow = FlowState { srtt: RTT, min_rtt: RTT, ..FLOW };
        cc.on_begin(&flow);
        let (under_way, delay) = (VecDeque::new(), Duration::ZERO);
        let zero = Time::ZERO;
        Self { cc, flow, delay, under_way, free_at: zero, sending_since: zero, delivered_at: zero }
    }

    pub fn probe(&self, name: &str) -> f64 {
        probe(&*self.cc, name)
    }

    pub fn cwnd(&self) -> u64 {
        self.cc.control().cwnd
    }

    pub fn seconds(&self) -> f64 {
        self.flow.now.as_secs_f64()
    }

    /// Runs for this time.
    pub fn run(&mut self, time: Duration) {
        let until = self.flow.now + time;
        loop {
            let ack = self.under_way.front().map_or(Time::NEVER, |first| first.acked);
            let has_room = (self.under_way.len() as u64) < self.cwnd();
            let may_leave = self.flow.next_departure.max(self.flow.now);
            let send = if has_room { may_leave } else { Time::NEVER };
            if ack.min(send) > until {
                break;
            }
            self.flow.now = ack.min(send);
            if send < ack { self.send() } else { self.acknowledge() }
        }
        self.flow.now = until;
    }

    /// Runs by round trips until the condition holds.
    pub fn run_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            self.run(RTT / 10);
            assert!(self.seconds() < 60.0, "it never is");
        }
    }

    fn send(&mut self) {
        let now = self.flow.now;
        if self.under_way.is_empty() {
            (self.sending_since, self.delivered_at) = (now, now);
            self.cc.on_transmit_start(&self.flow, Duration::ZERO);
        }
        self.free_at = self.free_at.max(now) + PER_SEGMENT;
        self.under_way.push_back(Sent {
            left: now,
            acked: self.free_at + RTT.saturating_sub(PER_SEGMENT) + self.delay,
            delivered: self.flow.delivered,
            delivered_at: self.delivered_at,
            sending_since: self.sending_since,
            in_flight: self.under_way.len() as u64 + 1,
            lost: self.flow.lost,
        });
        self.flow.nxt += self.flow.mss;
        self.flow.in_flight = self.under_way.len() as u64;
        let rate = self.cc.control().pacing.expect("it paces").bits_per_second();
        self.flow.next_departure =
            now + Duration::from_secs_f64(self.flow.mss as f64 * 8.0 / rate as f64);
    }

    fn acknowledge(&mut self) {
        let Some(sent) = self.under_way.pop_front() else { return };
        let now = self.flow.now;
        (self.sending_since, self.delivered_at) = (sent.left, now);
        self.flow.delivered += 1;
        self.flow.una += self.flow.mss;
        self.flow.in_flight = self.under_way.len() as u64;
        let sending = sent.left.since(sent.sending_since);
        let interval = now.since(sent.delivered_at).max(sending);
        let delivered = self.flow.delivered - sent.delivered;
        let bits = (delivered * self.flow.mss * 8) as f64 / interval.as_secs_f64();
        let rate = RateSample {
            rate: Rate::from_bits_per_second(bits as u64),
            delivered,
            interval,
            delivered_at_send: sent.delivered,
            is_ack_delayed: false,
            app_limited: false,
            in_flight_at_send: sent.in_flight,
            lost: self.flow.lost - sent.lost,
        };
        let ack = Ack {
            acked: 1,
            credit: 1,
            delivered: 1,
            rtt: Some(now.since(sent.left)),
            in_flight_before: self.flow.in_flight + 1,
            rate: Some(rate),
            ..Ack::default()
        };
        self.cc.on_ack(&self.flow, &ack);
    }
}
