//! Hosts on a network, and the loop over what happens.

mod change;
mod hosts;
mod timers;

use crate::adapt::{lanes, queues};
use crate::application::{Program, Step};
use crate::connections::{Connections, DATAGRAMS, End, Pair, ROUTERS, flow_of, flow_on_lanes, tcp};
use crate::cpu::Cpus;
use crate::flow::Flow;
use crate::gro::Devices;
use crate::memory::Memories;
use crate::observer::{Network, Watcher};
use crate::packet::Packet;
use crate::recorder::{Recorder, Show};
use crate::routers::Routers;
use crate::udp::Reassembly;
use std::collections::{BTreeMap, BTreeSet};
use tcplab_engine::{Departure, EndpointId, Event, LaneId, Order, RouteId, TimerId};
use tcplab_model::memory::{CAPTURED, DROP, Held, PACKET, ROW};
use tcplab_model::{FlowPlan, PathMtu, Plan, Samples, StackPlan, Stopped, Watch};
use tcplab_tables::Produced;
use tcplab_tcp::{Endpoint, Known, Segment, State, TICK};
use tcplab_units::{Duration, Time};

/// Events between two looks at the watch.
const EVENTS_UNWATCHED: u32 = 1 << 14;

/// So much that has happened to packets is kept before it is written down.
const PENDING: usize = 1 << 12;

/// Lanes whose packets are counted between two looks at the watch.
const LANES_COUNTED: usize = 256;

/// What a timer belongs to that is not a connection's.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    /// The program of a flow.
    Flow(usize),
    /// The program at one end of a connection.
    Program(usize),
    /// A user of a flow that is a closed loop.
    User {
        flow: usize,
        user: usize,
    },
    /// The processor of a node.
    Cpu(usize),
    /// The device at the end of a lane.
    Device(usize),
    Samples,
    Links,
    Marks,
}

#[derive(Clone)]
pub(crate) struct World<'a> {
    pub plan: &'a Plan,
    /// The same as it is now: after its change, once that has come.
    pub present: &'a Plan,
    pub network: Network,
    pub connections: Connections,
    pub flows: Vec<Flow<'a>>,
    /// By the number of the timer.
    owners: Vec<Owner>,
    /// What clients know of servers, by the nodes of both, if there is Fast Open.
    known: Option<BTreeMap<(usize, usize), Known>>,
    pub routers: Routers,
    /// By node: datagrams that have arrived there in part.
    pub reassemblies: BTreeMap<usize, Reassembly>,
    /// If a host has a limit to it.
    memory: Option<Memories>,
    /// If a host takes time.
    pub cpus: Option<Cpus>,
    /// If a host has receive offload.
    pub devices: Option<Devices>,
    /// A poll goes on: more may be received.
    is_polling: bool,
    /// Ends that hold ACKs back, in the order in which they began to.
    holding: Vec<usize>,
    /// By end, once one paces: when its pacing timer runs out.
    paced: Vec<Time>,
    /// Ends that packets of this nanosecond came to, in that order, whose applications have not acted.
    woken: Vec<usize>,
    /// Senders that packets had to leave for, which have left.
    resuming: Vec<usize>,
    /// When a timer of each of the kernel's wheels ran out last.
    turned: [Time; 2],
    /// How many connections have opened and timers run out.
    turns: u32,
    sample_timer: TimerId,
    link_timer: TimerId,
    samples_every_ack: bool,
    pub recorder: Recorder<'a>,
    /// What the run held in memory when it was last counted.
    held: Held,
    /// Memory of the state that other runs go on from.
    beside: Held,
    /// Counts of it since packets were counted.
    counts: usize,
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan, show: Show<'a>) -> Self {
        let watched = [&plan.record.packets, &plan.record.captures];
        let watched: BTreeSet<usize> = watched.into_iter().flatten().copied().collect();
        let lanes = (0..plan.lanes.len())
            .map(|number| lanes::config(plan, number, watched.contains(&number)));
        let mut network = Network::observed(lanes, plan.seed, Watcher::new(plan));
        let mut owners = Vec::new();
        let mut add_timer = |network: &mut Network, owner| {
            owners.push(owner);
            network.add_timer()
        };
        let flows = (0..plan.flows.len())
            .map(|number| Flow::new(plan, number, add_timer(&mut network, Owner::Flow(number))));
        let flows: Vec<Flow<'a>> = flows.collect();
        let sample_timer = add_timer(&mut network, Owner::Samples);
        let link_timer = add_timer(&mut network, Owner::Links);
        let cpus = Cpus::new(plan, |node| add_timer(&mut network, Owner::Cpu(node)));
        let devices = Devices::new(plan, |lane| add_timer(&mut network, Owner::Device(lane)));
        let mut world = Self {
            plan,
            present: plan,
            network,
            connections: Connections::new(
                plan.change.is_some() || plan.lanes.iter().any(queues::tells_flows),
            ),
            flows,
            owners,
            known: has_fast_open(plan).then(BTreeMap::new),
            routers: Routers::default(),
            reassemblies: BTreeMap::new(),
            memory: Memories::new(plan),
            cpus,
            devices,
            is_polling: false,
            holding: Vec::new(),
            paced: Vec::new(),
            woken: Vec::new(),
            resuming: Vec::new(),
            turned: [Time::NEVER; 2],
            turns: 0,
            sample_timer,
            link_timer,
            samples_every_ack: plan.record.samples == Samples::Ack,
            recorder: Recorder::new(plan, show),
            held: crate::least_memory(plan),
            beside: Held::default(),
            counts: 0,
        };
        if world.recorder.next_mark().is_some() {
            let timer = world.add_timer(Owner::Marks);
            world.arm_marks(timer);
        }
        for number in 0..world.flows.len() {
            world.prepare(number);
            let flow = &world.flows[number];
            world.network.set_timer(flow.timer, flow.start, Order::Last);
        }
        world
    }

    /// Samples are taken from now on.
    pub fn begin(&mut self) {
        self.arm(self.sample_timer, self.recorder.sample_interval);
        self.arm(self.link_timer, self.recorder.link_interval);
    }

    pub fn run(mut self, watch: &Watch) -> Result<Produced, Stopped> {
        self.begin();
        self.go_on(watch)
    }

    /// Runs the rest.
    pub fn go_on(mut self, watch: &Watch) -> Result<Produced, Stopped> {
        let end = Time::ZERO + self.plan.duration;
        self.pass_time::<false>(end, watch)?;
        self.end_flows();
        let states = (0..self.plan.lanes.len() as u32).map(LaneId);
        let states: Vec<_> = states.map(|lane| self.network.state(lane)).collect();
        let end = self.network.now();
        self.write_down(|at| at <= end);
        Ok(self.recorder.finish(states.into_iter()))
    }

    /// All that happens until then; `BEFORE`: but for what happens in that nanosecond.
    #[inline(never)]
    pub fn pass_time<const BEFORE: bool>(
        &mut self,
        end: Time,
        watch: &Watch,
    ) -> Result<(), Stopped> {
        let mut events = 0;
        let holds = self.cpus.is_some() || self.devices.is_some();
        // By reference: a packet need not be moved to be read.
        while let Some(event) = &self.next::<BEFORE>(end) {
            if holds && self.is_put_off(event) {
                // The host gets the packet with others, or has time for it later.
            } else if let Event::Delivered { to, packet: Packet::Tcp(segment) } = event
                && to.0 < ROUTERS
            {
                self.deliver(to.0 as usize, segment);
            } else {
                match event {
                    Event::Delivered { to, packet } => self.deliver_other(*to, *packet),
                    Event::Left { to, packet } => self.on_left(*to, *packet),
                    Event::Connection(timer) => self.on_connection_timer(*timer),
                    Event::Timer(timer) => self.on_timer(*timer),
                }
            }
            events += 1;
            if events == EVENTS_UNWATCHED {
                events = 0;
                watch.reach(self.network.now())?;
                let (drops, packets) = self.network.observer().pending();
                if drops + packets >= PENDING {
                    let now = self.network.now();
                    self.write_down(|at| at < now);
                }
                watch.hold(self.count_held())?;
            }
        }
        watch.reach(end)?;
        watch.hold(self.count_held())
    }

    /// Writes down what happened to packets at times that are over.
    #[cold]
    fn write_down(&mut self, is_over: impl Fn(Time) -> bool) {
        self.network.settle();
        let drops = self.network.observer().take_drops(&is_over);
        let seen = self.network.observer().take_seen(is_over);
        let whose = |to| self.connections.whose(&self.routers, to);
        self.recorder.add_drops(drops, whose);
        self.recorder.add_packets(seen, whose);
    }

    /// Another connection may take the place of one that is over: packets of that one are written down before,
    /// if it matters whose they are.
    #[cold]
    pub fn write_down_before_reuse(&mut self) {
        if self.recorder.captures() {
            let now = self.network.now();
            self.write_down(|at| at <= now);
        }
    }

    /// The next event. Applications act when all packets of a nanosecond have been received.
    #[expect(clippy::inline_always, reason = "every event passes here")]
    #[inline(always)]
    fn next<const BEFORE: bool>(&mut self, end: Time) -> Option<Event<Packet>> {
        if !self.woken.is_empty() {
            if let Some(event) = self.network.next_now() {
                return Some(event);
            }
            self.wake();
        }
        if BEFORE { self.network.next_before(end) } else { self.network.next(end) }
    }

    /// The application of this end acts when all packets of the nanosecond have been received.
    #[cold]
    fn put_off(&mut self, end: usize) {
        self.note_pacing(end);
        if !self.woken.contains(&end) {
            self.woken.push(end);
        }
        if self.memory.is_some() {
            self.count_memory(end);
        }
    }

    #[cold]
    fn wake(&mut self) {
        // The last one that a packet has left for goes first (`tcp_wfree`).
        for end in std::mem::take(&mut self.resuming).into_iter().rev() {
            self.connections.ends[end].endpoint.resume();
            self.answer(end);
        }
        for end in std::mem::take(&mut self.woken) {
            self.act(end);
        }
    }

    /// What the run holds in memory.
    #[cold]
    fn count_held(&mut self) -> Held {
        let tables = self.recorder.tables();
        self.held.samples = tables.samples.in_memory() as u64 * ROW;
        self.held.links = tables.links.in_memory() as u64 * ROW;
        self.held.intervals = tables.intervals.in_memory() as u64 * ROW;
        let (drops, packets) = self.network.observer().pending();
        self.held.drops = (tables.drops.in_memory() + drops) as u64 * DROP;
        self.held.points = (tables.packets.in_memory() + packets) as u64 * ROW;
        self.held.captures = self.recorder.captured_packets() as u64 * CAPTURED;
        self.held.flows = self.held_by_flows();
        // To look at many lanes takes as long as what happens in between.
        self.counts += 1;
        if self.counts > self.plan.lanes.len() / LANES_COUNTED {
            self.counts = 0;
            let waiting = self.cpus.as_ref().map_or(0, Cpus::packets)
                + self.devices.as_ref().map_or(0, Devices::packets);
            self.held.packets = (self.network.packets() + waiting) as u64 * PACKET;
        }
        self.held + self.beside
    }

    /// A packet comes that is not for a connection: to a router that looks at its size, from such a
    /// router, to a flow of datagrams, or to what is left of a connection that is over.
    #[cold]
    fn deliver_other(&mut self, to: EndpointId, packet: Packet) {
        match packet {
            Packet::Udp(fragment) => self.take_datagram(flow_of(to), &fragment),
            Packet::Icmp(message) => {
                let end = self.routers.end_of(to);
                if end >= ROUTERS as usize {
                    return;
                }
                let endpoint = &mut self.connections.ends[end].endpoint;
                if let Some(mtu) = endpoint.on_too_large(self.network.now(), &message) {
                    self.routers.learn(self.nodes(end), mtu);
                    self.tell_others(end);
                    self.serve(end);
                }
            }
            Packet::Tcp(_) if to.0 < DATAGRAMS => {
                self.routers.meet(&mut self.network, to, packet);
            }
            Packet::Tcp(segment) => self.answer_late(to, &segment),
        }
    }

    /// A segment comes for a connection that is over.
    #[cold]
    fn answer_late(&mut self, to: EndpointId, segment: &Segment) {
        let now = self.network.now();
        let host = self.host_of(to);
        let flow = &self.plan.flows[self.connections.flow_left_at(to)];
        let (left, side) = self.connections.left_at(to);
        let stack = tcp(flow).stacks()[side];
        if let Some(answer) = left.answer(now, (side, stack.time_wait), segment) {
            let onto = &mut (&mut self.network, &mut self.cpus);
            send(onto, (host, left.way.routes[side]), Packet::Tcp(answer));
        }
    }

    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn deliver(&mut self, end: usize, segment: &Segment) {
        self.tell_memory(end);
        let now = self.network.now();
        let endpoint = &mut self.connections.ends[end].endpoint;
        turn_wheel(now, self.turned, endpoint);
        // What answers the handshake says nothing of data, and what comes when both sides have closed
        // (a FIN again) finds no connection.
        let is_sampled = self.samples_every_ack
            && end.is_multiple_of(2)
            && endpoint.counters().sent_segments > 0
            && !matches!(endpoint.state(), State::TimeWait | State::Closed);
        endpoint.on_segment(now, segment);
        let answers_first = endpoint.answers_first();
        if self.known.is_some() {
            self.learn(end);
        }
        // A kernel is done with an ACK when it has sent what that lets go, before its application has more
        // to send.
        let is_answered = is_sampled && self.answer(end);
        if is_answered {
            self.sample(end / 2);
        }
        // A kernel receives all packets of a nanosecond before any application runs.
        let may_have_more =
            || self.is_polling || !self.woken.is_empty() || self.network.may_have_more_now();
        if answers_first && may_have_more() {
            self.answer(end);
            self.put_off(end);
            return;
        }
        self.serve(end);
        if is_sampled && !is_answered {
            self.sample(end / 2);
        }
    }

    /// Sends what leaves before the application hears of an event, if it does.
    #[inline]
    fn answer(&mut self, end: usize) -> bool {
        let now = self.network.now();
        let End { endpoint, route, host, .. } = &mut self.connections.ends[end];
        endpoint.refresh_route(now);
        let answers = endpoint.answers_first();
        let onto = &mut (&mut self.network, &mut self.cpus);
        if answers {
            send_all(now, endpoint, onto, (*host, *route));
        }
        answers
    }

    /// Remembers when the pacing timer of an end runs out that has just sent.
    #[inline]
    fn note_pacing(&mut self, end: usize) {
        let until = self.connections.ends[end].endpoint.paced_until();
        if until != Time::NEVER || !self.paced.is_empty() {
            self.set_pacing(end, until);
        }
    }

    #[cold]
    fn set_pacing(&mut self, end: usize, until: Time) {
        if self.paced.len() <= end {
            self.paced.resize(self.connections.ends.len(), Time::NEVER);
        }
        self.paced[end] = until;
    }

    /// A router told this end what its other connections to the same host do not know.
    #[cold]
    fn tell_others(&mut self, end: usize) {
        let between = self.nodes(end);
        let others = (0..self.connections.ends.len()).filter(|&other| other != end);
        let others: Vec<_> = others.filter(|&other| self.nodes(other) == between).collect();
        for other in others {
            if let Some(mtu) = self.known_mtu(other) {
                self.connections.ends[other].endpoint.hear_mtu(mtu);
            }
        }
    }

    /// Tells this end how large packets may be, if its host has heard it and asks.
    fn know_mtu(&mut self, end: usize) {
        if let Some(mtu) = self.known_mtu(end) {
            self.connections.ends[end].endpoint.know_mtu(mtu);
        }
    }

    fn known_mtu(&self, end: usize) -> Option<u16> {
        let finds_mtu = self.stack_of(end).path_mtu == PathMtu::Discovered;
        self.routers.known(self.nodes(end)).filter(|_| finds_mtu)
    }

    /// A client may have learned what makes its next connection to this server faster.
    #[inline(never)]
    fn learn(&mut self, end: usize) {
        let nodes = self.nodes(end);
        if let Some(known) = &mut self.known
            && let Some(learned) = self.connections.ends[end].endpoint.take_learned()
        {
            known.insert(nodes, learned);
        }
    }

    /// This end connects.
    #[cold]
    pub fn open(&mut self, end: usize) {
        self.turns = self.turns.wrapping_add(1);
        let nodes = self.nodes(end);
        let stack = self.stack_of(end);
        let is_fast = stack.fast_open;
        // Either host may have heard of it from an earlier connection.
        self.know_mtu(end);
        self.know_mtu(end ^ 1);
        let End { endpoint, last, .. } = &mut self.connections.ends[end];
        *last = self.turns;
        match &self.known {
            Some(known) if is_fast => endpoint.connect_fast(known.get(&nodes).copied()),
            _ => endpoint.connect(),
        }
    }

    /// Something has happened at an end: sends what that lets go, and then lets the application act.
    #[inline]
    pub fn serve(&mut self, end: usize) {
        self.answer(end);
        self.act(end);
    }

    /// Lets the application act, sends what may leave for that, and notes when to come back.
    #[inline]
    pub fn act(&mut self, end: usize) {
        let now = self.network.now();
        let End { endpoint, route, program, host, .. } = &mut self.connections.ends[end];
        let (onto, from) = (&mut (&mut self.network, &mut self.cpus), (*host, *route));
        match program {
            Program::Send(send) => {
                let mut is_new_call = true;
                // Ends that do not answer first send all at once.
                let mut is_owed = !endpoint.answers_first();
                loop {
                    is_owed |= endpoint.refresh_route(now);
                    is_new_call |= send.is_between_calls();
                    let has_acted = send.act(endpoint);
                    if has_acted && is_new_call {
                        call(onto, from.0 as usize);
                    }
                    is_new_call &= !has_acted;
                    if has_acted || is_owed {
                        send_all(now, endpoint, onto, from);
                    }
                    is_owed = false;
                    // What was sent may have made room for more.
                    if !has_acted {
                        break;
                    }
                }
            }
            Program::Receive(receive) => {
                if receive.act(now, endpoint) {
                    call(onto, from.0 as usize);
                }
                if endpoint.state() == State::CloseWait {
                    // To have read may have been worth an ACK.
                    send_all(now, endpoint, onto, from);
                    endpoint.close();
                }
                send_all(now, endpoint, onto, from);
            }
            Program::Ask(_) | Program::Answer(_) => self.converse(end),
        }
        self.note_pacing(end);
        let End { endpoint, timer, .. } = &mut self.connections.ends[end];
        self.network.set_connection_timer(*timer, endpoint.next_timer());
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
        if self.connections.ends[end].is_passing {
            self.look_whether_over(end);
        }
    }

    /// Programs ask and answer.
    #[inline(never)]
    fn converse(&mut self, end: usize) {
        let now = self.network.now();
        let mut is_owed = !self.connections.ends[end].endpoint.answers_first();
        // Whether the present call writes.
        let mut calls = None;
        loop {
            let End { endpoint, route, program, host, .. } = &mut self.connections.ends[end];
            is_owed |= endpoint.refresh_route(now);
            let (writes, step) = match program {
                Program::Ask(ask) => (ask.writes(), ask.act(now, endpoint)),
                Program::Answer(answer) => (answer.writes(), answer.act(now, endpoint)),
                Program::Send(_) | Program::Receive(_) => return,
            };
            let onto = &mut (&mut self.network, &mut self.cpus);
            if step != Step::Waits && calls.replace(writes) != Some(writes) {
                call(onto, *host as usize);
            }
            if step != Step::Waits || is_owed {
                send_all(now, endpoint, onto, (*host, *route));
            }
            // Whatever its flow does about an answer may have something to send, too.
            is_owed = matches!(step, Step::Answered | Step::Asked | Step::Broken);
            match step {
                Step::Acted => {}
                Step::Waits => return,
                Step::Answered => self.on_answered(end),
                Step::Asked => self.on_asked(end),
                Step::Broken => self.on_broken(end),
            }
        }
    }

    /// Something is to happen at this end of a flow, and memory may be short.
    #[expect(clippy::inline_always, reason = "for most experiments it is a look at a field")]
    #[inline(always)]
    pub fn tell_memory(&mut self, end: usize) {
        if self.memory.is_some() {
            self.share_memory(end);
        }
    }

    #[cold]
    fn share_memory(&mut self, end: usize) {
        let (node, _) = self.nodes(end);
        let Some(memory) = &self.memory else { return };
        memory.tell(node, end, &mut self.connections.ends[end].endpoint);
    }

    /// It has happened, and others may have more memory now.
    #[cold]
    fn count_memory(&mut self, end: usize) {
        let ((node, _), now) = (self.nodes(end), self.network.now());
        let Some(memory) = &mut self.memory else { return };
        let End { endpoint, timer, .. } = &mut self.connections.ends[end];
        for timer in memory.count(node, (end, *timer), endpoint) {
            self.network.set_connection_timer(timer, now);
        }
    }

    /// There is a new connection at this place.
    pub fn make_room_for(&mut self, pair: usize) {
        if let Some(memory) = &mut self.memory {
            memory.make_room_for(pair);
        }
    }

    /// The timer of the program at an end of a connection.
    pub fn set_alarm(&mut self, end: usize, at: Time) {
        let known = self.connections.pairs[end / 2].alarms[end % 2];
        let timer = known.unwrap_or_else(|| self.add_timer(Owner::Program(end)));
        self.connections.pairs[end / 2].alarms[end % 2] = Some(timer);
        self.network.set_timer(timer, at, Order::Last);
    }

    /// A new timer that is not a connection's.
    pub fn add_timer(&mut self, owner: Owner) -> TimerId {
        self.owners.push(owner);
        self.network.add_timer()
    }

    /// How many timers there are that are not connections'.
    #[cfg(test)]
    pub fn timers(&self) -> usize {
        self.owners.len()
    }

    fn sample(&mut self, pair: usize) {
        let Pair { flow, name, label, .. } = &mut self.connections.pairs[pair];
        if let Some(transfer) = name.take() {
            *label = Some(self.recorder.label_of(&self.plan.flows[*flow].name, transfer));
        }
        let (flow, label) = (*flow, *label);
        let endpoint = &self.connections.ends[2 * pair].endpoint;
        self.recorder.sample_flow(self.network.now(), (flow, label), endpoint);
    }

    /// The n-th sample is due at n intervals exactly.
    fn arm(&mut self, timer: TimerId, interval: Option<Duration>) {
        if let Some(interval) = interval {
            let passed = self.network.now().as_picos() / interval.as_picos();
            let next = Time::ZERO + interval.saturating_mul(passed + 1);
            self.network.set_timer(timer, next, Order::BeforePackets);
        }
    }

    /// Arms the timer of the next mark, which comes before all else of its time.
    fn arm_marks(&mut self, timer: TimerId) {
        if let Some(mark) = self.recorder.next_mark() {
            self.network.set_timer(timer, mark, Order::First);
        }
    }

    /// The nodes of an end of a connection and of its peer.
    fn nodes(&self, end: usize) -> (usize, usize) {
        let flow = &self.plan.flows[self.connections.pairs[end / 2].flow];
        if end.is_multiple_of(2) { (flow.from, flow.to) } else { (flow.to, flow.from) }
    }

    /// The stack of an end of a connection.
    pub fn stack_of(&self, end: usize) -> &'a StackPlan {
        let flow = &self.plan.flows[self.connections.pairs[end / 2].flow];
        tcp(flow).stacks()[end % 2]
    }

    /// A route of a flow of datagrams.
    pub fn route_of_datagrams(&mut self, flow: usize) -> RouteId {
        let lanes = self.plan.flows[flow].forward.iter().map(|&lane| LaneId(lane as u32));
        let lanes: Vec<LaneId> = lanes.collect();
        let route = self.network.add_route(&lanes, EndpointId(DATAGRAMS | flow as u32));
        if self.connections.tells_flows {
            self.network.set_flow(route, flow_on_lanes(self.plan, flow, 0, true));
        }
        route
    }

    /// A connection is over: gives the number of its remains.
    pub fn leave_behind(&mut self, pair: usize) -> u32 {
        let now = self.network.now();
        let left = self.connections.leave(now, pair, (&mut self.network, &mut self.routers));
        if let Some(cpus) = &mut self.cpus {
            cpus.redirect(pair, left);
        }
        if let Some(devices) = &mut self.devices {
            devices.redirect(pair, left);
        }
        left
    }
}

/// Whether a client opens its connections fast.
fn has_fast_open(plan: &Plan) -> bool {
    plan.flows
        .iter()
        .filter_map(FlowPlan::tcp)
        .any(|tcp| tcp.stack.fast_open || tcp.peer_stack.fast_open)
}

/// What packets leave by: the network, and processors of hosts that take time.
pub(crate) type Onto<'a> = (&'a mut Network, &'a mut Option<Cpus>);

/// Tells an end if a timer of the kernel, which all hosts share, has run out in this tick. One of
/// each wheel did so last at these times.
#[inline]
fn turn_wheel(now: Time, turned: [Time; 2], endpoint: &mut Endpoint) {
    let turned = turned[endpoint.wheel() as usize];
    if turned <= now && now.since(turned) < TICK {
        endpoint.turn_wheel(turned);
    }
}

/// Sends what may leave now from an end, whose host and route these are.
#[expect(clippy::inline_always, reason = "of most calls it is a look at a few fields")]
#[inline(always)]
fn send_all(now: Time, endpoint: &mut Endpoint, onto: &mut Onto<'_>, from: (u32, RouteId)) {
    if !endpoint.is_silent(now) || endpoint.keeps_queue_small() {
        send_what_may_leave(now, endpoint, onto, from);
    }
}

/// The same where something may leave.
#[inline(never)]
fn send_what_may_leave(
    now: Time,
    endpoint: &mut Endpoint,
    onto: &mut Onto<'_>,
    from: (u32, RouteId),
) {
    let from = (from.0 as usize, from.1);
    while let Some(segment) = endpoint.poll_transmit(now) {
        if endpoint.keeps_queue_small() {
            send_own(now, endpoint, onto, from, Some(segment));
        } else {
            send(onto, from, Packet::Tcp(segment));
        }
    }
    if endpoint.keeps_queue_small() {
        send_own(now, endpoint, onto, from, None);
    }
}

/// Puts the segment before this one, or the last, into the queue of the host's own device.
#[cold]
fn send_own(
    now: Time,
    endpoint: &mut Endpoint,
    (network, cpus): &mut Onto<'_>,
    (host, route): (usize, RouteId),
    segment: Option<Segment>,
) {
    let Some((segment, at, goes_on)) = endpoint.hand_over(now, segment) else { return };
    let packet = Packet::Tcp(segment);
    match cpus {
        None => network.send_own(route, packet, Departure { at, goes_on }),
        // A processor has done its part of the packets one by one.
        Some(cpus) => cpus.send(network, host, route, packet, at),
    }
}

/// Sends a packet of a host.
#[expect(clippy::inline_always, reason = "every segment passes here")]
#[inline(always)]
pub(crate) fn send(
    (network, cpus): &mut Onto<'_>,
    (host, route): (usize, RouteId),
    packet: Packet,
) {
    match cpus {
        None => network.send(route, packet),
        Some(cpus) => cpus.send(network, host, route, packet, Time::ZERO),
    }
}

/// A program of a host makes a system call.
#[inline]
pub(crate) fn call((network, cpus): &mut Onto<'_>, host: usize) {
    if let Some(cpus) = cpus {
        cpus.call(network.now(), host);
    }
}
