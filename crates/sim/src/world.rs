//! Hosts on a network, and the event loop.

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
use tcplab_engine::{Admission, Departure, EndpointId, Event, LaneId, Order, RouteId, TimerId};
use tcplab_model::memory::{CAPTURED, DROP, Held, PACKET, ROW};
use tcplab_model::{FlowPlan, PathMtu, Plan, Samples, StackPlan, Stopped, Watch};
use tcplab_tables::Produced;
use tcplab_tcp::{CachedCookie, Endpoint, Segment, State, TICK};
use tcplab_units::{Duration, Time};

/// Events between two checks of the watch.
const EVENTS_UNWATCHED: u32 = 1 << 14;

/// The number of packet reports held before they are recorded.
const PENDING: usize = 1 << 12;

/// Lanes whose packets are counted between two checks of the watch.
const LANES_COUNTED: usize = 256;

/// The owner of a timer that is not a connection's.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    /// The program of a flow.
    Flow(usize),
    /// The program at one end of a connection.
    Program(usize),
    /// A user of a flow in a closed loop.
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
    /// The plan in force: the one after its change, once that has come.
    pub present: &'a Plan,
    pub network: Network,
    pub connections: Connections,
    pub flows: Vec<Flow<'a>>,
    /// The owner of each timer, by number.
    owners: Vec<Owner>,
    /// Fast Open state of clients, by the nodes of client and server, if it is used.
    known: Option<BTreeMap<(usize, usize), CachedCookie>>,
    pub routers: Routers,
    /// For each node, datagrams that have arrived there in part.
    pub reassemblies: BTreeMap<usize, Reassembly>,
    /// Present if a host has a memory limit.
    memory: Option<Memories>,
    /// Present if a host has processing time.
    pub cpus: Option<Cpus>,
    /// Present if a host has receive offload.
    pub devices: Option<Devices>,
    /// Whether a poll is in progress: more packets may be received.
    is_polling: bool,
    /// Ends with compressed ACKs, in the order in which these began.
    holding: Vec<usize>,
    /// For each end, once one paces: the expiry of its pacing timer.
    paced: Vec<Time>,
    /// Ends at which packets of this nanosecond arrived, in order, and whose applications have not
    /// acted yet.
    woken: Vec<usize>,
    /// Blocked senders whose packets have left their device.
    resuming: Vec<usize>,
    /// The last expiry of a timer in each of the kernel's wheels.
    turned: [Time; 2],
    /// A count of connections opened and timers expired.
    turns: u32,
    sample_timer: TimerId,
    link_timer: TimerId,
    samples_every_ack: bool,
    pub recorder: Recorder<'a>,
    /// The memory that the run held at the last count.
    held: Held,
    /// Memory of the state shared with other runs.
    beside: Held,
    /// Memory counts since packets were last counted.
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

    /// Begins sampling.
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

    /// Handles all events until `end`. With `BEFORE`, events of that nanosecond are left out.
    #[inline(never)]
    pub fn pass_time<const BEFORE: bool>(
        &mut self,
        end: Time,
        watch: &Watch,
    ) -> Result<(), Stopped> {
        let mut events = 0;
        let holds = self.cpus.is_some() || self.devices.is_some();
        // Matched by reference, so that a packet need not be moved to be read.
        while let Some(event) = &self.next::<BEFORE>(end) {
            if holds && self.is_deferred(event) {
                // The host receives the packet with others, or has time for it later.
            } else if let Event::Delivered { to, packet: Packet::Tcp(segment) } = event
                && to.0 < ROUTERS
            {
                self.deliver(to.0 as usize, segment);
            } else {
                match event {
                    Event::Delivered { to, packet } => self.deliver_other(*to, *packet),
                    Event::Left { to, packet } => self.on_tx_completion(*to, *packet),
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

    /// Records the packet reports whose times are over.
    #[cold]
    fn write_down(&mut self, is_over: impl Fn(Time) -> bool) {
        self.network.settle();
        let drops = self.network.observer().take_drops(&is_over);
        let seen = self.network.observer().take_seen(is_over);
        let whose = |to| self.connections.whose(&self.routers, to);
        self.recorder.add_drops(drops, whose);
        self.recorder.add_packets(seen, whose);
    }

    /// Another connection may take the slot of a closed one: reports of the closed one's packets
    /// are recorded first, if they name connections.
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
        while !self.woken.is_empty() {
            if let Some(event) = self.network.next_now() {
                return Some(event);
            }
            self.wake();
        }
        if BEFORE { self.network.next_before(end) } else { self.network.next(end) }
    }

    /// Lets the application of this end act once all packets of the nanosecond have been received.
    #[cold]
    fn put_off(&mut self, end: usize) {
        self.note_pacing(end, self.connections.ends[end].endpoint.paced_until());
        if !self.woken.contains(&end) {
            self.woken.push(end);
        }
        if self.memory.is_some() {
            self.count_memory(end);
        }
    }

    #[cold]
    fn wake(&mut self) {
        // The sender whose packet left last goes first (`tcp_wfree`).
        for end in std::mem::take(&mut self.resuming).into_iter().rev() {
            self.connections.ends[end].endpoint.resume();
            self.answer(end);
        }
        for end in std::mem::take(&mut self.woken) {
            self.act(end);
        }
    }

    /// Counts the memory that the run holds.
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
        // Counting many lanes takes as long as the events in between.
        self.counts += 1;
        if self.counts > self.plan.lanes.len() / LANES_COUNTED {
            self.counts = 0;
            let waiting = self.cpus.as_ref().map_or(0, Cpus::packets)
                + self.devices.as_ref().map_or(0, Devices::packets);
            self.held.packets = (self.network.packets() + waiting) as u64 * PACKET;
        }
        self.held + self.beside
    }

    /// Handles a packet that is not for an open connection: one for a gate, from a gate, of a
    /// datagram flow, or for the remains of a connection.
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
                if let Some(mtu) = endpoint.on_frag_needed(self.network.now(), &message) {
                    self.routers.record_mtu(self.nodes(end), mtu);
                    self.share_path_mtu(end);
                    self.serve(end);
                }
            }
            Packet::Tcp(_) if to.0 < DATAGRAMS => {
                self.routers.meet(&mut self.network, to, packet);
            }
            Packet::Tcp(segment) => self.answer_late(to, &segment),
        }
    }

    /// Handles a segment for a closed connection.
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
        self.update_memory_pressure(end);
        let now = self.network.now();
        let endpoint = &mut self.connections.ends[end].endpoint;
        note_timer_expiry(now, self.turned, endpoint);
        // Answers to the handshake carry no data, and segments after both sides have closed (a
        // repeated FIN) find no connection.
        let is_sampled = self.samples_every_ack
            && end.is_multiple_of(2)
            && endpoint.counters().sent_segments > 0
            && !matches!(endpoint.state(), State::TimeWait | State::Closed);
        endpoint.on_segment(now, segment);
        let answers_first = endpoint.replies_before_wakeup();
        if self.known.is_some() {
            self.cache_cookie(end);
        }
        // A kernel has finished with an ACK once it has sent what the ACK allows, before its
        // application has more to send.
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

    /// Sends what leaves before the application is woken, if anything does.
    #[inline]
    fn answer(&mut self, end: usize) -> bool {
        let now = self.network.now();
        let End { endpoint, route, host, .. } = &mut self.connections.ends[end];
        endpoint.sync_mss(now);
        let answers = endpoint.replies_before_wakeup();
        let onto = &mut (&mut self.network, &mut self.cpus);
        if answers {
            send_all(now, endpoint, onto, (*host, *route));
        }
        answers
    }

    /// Remembers until when pacing delays an end that has just sent.
    #[inline]
    fn note_pacing(&mut self, end: usize, until: Time) {
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

    /// Sets the path MTU that a router has reported to this end on its other connections to the
    /// same host.
    #[cold]
    fn share_path_mtu(&mut self, end: usize) {
        let between = self.nodes(end);
        let others = (0..self.connections.ends.len()).filter(|&other| other != end);
        let others: Vec<_> = others.filter(|&other| self.nodes(other) == between).collect();
        for other in others {
            if let Some(mtu) = self.known_mtu(other) {
                self.connections.ends[other].endpoint.on_route_mtu(mtu);
            }
        }
    }

    /// Sets the path MTU of this end, if its host has it cached and uses path MTU discovery.
    fn set_cached_mtu(&mut self, end: usize) {
        if let Some(mtu) = self.known_mtu(end) {
            self.connections.ends[end].endpoint.set_cached_mtu(mtu);
        }
    }

    fn known_mtu(&self, end: usize) -> Option<u16> {
        let finds_mtu = self.stack_of(end).path_mtu == PathMtu::Discovered;
        self.routers.known(self.nodes(end)).filter(|_| finds_mtu)
    }

    /// Caches the Fast Open cookie that a client has received for its next connection to this
    /// server.
    #[inline(never)]
    fn cache_cookie(&mut self, end: usize) {
        let nodes = self.nodes(end);
        if let Some(known) = &mut self.known
            && let Some(learned) = self.connections.ends[end].endpoint.take_cookie_to_cache()
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
        // Either host may have learned the path MTU from an earlier connection.
        self.set_cached_mtu(end);
        self.set_cached_mtu(end ^ 1);
        let End { endpoint, last, .. } = &mut self.connections.ends[end];
        *last = self.turns;
        match &self.known {
            Some(known) if is_fast => endpoint.connect_fast(known.get(&nodes).copied()),
            _ => endpoint.connect(),
        }
    }

    /// Handles the aftermath of an event at an end: sends what it allows, then lets the application
    /// act.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub fn serve(&mut self, end: usize) {
        self.answer(end);
        if self.connections.ends[end].endpoint.take_resumption() {
            return self.resume_later(end);
        }
        self.act(end);
    }

    /// Lets a throttled sender continue once all packets of the nanosecond have been received, as a
    /// kernel does in a tasklet.
    #[cold]
    pub(super) fn resume_later(&mut self, end: usize) {
        self.resuming.push(end);
        self.put_off(end);
    }

    /// Lets the application act, sends what that allows, and sets the end's timers.
    #[inline]
    pub fn act(&mut self, end: usize) {
        let now = self.network.now();
        let End { endpoint, route, program, host, .. } = &mut self.connections.ends[end];
        let (onto, from) = (&mut (&mut self.network, &mut self.cpus), (*host, *route));
        match program {
            Program::Send(send) => {
                let mut is_new_call = true;
                // Ends that do not send before their application acts send everything at once.
                let mut is_owed = !endpoint.replies_before_wakeup();
                loop {
                    is_owed |= endpoint.sync_mss(now);
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
                    // Sending may have freed buffer space.
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
                    // Reading may have caused a window update.
                    send_all(now, endpoint, onto, from);
                    endpoint.close();
                }
                send_all(now, endpoint, onto, from);
            }
            Program::Ask(_) | Program::Answer(_) => self.converse(end),
        }
        let End { endpoint, timer, is_passing, .. } = &mut self.connections.ends[end];
        self.network.set_connection_timer(*timer, endpoint.next_timer());
        let paced_until = endpoint.paced_until();
        let is_compressing = endpoint.compressed_ack_from().is_some();
        let (resumes, is_passing) = (endpoint.take_resumption(), *is_passing);
        self.note_pacing(end, paced_until);
        if is_compressing || !self.holding.is_empty() {
            self.note_compression(end, is_compressing);
        }
        if self.memory.is_some() {
            self.count_memory(end);
        }
        if resumes {
            self.resume_later(end);
        }
        if is_passing {
            self.look_whether_over(end);
        }
    }

    /// Remembers whether an end has a compressed ACK.
    #[inline(never)]
    fn note_compression(&mut self, end: usize, is_compressing: bool) {
        if !is_compressing {
            self.holding.retain(|&holds| holds != end);
        } else if !self.holding.contains(&end) {
            self.holding.push(end);
        }
    }

    /// Runs the programs of a request-response flow.
    #[inline(never)]
    fn converse(&mut self, end: usize) {
        let now = self.network.now();
        let mut is_owed = !self.connections.ends[end].endpoint.replies_before_wakeup();
        // Whether the current call writes, once one is made.
        let mut calls = None;
        loop {
            let End { endpoint, route, program, host, .. } = &mut self.connections.ends[end];
            is_owed |= endpoint.sync_mss(now);
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
            // The flow's reaction to a response may produce something to send as well.
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

    /// Prepares an end for an event, in case memory is short.
    #[expect(clippy::inline_always, reason = "for most experiments it is a look at a field")]
    #[inline(always)]
    pub fn update_memory_pressure(&mut self, end: usize) {
        if self.memory.is_some() {
            self.share_memory(end);
        }
    }

    #[cold]
    fn share_memory(&mut self, end: usize) {
        let (node, _) = self.nodes(end);
        let Some(memory) = &self.memory else { return };
        memory.set_pressure(node, end, &mut self.connections.ends[end].endpoint);
    }

    /// Accounts for an end's memory after an event; others may have more memory now.
    #[cold]
    fn count_memory(&mut self, end: usize) {
        let ((node, _), now) = (self.nodes(end), self.network.now());
        let Some(memory) = &mut self.memory else { return };
        let End { endpoint, timer, .. } = &mut self.connections.ends[end];
        for timer in memory.count(node, (end, *timer), endpoint) {
            self.network.set_connection_timer(timer, now);
        }
    }

    /// Sets up state for a new connection in this slot.
    pub fn make_room_for(&mut self, pair: usize) {
        if let Some(memory) = &mut self.memory {
            memory.make_room_for(pair);
        }
    }

    /// Sets the timer of the program at an end of a connection.
    pub fn set_alarm(&mut self, end: usize, at: Time) {
        let known = self.connections.pairs[end / 2].alarms[end % 2];
        let timer = known.unwrap_or_else(|| self.add_timer(Owner::Program(end)));
        self.connections.pairs[end / 2].alarms[end % 2] = Some(timer);
        self.network.set_timer(timer, at, Order::Last);
    }

    /// Adds a timer that is not a connection's.
    pub fn add_timer(&mut self, owner: Owner) -> TimerId {
        self.owners.push(owner);
        self.network.add_timer()
    }

    /// The number of timers that are not connections'.
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

    /// Arms a sampling timer: the n-th sample is due at exactly n intervals.
    fn arm(&mut self, timer: TimerId, interval: Option<Duration>) {
        if let Some(interval) = interval {
            let passed = self.network.now().as_picos() / interval.as_picos();
            let next = Time::ZERO + interval.saturating_mul(passed + 1);
            self.network.set_timer(timer, next, Order::BeforePackets);
        }
    }

    /// Arms the timer of the next mark, which precedes all else at its time.
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

    /// A route for a datagram flow.
    pub fn route_of_datagrams(&mut self, flow: usize) -> RouteId {
        let lanes = self.plan.flows[flow].forward.iter().map(|&lane| LaneId(lane as u32));
        let lanes: Vec<LaneId> = lanes.collect();
        let route = self.network.add_route(&lanes, EndpointId(DATAGRAMS | flow as u32));
        if self.connections.tells_flows {
            self.network.set_flow(route, flow_on_lanes(self.plan, flow, 0, true));
        }
        route
    }

    /// Ends a connection and returns the number of its remains.
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

/// Whether any client uses Fast Open.
fn has_fast_open(plan: &Plan) -> bool {
    plan.flows
        .iter()
        .filter_map(FlowPlan::tcp)
        .any(|tcp| tcp.stack.fast_open || tcp.peer_stack.fast_open)
}

/// Where packets leave: the network, and the processors of hosts.
pub(crate) type Onto<'a> = (&'a mut Network, &'a mut Option<Cpus>);

/// Tells an end whether a timer of the kernel, whose wheels all hosts share, has expired in this
/// tick; `turned` has the last expiry in each wheel.
#[inline]
fn note_timer_expiry(now: Time, turned: [Time; 2], endpoint: &mut Endpoint) {
    let turned = turned[endpoint.wheel() as usize];
    if turned <= now && now.since(turned) < TICK {
        endpoint.note_timer_expiry(turned);
    }
}

/// Sends what may leave now from an end with this host and route.
#[expect(clippy::inline_always, reason = "of most calls it is a look at a few fields")]
#[inline(always)]
fn send_all(now: Time, endpoint: &mut Endpoint, onto: &mut Onto<'_>, from: (u32, RouteId)) {
    if !endpoint.has_nothing_to_send(now) || endpoint.has_small_queue() {
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
    if endpoint.has_small_queue() {
        return send_bursts(now, endpoint, onto, from);
    }
    while let Some(segment) = endpoint.poll_transmit(now) {
        send(onto, from, Packet::Tcp(segment));
    }
}

/// Puts bursts into the queue of the host's own device, and tells the endpoint which of them the
/// queue refuses or drops.
#[cold]
fn send_bursts(
    now: Time,
    endpoint: &mut Endpoint,
    (network, cpus): &mut Onto<'_>,
    (host, route): (usize, RouteId),
) {
    if let Some(cpus) = cpus {
        // The processor has handled the packets one by one.
        while let Some(segment) = next_of_burst(now, endpoint) {
            let (_, at) = endpoint.take_departing(now);
            cpus.send(network, host, route, Packet::Tcp(segment), at);
        }
        return;
    }
    // Segments of new data that left in this event.
    let mut sent = 0;
    let mut burst: Vec<(Segment, Time, bool)> = Vec::new();
    loop {
        let before = endpoint.before_burst();
        burst.clear();
        while let Some(segment) = next_of_burst(now, endpoint) {
            let (goes_on, at) = endpoint.take_departing(now);
            burst.push((segment, at, goes_on));
            if endpoint.ends_burst(now) {
                break;
            }
        }
        let (Some(&(first, ..)), Some(&(last, ..))) = (burst.first(), burst.last()) else { return };
        let mut admission = Admission::Accepted;
        for (number, &(segment, at, _)) in burst.iter().enumerate() {
            let goes_on = burst.get(number + 1).is_some_and(|&(.., goes_on)| goes_on);
            let departure = Departure { at, goes_on, is_answered: true };
            admission = network.send_own(route, Packet::Tcp(segment), departure);
        }
        match admission {
            Admission::Accepted => sent += endpoint.new_since(&before),
            Admission::Refused => {
                if !endpoint.on_refused(now, &before, (&first, &last), sent) {
                    return;
                }
            }
            Admission::Crowded | Admission::Dropped => {
                let is_newest = admission == Admission::Dropped;
                endpoint.on_dropped(now, &before, (burst.len() as u64, sent), is_newest);
            }
        }
    }
}

/// The next segment of a burst. Out of line: `poll_transmit` is inlined where most segments pass.
#[inline(never)]
fn next_of_burst(now: Time, endpoint: &mut Endpoint) -> Option<Segment> {
    endpoint.poll_transmit(now)
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
