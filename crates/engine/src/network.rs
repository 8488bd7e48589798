//! Lanes, routes, timers, and the order of events.

use crate::agenda::Agenda;
use crate::lane::change::LaneChange;
use crate::lane::context::LaneContext;
use crate::lane::managed::Seen;
use crate::lane::medium::Medium;
use crate::lane::{Fate, Lane, LaneConfig, LaneCounters, LaneState, Transit};
use crate::observer::{Observer, Point, Reason};
use crate::packet::{Admission, Departure, Packet};
use crate::random::Random;
use crate::route::{EndpointId, Flow, LaneId, RouteId, Routes};
use crate::timers::{ConnectionTimer, TimerId, Timers};
use std::collections::BTreeMap;
use tcplab_units::{Duration, Time};

/// Events reported to the caller.
#[derive(Clone, Copy, Debug)]
pub enum Event<P> {
    /// A packet reached the end of its route.
    Delivered {
        /// The end of the route.
        to: EndpointId,
        /// The packet.
        packet: P,
    },
    /// A packet has been transmitted or dropped by a lane that tells its sender
    /// ([`LaneConfig::reports_tx_completion`]).
    Left {
        /// The end of the route.
        to: EndpointId,
        /// The packet.
        packet: P,
    },
    /// A timer of a connection expired.
    Connection(ConnectionTimer),
    /// Another timer expired.
    Timer(TimerId),
}

/// When a timer expires among the events of the same nanosecond, in the kernel's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Before anything else, as the last event of the nanosecond before.
    First,
    /// Before packets arrive: kernel timers, whose softirqs are raised before those that receive.
    BeforePackets,
    /// Once the kernel is idle: timers of applications.
    Last,
}

impl Order {
    /// The place of this order within the nanosecond, as an agenda time.
    fn at(self, time: Time) -> Time {
        match self {
            Self::First => Time::from_picos(time.as_picos().saturating_sub(1)),
            Self::BeforePackets => time,
            Self::Last => time + Duration::from_picos(1),
        }
    }
}

/// The limit on the number of lanes, connection timers and other timers in a network: fewer than
/// this of each.
pub const MOST: usize = 1 << 30;

/// A network of lanes with packets in transit, and its observer.
#[derive(Clone, Debug)]
pub struct Network<P: Packet, O = ()> {
    now: Time,
    lanes: Vec<Lane<P>>,
    /// The managed lanes.
    managed: Vec<LaneId>,
    /// Media that stations share.
    media: Vec<Medium>,
    /// The lane of each station, by the lane on which it receives.
    stations: BTreeMap<LaneId, LaneId>,
    routes: Routes,
    connections: Timers,
    timers: Timers,
    /// When each lane is due: its first packet arrives, or its managed queue is polled.
    agenda: Agenda,
    observer: O,
}

impl<P: Packet> Network<P> {
    /// A network of these lanes, numbered in order. `seed` is the run's seed.
    pub fn new(lanes: impl IntoIterator<Item = LaneConfig>, seed: u64) -> Self {
        Self::observed(lanes, seed, ())
    }
}

impl<P: Packet, O: Observer<P>> Network<P, O> {
    /// A network of these lanes, numbered in order, with an observer.
    pub fn observed(lanes: impl IntoIterator<Item = LaneConfig>, seed: u64, observer: O) -> Self {
        let mut media = Vec::new();
        let lanes = lanes.into_iter().map(|config| {
            let medium = config.station.as_ref().map_or(0, |station| station.medium + 1);
            media.resize(media.len().max(medium), Medium::default());
            Lane::new(config, seed)
        });
        let lanes: Vec<_> = lanes.collect();
        assert!(lanes.len() < MOST, "a network has fewer than {MOST} lanes");
        let mut agenda = Agenda::default();
        for _ in &lanes {
            agenda.add();
        }
        let managed = (0_u32..).zip(&lanes).filter(|(_, lane)| lane.is_managed());
        let stations = (0_u32..).zip(&lanes);
        let stations =
            stations.filter_map(|(number, lane)| Some((lane.receives()?, LaneId(number))));
        Self {
            now: Time::ZERO,
            managed: managed.map(|(number, _)| LaneId(number)).collect(),
            media,
            stations: stations.collect(),
            lanes,
            routes: Routes::default(),
            connections: Timers::default(),
            timers: Timers::default(),
            agenda,
            observer,
        }
    }

    /// A route over `lanes`, in order, to `end`.
    pub fn add_route(&mut self, lanes: &[LaneId], end: EndpointId) -> RouteId {
        self.routes.add(lanes, end)
    }

    /// Sets the flow whose packets take a route. Disciplines with many queues hash that flow.
    pub fn set_flow(&mut self, route: RouteId, flow: Flow) {
        self.routes.set_flow(route, flow);
    }

    /// Changes the end of a route, also for packets in transit on it.
    pub fn redirect(&mut self, route: RouteId, end: EndpointId) {
        self.routes.redirect(route, end);
    }

    /// A new timer of a connection, not armed.
    pub fn add_connection_timer(&mut self) -> ConnectionTimer {
        let timer = self.connections.add();
        assert!((timer as usize) < MOST, "a network has fewer than {MOST} timers of connections");
        ConnectionTimer(timer)
    }

    /// A new timer that belongs to no connection, not armed.
    pub fn add_timer(&mut self) -> TimerId {
        let timer = self.timers.add();
        assert!((timer as usize) < MOST, "a network has fewer than {MOST} other timers");
        TimerId(timer)
    }

    /// Arms a timer of a connection; `Time::NEVER` stops the timer. A past time means now, and a
    /// time between two nanoseconds is rounded up. The timer expires before packets arrive.
    #[inline]
    pub fn set_connection_timer(&mut self, timer: ConnectionTimer, at: Time) {
        self.connections.set(timer.0, at.max(self.now).in_nanos());
    }

    /// Arms a timer that belongs to no connection; times are treated as by `set_connection_timer`.
    #[inline]
    pub fn set_timer(&mut self, timer: TimerId, at: Time, order: Order) {
        let at = order.at(at.max(self.now).in_nanos());
        self.timers.set(timer.0, at);
    }

    /// Puts a packet on the first lane of its route.
    #[inline]
    pub fn send(&mut self, route: RouteId, packet: P) {
        self.forward(route.0, &packet);
    }

    /// The same for a packet that a queue of the sending host may hold back or refuse.
    #[cold]
    pub fn send_own(&mut self, route: RouteId, packet: P, departure: Departure) -> Admission {
        let lane = self.routes.lane(route.0);
        if self.lanes[lane as usize].enters_managed() {
            return self.enter_managed(lane, route.0, packet, departure);
        }
        self.send(route, packet);
        Admission::Accepted
    }

    /// Moves packets until one arrives or a timer expires, up to `until`.
    ///
    /// Without an event, the clock stands at `until`.
    #[inline]
    pub fn next(&mut self, until: Time) -> Option<Event<P>> {
        // Events come at whole nanoseconds, and timers some picoseconds after these.
        let event = self.next_by(Order::Last.at(until.floor_nanos()));
        if event.is_none() {
            self.now = until;
        }
        event
    }

    /// Moves packets until one arrives or a timer expires before the whole nanosecond `until`
    /// begins. Without an event, the clock stands at `until`.
    #[cold]
    pub fn next_before(&mut self, until: Time) -> Option<Event<P>> {
        let event = self.next_by(Order::First.at(until));
        if event.is_none() {
            self.now = until;
        }
        event
    }

    /// Changes a lane's settings, before anything else happens in this nanosecond. `random` makes
    /// the generator for a name.
    ///
    /// # Panics
    /// The lane has a wire and was not declared changeable ([`LaneConfig::may_change`]).
    pub fn change(&mut self, lane: LaneId, change: &LaneChange, random: impl Fn(&str) -> Random) {
        let mut context = LaneContext {
            observer: &mut self.observer,
            routes: &self.routes,
            media: &mut self.media,
        };
        let state = &mut self.lanes[lane.0 as usize];
        if !state.is_managed() {
            self.managed.push(lane);
        }
        state.change(self.now, change, random, &mut context);
        if let Some(managed) = &mut state.managed {
            managed.forget_look();
        }
        self.agenda.set(lane.0, state.next_look().unwrap_or(Time::NEVER));
    }

    /// The next event of this nanosecond, except timers of applications.
    #[cold]
    pub fn next_now(&mut self) -> Option<Event<P>> {
        self.next_by(self.now)
    }

    /// Whether an event may still happen in this nanosecond, except timers of applications.
    #[inline]
    pub fn may_have_more_now(&self) -> bool {
        let timer = self.connections.next_due().min(self.timers.next_due());
        timer.min(self.agenda.first().0) <= self.now
    }

    #[expect(clippy::inline_always, reason = "every event passes here")]
    #[inline(always)]
    fn next_by(&mut self, last: Time) -> Option<Event<P>> {
        loop {
            let (due, lane) = self.agenda.first();
            let timer = self.connections.next_due().min(self.timers.next_due());
            // Timers expire before packets arrive, connection timers before others.
            if timer <= due {
                if timer > last {
                    return None;
                }
                if let Some(event) = self.turn(timer) {
                    return Some(event);
                }
                continue;
            }
            if due > last {
                return None;
            }
            self.now = due;
            let Some((arrived, behind)) = self.lanes[lane as usize].take() else {
                if let Some(event) = self.look_at_managed(lane) {
                    return Some(event);
                }
                continue;
            };
            self.agenda.put_off_first(behind.unwrap_or(Time::NEVER));
            if let Some(event) = self.arrive(&arrived) {
                return Some(event);
            }
        }
    }

    /// Handles the turn of a timer.
    #[inline(never)]
    fn turn(&mut self, at: Time) -> Option<Event<P>> {
        // Rounding removes the picoseconds that order timers within a nanosecond. A timer of
        // `Order::First` is handled at the end of the nanosecond before.
        self.now = at.floor_nanos();
        if self.connections.next_due() == at {
            return self
                .connections
                .turn(at)
                .map(|timer| Event::Connection(ConnectionTimer(timer)));
        }
        self.timers.turn(at).map(|timer| Event::Timer(TimerId(timer)))
    }

    /// Another connection timer that expires at this instant, before any other timer and before any
    /// packet arrives.
    #[inline]
    pub fn also_due(&mut self) -> Option<ConnectionTimer> {
        while self.connections.next_due() == self.now {
            if let Some(timer) = self.connections.turn(self.now) {
                return Some(ConnectionTimer(timer));
            }
        }
        None
    }

    /// Puts a packet on a lane. Not inlined: the code of the packet path barely fits the
    /// instruction cache.
    #[inline(never)]
    fn forward(&mut self, place: u32, packet: &P) {
        let (now, lane) = (self.now, self.routes.lane(place));
        let fate = self.lanes[lane as usize].offer(
            now,
            packet.wire_bytes(),
            || packet.has_payload(),
            |arrives| Transit { arrives, place, packet: *packet },
        );
        match fate {
            Fate::Heads(arrives) => self.agenda.set(lane, arrives),
            Fate::Follows => {}
            Fate::Dropped => self.drop(now, place, Reason::Full, packet),
            Fate::Lost(begins, reason) => self.drop(begins, place, reason, packet),
            Fate::Open => {
                self.enter_managed(lane, place, *packet, Departure::default());
            }
        }
    }

    /// A packet is at the end of a lane: it leaves the network, or continues on its route.
    #[expect(clippy::inline_always, reason = "every packet passes here, and for each lane")]
    #[inline(always)]
    fn arrive(&mut self, Transit { place, packet, .. }: &Transit<P>) -> Option<Event<P>> {
        if let Some(to) = self.routes.ends_behind(*place) {
            return Some(Event::Delivered { to, packet: *packet });
        }
        self.forward(place + 1, packet);
        None
    }

    /// Puts a packet on a managed lane.
    #[inline(never)]
    fn enter_managed(
        &mut self,
        lane: u32,
        place: u32,
        packet: P,
        departure: Departure,
    ) -> Admission {
        let mut context = LaneContext {
            observer: &mut self.observer,
            routes: &self.routes,
            media: &mut self.media,
        };
        let lane_state = &mut self.lanes[lane as usize];
        let admission = lane_state.enter(self.now, place, packet, departure, &mut context);
        if let Some(at) = lane_state.next_look() {
            self.agenda.set(lane, at);
        }
        admission
    }

    /// Handles a managed lane that is due; a packet may have arrived.
    #[inline(never)]
    fn look_at_managed(&mut self, lane: u32) -> Option<Event<P>> {
        let mut context = LaneContext {
            observer: &mut self.observer,
            routes: &self.routes,
            media: &mut self.media,
        };
        let lane_state = &mut self.lanes[lane as usize];
        let seen = lane_state.look(self.now, &mut context);
        let message = lane_state.arrived_message(self.now);
        self.agenda.set(lane, lane_state.next_look().unwrap_or(Time::NEVER));
        if let Some((from, message)) = message
            && let Some(&LaneId(to)) = self.stations.get(&message.to())
        {
            let lane_state = &mut self.lanes[to as usize];
            lane_state.take_message(self.now, from, message, &mut context);
            if let Some(at) = lane_state.next_look() {
                self.agenda.set(to, at);
            }
        }
        match seen? {
            Seen::Arrived(arrived) => self.arrive(&arrived),
            Seen::Left(place, packet) => Some(Event::Left { to: self.routes.end(place), packet }),
        }
    }

    #[cold]
    fn drop(&mut self, at: Time, place: u32, reason: Reason, packet: &P) {
        self.observer.drop(Point { at, place, routes: &self.routes }, packet, reason);
    }

    /// Reports everything that has happened until now to the observer.
    pub fn settle(&mut self) {
        for &lane in &self.managed {
            let mut context = LaneContext {
                observer: &mut self.observer,
                routes: &self.routes,
                media: &mut self.media,
            };
            self.lanes[lane.0 as usize].catch_up(self.now, &mut context);
        }
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The number of packets in queues and in transit.
    pub fn packets(&self) -> usize {
        self.lanes.iter().map(Lane::packets).sum()
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The counters of a lane, including outcomes that are decided ahead of time.
    pub fn counters(&self, lane: LaneId) -> LaneCounters {
        self.lanes[lane.0 as usize].counters()
    }

    /// The current state of a lane.
    pub fn state(&mut self, lane: LaneId) -> LaneState {
        let now = self.now;
        self.caught_up(lane).state(now)
    }

    /// The current state of a lane; a new interval begins for the occupancy maxima.
    pub fn sample(&mut self, lane: LaneId) -> LaneState {
        let now = self.now;
        self.caught_up(lane).sample(now)
    }

    /// Replaces a lane's queue with one of a test, before any packet comes.
    #[cfg(test)]
    pub(crate) fn set_queue(&mut self, lane: LaneId, queue: Box<dyn crate::queue::Queue<P>>) {
        self.lanes[lane.0 as usize].set_queue(queue);
        self.managed.push(lane);
    }

    fn caught_up(&mut self, lane: LaneId) -> &mut Lane<P> {
        let mut context = LaneContext {
            observer: &mut self.observer,
            routes: &self.routes,
            media: &mut self.media,
        };
        let lane = &mut self.lanes[lane.0 as usize];
        lane.catch_up(self.now, &mut context);
        lane
    }

    /// Packets that reached the end of a lane, counted once for each lane.
    pub fn packet_hops(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.counters().arrived_packets).sum()
    }
}
