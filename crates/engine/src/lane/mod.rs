//! One direction of a link: a queue, transmission at a rate, loss, propagation.
//!
//! With a drop-tail queue, all that happens to a packet on a lane is known when it is offered: whether
//! the queue has room, when its transmission begins and ends, whether it is lost, when it arrives. The
//! queue keeps only the times at which its packets leave it; they are taken out when the next packet
//! looks. Lanes with other queues are `managed`, and those where someone looks at all packets, and
//! those of stations on a shared medium.
//!
//! Transmission takes picoseconds; packets arrive at whole nanoseconds, rounded up, because the kernel's
//! clock has no finer ones and both backends go by the same times. So a transmitter that is kept busy
//! loses nothing to rounding, and one that was idle begins at a whole nanosecond.
//!
//! `managed`, `station` and `change` import `Lane` from here and are imported here: they are parts of one
//! `impl Lane`, one file for each kind of lane. No other files of this crate import in a circle, but for
//! `queue`, whose list of disciplines stands beside the trait that they implement.

pub(crate) mod change;
pub(crate) mod managed;
pub(crate) mod medium;
pub(crate) mod station;
pub(crate) mod teller;
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

/// What a lane is.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Names its random elements; unique in a network.
    pub name: String,
    /// How fast it transmits.
    pub rate: Rate,
    /// How long a bit travels.
    pub delay: Duration,
    /// Room for waiting packets.
    pub queue: QueueLimit,
    /// What manages the queue; without anything, what does not fit is dropped.
    pub discipline: Option<Discipline>,
    /// Changes, losses, delays and damage on the wire.
    pub wire: WireConfig,
    /// Settings of a station of a shared medium, which has no `wire`.
    pub station: Option<StationConfig>,
    /// Whether the observer is told of all packets. It is told of drops in any case.
    pub observed: bool,
    /// Whether it is of a sending host's own device, which is told of each packet that has been
    /// transmitted or dropped ([`Event::Left`](crate::Event::Left)).
    pub tells_sender: bool,
    /// Whether it may become another one while the run goes on
    /// ([`Network::change`](crate::Network::change)).
    pub may_change: bool,
}

/// What a lane has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Packets the queue had no room for, or its discipline dropped.
    pub dropped_packets: u64,
    /// Packets marked and not dropped.
    pub marked_packets: u64,
    /// Packets lost on the wire.
    pub lost_packets: u64,
    /// Packets accepted.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that were offered.
    pub entered_packets: u64,
    /// Packets that reached the other end.
    pub arrived_packets: u64,
}

/// A lane at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// What it has done. A packet is lost when it enters the wire, not when that is decided.
    pub counters: LaneCounters,
    /// Packets that wait.
    pub queue_packets: u64,
    /// Their bytes.
    pub queue_bytes: u64,
    /// Packets whose transmission has begun and that have not arrived.
    pub transit_packets: u64,
    /// What waited until then.
    pub occupancy: Occupancy,
    /// Time spent transmitting.
    pub busy: Duration,
}

/// A packet under way, and where it is to be next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit<P> {
    pub arrives: Time,
    /// Its place on its route.
    pub place: u32,
    pub packet: P,
}

/// What becomes of a packet that is offered to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives then, before anything else: the lane needs an entry on the agenda.
    Heads(Time),
    /// It arrives behind others.
    Follows,
    /// The queue has no room for it.
    Dropped,
    /// The wire loses or damages the packet, which enters it then.
    Lost(Time, Reason),
    /// Nothing yet: the queue is managed.
    Open,
}

/// A packet that waits: when its transmission begins, its size, and whether the wire will lose it.
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
    // Boxed, because few lanes have it and all are walked through.
    wire: Option<Box<Wire>>,
    pub(crate) managed: Option<Box<Managed<P>>>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// When all that was accepted will have been transmitted; of a managed queue, all that has left it.
    free_at: Time,
    /// Time spent transmitting, up to `free_at`.
    busy: Duration,
    /// The size last transmitted and how long that takes: nearly always the next one's too.
    last_size: (u32, Duration),
    in_transit: VecDeque<Transit<P>>,
    counters: LaneCounters,
    /// Of a drop-tail queue all that a packet will wait is counted when it is accepted.
    occupancy: Occupancy,
}

/// A packet that has been transmitted, and where it arrives, if it does.
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
            is_disorderly: wire.as_ref().is_some_and(|wire| wire.is_disorderly()),
            tells_sender: config.tells_sender,
        };
        let mut managed = match config.discipline {
            Some(discipline) if kind.tells_sender => {
                let queue = discipline.queue(config.queue, random);
                let own = Own::new(queue, discipline.largest_burst());
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

    /// Whether a packet that enters now comes to a managed queue; then it has entered.
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
            // Copies are made by lanes that are managed alone.
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

    /// Transmits a packet, which has waited for the one before or has not. Says when it arrives, to the
    /// picosecond, if it does.
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

    /// The same where more may happen to it.
    fn transmit_on_wire(
        &mut self,
        (begins, has_waited): (Time, bool),
        bytes: u32,
        has_payload: impl FnOnce() -> bool,
    ) -> Sent {
        let Some(wire) = &mut self.wire else { return Sent::At(begins) };
        // A packet that a shaper held back has waited, but not for the transmitter.
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

    /// The packet that arrives next leaves the lane; also tells when the one behind it arrives.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Transit<P>, Option<Time>)> {
        let arrived = *self.in_transit.front()?;
        self.in_transit.pop_front();
        self.counters.arrived_packets += 1;
        let next = self.in_transit.front().map(|next| next.arrives);
        if next.is_none() {
            // The next packet uses the same memory again instead of going round the ring: in a large
            // network that memory is what the cache has room for.
            self.in_transit.clear();
        }
        Some((arrived, next))
    }

    /// Whether its queue stands behind the seam.
    pub(crate) fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    /// Where it receives, if it is a station.
    pub(crate) fn receives(&self) -> Option<LaneId> {
        Some(self.managed.as_ref()?.station.as_ref()?.receives())
    }

    /// How many packets are in the queue and on the wire.
    pub(crate) fn packets(&self) -> usize {
        let managed = self.managed.as_ref().map_or(0, |managed| managed.packets());
        self.in_transit.len() + managed
    }

    /// The lane as it is now, if it has been caught up with.
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

    /// The lane as it is now; a new interval begins for the most that waits.
    pub(crate) fn sample(&mut self, now: Time) -> LaneState {
        let state = self.state(now);
        self.occupancy.begin_interval(state.queue_packets, state.queue_bytes);
        state
    }

    /// What the lane has done, and what is decided already of what it will do.
    pub(crate) fn counters(&self) -> LaneCounters {
        self.counters
    }

    /// Takes out of the queue what has begun transmission.
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
