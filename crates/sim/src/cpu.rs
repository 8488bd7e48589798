//! Processing time of hosts: a processor does one thing at a time.
//!
//! An arriving packet waits for its turn, takes its processing time, and is then received. Packets
//! that the host sends in response take their own time before the next packet or timer has its
//! turn, and leave one by one. Timers and programs cost nothing themselves, but wait for their turn
//! all the same.

use crate::connections::left_end;
use crate::observer::Network;
use crate::packet::Packet;
use std::collections::VecDeque;
use tcplab_engine::{Departure, EndpointId, Order, Packet as _, RouteId, TimerId};
use tcplab_model::Plan;
use tcplab_model::schema::Cpu as Costs;
use tcplab_units::{Duration, Time};

/// Work for a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Receive a packet at this route endpoint.
    Receive(EndpointId, Packet),
    /// Handle an expired timer of this end of a connection.
    EndTimer(usize),
    /// Resume this end: its host's device has room again.
    Resume(usize),
    /// Handle another expired timer: a program continues.
    Timer(TimerId),
}

/// The next step of a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Put a packet on its route; a queue of the host may hold it until the given time.
    Send(RouteId, Packet, Time),
    /// This work is done.
    Do(Work),
    /// Nothing is due now.
    Wait,
}

/// The processor of a host.
#[derive(Clone, Debug)]
struct Cpu {
    costs: Costs,
    timer: TimerId,
    /// When all work that has begun will be done.
    free_at: Time,
    /// The current work, and when it will be done.
    present: Option<(Time, Work)>,
    waiting: VecDeque<Work>,
    /// Packets to be sent: when each is ready, and its earliest departure time from a queue of the
    /// host.
    leaving: VecDeque<(Time, RouteId, Packet, Time)>,
}

/// The processors of all hosts with processing time.
#[derive(Clone, Debug)]
pub(crate) struct Cpus {
    by_node: Vec<Option<Box<Cpu>>>,
}

impl Cpus {
    /// The processors of a plan, if it has any; `add_timer` makes the timer of a node.
    pub fn new(plan: &Plan, mut add_timer: impl FnMut(usize) -> TimerId) -> Option<Self> {
        if plan.hosts.iter().all(|host| host.cpu.is_none()) {
            return None;
        }
        let mut by_node = vec![None; plan.nodes.len()];
        for host in plan.hosts.iter() {
            let Some(costs) = host.cpu.clone() else { continue };
            by_node[host.node] = Some(Box::new(Cpu {
                costs,
                timer: add_timer(host.node),
                free_at: Time::ZERO,
                present: None,
                waiting: VecDeque::new(),
                leaving: VecDeque::new(),
            }));
        }
        Some(Self { by_node })
    }

    /// Sends a packet of this node, at once or after its processing time.
    pub fn send(
        &mut self,
        network: &mut Network,
        node: usize,
        route: RouteId,
        packet: Packet,
        at: Time,
    ) {
        let now = network.now();
        let departure = Departure { at, ..Departure::default() };
        let Some(cpu) = &mut self.by_node[node] else {
            network.send_own(route, packet, departure);
            return;
        };
        let cost = cpu.cost_of(&packet);
        let ready_at = if cost.is_zero() { cpu.free_at } else { cpu.spend(now, cost) };
        if ready_at <= now && cpu.leaving.is_empty() {
            network.send_own(route, packet, departure);
            return;
        }
        cpu.leaving.push_back((ready_at, route, packet, at));
        cpu.arm(network);
    }

    /// A program of this node makes a system call.
    pub fn call(&mut self, now: Time, node: usize) {
        if let Some(cpu) = &mut self.by_node[node] {
            cpu.spend(now, cpu.costs.call);
        }
    }

    /// Whether this node's processor is busy. A node without a processor never is.
    pub fn is_busy(&self, now: Time, node: usize) -> bool {
        self.by_node[node].as_ref().is_some_and(|cpu| cpu.is_busy(now))
    }

    /// Queues work for a node, unless it can be done at once and takes no time.
    pub fn take(&mut self, network: &mut Network, node: usize, work: Work) -> bool {
        let now = network.now();
        let Some(cpu) = &mut self.by_node[node] else { return false };
        if !cpu.is_busy(now) && cpu.cost_of_work(&work).is_zero() {
            return false;
        }
        cpu.waiting.push_back(work);
        cpu.begin(now);
        cpu.arm(network);
        true
    }

    /// The next step of a node, when its time has come.
    pub fn step(&mut self, network: &mut Network, node: usize) -> Step {
        let now = network.now();
        let Some(cpu) = &mut self.by_node[node] else { return Step::Wait };
        if cpu.leaving.front().is_some_and(|(ready_at, ..)| *ready_at <= now)
            && let Some((_, route, packet, at)) = cpu.leaving.pop_front()
        {
            return Step::Send(route, packet, at);
        }
        cpu.begin(now);
        if let Some((_, work)) = cpu.present.take_if(|(done_at, _)| *done_at <= now) {
            return Step::Do(work);
        }
        cpu.arm(network);
        Step::Wait
    }

    /// A connection is over: work queued for its ends goes to its remains.
    pub fn redirect(&mut self, pair: usize, left: u32) {
        for cpu in self.by_node.iter_mut().flatten() {
            let present = cpu.present.iter_mut().map(|(_, work)| work);
            for work in cpu.waiting.iter_mut().chain(present) {
                if let Work::Receive(to, _) = work
                    && to.0 as usize / 2 == pair
                {
                    *to = left_end(left, to.0 as usize % 2);
                }
            }
        }
    }

    /// The routes of a closed connection are reused: drops the work queued for its remains or on
    /// its routes.
    pub fn forget(&mut self, left: u32, routes: &[RouteId]) {
        let ends = [0, 1].map(|side| left_end(left, side));
        for cpu in self.by_node.iter_mut().flatten() {
            let is_over = |work: &Work| matches!(work, Work::Receive(to, _) if ends.contains(to));
            cpu.waiting.retain(|work| !is_over(work));
            cpu.present.take_if(|(_, work)| is_over(work));
            cpu.leaving.retain(|(_, route, ..)| !routes.contains(route));
        }
    }

    /// The number of queued packets.
    pub fn packets(&self) -> usize {
        self.by_node.iter().flatten().map(|cpu| cpu.waiting.len() + cpu.leaving.len()).sum()
    }
}

impl Cpu {
    fn cost_of(&self, packet: &Packet) -> Duration {
        if packet.has_payload() { self.costs.packet } else { self.costs.ack }
    }

    fn cost_of_work(&self, work: &Work) -> Duration {
        match work {
            Work::Receive(_, packet) => self.cost_of(packet),
            Work::EndTimer(_) | Work::Resume(_) | Work::Timer(_) => Duration::ZERO,
        }
    }

    /// Adds work. Returns when it will be done, rounded up to a nanosecond; a busy processor loses
    /// nothing to that rounding.
    fn spend(&mut self, now: Time, cost: Duration) -> Time {
        if self.free_at.in_nanos() < now {
            self.free_at = now;
        }
        self.free_at += cost;
        self.free_at
    }

    fn is_busy(&self, now: Time) -> bool {
        self.free_at > now || self.present.is_some() || !self.waiting.is_empty()
    }

    /// Begins queued work, if the processor is idle.
    fn begin(&mut self, now: Time) {
        if self.present.is_none()
            && self.free_at <= now
            && let Some(work) = self.waiting.pop_front()
        {
            let cost = self.cost_of_work(&work);
            self.present = Some((self.spend(now, cost), work));
        }
    }

    /// Arms the timer for the next step.
    fn arm(&self, network: &mut Network) {
        let leaves = self.leaving.front().map(|(ready_at, ..)| *ready_at);
        let done = self.present.as_ref().map(|(done_at, _)| *done_at);
        let begins = (!self.waiting.is_empty()).then_some(self.free_at);
        let next = leaves.into_iter().chain(done.or(begins)).min();
        network.set_timer(self.timer, next.unwrap_or(Time::NEVER), Order::BeforePackets);
    }
}
