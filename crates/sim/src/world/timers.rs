//! Expired timers: those of connections, in the order of the kernel's timer wheel, and all others
//! by their owners.

use super::{Owner, World, note_timer_expiry};
use crate::connections::End;
use crate::cpu::Work;
use std::cmp::Reverse;
use tcplab_engine::{ConnectionTimer, TimerId};
use tcplab_tcp::State;
use tcplab_units::Time;

impl World<'_> {
    #[inline(never)]
    pub(super) fn on_connection_timer(&mut self, timer: ConnectionTimer) {
        let end = timer.index();
        match self.network.also_due() {
            None => self.on_end_timer(end),
            Some(other) => self.on_end_timers(vec![end, other.index()]),
        }
    }

    #[inline(never)]
    pub(super) fn on_timer(&mut self, timer: TimerId) {
        if self.cpus.is_some() {
            let host = match self.owners[timer.index()] {
                Owner::Program(end) => Some(self.connections.ends[end].host as usize),
                Owner::Flow(flow) | Owner::User { flow, .. } => {
                    let flow = &self.flows[flow];
                    Some(if flow.asks() { flow.plan.to } else { flow.plan.from })
                }
                Owner::Cpu(_) | Owner::Device(_) | Owner::Samples | Owner::Links | Owner::Marks => {
                    None
                }
            };
            if host.is_some_and(|host| self.waits_for_cpu(host, Work::Timer(timer))) {
                return;
            }
        }
        self.run_timer(timer);
    }

    /// Handles the turn of a timer.
    pub(super) fn run_timer(&mut self, timer: TimerId) {
        match self.owners[timer.index()] {
            Owner::Cpu(host) => self.on_cpu(host),
            Owner::Device(lane) => self.on_interrupt(lane),
            Owner::Flow(number) => self.on_flow_timer(number),
            Owner::Program(end) => self.on_alarm(end),
            Owner::User { flow, user } => self.begin_transfer_of(flow, user),
            Owner::Samples => {
                for pair in 0..self.connections.pairs.len() {
                    let state = self.connections.ends[2 * pair].endpoint.state();
                    // As on `linux`, a connecting socket has no samples yet.
                    let is_open = !matches!(
                        state,
                        State::SynSent
                            | State::SynReceived
                            | State::Listen
                            | State::Closed
                            | State::TimeWait
                    );
                    if is_open && !self.connections.pairs[pair].is_free {
                        self.sample(pair);
                    }
                }
                self.arm(timer, self.recorder.sample_interval);
            }
            Owner::Links => {
                self.recorder.sample_links(self.network.now(), &mut self.network);
                self.arm(timer, self.recorder.link_interval);
            }
            Owner::Marks => {
                if let Some(mark) = self.recorder.next_mark() {
                    self.read_meters(mark);
                }
                self.arm_marks(timer);
            }
        }
    }

    /// A timer of an end expires.
    fn on_end_timer(&mut self, end: usize) {
        let host = self.connections.ends[end].host as usize;
        if self.cpus.is_none() || !self.waits_for_cpu(host, Work::EndTimer(end)) {
            self.run_end_timer(end);
        }
    }

    /// Handles the turn of an end's timer.
    pub(super) fn run_end_timer(&mut self, end: usize) {
        let now = self.network.now();
        if self.devices.is_some() {
            self.poll_before_timer(end);
        }
        self.update_memory_pressure(end);
        self.turns = self.turns.wrapping_add(1);
        let End { endpoint, last, .. } = &mut self.connections.ends[end];
        note_timer_expiry(now, self.turned, endpoint);
        *last = self.turns;
        let lets_go = !self.holding.is_empty() && endpoint.is_hrtimer_due(now);
        let wheel = endpoint.wheel();
        if endpoint.on_timer(now) {
            self.turned[wheel as usize] = now;
        }
        self.serve(end);
        if lets_go {
            self.send_compressed_acks(now);
        }
    }

    /// Handles timers of several ends that expire in the same tick, in the order of the kernel's
    /// wheel. Timers inserted in the same nanosecond were inserted in the order of `End::last`. The
    /// high-resolution timers of compressed ACKs expire in the order in which they were set.
    #[cold]
    fn on_end_timers(&mut self, mut due: Vec<usize>) {
        while let Some(timer) = self.network.also_due() {
            due.push(timer.index());
        }
        let now = self.network.now();
        due.sort_by_cached_key(|&end| {
            let End { endpoint, last, .. } = &self.connections.ends[end];
            let turn = endpoint.expiry_order(now);
            let held = self.holding.iter().position(|&holds| holds == end);
            let held = held.filter(|_| turn.is_none()).unwrap_or(usize::MAX);
            (turn.is_none(), turn, held, Reverse(*last), Reverse(end))
        });
        for end in due {
            self.on_end_timer(end);
        }
    }

    /// Sends the compressed ACKs whose delay is over. The kernel goes through its timers in the
    /// order of their latest expiry, up to the first that is not due, such as the pacing timer that
    /// its sender has just armed (`__hrtimer_run_queues`).
    #[cold]
    fn send_compressed_acks(&mut self, now: Time) {
        let holding = std::mem::take(&mut self.holding);
        let ends = &self.connections.ends;
        let earliest = |end: usize| ends[end].endpoint.compressed_ack_from();
        let held: Vec<_> =
            holding.into_iter().filter_map(|end| Some((earliest(end)?, end))).collect();
        let due = held.iter().filter(|&&(from, _)| from <= now);
        let latest = due.filter_map(|&(_, end)| ends[end].endpoint.compressed_ack_until()).max();
        let sooner = |&until: &Time| until > now && latest.is_some_and(|latest| until < latest);
        let first_paced = self.paced.iter().copied().filter(sooner).min().unwrap_or(Time::NEVER);
        let is_ready = |&(from, end): &(Time, usize)| {
            let until = ends[end].endpoint.compressed_ack_until();
            from <= now && until.is_some_and(|until| until <= first_paced)
        };
        let (mut ready, others): (Vec<_>, Vec<_>) = held.into_iter().partition(is_ready);
        self.holding = others.into_iter().map(|(_, end)| end).collect();
        // Equal times go in the order in which the timers were set.
        ready.sort_by_key(|&(from, _)| from);
        for (_, end) in ready {
            self.connections.ends[end].endpoint.send_compressed_ack();
            self.serve(end);
        }
    }
}
