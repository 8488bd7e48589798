//! A lane whose queue is not drop-tail, or at which someone looks at all packets: then a drop-tail queue
//! stands behind the seam as well, and all that is counted is the same.
//!
//! When a packet leaves such a queue depends on what becomes of those before it, so that is found out
//! no sooner than it happens: whenever a packet comes to the lane or arrives at its end, the lane
//! catches up with its transmitter. That is early enough, as a packet arrives after the next one has
//! begun transmission; where nothing is on the wire, because the wire loses packets or the queue holds
//! them back, the agenda has the times at which the transmitter asks the queue.

use super::station::Station;
use super::teller::Teller;
use super::wire::PutOff;
use super::{Lane, LaneState, Sent, Transit};
use crate::observer::{Observer, Point, Reason};
use crate::occupancy::Occupancy;
use crate::packet::{Departure, Packet};
use crate::queue::host::Own;
use crate::queue::{DropTail, Drops, Next, Queue, QueueLimit, Queued};
use std::collections::VecDeque;
use tcplab_units::{Duration, Time};

/// For what reasons a lane is managed, besides a discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The observer is told of all packets.
    pub is_observed: bool,
    /// Packets that leave later may arrive earlier.
    pub is_disorderly: bool,
    /// The sender of a packet is told when the packet has left the device.
    pub tells_sender: bool,
}

/// What the network hears of a lane that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<P> {
    /// A packet has arrived at the end.
    Arrived(Transit<P>),
    /// The packet at this place has been transmitted or dropped, and its sender is to be told.
    Left(u32, P),
}

/// What a lane with a discipline has in place of a drop-tail queue.
#[derive(Clone, Debug)]
pub(crate) struct Managed<P: Packet> {
    pub(super) queue: Box<dyn Queue<P>>,
    /// State of a station of a shared medium, if the lane is one.
    pub(super) station: Option<Box<Station<P>>>,
    /// What waits counts as sent, because no discipline drops it.
    is_drop_tail: bool,
    kind: Kind,
    drops: Drops<P>,
    /// Packets and bytes that the queue holds.
    waiting: (u64, u64),
    in_transit: VecDeque<Transit<P>>,
    /// Packets of which the sender is to be told, when, and their places.
    leaving: VecDeque<(Time, u32, P)>,
    /// When the transmitter asks the queue for a packet, or the station looks at the medium; never, until
    /// a packet comes.
    pub(super) asks_at: Time,
    /// When the lane is due on the agenda.
    looks_at: Time,
    /// Until when the queue's occupancy is counted.
    counted_until: Time,
}

impl<P: Packet> Managed<P> {
    pub fn drop_tail(limit: QueueLimit, kind: Kind) -> Self {
        let queue: Box<dyn Queue<P>> = if kind.tells_sender {
            Box::new(Own::new(Box::new(DropTail::new(limit)), u32::MAX))
        } else {
            Box::new(DropTail::new(limit))
        };
        Self { is_drop_tail: true, ..Self::new(queue, kind) }
    }

    pub fn new(queue: Box<dyn Queue<P>>, kind: Kind) -> Self {
        Self {
            queue,
            station: None,
            is_drop_tail: false,
            kind,
            drops: Vec::new(),
            waiting: (0, 0),
            in_transit: VecDeque::new(),
            leaving: VecDeque::new(),
            asks_at: Time::ZERO,
            looks_at: Time::NEVER,
            counted_until: Time::ZERO,
        }
    }

    /// Packets that wait or are on the wire.
    pub fn packets(&self) -> usize {
        self.waiting.0 as usize + self.in_transit.len() + self.unresolved()
    }

    /// Goes on with this queue and these packets on the way, in place of a queue that was not managed.
    pub(super) fn go_on_from(
        &mut self,
        now: Time,
        queue: Box<dyn Queue<P>>,
        in_transit: VecDeque<Transit<P>>,
    ) {
        self.waiting = queue.waiting();
        (self.queue, self.in_transit, self.counted_until) = (queue, in_transit, now);
    }

    /// Puts another queue in the place of this one, whose packets are dropped. Gives how many of them, and
    /// of their bytes, counted as sent.
    pub(super) fn replace(
        &mut self,
        at: Time,
        queue: Box<dyn Queue<P>>,
        occupancy: &mut Occupancy,
    ) -> (u64, u64) {
        self.count(at, occupancy);
        self.drops = purge(&mut *self.queue, at);
        self.queue = queue;
        let purged = std::mem::take(&mut self.waiting);
        if std::mem::take(&mut self.is_drop_tail) { purged } else { (0, 0) }
    }

    /// Packets on the way, in the order in which they arrive.
    pub(super) fn in_transit(&self) -> impl DoubleEndedIterator<Item = &Transit<P>> {
        self.in_transit.iter()
    }

    /// Packets that leave later may arrive earlier from now on.
    pub(super) fn set_disorderly(&mut self, is_disorderly: bool) {
        self.kind.is_disorderly |= is_disorderly;
    }

    /// The packet that left last, or is in transmission, arrives at another time.
    pub(super) fn put_off(&mut self, PutOff { was, is, times }: PutOff) {
        for _ in 0..times {
            // Of equals, the one that was put there last.
            let place = self.in_transit.iter().rposition(|transit| transit.arrives == was);
            if let Some(transit) = place.and_then(|place| self.in_transit.remove(place)) {
                self.put_on_wire(Transit { arrives: is, ..transit });
            }
        }
    }

    /// The agenda is to hear anew when the lane is due.
    pub fn forget_look(&mut self) {
        self.looks_at = Time::NEVER;
    }

    /// Packets that wait for an address.
    fn unresolved(&self) -> usize {
        self.station.as_ref().map_or(0, |station| station.unresolved())
    }

    /// A packet is under way: before those that arrive later.
    #[inline]
    fn put_on_wire(&mut self, transit: Transit<P>) {
        if self.kind.is_disorderly {
            let later = |it: &&Transit<P>| it.arrives > transit.arrives;
            let overtaken = self.in_transit.iter().rev().take_while(later).count();
            self.in_transit.insert(self.in_transit.len() - overtaken, transit);
        } else {
            self.in_transit.push_back(transit);
        }
    }

    /// Counts the time that the queue, which is about to change, has been as it is.
    #[inline]
    fn count(&mut self, until: Time, occupancy: &mut Occupancy) {
        let (packets, bytes) = self.waiting;
        if packets > 0 {
            occupancy.wait(until.since(self.counted_until), packets, bytes);
        }
        self.counted_until = until.max(self.counted_until);
    }

    /// The sender of a packet is told then that the packet has left, if it is to be told.
    #[inline]
    pub(super) fn tell_sender(&mut self, at: Time, place: u32, packet: P) {
        if self.kind.tells_sender {
            self.note_leaving(at, place, packet);
        }
    }

    #[cold]
    fn note_leaving(&mut self, at: Time, place: u32, packet: P) {
        // What is dropped leaves before what is in transmission.
        let later = self.leaving.iter().rev().take_while(|(then, ..)| *then > at).count();
        self.leaving.insert(self.leaving.len() - later, (at.in_nanos(), place, packet));
    }
}

impl<P: Packet> Lane<P> {
    /// Takes a packet into a managed queue.
    pub(crate) fn enter<O: Observer<P>>(
        &mut self,
        now: Time,
        place: u32,
        packet: P,
        departure: Departure,
        teller: &mut Teller<'_, O>,
    ) {
        self.catch_up(now, teller);
        let Some(managed) = self.managed.as_deref_mut() else { return };
        if managed.kind.is_observed {
            teller.observer.enter(Point { at: now, place, routes: teller.routes }, &packet);
        }
        let flow = packet.flow(teller.routes.flow(place));
        let queued = Queued { entered: now, was_marked: packet.is_marked(), place, flow, packet };
        if managed.station.is_some() {
            return self.enter_station(now, queued, departure, teller);
        }
        self.accept(now, queued, departure, teller);
    }

    /// Puts a packet into the queue, if that has room.
    #[inline]
    pub(super) fn accept<O: Observer<P>>(
        &mut self,
        now: Time,
        queued: Queued<P>,
        departure: Departure,
        teller: &mut Teller<'_, O>,
    ) {
        let Some(managed) = self.managed.as_deref_mut() else { return };
        managed.count(now, &mut self.occupancy);
        let Queued { place, packet, .. } = queued;
        let accepted = managed.queue.enqueue_own(now, queued, departure, &mut managed.drops);
        managed.waiting = managed.queue.waiting();
        if accepted.is_ok() {
            managed.asks_at = match &managed.station {
                None => self.free_at.max(now),
                Some(station) => station.look_from(now, managed.asks_at),
            };
        }
        if !managed.drops.is_empty() {
            self.tell_drops(now, teller);
        }
        if let Err(reason) = accepted {
            self.counters.dropped_packets += 1;
            teller.drop(now, place, &packet, reason);
            if let Some(managed) = &mut self.managed {
                managed.tell_sender(now, place, packet);
            }
            return;
        }
        self.catch_up(now, teller);
        // A packet that finds the transmitter free has not waited.
        if let Some(Managed { waiting: (packets, bytes), .. }) = self.managed.as_deref() {
            self.occupancy.reach(*packets, *bytes);
        }
    }

    /// Tells what the queue has dropped.
    #[inline(never)]
    pub(super) fn tell_drops<O: Observer<P>>(&mut self, at: Time, teller: &mut Teller<'_, O>) {
        let Some(managed) = &mut self.managed else { return };
        let mut drops = std::mem::take(&mut managed.drops);
        for (dropped, reason) in drops.drain(..) {
            self.counters.dropped_packets += 1;
            teller.drop(at, dropped.place, &dropped.packet, reason);
            managed.tell_sender(at, dropped.place, dropped.packet);
        }
        managed.drops = drops;
    }

    /// A lane with a managed queue as it was when it was last caught up with.
    #[cold]
    pub(crate) fn managed_state(&mut self, now: Time) -> LaneState {
        let managed = self.managed.as_deref_mut();
        let managed = managed.expect("only lanes with a managed queue are asked");
        managed.count(now, &mut self.occupancy);
        let (queue_packets, queue_bytes) = managed.waiting;
        let mut counters = self.counters;
        if managed.is_drop_tail {
            counters.sent_packets += queue_packets;
            counters.sent_bytes += queue_bytes;
        }
        LaneState {
            counters,
            queue_packets,
            queue_bytes,
            transit_packets: (managed.in_transit.len() + managed.unresolved()) as u64,
            occupancy: self.occupancy,
            busy: self.busy(now),
        }
    }

    /// The lane is due on the agenda: what has happened, if anything has.
    pub(crate) fn look<O: Observer<P>>(
        &mut self,
        now: Time,
        teller: &mut Teller<'_, O>,
    ) -> Option<Seen<P>> {
        let managed = self.managed.as_mut()?;
        managed.looks_at = Time::NEVER;
        self.catch_up(now, teller);
        let managed = self.managed.as_mut()?;
        if managed.leaving.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, place, packet)) = managed.leaving.pop_front()
        {
            return Some(Seen::Left(place, packet));
        }
        let has_arrived = managed.in_transit.front().is_some_and(|first| first.arrives <= now);
        let arrived = has_arrived.then(|| managed.in_transit.pop_front()).flatten();
        let arrived = arrived?;
        self.counters.arrived_packets += 1;
        if managed.kind.is_observed {
            let point = Point { at: now, place: arrived.place, routes: teller.routes };
            teller.observer.arrive(point, &arrived.packet);
        }
        Some(Seen::Arrived(arrived))
    }

    /// When the lane is to be looked at next, if that is not on the agenda yet.
    pub(crate) fn next_look(&mut self) -> Option<Time> {
        let managed = self.managed.as_mut()?;
        let mut waits = managed.waiting.0 > 0;
        let mut arrives = managed.in_transit.front().map(|first| first.arrives.in_nanos());
        if let Some(station) = &managed.station {
            waits |= station.has_messages();
            // One frame at a time is on the medium.
            arrives = arrives.or(station.message_arrives());
        }
        let asks_at = waits.then(|| managed.asks_at.in_nanos());
        let Kind { is_disorderly, tells_sender, .. } = managed.kind;
        let next = if is_disorderly || tells_sender || managed.station.is_some() {
            // A packet that leaves the queue later may arrive first, senders hear of packets before these
            // arrive, and a station looks at the medium while its frame is under way.
            let leaves = managed.leaving.front().map(|(at, ..)| *at);
            arrives.into_iter().chain(asks_at).chain(leaves).min()?
        } else {
            arrives.or(asks_at)?
        };
        if next >= managed.looks_at {
            return None;
        }
        managed.looks_at = next;
        Some(next)
    }

    /// Transmits what has left a managed queue until now.
    #[inline]
    pub(crate) fn catch_up<O: Observer<P>>(&mut self, now: Time, teller: &mut Teller<'_, O>) {
        if self.managed.as_ref().is_some_and(|managed| managed.asks_at <= now) {
            self.serve(now, teller);
        }
    }

    /// Asks the queue for packets until now, and transmits them.
    fn serve<O: Observer<P>>(&mut self, now: Time, teller: &mut Teller<'_, O>) {
        while let Some(managed) = self.managed.as_deref_mut()
            && managed.asks_at <= now
        {
            let at = managed.asks_at;
            if managed.station.is_some() && !self.contend(at, teller.media) {
                continue;
            }
            let Some(managed) = self.managed.as_deref_mut() else { return };
            managed.count(at, &mut self.occupancy);
            let next = managed.queue.dequeue(at, &mut managed.drops);
            managed.waiting = managed.queue.waiting();
            if !managed.drops.is_empty() {
                self.tell_drops(at, teller);
            }
            let asks_at = match next {
                Next::Packet(queued) => {
                    self.transmit_queued(at, queued, teller);
                    self.ready_at()
                }
                // A queue that names no later time would be asked for ever.
                Next::NotBefore(then) => then.max(at + Duration::from_nanos(1)),
                Next::Empty => Time::NEVER,
            };
            if let Some(managed) = &mut self.managed {
                managed.asks_at = asks_at;
            }
        }
    }

    /// A packet leaves the queue.
    #[inline]
    fn transmit_queued<O: Observer<P>>(
        &mut self,
        begins: Time,
        Queued { entered, was_marked, place, packet, .. }: Queued<P>,
        teller: &mut Teller<'_, O>,
    ) {
        let is_marked = packet.is_marked() && !was_marked;
        self.counters.marked_packets += u64::from(is_marked);
        if self.managed.as_ref().is_some_and(|managed| managed.kind.is_observed) {
            let point = Point { at: begins, place, routes: teller.routes };
            if is_marked {
                teller.observer.mark(point, &packet);
            }
            teller.observer.leave(point, &packet);
        }
        let bytes = packet.wire_bytes();
        let sent = if self.managed.as_ref().is_some_and(|managed| managed.station.is_some()) {
            self.transmit_frame(begins, bytes, teller.media)
        } else {
            self.transmit((begins, begins > entered), bytes, || packet.has_payload())
        };
        let free_at = self.free_at;
        if let Some(managed) = &mut self.managed {
            managed.tell_sender(free_at, place, packet);
        }
        let (arrives, copies) = match sent {
            Sent::At(arrives) => (arrives, 0),
            Sent::Twice(arrives) => (arrives, 1),
            Sent::Gone(reason) => {
                teller.drop(begins, place, &packet, reason);
                return;
            }
        };
        // A copy has entered the lane here.
        self.counters.entered_packets += copies;
        if let Some(managed) = &mut self.managed {
            for _ in 0..=copies {
                managed.put_on_wire(Transit { arrives, place, packet });
            }
        }
    }
}

/// Takes all packets out of a queue that is no longer needed.
fn purge<P: Packet>(queue: &mut dyn Queue<P>, at: Time) -> Vec<(Queued<P>, Reason)> {
    let (mut purged, mut now) = (Vec::new(), at);
    loop {
        match queue.dequeue(now, &mut purged) {
            Next::Packet(queued) => purged.push((queued, Reason::Purged)),
            // Shapers give theirs later.
            Next::NotBefore(then) => now = then.max(now + Duration::from_nanos(1)),
            Next::Empty => break,
        }
    }
    for (_, reason) in &mut purged {
        *reason = Reason::Purged;
    }
    purged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::LaneConfig;
    use crate::lane::wire::WireConfig;
    use crate::queue::Fifo;
    use crate::route::{EndpointId, LaneId};
    use crate::{Event, Loss, Network};

    impl<P: Packet> Lane<P> {
        pub(crate) fn set_queue(&mut self, queue: Box<dyn Queue<P>>) {
            self.managed = Some(Box::new(Managed::new(queue, Kind::default())));
        }
    }

    /// A numbered packet of 1500 bytes: a millisecond at 12 Mbit/s.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Parcel(u32);

    impl Packet for Parcel {
        fn wire_bytes(&self) -> u32 {
            1500
        }
        fn has_payload(&self) -> bool {
            true
        }
    }

    #[derive(Default)]
    struct Drops(Vec<(u64, u32, Reason)>);

    impl Observer<Parcel> for Drops {
        fn drop(&mut self, point: Point<'_>, packet: &Parcel, reason: Reason) {
            self.0.push((point.at.since(Time::ZERO).as_millis(), packet.0, reason));
        }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn network(queue: impl Queue<Parcel> + 'static, loss: Option<Loss>) -> Network<Parcel, Drops> {
        let lane = LaneConfig {
            name: "a>b".into(),
            rate: "12 Mbit/s".parse().unwrap(),
            delay: Duration::from_millis(10),
            queue: QueueLimit::Packets(1),
            discipline: None,
            wire: WireConfig { loss, ..WireConfig::default() },
            station: None,
            observed: false,
            tells_sender: false,
            may_change: false,
        };
        let mut network = Network::observed([lane], 1, Drops::default());
        network.set_queue(LaneId(0), Box::new(queue));
        network
    }

    /// What arrives until then, in milliseconds.
    fn arrivals(network: &mut Network<Parcel, Drops>, until: u64) -> Vec<(u64, u32)> {
        let mut seen = Vec::new();
        while let Some(event) = network.next(at(until)) {
            let Event::Delivered { packet, .. } = event else { panic!("{event:?}") };
            seen.push((network.now().since(Time::ZERO).as_millis(), packet.0));
        }
        seen
    }

    /// Lets one packet pass every `period`, however fast the wire is.
    #[derive(Clone, Debug)]
    struct TokenBucket {
        fifo: Fifo<Parcel>,
        period: Duration,
        ready_at: Time,
    }

    impl Queue<Parcel> for TokenBucket {
        fn enqueue(
            &mut self,
            _now: Time,
            packet: Queued<Parcel>,
            _drops: &mut crate::queue::Drops<Parcel>,
        ) -> Result<(), Reason> {
            self.fifo.push(packet)
        }

        fn dequeue(&mut self, now: Time, _drops: &mut crate::queue::Drops<Parcel>) -> Next<Parcel> {
            if self.fifo.waiting().0 == 0 {
                return Next::Empty;
            }
            if now < self.ready_at {
                return Next::NotBefore(self.ready_at);
            }
            self.ready_at = now + self.period;
            self.fifo.pop().map_or(Next::Empty, Next::Packet)
        }

        fn waiting(&self) -> (u64, u64) {
            self.fifo.waiting()
        }
    }

    fn token_bucket(loss: Option<Loss>) -> Network<Parcel, Drops> {
        let fifo = Fifo::new(QueueLimit::Packets(3));
        let period = Duration::from_millis(3);
        let mut network = network(TokenBucket { fifo, period, ready_at: Time::ZERO }, loss);
        let route = network.add_route(&[LaneId(0)], EndpointId(0));
        for number in 1..=5 {
            network.send(route, Parcel(number));
        }
        network
    }

    #[test]
    fn packets_wait_although_the_transmitter_is_free() {
        // They leave at 0, 3, 6 and 9 ms, and take 1 ms and 10 ms. Three wait, so the fifth has no room.
        let mut network = token_bucket(None);
        assert!(arrivals(&mut network, 4).is_empty());
        let state = network.state(LaneId(0));
        assert_eq!((state.queue_packets, state.transit_packets), (2, 2));
        assert_eq!(state.busy, Duration::from_millis(2));
        // Until 4 ms, three have waited for 3 ms and two for one.
        assert_eq!(state.occupancy.packet_ps, 11 * 1_000_000_000);
        assert_eq!(arrivals(&mut network, 100), [(11, 1), (14, 2), (17, 3), (20, 4)]);
        assert_eq!(network.observer().0, [(0, 5, Reason::Full)]);
    }

    #[test]
    fn packets_leave_in_time_when_nothing_is_on_the_wire() {
        let mut network = token_bucket(Some(Loss::Listed { packets: vec![1, 2, 3] }));
        assert_eq!(arrivals(&mut network, 100), [(20, 4)]);
        let lost = [(0, 5, Reason::Full), (0, 1, Reason::Lost), (3, 2, Reason::Lost)];
        let mut seen = network.observer().0.clone();
        seen.sort_by_key(|drop| drop.0);
        assert_eq!(seen.len(), 4);
        assert!(lost.iter().all(|lost| seen.contains(lost)), "{seen:?}");
        assert_eq!(seen[3], (6, 3, Reason::Lost));
    }

    /// Each flow has a queue, and its packets wait for ten milliseconds times the number of the flow. Two
    /// packets have room: for another the one goes that would leave last.
    #[derive(Clone, Debug, Default)]
    struct Held(Vec<(Time, Queued<Parcel>)>);

    impl Queue<Parcel> for Held {
        fn enqueue(
            &mut self,
            now: Time,
            packet: Queued<Parcel>,
            drops: &mut crate::queue::Drops<Parcel>,
        ) -> Result<(), Reason> {
            if self.0.len() == 2
                && let Some((_, last)) = self.0.pop()
            {
                drops.push((last, Reason::Discipline));
            }
            self.0.push((now + Duration::from_millis(10 * packet.flow.key), packet));
            self.0.sort_by_key(|held| held.0);
            Ok(())
        }

        fn dequeue(&mut self, now: Time, _drops: &mut crate::queue::Drops<Parcel>) -> Next<Parcel> {
            match self.0.first() {
                None => Next::Empty,
                Some(&(then, _)) if then > now => Next::NotBefore(then),
                Some(_) => Next::Packet(self.0.remove(0).1),
            }
        }

        fn waiting(&self) -> (u64, u64) {
            (self.0.len() as u64, 1500 * self.0.len() as u64)
        }
    }

    #[test]
    fn a_packet_that_may_leave_at_once_overtakes_those_that_are_held_back() {
        let mut network = network(Held::default(), None);
        let [now, later, last] =
            [0, 1, 2].map(|end| network.add_route(&[LaneId(0)], EndpointId(end)));
        network.send(later, Parcel(1));
        network.send(last, Parcel(2));
        assert!(arrivals(&mut network, 2).is_empty());
        // This drops the second, and leaves at 2 ms.
        network.send(now, Parcel(3));
        assert!(arrivals(&mut network, 5).is_empty());
        network.send(now, Parcel(4));
        // 2 + 11 ms, 5 + 11 ms, 10 + 11 ms.
        assert_eq!(arrivals(&mut network, 100), [(13, 3), (16, 4), (21, 1)]);
        assert_eq!(network.observer().0, [(2, 2, Reason::Discipline)]);
        let counters = network.counters(LaneId(0));
        assert_eq!((counters.dropped_packets, counters.arrived_packets), (1, 3));
    }
}
