//! Lanes, routes, timers, and the order in which things happen.

use crate::agenda::Agenda;
use crate::lane::{Fate, Lane, LaneConfig, Transit};
use crate::timers::{TimerId, Timers};
use tcplab_units::{Duration, Time};

/// What the engine must know of a packet. Packets are small values, copied from lane to lane.
pub trait Packet: Copy {
    /// Its size on the wire, headers included.
    fn wire_bytes(&self) -> u32;
    /// Whether it carries data of an application: such packets are numbered by [`Loss::Listed`].
    ///
    /// [`Loss::Listed`]: crate::Loss::Listed
    fn has_payload(&self) -> bool;
    /// Whether it carries a mark of congestion.
    fn is_marked(&self) -> bool {
        false
    }
    /// Marks it, if it can be marked. Says whether it carries a mark then.
    fn mark(&mut self) -> bool {
        false
    }
}

/// A lane, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// Where a route ends: a number whose meaning is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// A list of lanes that ends at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId(u32);

/// What the caller is told.
#[derive(Clone, Copy, Debug)]
pub enum Event<P> {
    /// A packet reached the end of its route.
    Delivered {
        /// The end of the route.
        to: EndpointId,
        /// What arrived.
        packet: P,
    },
    /// A timer ran out.
    Timer(TimerId),
}

/// A packet that did not arrive.
#[derive(Clone, Copy, Debug)]
pub struct Drop<P> {
    /// When it came to the queue, or left it.
    pub at: Time,
    /// The lane.
    pub lane: LaneId,
    /// Why.
    pub reason: Reason,
    /// Where it was to go.
    pub to: EndpointId,
    /// What it was.
    pub packet: P,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The queue had no room.
    Full,
    /// The discipline of the queue dropped it.
    Discipline,
    /// The wire lost it.
    Lost,
}

/// One step of a route: a lane, or with the top bit set an endpoint.
#[derive(Clone, Copy, Debug)]
struct Hop(u32);

const TOP: u32 = 1 << 31;

/// Subjects of the agenda with this bit are lanes, the others timers.
const LANES: u32 = 1 << 31;

/// When a timer runs out among all that happens in the same nanosecond, as the kernel orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Before packets arrive: the kernel's own timers, whose softirqs are raised before those that
    /// receive.
    BeforePackets = 0,
    /// When the kernel has nothing left to do: timers of applications.
    Last = 1,
}

/// How many lanes, and how many timers, a network may have.
pub const MOST: usize = LANES as usize;

/// A network of lanes with packets on them.
#[derive(Debug)]
pub struct Network<P> {
    now: Time,
    lanes: Vec<Lane<P>>,
    /// All routes, one behind the other; a packet carries its place in here.
    hops: Vec<Hop>,
    timers: Timers,
    agenda: Agenda,
    drops: Vec<Drop<P>>,
}

impl<P: Packet> Network<P> {
    /// A network of these lanes, numbered in their order. `seed` is that of the run.
    pub fn new(lanes: impl IntoIterator<Item = LaneConfig>, seed: u64) -> Self {
        let lanes: Vec<_> = lanes.into_iter().map(|config| Lane::new(config, seed)).collect();
        assert!(lanes.len() < MOST, "a network has fewer than {MOST} lanes");
        Self {
            now: Time::ZERO,
            lanes,
            hops: Vec::new(),
            timers: Timers::default(),
            agenda: Agenda::default(),
            drops: Vec::new(),
        }
    }

    /// A route over `lanes`, in order, to `end`.
    pub fn add_route(&mut self, lanes: &[LaneId], end: EndpointId) -> RouteId {
        let start = self.hops.len() as u32;
        self.hops.extend(lanes.iter().map(|lane| Hop(lane.0)));
        self.hops.push(Hop(end.0 | TOP));
        RouteId(start)
    }

    /// A new timer, not armed.
    pub fn add_timer(&mut self) -> TimerId {
        let timer = self.timers.add();
        assert!((timer.0 as usize) < MOST, "a network has fewer than {MOST} timers");
        timer
    }

    /// Arms a timer, or with `Time::NEVER` stops it. A time that has passed means now; one between
    /// two nanoseconds the later of these.
    #[inline]
    pub fn set_timer(&mut self, timer: TimerId, at: Time, order: Order) {
        let at = at.max(self.now).in_nanos() + Duration::from_picos(order as u64);
        self.timers.set(timer, at, &mut self.agenda);
    }

    /// Puts a packet on the first lane of its route.
    #[inline]
    pub fn send(&mut self, route: RouteId, packet: P) {
        self.forward(route.0, packet);
    }

    /// Moves packets until one arrives or a timer runs out, at `until` at the latest.
    ///
    /// Without an event, the clock stands at `until`.
    #[inline]
    pub fn next(&mut self, until: Time) -> Option<Event<P>> {
        // Events come at whole nanoseconds, and timers some picoseconds behind these.
        let event = self.next_by(until.floor_nanos() + Duration::from_picos(Order::Last as u64));
        if event.is_none() {
            self.now = until;
        }
        event
    }

    /// The next event of this nanosecond, timers of applications excepted.
    #[cold]
    pub fn next_now(&mut self) -> Option<Event<P>> {
        self.next_by(self.now)
    }

    /// Whether something may happen yet in this nanosecond, timers of applications excepted.
    #[inline]
    pub fn may_have_more_now(&self) -> bool {
        self.agenda.next_due() <= self.now
    }

    #[expect(clippy::inline_always, reason = "every event passes here")]
    #[inline(always)]
    fn next_by(&mut self, last: Time) -> Option<Event<P>> {
        while let Some((at, subject)) = self.agenda.peek().filter(|(at, _)| *at <= last) {
            if subject & LANES == 0 {
                // Less what puts it behind packets of the same instant.
                self.now = at.floor_nanos();
                let timer = TimerId(subject);
                if self.timers.turn(timer, at, &mut self.agenda) {
                    return Some(Event::Timer(timer));
                }
                continue;
            }
            self.now = at;
            let lane = subject & !LANES;
            let Some((arrived, behind)) = self.lanes[lane as usize].take() else {
                self.agenda.remove_first();
                if let Some(event) = self.look_at_managed(lane) {
                    return Some(event);
                }
                continue;
            };
            self.agenda.remove_first();
            if let Some(at) = behind {
                self.agenda.push(at, subject);
            }
            if let Some(event) = self.arrive(arrived) {
                return Some(event);
            }
        }
        None
    }

    /// Another timer that runs out in this instant, before any packet arrives, if the next thing to happen
    /// is one with an index below `end`.
    #[inline]
    pub fn also_due(&mut self, end: usize) -> Option<TimerId> {
        while let Some((at, subject)) = self.agenda.peek() {
            if at != self.now || subject as usize >= end {
                return None;
            }
            let timer = TimerId(subject);
            if self.timers.turn(timer, at, &mut self.agenda) {
                return Some(timer);
            }
        }
        None
    }

    #[inline]
    fn forward(&mut self, hop: u32, packet: P) {
        let lane = self.hops[hop as usize].0;
        let fate = self.lanes[lane as usize].offer(
            self.now,
            packet.wire_bytes(),
            || packet.has_payload(),
            |arrives| Transit { arrives, hop, packet },
        );
        match fate {
            Fate::Heads(arrives) => self.agenda.push(arrives, lane | LANES),
            Fate::Follows => {}
            Fate::Dropped => self.drop(self.now, hop, Reason::Full, packet),
            Fate::Lost(begins) => self.drop(begins, hop, Reason::Lost, packet),
            Fate::Open => {
                self.lanes[lane as usize].enter(self.now, hop, packet);
                self.follow_managed(lane);
            }
        }
    }

    /// A packet is at the end of a hop: it leaves the network, or goes on.
    #[inline]
    fn arrive(&mut self, arrived: Transit<P>) -> Option<Event<P>> {
        let Hop(end) = self.hops[arrived.hop as usize + 1];
        if end & TOP != 0 {
            let to = EndpointId(end & !TOP);
            return Some(Event::Delivered { to, packet: arrived.packet });
        }
        self.forward(arrived.hop + 1, arrived.packet);
        None
    }

    /// A lane whose queue is managed is due; a packet may have arrived.
    #[cold]
    fn look_at_managed(&mut self, lane: u32) -> Option<Event<P>> {
        let arrived = self.lanes[lane as usize].arrive(self.now);
        self.follow_managed(lane);
        self.arrive(arrived?)
    }

    /// Something has changed on such a lane.
    #[cold]
    fn follow_managed(&mut self, lane: u32) {
        if let Some(at) = self.lanes[lane as usize].next_look() {
            self.agenda.push(at, lane | LANES);
        }
        self.collect_gone(lane);
    }

    #[cold]
    fn collect_gone(&mut self, lane: u32) {
        let gone: Vec<_> = self.lanes[lane as usize].collect_gone().collect();
        for (at, reason, hop, packet) in gone {
            self.drop(at, hop, reason, packet);
        }
    }

    #[cold]
    fn drop(&mut self, at: Time, hop: u32, reason: Reason, packet: P) {
        let lane = LaneId(self.hops[hop as usize].0);
        let end = self.hops[hop as usize..].iter().find(|hop| hop.0 & TOP != 0);
        let to = EndpointId(end.expect("a route ends at an endpoint").0 & !TOP);
        self.drops.push(Drop { at, lane, reason, to, packet });
    }

    /// How many packets did not arrive so far.
    pub fn drops(&self) -> usize {
        self.drops.len()
    }

    /// How many packets are in queues and on wires.
    pub fn packets(&self) -> usize {
        self.lanes.iter().map(Lane::packets).sum()
    }

    /// The packets that did not arrive, in the order of events.
    pub fn take_drops(&mut self) -> Vec<Drop<P>> {
        for lane in 0..self.lanes.len() as u32 {
            self.collect_gone(lane);
        }
        std::mem::take(&mut self.drops)
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// A lane, to look at.
    pub fn lane(&mut self, lane: LaneId) -> &mut Lane<P> {
        &mut self.lanes[lane.0 as usize]
    }

    /// Packets that reached the end of a lane, counted once for each lane.
    pub fn packet_hops(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.counters().arrived_packets).sum()
    }
}
