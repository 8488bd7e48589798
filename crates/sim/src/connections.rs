//! Connections: two ends each, in a slab. Connections open and close during a run. The slot of a
//! closed connection is reused by the next one of the same flow.

use crate::application::Program;
use crate::observer::Network;
use crate::routers::Routers;
use crate::stack::{Stacks, marks, mss_limit};
use std::ops::Range;
use std::sync::Arc;
use tcplab_engine::{ConnectionTimer, EndpointId, Flow, LaneId, Random, RouteId, TimerId};
use tcplab_model::{Discipline, FlowPlan, PathMtu, Plan, StackPlan, TcpPlan};
use tcplab_tables::{Label, RoundTrips};
use tcplab_tcp::{BuildControl, Cookie, Endpoint, Identity, Segment, SenderCounters, TimeWait};
use tcplab_units::{Duration, Time};

/// Route endpoints from here on are routers, datagram flows, and remains of closed connections.
/// Lower numbers are ends of connections.
pub(crate) const ROUTERS: u32 = 1 << 28;
pub(crate) const DATAGRAMS: u32 = 2 << 28;
pub(crate) const LEFT: u32 = 3 << 28;

/// The flow of a route endpoint for datagrams.
pub(crate) fn flow_of(to: EndpointId) -> usize {
    (to.0 - DATAGRAMS) as usize
}

/// One end of a connection and its route onto the network.
#[derive(Clone)]
pub(crate) struct End {
    pub endpoint: Endpoint,
    pub route: RouteId,
    pub timer: ConnectionTimer,
    /// The node of the end's host.
    pub host: u32,
    /// When the connection opened or its last timer expired, by the count of `World::turns`.
    pub last: u32,
    pub program: Program,
    /// Whether the connection may end before the run does.
    pub is_passing: bool,
}

/// State that both ends of a connection share, and the current transfer.
#[derive(Clone)]
pub(crate) struct Pair {
    pub flow: usize,
    /// The number of the connection in its flow, from 0.
    pub number: u32,
    pub way: Way,
    /// The number of the current transfer in the flow, from 0, if one has begun and not ended.
    pub transfer: Option<u64>,
    /// When the transfer ended, if it has.
    pub ended: Option<Time>,
    /// The size of the transfer in bytes, and its start.
    pub size: u64,
    pub began: Time,
    /// The sender's counters at the start of the transfer.
    pub before: SenderCounters,
    /// The sender's RTTs since the start, up to the last mark.
    pub rtt: Option<RoundTrips>,
    /// The transfer's number, from 1, until a sample needs its label; then the label.
    pub name: Option<u64>,
    pub label: Option<Label>,
    /// The timers of the programs: of the one that sends the data, and of the other one.
    pub alarms: [Option<TimerId>; 2],
    /// Whether the program that opened the connection has finished.
    pub is_done: bool,
    /// In a closed loop: the user whose transfer the connection carries.
    pub user: usize,
    /// Whether the slot is free.
    pub is_free: bool,
    /// The index of the previous connection's remains on these routes, and of this connection's
    /// once it is over.
    left: Option<u32>,
}

/// A connection to be made.
pub(crate) struct Wanted {
    pub flow: usize,
    /// The number of the connection in its flow, from 0.
    pub number: u32,
    /// The programs of the end that sends the data and of the other one.
    pub programs: [Program; 2],
    /// Whether the end that receives the data opens the connection.
    pub asks: bool,
    /// Whether the connection may end before the run does.
    pub is_passing: bool,
    /// The slot of a closed connection, and the remains of one whose routes are free.
    pub place: Option<usize>,
    pub left: Option<u32>,
}

/// The remains of a closed connection: its routes, which a later connection of the flow reuses, and
/// enough of its ends to answer late segments.
#[derive(Clone)]
pub(crate) struct Left {
    pub way: Way,
    /// When the connection ended, or the last segment came for it since.
    pub touched: Time,
    /// The remains of one end: the one in TIME-WAIT, if any.
    end: TimeWait,
    /// Twice the flow's number, plus the side of that end.
    flow_and_side: u32,
    /// The number of the connection in its flow.
    number: u32,
    /// The remains of the other end, if that is in TIME-WAIT too.
    other: Option<Box<TimeWait>>,
}

impl Left {
    fn flow(&self) -> usize {
        self.flow_and_side as usize / 2
    }

    /// The answer to a segment that comes for one side, in whose stack TIME-WAIT has this duration.
    pub fn answer(
        &mut self,
        now: Time,
        (side, time_wait): (usize, Duration),
        segment: &Segment,
    ) -> Option<Segment> {
        self.touched = now;
        let mut closed = TimeWait::CLOSED;
        let end = match &mut self.other {
            _ if side == self.flow_and_side as usize % 2 => &mut self.end,
            Some(other) => other,
            None => &mut closed,
        };
        end.on_segment(now, segment, time_wait)
    }
}

#[cfg(test)]
#[test]
fn a_closed_connection_keeps_a_few_dozen_bytes() {
    // At 10,000 transfers a second, 600,000 are in TIME-WAIT for a minute: 48 MB, including their
    // routes.
    assert_eq!((size_of::<Left>(), size_of::<Way>()), (80, 24));
}

/// Both routes of a connection, and the routers on them.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The first route of each direction.
    pub routes: [RouteId; 2],
    /// The last route of each direction.
    pub last: [RouteId; 2],
    pub routers: Range<u32>,
}

impl Way {
    /// All routes of the connection's packets, each with the sending end: 0 sends the data.
    fn routes_by_side(&self, routers: &Routers) -> Vec<(usize, RouteId)> {
        let sides = self.routes.into_iter().enumerate();
        sides.chain(routers.ways_on(self.routers.clone())).collect()
    }
}

/// The flow by which lanes identify one direction of a connection. Its key is the seed of the
/// sender's congestion control, which is unique. Our part of the kernel uses the same key
/// (`tcplab_flow_of`).
pub(crate) fn flow_on_lanes(plan: &Plan, flow: usize, number: u32, sends: bool) -> Flow {
    let planned = &plan.flows[flow];
    let (_, seed) = Random::of_end(plan.seed, sends, &planned.name);
    let [from, to] = [planned.from as u32, planned.to as u32];
    let (from, to) = if sends { (from, to) } else { (to, from) };
    Flow { key: seed.wrapping_add(number.into()), from, to }
}

/// Ends of connections: the end of connection n that sends the data is 2n, the other one 2n + 1.
#[derive(Clone, Default)]
pub(crate) struct Connections {
    pub ends: Vec<End>,
    pub pairs: Vec<Pair>,
    pub left: Vec<Left>,
    stacks: Stacks,
    /// Whether any lane tells flows apart.
    pub tells_flows: bool,
}

impl Connections {
    /// No connections yet, on lanes of which some or none tell flows apart.
    pub fn new(tells_flows: bool) -> Self {
        Self { tells_flows, ..Self::default() }
    }

    /// Makes a new connection. One end listens, and the other one is closed.
    pub fn add(
        &mut self,
        plan: &Plan,
        wanted: Wanted,
        (network, routers): (&mut Network, &mut Routers),
    ) -> usize {
        let Wanted { flow, number, programs, asks, is_passing, place, left } = wanted;
        let pair = place.unwrap_or(self.pairs.len());
        let way = if let Some(left) = left {
            let way = self.left[left as usize].way.clone();
            for (side, &route) in way.last.iter().enumerate() {
                network.redirect(route, EndpointId((2 * pair + 1 - side) as u32));
            }
            routers.hand_over(way.routers.clone(), 2 * pair);
            way
        } else {
            way_of(plan, flow, pair, (network, routers))
        };
        if self.tells_flows {
            for (side, route) in way.routes_by_side(routers) {
                network.set_flow(route, flow_on_lanes(plan, flow, number, side == 0));
            }
        }
        let endpoints = self.endpoints(plan, (flow, number), asks);
        let hosts = [plan.flows[flow].from, plan.flows[flow].to];
        for ((side, endpoint), program) in endpoints.into_iter().enumerate().zip(programs) {
            let (route, end) = (way.routes[side], 2 * pair + side);
            let known = self.ends.get(end).map(|before| (before.timer, before.last));
            let (timer, last) = known.unwrap_or_else(|| (network.add_connection_timer(), 0));
            let host = hosts[side] as u32;
            let new = End { endpoint, route, timer, host, last, program, is_passing };
            if known.is_some() {
                self.ends[end] = new;
            } else {
                self.ends.push(new);
            }
        }
        let alarms = self.pairs.get(pair).map_or([None; 2], |before| before.alarms);
        let new = Pair {
            flow,
            number,
            way,
            transfer: None,
            ended: None,
            size: 0,
            began: Time::ZERO,
            before: SenderCounters::default(),
            rtt: None,
            name: None,
            label: None,
            alarms,
            is_done: false,
            user: 0,
            is_free: false,
            left,
        };
        if pair == self.pairs.len() {
            self.pairs.push(new);
        } else {
            self.pairs[pair] = new;
        }
        pair
    }

    /// Ends a connection. Late segments go to its remains, whose number this returns.
    pub fn leave(
        &mut self,
        now: Time,
        pair: usize,
        (network, routers): (&mut Network, &mut Routers),
    ) -> u32 {
        let Pair { flow, number: connection, way, left, .. } = &mut self.pairs[pair];
        let [near, far] = [0, 1].map(|side| self.ends[2 * pair + side].endpoint.remains());
        let side = near.is_closed();
        let (end, other) = if side { (far, near) } else { (near, far) };
        let number = *left.get_or_insert(self.left.len() as u32);
        for (side, &route) in way.last.iter().enumerate() {
            network.redirect(route, left_end(number, 1 - side));
        }
        routers.hand_over(way.routers.clone(), left_end(number, 0).0 as usize);
        let new = Left {
            way: way.clone(),
            touched: now,
            end,
            flow_and_side: 2 * *flow as u32 + u32::from(side),
            number: *connection,
            other: (!other.is_closed()).then(|| Box::new(other)),
        };
        match self.left.get_mut(number as usize) {
            Some(before) => *before = new,
            None => self.left.push(new),
        }
        number
    }

    /// The remains at this route endpoint, and the side of the connection.
    pub fn left_at(&mut self, to: EndpointId) -> (&mut Left, usize) {
        let number = to.0 - LEFT;
        (&mut self.left[number as usize / 2], number as usize % 2)
    }

    /// The flow of the remains at this route endpoint.
    pub fn flow_left_at(&self, to: EndpointId) -> usize {
        self.left[(to.0 - LEFT) as usize / 2].flow()
    }

    /// The connection and side of a packet addressed to this route endpoint.
    pub fn whose(&self, routers: &Routers, to: EndpointId) -> Whose {
        let side = to.0 as usize % 2;
        let (flow, number, side) = match to.0 {
            end if end < ROUTERS => {
                let pair = &self.pairs[end as usize / 2];
                (pair.flow, pair.number, side)
            }
            router if router < DATAGRAMS => {
                let sender = self.whose(routers, EndpointId(routers.end_of(to) as u32));
                // A data packet comes from the sender to the router; the router's message goes to
                // the sender.
                let is_said = side == 1;
                let side = if is_said { sender.side } else { 1 - sender.side };
                return Whose { side, router: is_said.then(|| routers.lane_of(to)), ..sender };
            }
            datagrams if datagrams < LEFT => (flow_of(to), 0, 1),
            _ => {
                let left = &self.left[(to.0 - LEFT) as usize / 2];
                (left.flow(), left.number, side)
            }
        };
        Whose { flow, number, side, router: None }
    }

    /// The congestion control of one side of a flow.
    pub fn control(&mut self, plan: &Plan, (flow, side): (usize, usize)) -> BuildControl {
        let planned = &plan.flows[flow];
        let (stack, lanes) = sides(planned)[side];
        let limit = mss_limit(plan, planned, stack, lanes);
        self.stacks.get(stack, limit, marks(&tcp(planned).stack)).1
    }

    /// Both ends of a connection, sender and receiver. One of them listens.
    fn endpoints(
        &mut self,
        plan: &Plan,
        (flow, number): (usize, u32),
        asks: bool,
    ) -> [Endpoint; 2] {
        let planned = &plan.flows[flow];
        let mut sends = true;
        let mut endpoints = sides(planned).map(|(stack, lanes)| {
            let (initial_sequence, seed) = Random::of_end(plan.seed, sends, &planned.name);
            sends = false;
            // Each further connection of a flow adds one to the seed.
            let seed = seed.wrapping_add(number.into());
            let identity = Identity { initial_sequence, seed };
            let limit = mss_limit(plan, planned, stack, lanes);
            let (settings, control) = self.stacks.get(stack, limit, marks(&tcp(planned).stack));
            let mut endpoint = Endpoint::new(settings, control, identity);
            if let Some(&first) = lanes.first().filter(|_| stack.tso)
                && plan.has_qdisc(plan.lanes[first].from)
            {
                let queue = &plan.lanes[first].queue.discipline;
                endpoint.enable_small_queue(matches!(queue, Discipline::Fq(_)));
            }
            endpoint
        });
        let server = usize::from(!asks);
        if tcp(planned).stacks()[server].fast_open {
            let nodes = if asks { (planned.to, planned.from) } else { (planned.from, planned.to) };
            // A function of the client's address and the server's key (RFC 7413 §4.1.2): the same
            // for all connections.
            let mut random = Random::new(plan.seed, &format!("cookie {} {}", nodes.0, nodes.1));
            endpoints[server].listen_fast(Cookie(random.bits()));
        } else {
            endpoints[server].listen();
        }
        endpoints
    }
}

/// The connection and side to which a packet belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose {
    pub flow: usize,
    /// The number of the connection in its flow.
    pub number: u32,
    /// The side to which the packet goes: 0 sends the data.
    pub side: usize,
    /// For a router's message: the lane for which a packet was too large.
    pub router: Option<LaneId>,
}

/// The route endpoint of one side of a connection's remains.
pub(crate) fn left_end(number: u32, side: usize) -> EndpointId {
    EndpointId(LEFT + 2 * number + side as u32)
}

/// The TCP settings of a flow with connections.
pub(crate) fn tcp(flow: &FlowPlan) -> &TcpPlan {
    flow.tcp().expect("flows of datagrams have no connections")
}

/// The stack and the lanes of the end that sends the data, and of the other one.
fn sides(flow: &FlowPlan) -> [(&Arc<StackPlan>, &[usize]); 2] {
    let [sender, receiver] = tcp(flow).stacks();
    [(sender, &flow.forward), (receiver, &flow.back)]
}

/// New routes for a connection.
fn way_of(
    plan: &Plan,
    flow: usize,
    pair: usize,
    (network, routers): (&mut Network, &mut Routers),
) -> Way {
    let planned = &plan.flows[flow];
    let first = routers.len() as u32;
    let mut ends = [2 * pair, 2 * pair + 1].into_iter();
    let ways = sides(planned).map(|(stack, lanes)| {
        let own = ends.next().unwrap_or(2 * pair);
        let peer = EndpointId(own as u32 ^ 1);
        match stack.path_mtu {
            PathMtu::Known => {
                let lanes: Vec<LaneId> = lanes.iter().map(|&lane| LaneId(lane as u32)).collect();
                let route = network.add_route(&lanes, peer);
                (route, route)
            }
            PathMtu::Discovered => routers.add_route(network, &plan.lanes, lanes, (own, peer)),
        }
    });
    Way {
        routes: ways.map(|(first, _)| first),
        last: ways.map(|(_, last)| last),
        routers: first..routers.len() as u32,
    }
}
