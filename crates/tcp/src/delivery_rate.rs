//! How fast the path delivers: a sample with every ACK that delivers something.
//!
//! A sample spans the round trip of the newest segment delivered. Between that segment's departure
//! and its ACK so many others were delivered; the time for it is the longer of the times in which they
//! were sent and acknowledged, because ACKs can come faster than the path delivers.
//!
//! - Cheng, Cardwell, Hassas Yeganeh, Jacobson: Delivery rate estimation,
//!   draft-cheng-iccrg-delivery-rate-estimation. `C.` and `P.` are its names.
//! - In its order as `tcp_rate.c` of Linux.
//!
//! What is kept for each segment lies beside the scoreboard, and only where samples are wanted.

use crate::sender::Sender;
use crate::settings::Settings;
use std::collections::VecDeque;
use tcplab_cc::{Lost, RateSample};
use tcplab_units::{Duration, Rate, Time};

const PICOS: u128 = 1_000_000_000_000;

/// What was known when a segment left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
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

/// What samples are made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// One for each segment on the scoreboard, in its order.
    departures: VecDeque<Departure>,
    newest: Option<Newest>,
    /// When the newest segment delivered had left (`C.first_sent_time`).
    first_sent: Time,
    /// When something was last delivered (`C.delivered_time`).
    delivered_at: Time,
    /// Until more than this is delivered, samples say how fast the application was (`C.app_limited`).
    app_limited: Option<u64>,
    /// Segments and time of the last sample that says what the path can do.
    last: Option<(u64, Duration)>,
    /// The controller wants to hear of each segment lost.
    reports_losses: bool,
    /// Those found lost and not reported yet.
    lost: Vec<Departure>,
}

/// What an ACK did, all in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Segments delivered by it.
    pub count: u64,
    /// The receiver may have waited for more.
    pub is_delayed: bool,
}

impl DeliveryRate {
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

    /// What was delivered when the newest segment left that the ACK at hand delivers.
    #[inline]
    pub fn delivered_at_send(&self) -> Option<u64> {
        self.newest.map(|newest| newest.departure.delivered)
    }

    /// So many of the oldest segments are acknowledged and go.
    #[inline]
    pub fn forget_oldest(&mut self, segments: u64) {
        for _ in 0..segments {
            self.departures.pop_front();
        }
    }

    /// Segments have become others, that begin in those at these places.
    pub fn cut(&mut self, places: &[usize]) {
        let kept = places.iter().map_while(|&place| self.departures.get(place).copied());
        self.departures = kept.collect();
    }

    /// The segment at this place of the scoreboard is delivered, which left then and ends here.
    #[inline]
    pub fn deliver(&mut self, place: usize, left_at: Time, end: u64) {
        // A SACK may report many: the one that left last counts.
        let is_newest =
            self.newest.is_none_or(|newest| (left_at, end) > (self.first_sent, newest.end));
        if is_newest && let Some(&departure) = self.departures.get(place) {
            self.newest = Some(Newest { departure, left_at, end });
            self.first_sent = left_at;
        }
    }

    /// The segment at this place of the scoreboard is found lost.
    #[inline]
    pub fn lose(&mut self, place: usize) {
        if self.reports_losses {
            self.lost.extend(self.departures.get(place));
        }
    }

    /// The rate of the last sample that says what the path can do.
    pub fn last(&self, mss: u64) -> Option<Rate> {
        self.last.map(|(delivered, interval)| rate(delivered * mss, interval))
    }
}

/// In whole bytes a second, as the kernel counts.
fn rate(bytes: u64, interval: Duration) -> Rate {
    let per_second = u128::from(bytes) * PICOS / u128::from(interval.as_picos().max(1));
    Rate::from_bits_per_second(u64::try_from(per_second * 8).unwrap_or(u64::MAX))
}

impl Sender {
    /// A segment has left that stands at this place of the scoreboard, or is new at its end. `alone`:
    /// nothing was outstanding before.
    #[inline]
    pub(crate) fn note_departure(&mut self, now: Time, place: usize, alone: bool) {
        if self.flight.board.rates.is_some() {
            self.note_state(now, place, alone);
        }
    }

    #[inline(never)]
    fn note_state(&mut self, now: Time, place: usize, alone: bool) {
        let (delivered, lost, in_flight) = (self.delivered, self.lost, self.in_flight());
        let Some(rates) = &mut self.flight.board.rates else { return };
        if alone {
            // Samples begin with this departure, and not with the last ACK before the pause.
            rates.first_sent = now;
            rates.delivered_at = now;
        }
        let departure = Departure {
            delivered,
            delivered_at: rates.delivered_at,
            first_sent: rates.first_sent,
            lost,
            in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
            app_limited: rates.app_limited.is_some(),
        };
        match rates.departures.get_mut(place) {
            Some(before) => *before = departure,
            None => rates.departures.push_back(departure),
        }
    }

    /// Samples are wanted from now on, in the middle of a connection: of what is under way it counts as the
    /// departure that it has left now.
    #[cold]
    pub(crate) fn begin_rates(&mut self, now: Time) {
        let rates = DeliveryRate { first_sent: now, delivered_at: now, ..DeliveryRate::new(true) };
        self.flight.board.rates = Some(Box::new(rates));
        for place in 0..self.flight.board.outstanding() {
            self.note_state(now, place as usize, false);
        }
    }

    /// Makes the sample of an ACK, once `delivered` and `lost` count what it did. Only a controller
    /// that asked for samples gets it.
    #[inline]
    pub(crate) fn sample_rate(
        &mut self,
        now: Time,
        ack: Delivery,
        settings: &Settings,
    ) -> Option<RateSample> {
        self.flight.board.rates.as_ref()?;
        self.make_sample(now, ack, settings)
    }

    #[inline(never)]
    fn make_sample(&mut self, now: Time, ack: Delivery, settings: &Settings) -> Option<RateSample> {
        let (delivered, lost, mss) = (self.delivered, self.lost, u64::from(self.mss));
        let min_rtt = self.min_rtt;
        let rates = self.flight.board.rates.as_mut()?;
        if rates.app_limited.is_some_and(|until| delivered > until) {
            rates.app_limited = None;
        }
        if ack.count > 0 {
            rates.delivered_at = now;
        }
        let Newest { departure, left_at, .. } = rates.newest.take()?;
        let sending = settings.behaviour.clock.elapsed(left_at, departure.first_sent);
        let acking = settings.behaviour.clock.elapsed(now, departure.delivered_at);
        let interval = sending.max(acking);
        // Less than a round trip: what arrived had been sent before it was sent again.
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        let count = delivered - departure.delivered;
        let is_as_fast = || {
            rates.last.is_none_or(|(last, its)| {
                u128::from(count) * u128::from(its.as_picos())
                    >= u128::from(last) * u128::from(interval.as_picos())
            })
        };
        if !departure.app_limited || is_as_fast() {
            rates.last = Some((count, interval));
        }
        rates.has_listener().then(|| RateSample {
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

    /// Notes that the application is the limit, if it is: nothing waits to be sent, nothing to be
    /// repaired, and the window has room (`tcp_rate_check_app_limited`).
    #[inline(never)]
    pub(crate) fn check_app_limited(&mut self) {
        let board = &self.flight.board;
        let has_gap = board.rates.is_some()
            && !board.has_unrepaired()
            && self.unsent() < u64::from(self.mss)
            && self.in_flight() < self.cwnd();
        if has_gap {
            self.mark_app_limited();
        }
    }

    /// What is under way, and what follows until it has arrived, says nothing of the path.
    pub(crate) fn mark_app_limited(&mut self) {
        let until = self.delivered + self.in_flight();
        if let Some(rates) = &mut self.flight.board.rates {
            rates.app_limited = Some(until);
        }
    }

    /// Tells the controller of what was just found lost, segment by segment, if it listens.
    #[inline]
    pub(crate) fn report_losses(&mut self, now: Time) {
        let reports = self.flight.board.rates.as_ref().is_some_and(|it| !it.lost.is_empty());
        if !reports {
            return;
        }
        let Some(rates) = &mut self.flight.board.rates else { return };
        let found = std::mem::take(&mut rates.lost);
        let all = self.lost;
        for (number, departure) in found.iter().enumerate() {
            // As if they had been found one after the other.
            let lost = (all - (found.len() - 1 - number) as u64).saturating_sub(departure.lost);
            let lost = Lost {
                in_flight_at_send: departure.in_flight.into(),
                delivered_at_send: departure.delivered,
                lost,
                app_limited: departure.app_limited,
            };
            self.consult(now, |cc, flow| cc.on_lost(flow, &lost));
        }
    }
}
