//! Managed lanes: lanes with a queue discipline, or with an observer of all packets. On the latter
//! a drop-tail queue is managed too, with the same counters.
//!
//! When a packet leaves a managed queue depends on whether packets before it are dropped, so
//! departures are computed no earlier than they happen. Whenever a packet comes to the lane or
//! arrives at its end, the lane catches up with its transmitter. That is early enough, because a
//! packet arrives after the next one has begun transmission. Where nothing is on the wire, because
//! the wire loses packets or the queue holds them back, the agenda has the times at which the
//! transmitter polls the queue.

use super::context::LaneContext;
use super::station::Station;
use super::wire::PutOff;
use super::{Lane, LaneState, Sent, Transit};
use crate::observer::{Observer, Point, Reason};
use crate::occupancy::Occupancy;
use crate::packet::{Admission, Departure, Packet};
use crate::queue::host::{Answers, Own};
use crate::queue::{DropTail, Drops, Next, Queue, QueueLimit, Queued};
use std::collections::VecDeque;
use tcplab_units::{Duration, Time};

/// The reasons for which a lane is managed, besides a queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The observer sees all packets.
    pub is_observed: bool,
    /// Packets may arrive in another order than they leave in.
    pub may_reorder: bool,
    /// TX completions are reported to the sender of each packet.
    pub reports_tx_completion: bool,
}

/// Events of a managed lane that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<P> {
    /// A packet has arrived at the end of the lane.
    Arrived(Transit<P>),
    /// The packet at this place of its route has been transmitted or dropped, and its sender is to
    /// be told.
    Left(u32, P),
}

/// The state of a managed lane, in place of a plain drop-tail queue.
#[derive(Clone, Debug)]
pub(crate) struct Managed<P: Packet> {
    pub(super) queue: Box<dyn Queue<P>>,
    /// State of the station, if the lane belongs to a shared medium.
    pub(super) station: Option<Box<Station<P>>>,
    /// Waiting packets count as sent, because no discipline drops them.
    is_drop_tail: bool,
    kind: Kind,
    drops: Drops<P>,
    /// Packets and bytes in the queue.
    waiting: (u64, u64),
    in_transit: VecDeque<Transit<P>>,
    /// TX completions to report: time, place on the route, packet.
    leaving: VecDeque<(Time, u32, P)>,
    /// When the transmitter polls the queue, or the station senses the medium; `NEVER` until a
    /// packet comes.
    pub(super) asks_at: Time,
    /// The lane's due time on the agenda.
    looks_at: Time,
    /// The time up to which the queue's occupancy is counted.
    counted_until: Time,
}

impl<P: Packet> Managed<P> {
    pub fn drop_tail(limit: QueueLimit, kind: Kind) -> Self {
        let queue: Box<dyn Queue<P>> = if kind.reports_tx_completion {
            Box::new(Own::new(Box::new(DropTail::new(limit)), u32::MAX, Answers::DEFAULT))
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

    /// The number of packets in the queue and on the wire.
    pub fn packets(&self) -> usize {
        self.waiting.0 as usize + self.in_transit.len() + self.unresolved()
    }

    /// Takes over from a plain drop-tail queue, with this queue and these packets in transit.
    pub(super) fn go_on_from(
        &mut self,
        now: Time,
        queue: Box<dyn Queue<P>>,
        in_transit: VecDeque<Transit<P>>,
    ) {
        self.waiting = queue.waiting();
        (self.queue, self.in_transit, self.counted_until) = (queue, in_transit, now);
    }

    /// Replaces the queue, whose packets are dropped. Returns how many of these packets, and of
    /// their bytes, had counted as sent.
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

    /// Packets in transit, in the order in which they arrive.
    pub(super) fn in_transit(&self) -> impl DoubleEndedIterator<Item = &Transit<P>> {
        self.in_transit.iter()
    }

    /// Sets whether packets may overtake each other from now on.
    pub(super) fn allow_reordering(&mut self, may_reorder: bool) {
        self.kind.may_reorder |= may_reorder;
    }

    /// Changes the arrival time of the packet that left last or is in transmission.
    pub(super) fn put_off(&mut self, PutOff { was, is, times }: PutOff) {
        for _ in 0..times {
            // Of equal times, the packet that was put on the wire last.
            let place = self.in_transit.iter().rposition(|transit| transit.arrives == was);
            if let Some(transit) = place.and_then(|place| self.in_transit.remove(place)) {
                self.put_on_wire(Transit { arrives: is, ..transit });
            }
        }
    }

    /// Forgets the lane's due time, so that it is set on the agenda again.
    pub fn forget_look(&mut self) {
        self.looks_at = Time::NEVER;
    }

    /// Packets that wait for address resolution.
    fn unresolved(&self) -> usize {
        self.station.as_ref().map_or(0, |station| station.unresolved())
    }

    /// Puts a packet in transit, before those that arrive later.
    #[inline]
    fn put_on_wire(&mut self, transit: Transit<P>) {
        if self.kind.may_reorder {
            let later = |it: &&Transit<P>| it.arrives > transit.arrives;
            let overtaken = self.in_transit.iter().rev().take_while(later).count();
            self.in_transit.insert(self.in_transit.len() - overtaken, transit);
        } else {
            self.in_transit.push_back(transit);
        }
    }

    /// Accounts for the occupancy up to `now`, before the queue changes.
    #[inline]
    fn count(&mut self, until: Time, occupancy: &mut Occupancy) {
        let (packets, bytes) = self.waiting;
        if packets > 0 {
            occupancy.wait(until.since(self.counted_until), packets, bytes);
        }
        self.counted_until = until.max(self.counted_until);
    }

    /// Notes a TX completion, if this lane reports them.
    #[inline]
    pub(super) fn report_tx_completion(&mut self, at: Time, place: u32, packet: P) {
        if self.kind.reports_tx_completion {
            self.note_leaving(at, place, packet);
        }
    }

    #[cold]
    fn note_leaving(&mut self, at: Time, place: u32, packet: P) {
        // Dropped packets leave before the packet in transmission.
        let at = at.in_nanos();
        let later = self.leaving.iter().rev().take_while(|(then, ..)| *then > at).count();
        self.leaving.insert(self.leaving.len() - later, (at, place, packet));
    }
}

impl<P: Packet> Lane<P> {
    /// Admits a packet to a managed queue. Returns the answer of a sending host's own queue.
    pub(crate) fn enter<O: Observer<P>>(
        &mut self,
        now: Time,
        place: u32,
        packet: P,
        departure: Departure,
        context: &mut LaneContext<'_, O>,
    ) -> Admission {
        self.catch_up(now, context);
        let Some(managed) = self.managed.as_deref_mut() else { return Admission::Accepted };
        if managed.kind.is_observed {
            context.observer.enter(Point { at: now, place, routes: context.routes }, &packet);
        }
        let flow = packet.flow(context.routes.flow(place));
        let queued = Queued { entered: now, was_marked: packet.is_marked(), place, flow, packet };
        if managed.station.is_some() {
            self.enter_station(now, queued, departure, context);
            return Admission::Accepted;
        }
        self.accept(now, queued, departure, context)
    }

    /// Puts a packet into the queue, unless the queue is full.
    #[inline]
    pub(super) fn accept<O: Observer<P>>(
        &mut self,
        now: Time,
        queued: Queued<P>,
        departure: Departure,
        context: &mut LaneContext<'_, O>,
    ) -> Admission {
        let Some(managed) = self.managed.as_deref_mut() else { return Admission::Accepted };
        managed.count(now, &mut self.occupancy);
        let Queued { place, packet, .. } = queued;
        let (accepted, admission) =
            managed.queue.enqueue_own(now, queued, departure, &mut managed.drops);
        managed.waiting = managed.queue.waiting();
        if accepted.is_ok() {
            managed.asks_at = match &managed.station {
                None => self.free_at.max(now),
                Some(station) => station.look_from(now, managed.asks_at),
            };
        }
        // The sender of a burst that is dropped whole learns of it by the answer.
        let is_gone = matches!(admission, Admission::Dropped | Admission::Refused);
        let reports_tx_completion = managed.kind.reports_tx_completion;
        managed.kind.reports_tx_completion &= !(is_gone && departure.is_answered);
        if !managed.drops.is_empty() {
            self.report_drops(now, context);
        }
        if let Err(reason) = accepted {
            self.counters.dropped_packets += 1;
            context.drop(now, place, &packet, reason);
            if let Some(managed) = &mut self.managed {
                managed.report_tx_completion(now, place, packet);
            }
        }
        if let Some(managed) = &mut self.managed {
            managed.kind.reports_tx_completion = reports_tx_completion;
        }
        if accepted.is_err() {
            return admission;
        }
        self.catch_up(now, context);
        // A packet that finds the transmitter idle has not waited.
        if let Some(Managed { waiting: (packets, bytes), .. }) = self.managed.as_deref() {
            self.occupancy.reach(*packets, *bytes);
        }
        admission
    }

    /// Reports the packets that the queue has dropped.
    #[inline(never)]
    pub(super) fn report_drops<O: Observer<P>>(
        &mut self,
        at: Time,
        context: &mut LaneContext<'_, O>,
    ) {
        let Some(managed) = &mut self.managed else { return };
        let mut drops = std::mem::take(&mut managed.drops);
        for (dropped, reason) in drops.drain(..) {
            self.counters.dropped_packets += 1;
            context.drop(at, dropped.place, &dropped.packet, reason);
            managed.report_tx_completion(at, dropped.place, dropped.packet);
        }
        managed.drops = drops;
    }

    /// The state of a managed lane at the time when it last caught up.
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

    /// Handles the lane's turn on the agenda. Returns what has happened, if anything has.
    pub(crate) fn look<O: Observer<P>>(
        &mut self,
        now: Time,
        context: &mut LaneContext<'_, O>,
    ) -> Option<Seen<P>> {
        let managed = self.managed.as_mut()?;
        managed.looks_at = Time::NEVER;
        self.catch_up(now, context);
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
            let point = Point { at: now, place: arrived.place, routes: context.routes };
            context.observer.arrive(point, &arrived.packet);
        }
        Some(Seen::Arrived(arrived))
    }

    /// The lane's next due time, if the agenda does not have it yet.
    pub(crate) fn next_look(&mut self) -> Option<Time> {
        let managed = self.managed.as_mut()?;
        let mut waits = managed.waiting.0 > 0;
        let mut arrives = managed.in_transit.front().map(|first| first.arrives.in_nanos());
        if let Some(station) = &managed.station {
            waits |= station.has_messages();
            // Only one frame at a time is on the medium.
            arrives = arrives.or(station.message_arrives());
        }
        let asks_at = waits.then(|| managed.asks_at.in_nanos());
        let Kind { may_reorder, reports_tx_completion, .. } = managed.kind;
        let next = if may_reorder || reports_tx_completion || managed.station.is_some() {
            // All times count here: a packet that leaves the queue later may arrive first, senders
            // are told of packets before these arrive, and a station senses the medium while its
            // own frame is in transit.
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

    /// Transmits the packets that have left a managed queue by now.
    #[inline]
    pub(crate) fn catch_up<O: Observer<P>>(&mut self, now: Time, context: &mut LaneContext<'_, O>) {
        if self.managed.as_ref().is_some_and(|managed| managed.asks_at <= now) {
            self.serve(now, context);
        }
    }

    /// Polls the queue up to now and transmits its packets.
    fn serve<O: Observer<P>>(&mut self, now: Time, context: &mut LaneContext<'_, O>) {
        while let Some(managed) = self.managed.as_deref_mut()
            && managed.asks_at <= now
        {
            let at = managed.asks_at;
            if managed.station.is_some() && !self.contend(at, context.media) {
                continue;
            }
            let Some(managed) = self.managed.as_deref_mut() else { return };
            managed.count(at, &mut self.occupancy);
            let next = managed.queue.dequeue(at, &mut managed.drops);
            managed.waiting = managed.queue.waiting();
            if !managed.drops.is_empty() {
                self.report_drops(at, context);
            }
            let asks_at = match next {
                Next::Packet(queued) => {
                    self.transmit_queued(at, queued, context);
                    self.ready_at()
                }
                // Guards against a queue that names no later time and would be polled for ever.
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
        context: &mut LaneContext<'_, O>,
    ) {
        let is_marked = packet.is_marked() && !was_marked;
        self.counters.marked_packets += u64::from(is_marked);
        if self.managed.as_ref().is_some_and(|managed| managed.kind.is_observed) {
            let point = Point { at: begins, place, routes: context.routes };
            if is_marked {
                context.observer.mark(point, &packet);
            }
            context.observer.leave(point, &packet);
        }
        let bytes = packet.wire_bytes();
        let sent = if self.managed.as_ref().is_some_and(|managed| managed.station.is_some()) {
            self.transmit_frame(begins, bytes, context.media)
        } else {
            self.transmit((begins, begins > entered), bytes, || packet.has_payload())
        };
        let free_at = self.free_at;
        if let Some(managed) = &mut self.managed {
            managed.report_tx_completion(free_at, place, packet);
        }
        let (arrives, copies) = match sent {
            Sent::At(arrives) => (arrives, 0),
            Sent::Twice(arrives) => (arrives, 1),
            Sent::Gone(reason) => {
                context.drop(begins, place, &packet, reason);
                return;
            }
        };
        // Copies enter the lane here.
        self.counters.entered_packets += copies;
        if let Some(managed) = &mut self.managed {
            for _ in 0..=copies {
                managed.put_on_wire(Transit { arrives, place, packet });
            }
        }
    }
}

/// Drops all packets of a queue that is no longer needed.
fn purge<P: Packet>(queue: &mut dyn Queue<P>, at: Time) -> Vec<(Queued<P>, Reason)> {
    let (mut purged, mut now) = (Vec::new(), at);
    loop {
        match queue.dequeue(now, &mut purged) {
            Next::Packet(queued) => purged.push((queued, Reason::Purged)),
            // Shapers release their packets later.
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

    /// A numbered packet of 1500 bytes, which takes a millisecond at 12 Mbit/s.
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
            reports_tx_completion: false,
            may_change: false,
        };
        let mut network = Network::observed([lane], 1, Drops::default());
        network.set_queue(LaneId(0), Box::new(queue));
        network
    }

    /// Arrivals up to that time, in milliseconds.
    fn arrivals(network: &mut Network<Parcel, Drops>, until: u64) -> Vec<(u64, u32)> {
        let mut seen = Vec::new();
        while let Some(event) = network.next(at(until)) {
            let Event::Delivered { packet, .. } = event else { panic!("{event:?}") };
            seen.push((network.now().since(Time::ZERO).as_millis(), packet.0));
        }
        seen
    }

    /// Lets one packet pass every `period`, whatever the rate of the wire.
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
        // Departures are at 0, 3, 6 and 9 ms; transmission takes 1 ms and propagation 10 ms. Three
        // packets wait, so the fifth is dropped.
        let mut network = token_bucket(None);
        assert!(arrivals(&mut network, 4).is_empty());
        let state = network.state(LaneId(0));
        assert_eq!((state.queue_packets, state.transit_packets), (2, 2));
        assert_eq!(state.busy, Duration::from_millis(2));
        // By 4 ms, three packets have waited for 3 ms and two for 1 ms.
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

    /// A queue for each flow, whose packets wait for ten milliseconds times the flow's number. The
    /// limit is two packets; a further one pushes out the packet that would leave last.
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
        // The third packet pushes out the second one, and leaves at 2 ms.
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
