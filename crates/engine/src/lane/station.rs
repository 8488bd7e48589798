//! Stations of a shared half-duplex medium: carrier sense, back-off, interframe gaps, and address
//! resolution.
//!
//! The medium is busy from the start of a frame until the frame has arrived at every station, so
//! frames never collide. A station that finds the medium busy waits for a random number of slots
//! and senses it again: for one slot at first, and at the n-th attempt in a row for 1 to 2^n - 2
//! slots, with n at most 10, as a `CsmaNetDevice` of ns-3 does. A frame that arrives in the same
//! nanosecond as an attempt keeps the medium busy for that attempt: stations that answer a frame
//! begin with a back-off. Of two attempts in the same nanosecond, the one on the lane with the
//! lower number goes first.
//!
//! Frames and back-off begin and end at whole nanoseconds.
//!
//! With address resolution (ARP, RFC 826), packets for a station with an unknown address wait
//! beside the queue. Only a few may wait; later ones are dropped. ARP requests and replies are
//! frames like others, go before packets in the queue, and are never lost.

use super::context::LaneContext;
use super::medium::Medium;
use super::wire::Spread;
use super::{Lane, Sent};
use crate::observer::{Observer, Reason};
use crate::packet::{Departure, Packet};
use crate::queue::Queued;
use crate::random::Random;
use crate::route::LaneId;
use std::collections::BTreeMap;
use tcplab_units::{Duration, Time};

/// The size of an ARP request or reply for IPv4 over Ethernet (RFC 826), in bytes.
const MESSAGE_BYTES: u32 = 28;

/// Back-off stops growing at this attempt.
const MOST_TRIES: u32 = 10;

/// Settings of a station of a shared medium.
#[derive(Clone, Debug)]
pub struct StationConfig {
    /// The medium: lanes with the same number share it.
    pub medium: usize,
    /// The lane on which packets for this station leave the medium. A packet takes the lane of the
    /// sending station, then this one.
    pub receives: LaneId,
    /// Bytes that a frame adds to its packet.
    pub framing: u32,
    /// How long the station pauses after a frame of its own.
    pub gap: Duration,
    /// The unit of the back-off.
    pub slot: Duration,
    /// Address resolution. Without it, all addresses are known.
    pub arp: Option<ArpConfig>,
}

/// How a station resolves addresses.
#[derive(Clone, Debug)]
pub struct ArpConfig {
    /// Delay before the station sends a request.
    pub wait: Spread,
    /// How many packets may wait for one address.
    pub pending: usize,
    /// Whether a station learns the requester's address from a request.
    pub learns_from_requests: bool,
}

/// An ARP message. Stations are named by the lanes on which they receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A request for the address of this station.
    Request(LaneId),
    /// The reply, to this station.
    Reply(LaneId),
}

/// The running state of a station.
#[derive(Clone, Debug)]
pub(crate) struct Station<P> {
    config: StationConfig,
    random: Random,
    /// Attempts that found the medium busy since the station's last frame.
    tries: u32,
    /// When the gap after the last frame is over.
    ready_at: Time,
    resolver: Option<Resolver<P>>,
}

#[derive(Clone, Debug)]
struct Resolver<P> {
    config: ArpConfig,
    random: Random,
    neighbours: BTreeMap<LaneId, Neighbour<P>>,
    /// Messages to be sent, each with its earliest time.
    messages: Vec<(Time, Message)>,
    /// The message on the medium, and its arrival time.
    under_way: Option<(Time, Message)>,
}

#[derive(Clone, Debug)]
enum Neighbour<P> {
    /// The address is not known yet; these packets wait for it.
    Asked(Vec<Queued<P>>),
    Known,
}

impl<P> Station<P> {
    pub fn new(config: StationConfig, random: impl Fn(&str) -> Random) -> Self {
        Self {
            resolver: config.arp.clone().map(|config| Resolver {
                config,
                random: random("arp"),
                neighbours: BTreeMap::new(),
                messages: Vec::new(),
                under_way: None,
            }),
            config,
            random: random("back-off"),
            tries: 0,
            ready_at: Time::ZERO,
        }
    }

    /// The lane on which the station receives.
    pub fn receives(&self) -> LaneId {
        self.config.receives
    }

    /// Packets that wait for an address.
    pub fn unresolved(&self) -> usize {
        let neighbours = self.resolver.iter().flat_map(|resolver| resolver.neighbours.values());
        let waiting = neighbours.map(|neighbour| match neighbour {
            Neighbour::Asked(packets) => packets.len(),
            Neighbour::Known => 0,
        });
        waiting.sum()
    }

    /// The arrival time of the message on the medium.
    pub fn message_arrives(&self) -> Option<Time> {
        Some(self.resolver.as_ref()?.under_way?.0)
    }

    /// Whether a message is queued, for now or later.
    pub fn has_messages(&self) -> bool {
        self.resolver.as_ref().is_some_and(|resolver| !resolver.messages.is_empty())
    }

    /// When the station senses the medium, if it was to do so at `asks_at` and has more to send
    /// from `from` on.
    pub fn look_from(&self, from: Time, asks_at: Time) -> Time {
        if self.tries > 0 { asks_at } else { asks_at.min(self.ready_at.max(from)) }
    }

    /// When the next message may be sent.
    fn next_message(&self) -> Option<Time> {
        self.resolver.as_ref()?.messages.iter().map(|message| message.0).min()
    }

    /// Backs off from a busy medium. Returns the time of the next attempt.
    fn back_off(&mut self, now: Time) -> Time {
        self.tries += 1;
        let most = (1_u64 << self.tries.min(MOST_TRIES)) - 2;
        let slots = if most == 0 { 1 } else { 1 + self.random.up_to(most - 1) };
        (now + self.config.slot.saturating_mul(slots)).in_nanos()
    }
}

impl<P> Resolver<P> {
    /// Holds a packet for a neighbour whose address is unknown, or gives it back if too many wait.
    /// The first one makes the station send a request.
    fn hold(&mut self, now: Time, neighbour: LaneId, queued: Queued<P>) -> Result<(), Queued<P>> {
        let entry = self.neighbours.entry(neighbour);
        let entry = entry.or_insert_with(|| {
            let wait = self.config.wait.draw(&mut self.random);
            self.messages.push(((now + wait).in_nanos(), Message::Request(neighbour)));
            Neighbour::Asked(Vec::new())
        });
        match entry {
            Neighbour::Asked(packets) if packets.len() < self.config.pending => {
                packets.push(queued);
                Ok(())
            }
            Neighbour::Asked(_) | Neighbour::Known => Err(queued),
        }
    }

    fn knows(&self, neighbour: LaneId) -> bool {
        matches!(self.neighbours.get(&neighbour), Some(Neighbour::Known))
    }

    /// Records the address of a neighbour and returns the packets that waited for it.
    fn learn(&mut self, neighbour: LaneId) -> Vec<Queued<P>> {
        self.messages.retain(|message| message.1 != Message::Request(neighbour));
        match self.neighbours.insert(neighbour, Neighbour::Known) {
            Some(Neighbour::Asked(packets)) => packets,
            Some(Neighbour::Known) | None => Vec::new(),
        }
    }

    /// The message that has been due for the longest.
    fn take_message(&mut self, now: Time) -> Option<Message> {
        let due = self.messages.iter().enumerate().filter(|(_, message)| message.0 <= now);
        let (first, _) = due.min_by_key(|(place, message)| (message.0, *place))?;
        Some(self.messages.remove(first).1)
    }
}

impl<P: Packet> Lane<P> {
    fn station(&mut self) -> Option<&mut Station<P>> {
        self.managed.as_mut()?.station.as_deref_mut()
    }

    /// Admits a packet to a station: the packet waits for an address or in the queue, or is
    /// dropped.
    pub(crate) fn enter_station<O: Observer<P>>(
        &mut self,
        now: Time,
        queued: Queued<P>,
        departure: Departure,
        context: &mut LaneContext<'_, O>,
    ) {
        let neighbour = LaneId(context.routes.lane(queued.place + 1));
        let resolver = self.station().and_then(|station| station.resolver.as_mut());
        let Some(resolver) = resolver.filter(|resolver| !resolver.knows(neighbour)) else {
            self.accept(now, queued, departure, context);
            return;
        };
        if let Err(queued) = resolver.hold(now, neighbour, queued) {
            self.counters.dropped_packets += 1;
            context.drop(now, queued.place, &queued.packet, Reason::Unresolved);
            if let Some(managed) = &mut self.managed {
                managed.report_tx_completion(now, queued.place, queued.packet);
            }
        }
        self.look_from_next_message();
    }

    /// Makes the station sense the medium when its next message is due.
    fn look_from_next_message(&mut self) {
        let Some(managed) = &mut self.managed else { return };
        let station = managed.station.as_ref();
        if let Some((station, at)) = station.and_then(|it| Some((it, it.next_message()?))) {
            managed.asks_at = station.look_from(at, managed.asks_at);
        }
    }

    /// A station senses the medium. Returns whether a packet may leave the queue now.
    pub(crate) fn contend(&mut self, at: Time, media: &mut [Medium]) -> bool {
        let Some(managed) = &mut self.managed else { return false };
        let Some(station) = &mut managed.station else { return false };
        let next = station.next_message();
        let has_message = next.is_some_and(|next| next <= at);
        if managed.queue.waiting().0 == 0 && !has_message {
            managed.asks_at = next.unwrap_or(Time::NEVER);
            return false;
        }
        if media[station.config.medium].0.is_some_and(|until| at <= until) {
            managed.asks_at = station.back_off(at);
            return false;
        }
        station.tries = 0;
        let message = station.resolver.as_mut().and_then(|resolver| resolver.take_message(at));
        let Some(message) = message else { return true };
        let arrives = self.occupy(at, MESSAGE_BYTES, media);
        if let Some(station) = self.station() {
            if let Some(resolver) = &mut station.resolver {
                resolver.under_way = Some((arrives, message));
            }
            let ready_at = station.ready_at;
            if let Some(managed) = &mut self.managed {
                managed.asks_at = ready_at;
            }
        }
        false
    }

    /// A station transmits a packet.
    pub(super) fn transmit_frame(&mut self, at: Time, bytes: u32, media: &mut [Medium]) -> Sent {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(bytes);
        Sent::At(self.occupy(at, bytes, media))
    }

    /// Occupies the medium for a frame. Returns the frame's arrival time.
    fn occupy(&mut self, at: Time, bytes: u32, media: &mut [Medium]) -> Time {
        let (rate, delay) = (self.rate, self.delay);
        let Some(station) = self.station() else { return at };
        let framed = u64::from(bytes) + u64::from(station.config.framing);
        let ends = (at + rate.time_for(framed)).in_nanos();
        station.ready_at = (ends + station.config.gap).in_nanos();
        let arrives = (ends + delay).in_nanos();
        media[station.config.medium] = Medium(Some(arrives));
        self.free_at = ends;
        self.busy += ends.since(at);
        arrives
    }

    /// When the transmitter of a lane, or of a station, may begin the next packet.
    pub(super) fn ready_at(&self) -> Time {
        let station = self.managed.as_ref().and_then(|managed| managed.station.as_ref());
        station.map_or(self.free_at, |station| station.ready_at)
    }

    /// The message of this station that has arrived at all others, with the station's receiving
    /// lane.
    pub(crate) fn arrived_message(&mut self, now: Time) -> Option<(LaneId, Message)> {
        let station = self.station()?;
        let under_way = &mut station.resolver.as_mut()?.under_way;
        let (_, message) = under_way.take_if(|(arrives, _)| *arrives <= now)?;
        Some((station.config.receives, message))
    }

    /// Delivers a message of another station to this one, its addressee.
    pub(crate) fn take_message<O: Observer<P>>(
        &mut self,
        now: Time,
        from: LaneId,
        message: Message,
        context: &mut LaneContext<'_, O>,
    ) {
        self.catch_up(now, context);
        let Some(resolver) = self.station().and_then(|it| it.resolver.as_mut()) else { return };
        let is_request = matches!(message, Message::Request(_));
        if is_request {
            resolver.messages.push((now, Message::Reply(from)));
        }
        let learns = !is_request || resolver.config.learns_from_requests;
        let packets = if learns { resolver.learn(from) } else { Vec::new() };
        self.look_from_next_message();
        for queued in packets {
            // The queue has not held this packet before.
            self.accept(now, Queued { entered: now, ..queued }, Departure::default(), context);
        }
    }
}

impl Message {
    /// The addressee of a message.
    pub fn to(self) -> LaneId {
        match self {
            Self::Request(station) | Self::Reply(station) => station,
        }
    }
}
