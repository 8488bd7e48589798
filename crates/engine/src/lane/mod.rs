//! One direction of a link: a queue, transmission at a rate, loss, propagation.
//!
//! With a drop-tail queue, everything that happens to a packet on a lane is known when the packet
//! is offered: whether the queue is full, when transmission begins and ends, whether the packet is
//! lost, when it arrives. The queue keeps only the departure times of its packets, and discards
//! past ones when the next packet comes. Lanes with a queue discipline, lanes with an observer of
//! all packets, and stations of a shared medium are `managed` instead.
//!
//! Transmission takes picoseconds. Packets arrive at whole nanoseconds, rounded up, because the
//! kernel's clock has no finer resolution and both backends use the same times. A transmitter that
//! stays busy therefore loses nothing to rounding, and an idle one begins at a whole nanosecond.
//!
//! `managed`, `station` and `change` import `Lane` from here and are imported here: they are parts
//! of one `impl Lane`, one file for each kind of lane. No other files of this crate import in a
//! circle, except `queue`, whose list of disciplines stands beside the trait that they implement.

pub(crate) mod change;
pub(crate) mod context;
pub(crate) mod managed;
pub(crate) mod medium;
pub(crate) mod station;
pub(crate) mod wire;

use crate::observer::Reason;
use crate::occupancy::Occupancy;
use crate::packet::Packet;
use crate::queue::host::Own;
use crate::queue::{Discipline, QueueLimit};
use crate::random::Random;
use crate::route::LaneId;
use managed::{Kind, Managed};
use station::{Station, StationConfig};
use std::collections::VecDeque;
use tcplab_units::{Duration, Rate, Time};
use wire::{Outcome, Wire, WireConfig};

/// The configuration of a lane.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Names the lane's random elements; unique in a network.
    pub name: String,
    /// The transmission rate.
    pub rate: Rate,
    /// The propagation delay.
    pub delay: Duration,
    /// The queue limit.
    pub queue: QueueLimit,
    /// The queue discipline; drop-tail without one.
    pub discipline: Option<Discipline>,
    /// Rate changes, losses, delays and corruption on the wire.
    pub wire: WireConfig,
    /// Settings of a station of a shared medium, which has no `wire`.
    pub station: Option<StationConfig>,
    /// Whether the observer sees all packets. Drops are reported to the observer in any case.
    pub observed: bool,
    /// Whether the lane is a sending host's own device, which tells the sender of each packet that
    /// has been transmitted or dropped ([`Event::Left`](crate::Event::Left)).
    pub reports_tx_completion: bool,
    /// Whether the lane may be changed during the run
    /// ([`Network::change`](crate::Network::change)).
    pub may_change: bool,
}

/// Counters of a lane since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Packets dropped because the queue was full, or by its discipline.
    pub dropped_packets: u64,
    /// Packets that were ECN-marked instead of dropped.
    pub marked_packets: u64,
    /// Packets lost on the wire.
    pub lost_packets: u64,
    /// Packets accepted.
    pub sent_packets: u64,
    /// Bytes of the accepted packets.
    pub sent_bytes: u64,
    /// Packets that were offered.
    pub entered_packets: u64,
    /// Packets that reached the other end.
    pub arrived_packets: u64,
}

/// The state of a lane at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// The counters. A packet counts as lost when it enters the wire, not when the loss is decided.
    pub counters: LaneCounters,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Packets in transit: transmission has begun and the packet has not arrived.
    pub transit_packets: u64,
    /// Queue occupancy up to that time.
    pub occupancy: Occupancy,
    /// Time spent transmitting.
    pub busy: Duration,
}

/// A packet in transit and its next place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit<P> {
    pub arrives: Time,
    /// Its place on its route.
    pub place: u32,
    pub packet: P,
}

/// The fate of a packet that is offered to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet arrives then, before any other: the lane needs an entry on the agenda.
    Heads(Time),
    /// The packet arrives behind others.
    Follows,
    /// Dropped: the queue is full.
    Dropped,
    /// The wire loses or corrupts the packet, which enters the wire then.
    Lost(Time, Reason),
    /// Not decided yet: the queue is managed.
    Open,
}

/// A waiting packet: the start of its transmission, its size, and whether the wire will lose it.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    begins: Time,
    bytes: u32,
    is_lost: bool,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Lane<P: Packet> {
    rate: Rate,
    delay: Duration,
    queue: QueueLimit,
    // Boxed: few lanes have a wire, and the engine walks through all lanes.
    wire: Option<Box<Wire>>,
    pub(crate) managed: Option<Box<Managed<P>>>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// When all accepted packets will have been transmitted; for a managed queue, all that have
    /// left it.
    free_at: Time,
    /// Time spent transmitting, up to `free_at`.
    busy: Duration,
    /// The last packet size and its transmission time, which nearly always serve for the next
    /// packet too.
    last_size: (u32, Duration),
    in_transit: VecDeque<Transit<P>>,
    counters: LaneCounters,
    /// A drop-tail queue counts a packet's whole waiting time when the packet is accepted.
    occupancy: Occupancy,
}

/// The result of a transmission: when the packet arrives, if it does.
#[derive(Clone, Copy, Debug)]
enum Sent {
    At(Time),
    Twice(Time),
    Gone(Reason),
}

impl<P: Packet> Lane<P> {
    pub(crate) fn new(config: LaneConfig, seed: u64) -> Self {
        let random = |element: &str| Random::new(seed, &format!("{element} {}", config.name));
        let wire = Wire::new(config.wire, random).map(Box::new);
        let kind = Kind {
            is_observed: config.observed,
            may_reorder: wire.as_ref().is_some_and(|wire| wire.may_reorder()),
            reports_tx_completion: config.reports_tx_completion,
        };
        let mut managed = match config.discipline {
            Some(discipline) if kind.reports_tx_completion => {
                let queue = discipline.queue(config.queue, random);
                let own = Own::new(queue, discipline.largest_burst(), discipline.answers());
                Some(Box::new(Managed::new(Box::new(own), kind)))
            }
            Some(discipline) => {
                let queue = discipline.queue(config.queue, random);
                Some(Box::new(Managed::new(queue, kind)))
            }
            None if kind == Kind::default()
                && config.station.is_none()
                && !(config.may_change && wire.is_some()) =>
            {
                None
            }
            None => Some(Box::new(Managed::drop_tail(config.queue, kind))),
        };
        if let (Some(managed), Some(station)) = (&mut managed, config.station) {
            managed.station = Some(Box::new(Station::new(station, random)));
        }
        Self {
            rate: config.rate,
            delay: config.delay,
            queue: config.queue,
            managed,
            wire,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            free_at: Time::ZERO,
            busy: Duration::ZERO,
            last_size: (0, Duration::ZERO),
            in_transit: VecDeque::new(),
            counters: LaneCounters::default(),
            occupancy: Occupancy::default(),
        }
    }

    /// Whether a packet that enters now goes to a managed queue. If so, the packet has been counted
    /// as entered.
    pub(crate) fn enters_managed(&mut self) -> bool {
        self.counters.entered_packets += u64::from(self.managed.is_some());
        self.managed.is_some()
    }

    /// Takes a packet, or drops it.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        now: Time,
        bytes: u32,
        has_payload: impl FnOnce() -> bool,
        transit: impl FnOnce(Time) -> Transit<P>,
    ) -> Fate {
        self.counters.entered_packets += 1;
        if self.managed.is_some() {
            return Fate::Open;
        }
        let begins = if self.free_at > now {
            self.settle(now);
            if self.is_full(bytes) {
                self.counters.dropped_packets += 1;
                return Fate::Dropped;
            }
            self.waiting.push_back(Waiting { begins: self.free_at, bytes, is_lost: false });
            self.waiting_bytes += u64::from(bytes);
            self.occupancy.wait(self.free_at.since(now), 1, u64::from(bytes));
            self.occupancy.reach(self.waiting.len() as u64, self.waiting_bytes);
            self.free_at
        } else {
            now
        };
        let arrives = match self.transmit((begins, begins > now), bytes, has_payload) {
            // Only managed lanes make copies.
            Sent::At(arrives) | Sent::Twice(arrives) => arrives.in_nanos(),
            Sent::Gone(reason) => {
                if let Some(last) = self.waiting.back_mut().filter(|_| begins > now) {
                    last.is_lost = true;
                }
                return Fate::Lost(begins, reason);
            }
        };
        let first = self.in_transit.is_empty();
        self.in_transit.push_back(transit(arrives));
        if first { Fate::Heads(arrives) } else { Fate::Follows }
    }

    /// Transmits a packet, with or without a wait for the one before. Returns the arrival time in
    /// picoseconds, if the packet arrives.
    #[expect(clippy::inline_always, reason = "every packet passes here, from two places")]
    #[inline(always)]
    fn transmit(
        &mut self,
        (begins, has_waited): (Time, bool),
        bytes: u32,
        has_payload: impl FnOnce() -> bool,
    ) -> Sent {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(bytes);
        if self.wire.is_some() {
            return self.transmit_on_wire((begins, has_waited), bytes, has_payload);
        }
        if self.last_size.0 != bytes {
            self.last_size = (bytes, self.rate.time_for(u64::from(bytes)));
        }
        self.busy += self.last_size.1;
        self.free_at = begins + self.last_size.1;
        Sent::At(self.free_at + self.delay)
    }

    /// The same on a lane with a wire.
    fn transmit_on_wire(
        &mut self,
        (begins, has_waited): (Time, bool),
        bytes: u32,
        has_payload: impl FnOnce() -> bool,
    ) -> Sent {
        let Some(wire) = &mut self.wire else { return Sent::At(begins) };
        // A packet held back by a shaper has waited, but not for the transmitter.
        let has_waited = has_waited && begins <= self.free_at;
        let lane = (&mut self.rate, &mut self.delay, &mut self.last_size);
        self.free_at = wire.leaves((begins, has_waited), bytes, lane);
        self.busy += self.free_at.since(begins);
        let reason = match wire.outcome(begins, self.free_at, &mut self.delay, has_payload) {
            Outcome::Arrives(arrives) => return Sent::At(arrives),
            Outcome::ArrivesTwice(arrives) => return Sent::Twice(arrives),
            Outcome::Lost => Reason::Lost,
            Outcome::Corrupted => Reason::Corrupted,
        };
        self.counters.lost_packets += 1;
        Sent::Gone(reason)
    }

    /// Removes the packet that arrives next from the lane. Returns the arrival time of the one
    /// behind it too.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Transit<P>, Option<Time>)> {
        let arrived = *self.in_transit.front()?;
        self.in_transit.pop_front();
        self.counters.arrived_packets += 1;
        let next = self.in_transit.front().map(|next| next.arrives);
        if next.is_none() {
            // The next packet reuses the same memory instead of going round the ring: a large
            // network is bound by how much of that memory the cache holds.
            self.in_transit.clear();
        }
        Some((arrived, next))
    }

    /// Whether the lane is managed.
    pub(crate) fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    /// The lane on which this lane's station receives, if it is one.
    pub(crate) fn receives(&self) -> Option<LaneId> {
        Some(self.managed.as_ref()?.station.as_ref()?.receives())
    }

    /// The number of packets in the queue and in transit.
    pub(crate) fn packets(&self) -> usize {
        let managed = self.managed.as_ref().map_or(0, |managed| managed.packets());
        self.in_transit.len() + managed
    }

    /// The current state of the lane, which must have caught up.
    pub(crate) fn state(&mut self, now: Time) -> LaneState {
        if self.managed.is_some() {
            return self.managed_state(now);
        }
        self.settle(now);
        let waiting = || self.waiting.iter();
        let to_be_lost = waiting().filter(|packet| packet.is_lost).count() as u64;
        let queue_packets = self.waiting.len() as u64;
        let waits = waiting().map(|packet| (packet.begins, packet.bytes));
        LaneState {
            counters: LaneCounters {
                lost_packets: self.counters.lost_packets - to_be_lost,
                ..self.counters
            },
            queue_packets,
            queue_bytes: self.waiting_bytes,
            transit_packets: self.in_transit.len() as u64 + to_be_lost - queue_packets,
            occupancy: self.occupancy.without(now, waits),
            busy: self.busy(now),
        }
    }

    /// Time spent transmitting from the start until now.
    fn busy(&self, now: Time) -> Duration {
        self.busy.saturating_sub(self.free_at.since(now))
    }

    /// The current state of the lane; a new interval begins for the occupancy maxima.
    pub(crate) fn sample(&mut self, now: Time) -> LaneState {
        let state = self.state(now);
        self.occupancy.begin_interval(state.queue_packets, state.queue_bytes);
        state
    }

    /// The counters, including outcomes that are decided ahead of time.
    pub(crate) fn counters(&self) -> LaneCounters {
        self.counters
    }

    /// Removes the packets whose transmission has begun from the queue.
    #[inline]
    fn settle(&mut self, now: Time) {
        while let Some(first) = self.waiting.front().filter(|first| first.begins <= now) {
            self.waiting_bytes -= u64::from(first.bytes);
            self.waiting.pop_front();
        }
    }

    #[inline]
    fn is_full(&self, bytes: u32) -> bool {
        match self.queue {
            QueueLimit::Packets(limit) => self.waiting.len() as u64 >= limit,
            QueueLimit::Bytes(limit) => self.waiting_bytes + u64::from(bytes) > limit,
        }
    }
}
