//! The outcome of flows and transfers, for the tables.

use super::{Flow, Kind};
use crate::application::Program;
use crate::world::World;
use tcplab_model::TrafficPlan as Traffic;
use tcplab_model::memory::ROW;
use tcplab_tables::{
    Activity, Counters, FlowFacts, FlowTotals, Outcome, RoundTrips, TransferFacts, Transfers,
};
use tcplab_tcp::{Ended, Endpoint, RttSummary, SenderCounters};
use tcplab_units::Time;
use tcplab_workload::accounts;

impl World<'_> {
    /// Transfer number `transfer`, from 0, begins on a connection.
    pub fn note_begin(&mut self, pair: usize, transfer: u64, size: u64) {
        self.write_transfer(pair);
        let now = self.network.now();
        let connection = &mut self.connections.pairs[pair];
        self.flows[connection.flow].begun += 1;
        let sender = &mut self.connections.ends[2 * pair].endpoint;
        connection.transfer = Some(transfer);
        (connection.size, connection.began) = (size, now);
        connection.before = sender.counters();
        sender.restart_rtt_record();
        let flow = &self.flows[connection.flow];
        if !matches!(flow.kind, Kind::Requests(_)) {
            (connection.name, connection.label) = (Some(transfer + 1), None);
        }
    }

    /// The current transfer of a connection is over. Its row is written when the next one begins or
    /// the connection is released: until then its sender still counts.
    pub fn note_end(&mut self, pair: usize) {
        let now = self.network.now();
        let connection = &mut self.connections.pairs[pair];
        if connection.transfer.is_some() && connection.ended.is_none() {
            connection.ended = Some(now);
        }
    }

    /// Writes the row of the current transfer of a connection, complete or cut short.
    pub fn write_transfer(&mut self, pair: usize) {
        let connection = &mut self.connections.pairs[pair];
        let Some(transfer) = connection.transfer.take() else { return };
        let ended = connection.ended.take();
        let rtt_before = connection.rtt.take();
        let [sender, receiver] = [2 * pair, 2 * pair + 1].map(|end| &self.connections.ends[end]);
        let (bytes, last_arrival) = received(&receiver.program);
        let last_arrival = last_arrival.unwrap_or(connection.began);
        let is_complete = bytes >= connection.size;
        let mut why = sender.endpoint.ended().into_iter().chain(receiver.endpoint.ended());
        let outcome = match why.find_map(broken) {
            _ if is_complete => Outcome::Completed,
            Some(broken) => broken,
            // The other end has closed too early.
            None if ended.is_some() => Outcome::Reset,
            None => Outcome::Unfinished,
        };
        let flow = &mut self.flows[connection.flow];
        let class = match &flow.kind {
            Kind::Web(page) => page.sessions[transfer as usize].class,
            _ => &flow.plan.class,
        };
        let endpoint = &sender.endpoint;
        // The client is connected before the server knows.
        let has_connected =
            endpoint.has_connected() || receiver.endpoint.has_connected() || bytes > 0;
        flow.has_connected |= has_connected;
        let rtt = endpoint.rtt().map(round_trips);
        if self.recorder.has_meters() {
            flow.written_rtt = together(rtt, flow.written_rtt);
        }
        let facts = TransferFacts {
            flow: &flow.plan.name,
            class,
            number: transfer + 1,
            connection: u64::from(connection.number) + 1,
            start: connection.began,
            end: if is_complete { last_arrival } else { ended.unwrap_or(self.network.now()) },
            has_connected,
            bytes,
            outcome,
            counters: Some(counters(endpoint.counters(), connection.before)),
            rtt: together(rtt, rtt_before),
        };
        if let Some(transfers) = &mut flow.transfers {
            self.recorder.add_transfer(&facts, transfers);
        }
    }

    /// The memory of flows: present connections, and rows of past transfers.
    pub fn held_by_flows(&self) -> u64 {
        let connections = self.connections.pairs.len() as u64 * crate::FLOW_BYTES;
        connections + self.recorder.tables().transfers.in_memory() as u64 * ROW
    }

    /// Writes the rows of all flows at the end of the experiment.
    pub fn end_flows(&mut self) {
        for pair in 0..self.connections.pairs.len() {
            self.write_transfer(pair);
        }
        if self.recorder.has_meters() {
            self.read_meters(self.end());
        }
        self.recorder.make_room_for(self.flows.len());
        for (number, flow) in self.flows.iter().enumerate() {
            let mut facts = match (&flow.kind, &flow.transfers) {
                (_, Some(transfers)) => self.facts_of_many(flow, transfers),
                (Kind::One(pair), None) => self.facts_of_one(flow, *pair),
                (Kind::Datagrams(datagrams), None) => self.facts_of_datagrams(flow, datagrams),
                _ => unreachable!("a flow of another kind has transfers"),
            };
            self.recorder.add_flow(number, &mut facts);
        }
    }

    /// Reads the counters of all flows, at a mark or at the end.
    #[cold]
    pub fn read_meters(&mut self, at: Time) {
        let flows = self.flows.iter_mut();
        let mut totals: Vec<Activity> = flows
            .map(|flow| match &flow.kind {
                Kind::Datagrams(datagrams) => {
                    let seen = datagrams.seen.all();
                    let counters = Counters { sent_segments: seen.sent(), ..Counters::default() };
                    let (bytes, arrived) = (seen.bytes(), seen.arrived());
                    Activity { bytes, counters, arrived, ..Activity::default() }
                }
                _ => Activity {
                    bytes: flow.transfers.as_ref().map_or(0, |all| all.bytes),
                    counters: flow.transfers.as_ref().map(|all| all.counters).unwrap_or_default(),
                    rtt: flow.written_rtt.take(),
                    begun: flow.begun,
                    completed: flow.completed,
                    ..Activity::default()
                },
            })
            .collect();
        for pair in 0..self.connections.pairs.len() {
            let connection = &mut self.connections.pairs[pair];
            let is_one = matches!(self.flows[connection.flow].kind, Kind::One(_));
            if connection.transfer.is_none() && !is_one {
                continue;
            }
            let sender = &mut self.connections.ends[2 * pair].endpoint;
            let rtt = sender.rtt().map(round_trips);
            sender.restart_rtt_record();
            connection.rtt = together(rtt, connection.rtt);
            let counters = counters(sender.counters(), connection.before);
            let bytes = received(&self.connections.ends[2 * pair + 1].program).0;
            let present = Activity { bytes, counters, rtt, ..Activity::default() };
            totals[connection.flow].add(&present);
        }
        let done = self.flows.iter_mut().zip(totals).map(|(flow, total)| {
            let before = std::mem::replace(&mut flow.before, total);
            total.since(&before)
        });
        self.recorder.read_meters(at, done);
    }

    fn facts_of_one<'b>(&self, flow: &'b Flow<'_>, pair: usize) -> FlowFacts<'b>
    where
        Self: 'b,
    {
        let sender = &self.connections.ends[2 * pair].endpoint;
        let Program::Receive(receive) = &self.connections.ends[2 * pair + 1].program else {
            unreachable!("one end sends, the other receives")
        };
        let size = match &*flow.plan.traffic {
            Traffic::Bulk(bulk) => bulk.size.map(|size| size.0),
            _ => None,
        };
        let is_complete = size.is_some_and(|size| receive.received >= size);
        let outcome = match sender.ended().and_then(broken) {
            _ if is_complete => Outcome::Completed,
            Some(outcome) => outcome,
            None if !flow.has_started => Outcome::NotStarted,
            None if size.is_some() => Outcome::Unfinished,
            None => Outcome::Running,
        };
        FlowFacts {
            end: if is_complete { receive.last_arrival } else { self.end() },
            // With Fast Open, data arrives before the answer to the SYN does.
            has_connected: sender.has_connected() || receive.received > 0,
            bytes: receive.received,
            outcome,
            counters: counters(sender.counters(), SenderCounters::default()),
            rtt: together(sender.rtt().map(round_trips), self.connections.pairs[pair].rtt),
            totals: Some(totals(sender)),
            ..self.facts(flow)
        }
    }

    fn facts_of_many<'b>(&self, flow: &'b Flow<'_>, transfers: &'b Transfers) -> FlowFacts<'b>
    where
        Self: 'b,
    {
        let all = match &flow.kind {
            Kind::Requests(requests) => requests.spec.requests,
            Kind::Web(page) => Some(page.sessions.len() as u64),
            Kind::Arrivals(arriving) => arriving.spec.transfers,
            _ => None,
        };
        let is_complete = all == Some(transfers.completed);
        let outcome = match all {
            _ if is_complete => Outcome::Completed,
            _ if !flow.has_started => Outcome::NotStarted,
            Some(_) => Outcome::Unfinished,
            None => Outcome::Running,
        };
        FlowFacts {
            end: transfers.last_end.filter(|_| is_complete).unwrap_or(self.end()),
            has_connected: flow.has_connected,
            bytes: transfers.bytes,
            outcome,
            counters: transfers.counters,
            rtt: transfers.rtt,
            transfers: Some(transfers),
            ..self.facts(flow)
        }
    }

    fn facts_of_datagrams<'b>(
        &self,
        flow: &'b Flow<'_>,
        datagrams: &super::Datagrams<'_>,
    ) -> FlowFacts<'b>
    where
        Self: 'b,
    {
        let seen = datagrams.seen.all();
        let facts = seen.facts(self.end());
        let is_sent = datagrams.most == Some(seen.sent());
        let is_complete = is_sent && seen.arrived() == seen.sent();
        let has_lost_the_rest = is_sent && facts.lost == Some(seen.sent() - seen.arrived());
        let outcome = match datagrams.most {
            _ if is_complete => Outcome::Completed,
            _ if !flow.has_started => Outcome::NotStarted,
            Some(_) if has_lost_the_rest => Outcome::Partial,
            Some(_) => Outcome::Unfinished,
            None => Outcome::Running,
        };
        let has_ended = matches!(outcome, Outcome::Completed | Outcome::Partial);
        FlowFacts {
            // When the last datagram arrived, or if none did, when the last one was sent.
            end: seen
                .last_arrival()
                .or(seen.last_sent())
                .filter(|_| has_ended)
                .unwrap_or(self.end()),
            has_connected: flow.has_started,
            bytes: seen.bytes(),
            outcome,
            counters: Counters { sent_segments: seen.sent(), ..Counters::default() },
            datagrams: Some(datagrams.seen.facts(self.end())),
            ..self.facts(flow)
        }
    }

    /// The facts of a flow, to be filled in.
    fn facts<'b>(&self, flow: &'b Flow<'_>) -> FlowFacts<'b>
    where
        Self: 'b,
    {
        FlowFacts::new(accounts::identity(self.plan, flow.plan), (flow.start, self.end()))
    }

    /// When the experiment ends.
    pub fn end(&self) -> Time {
        Time::ZERO + self.plan.duration
    }
}

/// Why a connection broke, if it did.
fn broken(ended: Ended) -> Option<Outcome<'static>> {
    match ended {
        Ended::Reset => Some(Outcome::Reset),
        Ended::TimedOut => Some(Outcome::TimedOut),
        Ended::Normally => None,
    }
}

fn counters(now: SenderCounters, before: SenderCounters) -> Counters {
    Counters {
        sent_segments: now.sent_segments - before.sent_segments,
        retransmitted_segments: now.retransmitted_segments - before.retransmitted_segments,
        timeouts: now.timeouts - before.timeouts,
        loss_episodes: now.episodes - before.episodes,
    }
}

/// Bytes of the current transfer received, and when the last one arrived.
fn received(program: &Program) -> (u64, Option<Time>) {
    match program {
        Program::Receive(receive) => (receive.received, Some(receive.last_arrival)),
        Program::Ask(ask) => (ask.received, Some(ask.last_arrival)),
        Program::Send(_) | Program::Answer(_) => (0, None),
    }
}

/// The RTTs of two parts of a run together.
fn together(one: Option<RoundTrips>, other: Option<RoundTrips>) -> Option<RoundTrips> {
    one.map(|rtt| rtt.and(other)).or(other)
}

fn round_trips(rtt: RttSummary) -> RoundTrips {
    RoundTrips { count: rtt.count, sum_nanos: rtt.sum_nanos, min: rtt.min, max: rtt.max }
}

fn totals(sender: &Endpoint) -> FlowTotals {
    FlowTotals { written_bytes: sender.written_bytes(), sent_bytes: sender.sent_bytes() }
}
