//! The tables of flows and of transfers.

use super::{Connection, Recorder};
use crate::records::Summary;
use std::collections::BTreeMap;
use tcplab_guest::job::Traffic;
use tcplab_guest::report::Datagrams;
use tcplab_model::{self as model, FlowPlan, TrafficPlan};
use tcplab_tables::{
    Counters, FlowFacts, FlowIdentity, FlowTotals, Outcome, RoundTrips, TransferFacts, Transfers,
    Window,
};
use tcplab_units::{Duration, Time};
use tcplab_workload::{accounts, web};

impl Recorder<'_> {
    /// All that is known of a connection or session at the end.
    fn part(&mut self, key: (usize, usize)) -> Part {
        let client_sends = self.client_sends(key);
        let connection = self.connections.remove(&key).unwrap_or_default();
        let Connection { client, server, reported, opened, closed, undecided } = connection;
        let (sender, receiver) = if client_sends { (client, server) } else { (server, client) };
        let flow = &self.job.flows[key.0];
        let duration = self.job.duration;
        let complete = reported.as_ref().and_then(|reported| reported.completed(duration));
        let has_begun = reported.is_some() || opened.is_some();
        let start =
            reported.as_ref().map_or(opened.unwrap_or(flow.start), |reported| reported.start);
        // A program closes its connections when it has finished with them.
        let closed = closed.filter(|&time| self.is_of_programs(key.0) && time <= duration);
        let datagrams = reported.as_ref().and_then(|reported| reported.datagrams.clone());
        // All datagrams were sent: the time of the last arrival, or without any, of the last
        // transmission.
        let all_sent = |it: &Datagrams| it.finished.map(|last| it.arrived.unwrap_or(last));
        let spent = datagrams.as_ref().and_then(all_sent);
        let arrived = receiver.as_ref().map_or(0, |receiver| receiver.received_bytes);
        let bytes = reported.as_ref().and_then(|reported| reported.received).unwrap_or(arrived);
        let port = reported.as_ref().map_or(flow.client.port, |reported| reported.port);
        // With Fast Open, data arrives before the answer to the SYN does.
        let has_connected = datagrams.is_some()
            || bytes > 0
            || [&sender, &receiver].into_iter().flatten().any(|end| end.is_open);
        let end = match reported.and_then(|reported| reported.error) {
            _ if complete.or(closed).is_some() => End::Completed,
            Some(error) => End::Broken(error),
            None if spent.is_some() => End::Partial,
            None if has_begun && start < duration => End::Cut,
            None => End::NotStarted,
        };
        if self.is_of_programs(key.0) && end != End::NotStarted {
            let completed = complete.or(closed).filter(|_| end == End::Completed);
            self.decide(key.0, &undecided, client_sends, (start, completed));
        }
        Part {
            start,
            until: complete.or(closed).or(spent).unwrap_or(duration),
            end,
            connection: u64::from(port.saturating_sub(flow.client.port)) + 1,
            bytes,
            has_connected,
            sender,
            datagrams,
            is_turned: self.is_of_programs(key.0) && client_sends,
        }
    }

    /// Adds the rows of a flow that consists of a single part.
    fn add_flow(&mut self, number: usize) {
        let plan = self.plan;
        let planned = &plan.flows[number];
        let part = self.part((number, 0));
        let traffic = &self.job.flows[number].traffic;
        let mut counters = part.counters();
        if let Some(datagrams) = &part.datagrams {
            counters.sent_segments = datagrams.sent;
        }
        let times = (time(part.start), time(part.until));
        let mut facts = FlowFacts {
            has_connected: part.has_connected,
            bytes: part.bytes,
            outcome: part.end.outcome(traffic.ends()),
            counters,
            rtt: part.sender.as_ref().and_then(rtt),
            datagrams: part.datagrams.as_ref().and_then(|it| it.facts.as_deref().copied()),
            totals: part.totals(),
            ..FlowFacts::new(accounts::identity(plan, planned), times)
        };
        self.add_facts(number, &mut facts);
    }

    fn add_facts(&mut self, number: usize, facts: &mut FlowFacts<'_>) {
        if let Some(marks) = &self.marks {
            marks.narrow(number, facts);
        }
        self.tables.add_flow(&self.plan.id, facts);
    }

    /// Adds the rows of the transfers of all flows, in the order in which they end, and of the
    /// flows.
    pub(super) fn add_flows(&mut self) {
        let plan = self.plan;
        let mut parts = Vec::new();
        for number in 0..plan.flows.len() {
            if !self.has_transfers(number) {
                continue;
            }
            let known = self.connections.range((number, 0)..=(number, usize::MAX));
            let known: Vec<usize> = known.map(|(key, _)| key.1).collect();
            let classes = classes(&plan.flows[number]);
            for which in known {
                let class = classes.get(which).copied().unwrap_or(&plan.flows[number].class);
                let part = self.part((number, which));
                if part.end != End::NotStarted {
                    parts.push((number, which, class, part));
                }
            }
        }
        parts.sort_by_key(|(flow, which, _, part)| {
            (part.end == End::Cut, part.until, *flow, *which)
        });
        let window = accounts::window(plan);
        let mut sums: BTreeMap<usize, Sums> = BTreeMap::new();
        for (flow, which, class, part) in parts {
            let sums = sums.entry(flow).or_insert_with(|| Sums::within(window));
            let is_of_programs = self.is_of_programs(flow);
            let connection = if is_of_programs { which as u64 + 1 } else { part.connection };
            let facts = TransferFacts {
                flow: &plan.flows[flow].name,
                class,
                number: which as u64 + 1,
                connection,
                start: time(part.start),
                end: time(part.until),
                has_connected: part.has_connected,
                bytes: part.bytes,
                outcome: part.end.outcome(!is_of_programs),
                counters: Some(part.counters()),
                rtt: part.sender.as_ref().and_then(rtt),
            };
            self.tables.add_transfer(&plan.id, &facts, &mut sums.transfers);
            sums.add(&part);
        }
        self.finish_marks();
        for number in 0..plan.flows.len() {
            if self.has_transfers(number) {
                self.add_sums(number, &sums.remove(&number).unwrap_or_default());
            } else {
                self.add_flow(number);
            }
        }
    }

    /// Whether the traffic of a flow consists of many objects.
    pub(super) fn has_transfers(&self, flow: usize) -> bool {
        matches!(self.job.flows[flow].traffic, Traffic::Requests { .. }) || self.has_numbers(flow)
    }

    /// Whether samples and drops distinguish the connections or sessions of a flow.
    pub(super) fn has_numbers(&self, flow: usize) -> bool {
        matches!(
            self.job.flows[flow].traffic,
            Traffic::Command { .. }
                | Traffic::Transfers(_)
                | Traffic::Users(_)
                | Traffic::Sessions(_)
        )
    }

    /// Adds the row of a flow with transfers.
    fn add_sums(&mut self, number: usize, sums: &Sums) {
        let plan = self.plan;
        let (planned, job) = (&plan.flows[number], &self.job.flows[number]);
        let transfers = &sums.transfers;
        let is_of_programs = self.is_of_programs(number);
        let is_shared = matches!(job.traffic, Traffic::Sessions(_) | Traffic::Requests { .. });
        let all = match &*planned.traffic {
            // The guest only gets transfers that begin before the experiment ends.
            TrafficPlan::Arrivals(arrivals) => arrivals.transfers,
            _ => job.traffic.parts().map(|parts| parts as u64),
        };
        let all = all.unwrap_or(transfers.begun);
        let has_end = planned.traffic.has_end();
        // Programs end by themselves.
        let has_end = has_end || (is_of_programs && all > 0);
        let is_complete = has_end && transfers.completed == all;
        let is_turned = sums.turned_bytes > transfers.bytes / 2;
        let (from, to) =
            if is_turned { (planned.to, planned.from) } else { (planned.from, planned.to) };
        // Programs need some time before they communicate.
        let start = if is_of_programs { sums.start.unwrap_or(job.start) } else { job.start };
        let last = transfers.last_end.filter(|_| is_complete);
        let algorithm = sums.algorithm.as_deref().filter(|_| is_of_programs);
        let known = accounts::identity(plan, planned);
        let flow = FlowIdentity {
            from: &plan.nodes[from],
            to: &plan.nodes[to],
            cc: algorithm.or(known.cc),
            ..known
        };
        let end = last.unwrap_or(time(self.job.duration));
        let mut facts = FlowFacts {
            has_connected: sums.has_connected,
            bytes: transfers.bytes,
            outcome: match transfers.begun {
                0 if job.start >= self.job.duration => Outcome::NotStarted,
                _ if is_complete => Outcome::Completed,
                _ if planned.traffic.has_end() => Outcome::Unfinished,
                _ => Outcome::Running,
            },
            counters: transfers.counters,
            rtt: transfers.rtt,
            transfers: Some(transfers),
            // Data in flight when a session begins counts for the previous session at one end, and
            // for the new one at the other.
            totals: sums.totals.filter(|_| !is_shared),
            ..FlowFacts::new(flow, (time(start), end))
        };
        self.add_facts(number, &mut facts);
    }
}

/// A connection or session at its end.
struct Part {
    start: u64,
    /// The end of the part, or of the experiment.
    until: u64,
    end: End,
    /// From 1, among the connections that the guest makes.
    connection: u64,
    bytes: u64,
    has_connected: bool,
    sender: Option<Summary>,
    datagrams: Option<Datagrams>,
    /// Whether the client of programs sends the data, contrary to the flow's direction.
    is_turned: bool,
}

/// How a part ended.
#[derive(PartialEq)]
enum End {
    Completed,
    Broken(String),
    /// All datagrams were sent, and not all arrived.
    Partial,
    /// The experiment ended first.
    Cut,
    NotStarted,
}

impl End {
    fn outcome(&self, ends: bool) -> Outcome<'_> {
        match self {
            Self::Completed => Outcome::Completed,
            Self::Broken(error) if error.contains("reset") => Outcome::Reset,
            Self::Broken(error) if error.contains("timed out") => Outcome::TimedOut,
            Self::Broken(error) => Outcome::Failed(error),
            Self::Partial => Outcome::Partial,
            Self::Cut if ends => Outcome::Unfinished,
            Self::Cut => Outcome::Running,
            Self::NotStarted => Outcome::NotStarted,
        }
    }
}

impl Part {
    fn counters(&self) -> Counters {
        self.sender.as_ref().map_or(Counters::default(), counters)
    }

    fn totals(&self) -> Option<FlowTotals> {
        self.sender.as_ref().map(|sender| FlowTotals {
            written_bytes: sender.written_bytes,
            sent_bytes: sender.sent_bytes,
        })
    }
}

/// The counters of a sender.
pub(super) fn counters(sender: &Summary) -> Counters {
    Counters {
        sent_segments: sender.sent_segments,
        retransmitted_segments: sender.retransmitted_segments,
        timeouts: sender.timeouts,
        loss_episodes: sender.episodes,
    }
}

/// The RTTs of a sender, if it has any.
pub(super) fn rtt(sender: &Summary) -> Option<RoundTrips> {
    (sender.rtt_count > 0).then(|| RoundTrips {
        count: sender.rtt_count,
        sum_nanos: sender.rtt_sum_us.saturating_mul(1000),
        min: micros(sender.rtt_min_us),
        max: micros(sender.rtt_max_us),
    })
}

/// The sums over a flow's transfers.
#[derive(Default)]
struct Sums {
    transfers: Transfers,
    start: Option<u64>,
    has_connected: bool,
    /// Bytes that went from the client of programs to their server.
    turned_bytes: u64,
    /// The congestion control of a sending program.
    algorithm: Option<String>,
    totals: Option<FlowTotals>,
}

impl Sums {
    fn within(window: Window) -> Self {
        Self { transfers: Transfers::within(window), ..Self::default() }
    }

    fn add(&mut self, part: &Part) {
        self.start = Some(self.start.map_or(part.start, |start| start.min(part.start)));
        self.has_connected |= part.has_connected;
        let turned = if part.is_turned { part.bytes } else { 0 };
        self.turned_bytes = self.turned_bytes.saturating_add(turned);
        let algorithm = part.sender.as_ref().map(|sender| &sender.algorithm);
        self.algorithm = self.algorithm.take().or(algorithm.cloned());
        if let Some(totals) = part.totals() {
            let sum = self.totals.get_or_insert_default();
            sum.written_bytes = sum.written_bytes.saturating_add(totals.written_bytes);
            sum.sent_bytes = sum.sent_bytes.saturating_add(totals.sent_bytes);
        }
    }
}

/// The classes of a flow's transfers, by number; empty if they have that of the flow.
fn classes(planned: &FlowPlan) -> Vec<&str> {
    match &*planned.traffic {
        model::TrafficPlan::Web(web) => web::sessions(web).map(|session| session.class).collect(),
        _ => Vec::new(),
    }
}

/// A time from nanoseconds after the start. A forged record may hold any number.
fn time(nanos: u64) -> Time {
    Time::from_picos(nanos.saturating_mul(1000))
}

/// A duration from microseconds, saturating.
fn micros(value: u64) -> Duration {
    Duration::from_picos(value.saturating_mul(1_000_000))
}
