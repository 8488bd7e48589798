//! Hosts on a network, and the loop over what happens.

use crate::gates::Gates;
use crate::memory::Memories;
use crate::packet::OnWire;
use crate::recorder::{Dropped, Recorder, reason};
use crate::stack::{Stacks, marks};
use crate::traffic::{Flow, Source};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use tcplab_engine::{
    CoDelConfig, Discipline, EndpointId, Event, LaneConfig, LaneId, Loss, Network, Order,
    QueueLimit, Random, RedConfig, RouteId, TimerId,
};
use tcplab_model::memory::{DROP, Held, PACKET, ROW};
use tcplab_model::{
    Discipline as PlannedDiscipline, LanePlan, Loss as PlannedLoss, PathMtu, Plan,
    QueueLimit as PlannedLimit, Samples, StackPlan, Stopped, Watch,
};
use tcplab_tables::Tables;
use tcplab_tcp::{Cookie, Endpoint, Identity, Known, Segment, State, TICK};
use tcplab_units::{Duration, Time};

/// Events between two looks at the watch.
const EVENTS_UNWATCHED: u32 = 1 << 14;

/// Lanes whose packets are counted between two looks at the watch.
const LANES_COUNTED: usize = 256;

/// One end of a flow and its way onto the network.
struct End {
    endpoint: Endpoint,
    route: RouteId,
    timer: TimerId,
    /// When its connection opened or a timer of it ran out last, by the count of `World::turns`.
    last: u32,
}

/// What a timer belongs to; timers are numbered in this order.
enum Owner {
    End(usize),
    Flow(usize),
    Samples,
    Links,
}

pub(crate) struct World<'a> {
    plan: &'a Plan,
    network: Network<OnWire>,
    /// The sender of flow n is 2n, its receiver 2n + 1.
    ends: Vec<End>,
    flows: Vec<Flow>,
    /// What clients know of servers, by the nodes of both, if there is Fast Open.
    known: Option<BTreeMap<(usize, usize), Known>>,
    gates: Gates,
    /// If a host has a limit to it.
    memory: Option<Memories>,
    /// Ends that hold ACKs back, in the order in which they began to.
    holding: Vec<usize>,
    /// Ends that packets of this nanosecond came to, in that order, whose applications have not acted.
    woken: Vec<usize>,
    /// When a timer of the kernel ran out last.
    turned: Time,
    /// How many connections have opened and timers run out.
    turns: u32,
    sample_timer: TimerId,
    link_timer: TimerId,
    samples_every_ack: bool,
    recorder: Recorder,
    /// What the run held in memory when it was last counted.
    held: Held,
    /// Counts of it since packets were counted.
    counts: usize,
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let mut network = Network::new(plan.lanes.iter().map(lane), plan.seed);
        let mut stacks = Stacks::default();
        let mut ends = Vec::with_capacity(plan.flows.len() * 2);
        let mut gates = Gates::new(plan.flows.len() * 2);
        for number in 0..plan.flows.len() {
            ends.extend(ends_of(plan, number, &mut stacks, (&mut network, &mut gates)));
        }
        let flows = plan.flows.iter().map(|flow| {
            let mut random = Random::new(plan.seed, &format!("start {}", flow.name));
            let jitter = random.up_to(flow.start_jitter.as_picos());
            Flow {
                source: Source::new(&flow.traffic),
                start: Time::ZERO + flow.start + Duration::from_picos(jitter),
                has_started: false,
                timer: network.add_timer(),
                received: 0,
                last_arrival: Time::ZERO,
            }
        });
        let flows: Vec<Flow> = flows.collect();
        for flow in &flows {
            network.set_timer(flow.timer, flow.start, Order::Last);
        }
        let (sample_timer, link_timer) = (network.add_timer(), network.add_timer());
        Self {
            plan,
            network,
            ends,
            flows,
            known: plan.flows.iter().any(|flow| flow.stack.fast_open).then(BTreeMap::new),
            gates,
            memory: Memories::new(plan),
            holding: Vec::new(),
            woken: Vec::new(),
            turned: Time::NEVER,
            turns: 0,
            sample_timer,
            link_timer,
            samples_every_ack: plan.record.samples == Samples::Ack,
            recorder: Recorder::new(plan),
            held: crate::least_memory(plan),
            counts: 0,
        }
    }

    pub fn run(mut self, watch: &Watch) -> Result<Tables, Stopped> {
        self.arm(self.sample_timer, self.recorder.sample_interval);
        self.arm(self.link_timer, self.recorder.link_interval);
        self.pass_time(watch)?;
        let now = self.network.now();
        let states = (0..self.plan.lanes.len() as u32).map(LaneId);
        let states: Vec<_> = states.map(|lane| self.network.lane(lane).state(now)).collect();
        let drops = self.network.take_drops().into_iter().map(|drop| Dropped {
            at: drop.at,
            lane: drop.lane,
            end: self.gates.end_behind(drop.to),
            packet: drop.packet,
            reason: reason(drop.reason),
        });
        let drops = drops.chain(self.gates.dropped.iter().copied()).collect();
        let ends = self.ends.iter().step_by(2).map(|end| &end.endpoint);
        let flows = self.flows.iter().zip(ends);
        Ok(self.recorder.finish(self.plan, flows, states.into_iter(), drops))
    }

    /// All that happens.
    #[inline(never)]
    fn pass_time(&mut self, watch: &Watch) -> Result<(), Stopped> {
        let end = Time::ZERO + self.plan.duration;
        let mut events = 0;
        // By reference: a packet need not be moved to be read.
        while let Some(event) = &self.next(end) {
            match event {
                Event::Delivered { to, packet } => {
                    if (to.0 as usize) < self.ends.len() {
                        self.deliver(to.0 as usize, &packet.0);
                    } else {
                        self.meet_gate(*to, *packet);
                    }
                }
                Event::Timer(timer) => self.on_timer(*timer),
            }
            events += 1;
            if events == EVENTS_UNWATCHED {
                events = 0;
                watch.reach(self.network.now())?;
                watch.hold(self.count_held())?;
            }
        }
        watch.reach(end)?;
        watch.hold(self.count_held())
    }

    /// The next event. Applications act when all packets of a nanosecond have been received.
    #[expect(clippy::inline_always, reason = "every event passes here")]
    #[inline(always)]
    fn next(&mut self, end: Time) -> Option<Event<OnWire>> {
        if !self.woken.is_empty() {
            if let Some(event) = self.network.next_now() {
                return Some(event);
            }
            self.wake();
        }
        self.network.next(end)
    }

    /// The application of this end acts when all packets of the nanosecond have been received.
    #[cold]
    fn put_off(&mut self, end: usize) {
        if !self.woken.contains(&end) {
            self.woken.push(end);
        }
        if self.memory.is_some() {
            self.count_memory(end);
        }
    }

    #[cold]
    fn wake(&mut self) {
        for end in std::mem::take(&mut self.woken) {
            self.act(end);
        }
    }

    /// What the run holds in memory.
    #[cold]
    fn count_held(&mut self) -> Held {
        self.held.samples = self.recorder.samples() as u64 * ROW;
        self.held.links = self.recorder.links() as u64 * ROW;
        self.held.drops = (self.network.drops() + self.gates.dropped.len()) as u64 * DROP;
        // To look at many lanes takes as long as what happens in between.
        self.counts += 1;
        if self.counts > self.plan.lanes.len() / LANES_COUNTED {
            self.counts = 0;
            self.held.packets = self.network.packets() as u64 * PACKET;
        }
        self.held
    }

    /// A packet came to a router that looks at its size, or its sender hears that it was too large.
    #[cold]
    fn meet_gate(&mut self, to: EndpointId, packet: OnWire) {
        let Some(end) = self.gates.meet(&mut self.network, to, packet) else { return };
        if let Some(mtu) = self.ends[end].endpoint.on_too_large(self.network.now(), &packet.0) {
            self.gates.learn(nodes(self.plan, end), mtu);
            self.serve(end);
        }
    }

    #[inline]
    fn deliver(&mut self, end: usize, segment: &Segment) {
        self.tell_memory(end);
        self.turn_wheel(end);
        let endpoint = &mut self.ends[end].endpoint;
        // What answers the handshake says nothing of data, and what comes when both sides have closed
        // (a FIN again) finds no connection.
        let has_sent = endpoint.counters().sent_segments > 0
            && !matches!(endpoint.state(), State::TimeWait | State::Closed);
        endpoint.on_segment(self.network.now(), segment);
        if self.known.is_some() {
            self.learn(end);
        }
        // A kernel is done with an ACK when it has sent what that lets go, before its application has more
        // to send.
        let is_sampled = self.samples_every_ack && has_sent && end.is_multiple_of(2);
        let is_answered = is_sampled && self.answer(end);
        if is_answered {
            self.sample(end / 2);
        }
        // A kernel receives all packets of a nanosecond before any application runs.
        let others_wait = !self.woken.is_empty() || self.network.may_have_more_now();
        if others_wait && self.answer(end) {
            self.put_off(end);
            return;
        }
        self.serve(end);
        if is_sampled && !is_answered {
            self.sample(end / 2);
        }
    }

    /// Tells an end if a timer of the kernel, which all hosts share, has run out in this tick.
    #[inline]
    fn turn_wheel(&mut self, end: usize) {
        let now = self.network.now();
        if self.turned <= now && now.since(self.turned) < TICK {
            self.ends[end].endpoint.turn_wheel(self.turned);
        }
    }

    /// Sends what leaves before the application hears of an event, if it does.
    #[inline]
    fn answer(&mut self, end: usize) -> bool {
        let now = self.network.now();
        let End { endpoint, route, .. } = &mut self.ends[end];
        let answers = endpoint.answers_first();
        if answers {
            send_all(now, endpoint, (&mut self.network, *route));
        }
        answers
    }

    /// A client may have learned what makes its next connection to this server faster.
    #[inline(never)]
    fn learn(&mut self, end: usize) {
        if let Some(known) = &mut self.known
            && let Some(learned) = self.ends[end].endpoint.take_learned()
        {
            let flow = &self.plan.flows[end / 2];
            known.insert((flow.from, flow.to), learned);
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, timer: TimerId) {
        let now = self.network.now();
        match self.owner(timer) {
            Owner::End(end) => match self.network.also_due(self.ends.len()) {
                None => self.on_end_timer(end),
                Some(other) => self.on_end_timers(vec![end, other.index()]),
            },
            Owner::Flow(number) => {
                let opens = !std::mem::replace(&mut self.flows[number].has_started, true);
                if opens {
                    self.open(number);
                }
                let flow = &mut self.flows[number];
                let next = flow.source.switch(now, flow.start);
                if flow.source.is_on() && !opens {
                    self.ends[2 * number].endpoint.try_to_write();
                }
                self.network.set_timer(flow.timer, next, Order::Last);
                self.tell_memory(2 * number);
                if opens {
                    self.serve(2 * number);
                } else {
                    self.act(2 * number);
                }
            }
            Owner::Samples => {
                for number in 0..self.flows.len() {
                    let state = self.ends[2 * number].endpoint.state();
                    // As on `linux`, what connects has nothing to show yet.
                    let is_open = !matches!(
                        state,
                        State::SynSent | State::SynReceived | State::Closed | State::TimeWait
                    );
                    if self.flows[number].has_started && is_open {
                        self.sample(number);
                    }
                }
                self.arm(timer, self.recorder.sample_interval);
            }
            Owner::Links => {
                self.recorder.sample_links(now, &mut self.network);
                self.arm(timer, self.recorder.link_interval);
            }
        }
    }

    /// A timer of an end runs out.
    fn on_end_timer(&mut self, end: usize) {
        let now = self.network.now();
        self.tell_memory(end);
        self.turn_wheel(end);
        self.turns = self.turns.wrapping_add(1);
        let End { endpoint, last, .. } = &mut self.ends[end];
        *last = self.turns;
        let lets_go = !self.holding.is_empty() && endpoint.is_soft_due(now);
        if endpoint.on_timer(now) {
            self.turned = now;
        }
        self.serve(end);
        if lets_go {
            self.let_go(now);
        }
    }

    /// Timers of several ends run out in the same tick, in the order of the kernel's wheel. What was put
    /// there in the same nanosecond was put there in the order of `End::last`. The high-resolution timers
    /// that let ACKs go run out in the order in which they were set.
    #[cold]
    fn on_end_timers(&mut self, mut due: Vec<usize>) {
        while let Some(timer) = self.network.also_due(self.ends.len()) {
            due.push(timer.index());
        }
        let now = self.network.now();
        due.sort_by_key(|&end| {
            let End { endpoint, last, .. } = &self.ends[end];
            let turn = endpoint.turn_at(now);
            let held = self.holding.iter().position(|&holds| holds == end);
            let held = held.filter(|_| turn.is_none()).unwrap_or(usize::MAX);
            (turn.is_none(), turn, held, Reverse(*last), Reverse(end))
        });
        for end in due {
            self.on_end_timer(end);
        }
    }

    /// ACKs that are held back, and have been for long enough, leave.
    #[cold]
    fn let_go(&mut self, now: Time) {
        let holding = std::mem::take(&mut self.holding);
        let (mut ready, others): (Vec<_>, Vec<_>) = holding
            .into_iter()
            .filter_map(|end| Some((self.ends[end].endpoint.held_from()?, end)))
            .partition(|&(from, _)| from <= now);
        self.holding = others.into_iter().map(|(_, end)| end).collect();
        // Of equal times, in the order in which the timers were set.
        ready.sort_by_key(|&(from, _)| from);
        for (_, end) in ready {
            self.ends[end].endpoint.let_go();
            self.serve(end);
        }
    }

    /// The sender of a flow connects.
    #[cold]
    fn open(&mut self, number: usize) {
        self.turns = self.turns.wrapping_add(1);
        let End { endpoint, last, .. } = &mut self.ends[2 * number];
        *last = self.turns;
        let flow = &self.plan.flows[number];
        if let Some(mtu) = self.gates.known((flow.from, flow.to))
            && flow.stack.path_mtu == PathMtu::Discovered
        {
            endpoint.know_mtu(mtu);
        }
        match &self.known {
            Some(known) if flow.stack.fast_open => {
                endpoint.connect_fast(known.get(&(flow.from, flow.to)).copied());
            }
            _ => endpoint.connect(),
        }
    }

    /// Something has happened at an end: sends what that lets go, and then lets the application act.
    #[inline]
    fn serve(&mut self, end: usize) {
        self.answer(end);
        self.act(end);
    }

    /// Lets the application act, sends what may leave for that, and notes when to come back.
    #[inline]
    fn act(&mut self, end: usize) {
        let now = self.network.now();
        let flow = &mut self.flows[end / 2];
        let End { endpoint, route, timer, .. } = &mut self.ends[end];
        if end.is_multiple_of(2) {
            // Ends that do not answer first send all at once.
            let mut is_owed = !endpoint.answers_first();
            loop {
                let has_acted = flow.has_started && flow.source.write(endpoint);
                if has_acted || is_owed {
                    send_all(now, endpoint, (&mut self.network, *route));
                }
                is_owed = false;
                // What was sent may have made room for more.
                if !has_acted {
                    break;
                }
            }
        } else {
            let bytes = endpoint.read(now, u64::MAX);
            if bytes > 0 {
                flow.received += bytes;
                flow.last_arrival = now;
            }
            if endpoint.state() == State::CloseWait {
                // To have read may have been worth an ACK.
                send_all(now, endpoint, (&mut self.network, *route));
                endpoint.close();
            }
            send_all(now, endpoint, (&mut self.network, *route));
        }
        self.network.set_timer(*timer, endpoint.next_timer(), Order::BeforePackets);
        if endpoint.held_from().is_some() {
            if !self.holding.contains(&end) {
                self.holding.push(end);
            }
        } else if !self.holding.is_empty() {
            self.holding.retain(|&holds| holds != end);
        }
        if self.memory.is_some() {
            self.count_memory(end);
        }
    }

    /// Something is to happen at this end of a flow, and memory may be short.
    #[expect(clippy::inline_always, reason = "for most experiments it is a look at a field")]
    #[inline(always)]
    fn tell_memory(&mut self, end: usize) {
        if self.memory.is_some() {
            self.share_memory(end);
        }
    }

    #[cold]
    fn share_memory(&mut self, end: usize) {
        let Some(memory) = &self.memory else { return };
        let (node, _) = nodes(self.plan, end);
        memory.tell(node, end, &mut self.ends[end].endpoint);
    }

    /// It has happened, and others may have more memory now.
    #[cold]
    fn count_memory(&mut self, end: usize) {
        let ((node, _), now) = (nodes(self.plan, end), self.network.now());
        let Some(memory) = &mut self.memory else { return };
        let End { endpoint, timer, .. } = &mut self.ends[end];
        for timer in memory.count(node, (end, *timer), endpoint) {
            self.network.set_timer(timer, now, Order::BeforePackets);
        }
    }

    fn sample(&mut self, flow: usize) {
        self.recorder.sample_flow(self.network.now(), flow, &self.ends[2 * flow].endpoint);
    }

    /// The n-th sample is due at n intervals exactly.
    fn arm(&mut self, timer: TimerId, interval: Option<Duration>) {
        if let Some(interval) = interval {
            let passed = self.network.now().as_picos() / interval.as_picos();
            let next = Time::ZERO + interval.saturating_mul(passed + 1);
            self.network.set_timer(timer, next, Order::BeforePackets);
        }
    }

    fn owner(&self, timer: TimerId) -> Owner {
        let (number, ends) = (timer.index(), self.ends.len());
        if number < ends {
            Owner::End(number)
        } else if number < ends + self.flows.len() {
            Owner::Flow(number - ends)
        } else if timer == self.sample_timer {
            Owner::Samples
        } else {
            Owner::Links
        }
    }
}

/// Sends what may leave now.
fn send_all(now: Time, endpoint: &mut Endpoint, (network, route): (&mut Network<OnWire>, RouteId)) {
    while let Some(segment) = endpoint.poll_transmit(now) {
        network.send(route, OnWire(segment));
    }
}

/// The nodes of an end of a flow and of its peer.
fn nodes(plan: &Plan, end: usize) -> (usize, usize) {
    let flow = &plan.flows[end / 2];
    if end.is_multiple_of(2) { (flow.from, flow.to) } else { (flow.to, flow.from) }
}

/// Both ends of a flow: the sender, which connects, and the receiver, which listens.
fn ends_of(
    plan: &Plan,
    number: usize,
    stacks: &mut Stacks,
    (network, gates): (&mut Network<OnWire>, &mut Gates),
) -> [End; 2] {
    let (flow, seed) = (&plan.flows[number], plan.seed);
    let mut end = |stack: &Arc<StackPlan>, lanes: &[usize], side: Side| {
        let is_sender = matches!(side, Side::Sender);
        let (initial_sequence, seed) = Random::of_end(seed, is_sender, &flow.name);
        let identity = Identity { initial_sequence, seed };
        let peer = EndpointId((2 * number) as u32 + side.peer());
        let own = (peer.0 ^ 1) as usize;
        let (limit, route) = match stack.path_mtu {
            PathMtu::Known => {
                let lanes: Vec<LaneId> = lanes.iter().map(|&lane| LaneId(lane as u32)).collect();
                (flow.mss_limit, network.add_route(&lanes, peer))
            }
            PathMtu::Discovered => {
                let first = lanes.first().map_or(flow.mss_limit, |&lane| plan.lanes[lane].mtu - 40);
                (first, gates.add_route(network, &plan.lanes, lanes, (own, peer)))
            }
        };
        let (settings, control) = stacks.get(stack, limit, marks(&flow.stack));
        End {
            endpoint: Endpoint::new(settings, control, identity),
            route,
            timer: network.add_timer(),
            last: 0,
        }
    };
    let sender = end(&flow.stack, &flow.forward, Side::Sender);
    let mut receiver = end(&flow.peer_stack, &flow.back, Side::Receiver);
    if flow.peer_stack.fast_open {
        // Of the client's address and the server's key (RFC 7413 §4.1.2): the same for all connections.
        let mut random = Random::new(seed, &format!("cookie {} {}", flow.from, flow.to));
        receiver.endpoint.listen_fast(Cookie(random.bits()));
    } else {
        receiver.endpoint.listen();
    }
    [sender, receiver]
}

#[derive(Clone, Copy)]
enum Side {
    Sender,
    Receiver,
}

impl Side {
    /// The place of the other end among the two of its flow.
    fn peer(self) -> u32 {
        match self {
            Self::Sender => 1,
            Self::Receiver => 0,
        }
    }
}

fn lane(lane: &LanePlan) -> LaneConfig {
    LaneConfig {
        name: lane.name.clone(),
        rate: lane.rate,
        delay: lane.delay,
        jitter: lane.jitter,
        queue: match lane.queue.limit {
            // Like its thresholds, RED's limit counts bytes.
            limit if matches!(lane.queue.discipline, PlannedDiscipline::Red { .. }) => {
                QueueLimit::Bytes(in_bytes(limit, lane))
            }
            PlannedLimit::Packets(packets) => QueueLimit::Packets(packets),
            PlannedLimit::Bytes(bytes) => QueueLimit::Bytes(bytes),
        },
        discipline: discipline(lane),
        loss: lane.loss.as_ref().map(|loss| match loss {
            PlannedLoss::Independent(loss) => Loss::Independent { probability: loss.probability.0 },
            PlannedLoss::Listed(loss) => Loss::Listed { packets: loss.packets.clone() },
            _ => unreachable!("a plan with other losses is refused"),
        }),
    }
}

fn discipline(lane: &LanePlan) -> Option<Discipline> {
    Some(match lane.queue.discipline {
        PlannedDiscipline::DropTail => return None,
        PlannedDiscipline::Red { min, max, probability, weight, gentle, ecn } => {
            let packet_time = lane.rate.time_for(lane.mtu);
            let (min, max) = (in_bytes(min, lane), in_bytes(max, lane));
            let config = RedConfig { min, max, probability, weight, gentle, packet_time };
            Discipline::Red { config, ecn }
        }
        PlannedDiscipline::CoDel { target, interval, ecn } => {
            Discipline::CoDel(CoDelConfig { target, interval, mtu: lane.mtu, ecn })
        }
        _ => unreachable!("a plan with another discipline is refused"),
    })
}

/// A packet counts as one of full size.
fn in_bytes(limit: PlannedLimit, lane: &LanePlan) -> u64 {
    match limit {
        PlannedLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        PlannedLimit::Bytes(bytes) => bytes,
    }
}
