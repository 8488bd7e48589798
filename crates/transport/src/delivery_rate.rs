//! Delivery rate: one sample for every ACK that delivers something.
//!
//! A sample spans the round trip of the newest segment delivered. It counts the segments delivered
//! between that segment's departure and its ACK. Its interval is the longer of the times in which
//! they were sent and acknowledged, because ACKs can arrive faster than the path delivers.
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
    /// Segments delivered until then, and the time of the last delivery (`P.delivered`,
    /// `P.delivered_time`).
    delivered: u64,
    delivered_at: Time,
    /// Start of the sample's sending time (`P.first_sent_time`).
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
    /// The state of each segment on the scoreboard, in its order.
    departures: VecDeque<Departure>,
    newest: Option<Newest>,
    /// When the newest delivered segment had left (`C.first_sent_time`).
    first_sent: Time,
    /// The time of the last delivery (`C.delivered_time`).
    delivered_at: Time,
    /// Samples are application-limited until more than this is delivered (`C.app_limited`).
    app_limited: Option<u64>,
    /// Segments and interval of the last sample that shows the rate of the path.
    last: Option<(u64, Duration)>,
    /// The controller asks for samples and for each lost segment.
    reports_losses: bool,
    /// Lost segments that are not reported yet.
    lost: Vec<Departure>,
}

/// The deliveries of one ACK.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Segments delivered by the ACK.
    pub count: u64,
    /// The receiver may have delayed the ACK.
    pub is_delayed: bool,
}

/// The sender's counters, in segments.
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
    /// Minimum RTT of the path.
    pub min_rtt: Duration,
    /// The clock that measures intervals.
    pub clock: Clock,
}

impl DeliveryRate {
    /// An estimator without samples. `reports_losses`: the controller asks for samples.
    #[must_use]
    pub fn new(reports_losses: bool) -> Self {
        Self { reports_losses, ..Self::default() }
    }

    /// Another controller, which asks for samples or does not.
    pub fn set_listener(&mut self, listens: bool) {
        self.reports_losses = listens;
        self.lost.clear();
    }

    /// Whether the controller asked for samples.
    #[inline]
    pub fn has_listener(&self) -> bool {
        self.reports_losses
    }

    /// Whether samples are application-limited at present.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// Segments that were delivered before the newest segment left that this ACK delivers.
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

    /// The beginning of the next sample, for [`Self::take_back`].
    #[must_use]
    pub fn beginning(&self) -> (Time, Time) {
        (self.first_sent, self.delivered_at)
    }

    /// The newest `segments` have not left after all. The next sample begins at `beginning`.
    pub fn take_back(&mut self, segments: usize, beginning: (Time, Time)) {
        self.departures.truncate(self.departures.len().saturating_sub(segments));
        (self.first_sent, self.delivered_at) = beginning;
    }

    /// Segments were cut or joined. Each new one begins in the old one at the given place.
    pub fn resegment(&mut self, places: &[usize]) {
        let kept = places.iter().map_while(|&place| self.departures.get(place).copied());
        self.departures = kept.collect();
    }

    /// The segment at `place` is delivered. It had left at `left_at` and ends at `end`.
    #[inline]
    pub fn on_delivered(&mut self, place: usize, left_at: Time, end: u64) {
        // Of several delivered segments, the one that left last counts.
        let is_newest =
            self.newest.is_none_or(|newest| (left_at, end) > (self.first_sent, newest.end));
        if is_newest && let Some(&departure) = self.departures.get(place) {
            self.newest = Some(Newest { departure, left_at, end });
            self.first_sent = left_at;
        }
    }

    /// The segment at `place` is lost.
    #[inline]
    pub fn on_lost(&mut self, place: usize) {
        if self.reports_losses {
            self.lost.extend(self.departures.get(place));
        }
    }

    /// The rate of the last sample that was not application-limited, or was as fast
    /// (`tcpi_delivery_rate`).
    pub fn last_rate(&self, mss: u64) -> Option<Rate> {
        self.last.map(|(delivered, interval)| rate(delivered * mss, interval))
    }

    /// A segment at `place` has left, or a new one at the end. `alone`: nothing was outstanding
    /// before it.
    #[inline]
    pub fn on_sent(&mut self, now: Time, place: usize, alone: bool, totals: Totals) {
        if alone {
            // Samples begin with this departure, not with the last ACK before the pause.
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

    /// An estimator that starts in the middle of a connection: the `outstanding` segments count as
    /// sent now.
    #[must_use]
    pub fn midway(now: Time, outstanding: u64, totals: Totals) -> Self {
        let mut rates = Self { first_sent: now, delivered_at: now, ..Self::new(true) };
        for place in 0..outstanding {
            rates.on_sent(now, place as usize, false, totals);
        }
        rates
    }

    /// The sample of an ACK (`tcp_rate_gen`). Only controllers that asked for samples get it.
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
        // Less than the minimum RTT: an earlier transmission was delivered.
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

    /// Samples are application-limited until more than `until` segments are delivered.
    pub fn mark_app_limited(&mut self, until: u64) {
        self.app_limited = Some(until);
    }

    /// Whether there are lost segments to report.
    #[inline]
    #[must_use]
    pub fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Reports the segments lost since the last call, of `all` lost so far, as if they had been
    /// lost one after the other.
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

/// In whole bytes a second, as in the kernel.
fn rate(bytes: u64, interval: Duration) -> Rate {
    let per_second = u128::from(bytes) * PICOS / u128::from(interval.as_picos().max(1));
    Rate::from_bits_per_second(u64::try_from(per_second * 8).unwrap_or(u64::MAX))
}
