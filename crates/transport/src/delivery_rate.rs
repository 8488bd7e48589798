//! Delivery rate: one sample with every ACK that delivers something.
//!
//! A sample spans the round trip of the newest segment delivered. Its count is the segments
//! delivered between that segment's departure and its ACK. Its interval is the longer of the times
//! in which they were sent and acknowledged, because ACKs can arrive faster than the path delivers.
//!
//! - Cheng, Cardwell, Hassas Yeganeh, Jacobson: Delivery rate estimation,
//!   draft-cheng-iccrg-delivery-rate-estimation. `C.` and `P.` are its names.
//! - In its order as `tcp_rate.c` of Linux.
//!
//! The state of each segment is kept in the order of the transport's own list of sent segments: a
//! segment's place in one is its place in the other.

use crate::clock::Clock;
use std::collections::VecDeque;
use tcplab_cc::{Lost, RateSample};
use tcplab_units::{Duration, Rate, Time};

const PICOS: u128 = 1_000_000_000_000;

/// The sender's counts when a segment left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// Segments delivered until then, and when the last of them was (`P.delivered`,
    /// `P.delivered_time`).
    delivered: u64,
    delivered_at: Time,
    /// Where the sample's time of sending begins (`P.first_sent_time`).
    first_sent: Time,
    /// Segments marked lost until then.
    lost: u64,
    /// Segments in flight then, itself included.
    in_flight: u32,
    app_limited: bool,
}

/// The newest segment that an ACK delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    departure: Departure,
    left_at: Time,
    end: u64,
}

/// The delivery-rate estimator of one connection.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    /// One for each segment on the scoreboard, in its order.
    departures: VecDeque<Departure>,
    newest: Option<Newest>,
    /// When the newest segment delivered had left (`C.first_sent_time`).
    first_sent: Time,
    /// When something was last delivered (`C.delivered_time`).
    delivered_at: Time,
    /// Until more than this is delivered, samples say how fast the application was
    /// (`C.app_limited`).
    app_limited: Option<u64>,
    /// Segments and time of the last sample that says what the path can do.
    last: Option<(u64, Duration)>,
    /// The controller wants to hear of each segment lost.
    reports_losses: bool,
    /// Those found lost and not reported yet.
    lost: Vec<Departure>,
}

/// The deliveries of one ACK.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Segments delivered by it.
    pub count: u64,
    /// The receiver may have waited for more.
    pub is_delayed: bool,
}

/// The sender's counts, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Delivered since the connection began.
    pub delivered: u64,
    /// Found lost since then, each time.
    pub lost: u64,
    /// In flight now.
    pub in_flight: u64,
}

/// The state of the sender after an ACK.
#[derive(Clone, Copy, Debug)]
pub struct SenderState {
    /// Segments delivered and found lost since the connection began, this ACK included.
    pub delivered: u64,
    /// See `delivered`.
    pub lost: u64,
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// The least RTT of the path.
    pub min_rtt: Duration,
    /// The clock that measures intervals.
    pub clock: Clock,
}

impl DeliveryRate {
    /// An estimator without samples; `reports_losses`: the controller asks for them.
    #[must_use]
    pub fn new(reports_losses: bool) -> Self {
        Self { reports_losses, ..Self::default() }
    }

    /// Another controller asks for samples, or does not.
    pub fn set_listener(&mut self, listens: bool) {
        self.reports_losses = listens;
        self.lost.clear();
    }

    /// Whether the controller asked for samples.
    #[inline]
    pub fn has_listener(&self) -> bool {
        self.reports_losses
    }

    /// Whether the application has been the limit.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// The segments that had been delivered when the newest segment left that this ACK delivers.
    #[inline]
    pub fn delivered_at_send(&self) -> Option<u64> {
        self.newest.map(|newest| newest.departure.delivered)
    }

    /// The oldest `segments` are acknowledged.
    #[inline]
    pub fn remove_oldest(&mut self, segments: u64) {
        for _ in 0..segments {
            self.departures.pop_front();
        }
    }

    /// Segments were split or joined: the new ones begin in those at `places`.
    pub fn resegment(&mut self, places: &[usize]) {
        let kept = places.iter().map_while(|&place| self.departures.get(place).copied());
        self.departures = kept.collect();
    }

    /// The segment at `place` is delivered; it had left at `left_at` and ends at `end`.
    #[inline]
    pub fn on_delivered(&mut self, place: usize, left_at: Time, end: u64) {
        // A SACK may report many: the one that left last counts.
        let is_newest =
            self.newest.is_none_or(|newest| (left_at, end) > (self.first_sent, newest.end));
        if is_newest && let Some(&departure) = self.departures.get(place) {
            self.newest = Some(Newest { departure, left_at, end });
            self.first_sent = left_at;
        }
    }

    /// The segment at `place` is found lost.
    #[inline]
    pub fn on_lost(&mut self, place: usize) {
        if self.reports_losses {
            self.lost.extend(self.departures.get(place));
        }
    }

    /// The rate of the last sample that the application did not limit, or that was as fast
    /// (`tcpi_delivery_rate`).
    pub fn last_rate(&self, mss: u64) -> Option<Rate> {
        self.last.map(|(delivered, interval)| rate(delivered * mss, interval))
    }

    /// A segment has left that stands at `place`, or is new at the end. `alone`: nothing was
    /// outstanding before it.
    #[inline]
    pub fn on_sent(&mut self, now: Time, place: usize, alone: bool, totals: Totals) {
        if alone {
            // Samples begin with this departure, and not with the last ACK before the pause.
            self.first_sent = now;
            self.delivered_at = now;
        }
        let departure = Departure {
            delivered: totals.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: totals.lost,
            in_flight: u32::try_from(totals.in_flight).unwrap_or(u32::MAX),
            app_limited: self.app_limited.is_some(),
        };
        match self.departures.get_mut(place) {
            Some(before) => *before = departure,
            None => self.departures.push_back(departure),
        }
    }

    /// An estimator that begins in the middle of a connection: the `outstanding` segments count as
    /// sent now.
    #[must_use]
    pub fn midway(now: Time, outstanding: u64, totals: Totals) -> Self {
        let mut rates = Self { first_sent: now, delivered_at: now, ..Self::new(true) };
        for place in 0..outstanding {
            rates.on_sent(now, place as usize, false, totals);
        }
        rates
    }

    /// Makes the sample of an ACK. Only a controller that asked for samples gets it.
    #[inline]
    pub fn sample(&mut self, now: Time, ack: Delivery, state: SenderState) -> Option<RateSample> {
        let SenderState { delivered, lost, mss, min_rtt, clock } = state;
        if self.app_limited.is_some_and(|until| delivered > until) {
            self.app_limited = None;
        }
        if ack.count > 0 {
            self.delivered_at = now;
        }
        let Newest { departure, left_at, .. } = self.newest.take()?;
        let sending = clock.elapsed(left_at, departure.first_sent);
        let acking = clock.elapsed(now, departure.delivered_at);
        let interval = sending.max(acking);
        // Less than a round trip: the first copy of a retransmitted segment arrived.
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        let count = delivered - departure.delivered;
        let is_as_fast = || {
            self.last.is_none_or(|(last, its)| {
                u128::from(count) * u128::from(its.as_picos())
                    >= u128::from(last) * u128::from(interval.as_picos())
            })
        };
        if !departure.app_limited || is_as_fast() {
            self.last = Some((count, interval));
        }
        self.has_listener().then(|| RateSample {
            rate: rate(count * mss, interval),
            delivered: count,
            interval,
            delivered_at_send: departure.delivered,
            is_ack_delayed: ack.is_delayed && count == 1,
            app_limited: departure.app_limited,
            in_flight_at_send: departure.in_flight.into(),
            lost: lost - departure.lost,
        })
    }

    /// The application is the limit until more than `until` segments are delivered.
    pub fn mark_app_limited(&mut self, until: u64) {
        self.app_limited = Some(until);
    }

    /// Whether segments were found lost that the controller has not heard of.
    #[inline]
    #[must_use]
    pub fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The segments found lost since the last call, of `all` lost so far, as if they had been found
    /// one after the other.
    pub fn take_losses(&mut self, all: u64) -> impl Iterator<Item = Lost> + use<> {
        let found = std::mem::take(&mut self.lost);
        let count = found.len();
        found.into_iter().enumerate().map(move |(number, departure)| Lost {
            in_flight_at_send: departure.in_flight.into(),
            delivered_at_send: departure.delivered,
            lost: (all - (count - 1 - number) as u64).saturating_sub(departure.lost),
            app_limited: departure.app_limited,
        })
    }
}

/// In whole bytes a second, as the kernel counts.
fn rate(bytes: u64, interval: Duration) -> Rate {
    let per_second = u128::from(bytes) * PICOS / u128::from(interval.as_picos().max(1));
    Rate::from_bits_per_second(u64::try_from(per_second * 8).unwrap_or(u64::MAX))
}
