//! Writes the tables from the kernel's records.

mod drops;
mod flows;
mod lanes;
mod marks;
mod packets;
mod samples;

use crate::Produced;
use crate::headers::Side;
use crate::records::{Content, Occasion, Record, Sample, Socket, Summary, Tick, Unreadable};
use lanes::Lane;
use marks::{Marks, Undecided};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tcplab_capture::Writer;
use tcplab_guest::job::{Job, Traffic};
use tcplab_guest::report::{Datagrams, Report};
use tcplab_model::Plan;
use tcplab_model::memory::{CAPTURED, DROP, Held, ROW};
use tcplab_tables::{Label, Tables};
use tcplab_workload::accounts;

/// The records of a run so far.
pub(crate) struct Recorder<'a> {
    plan: &'a Plan,
    job: &'a Job,
    tables: Tables,
    /// The captured lanes, in order: each is an interface of the capture.
    captured: Vec<usize>,
    capture: Writer,
    /// The beginning of the experiment.
    begin: Option<u64>,
    /// The flow of each client, and the number of its connection or session.
    clients: BTreeMap<(Ipv4Addr, u16), (usize, usize)>,
    /// Flows of programs by the server's address.
    programs: BTreeMap<Ipv4Addr, usize>,
    /// Sockets by the kernel's number.
    sockets: BTreeMap<u32, Socket>,
    /// Connections by flow and number.
    connections: BTreeMap<(usize, usize), Connection>,
    /// The number of connections opened by each flow of programs.
    opened: BTreeMap<usize, usize>,
    /// For each flow of requests, the bytes of the responses before the current one.
    acked: BTreeMap<usize, u64>,
    lanes: Vec<Lane>,
    /// Present if results are of part of a run, or of intervals.
    marks: Option<Marks>,
    /// Labels of packets of unknown flows, by both sides.
    strangers: BTreeMap<(Side, Side), Label>,
    /// Labels of samples of programs, by connection and whether the end is the client.
    undecided: BTreeMap<((usize, usize), bool), Label>,
    exits: BTreeMap<(usize, String), Option<i32>>,
    held: Held,
}

/// All that is known of a connection.
#[derive(Default)]
struct Connection {
    client: Option<Summary>,
    server: Option<Summary>,
    reported: Option<Reported>,
    opened: Option<u64>,
    closed: Option<u64>,
    /// Activity up to each mark, while the sending end is unknown.
    undecided: Undecided,
}

/// The guest's report of a connection.
struct Reported {
    port: u16,
    start: u64,
    received: Option<u64>,
    complete: Option<u64>,
    datagrams: Option<Datagrams>,
    error: Option<String>,
}

/// The memory of a session or request, in bytes.
const PART: u64 = 1000;

/// The lane number of packets on none (`TCPLAB_NO_LANE`).
const NO_LANE: u32 = u32::MAX;

impl<'a> Recorder<'a> {
    pub fn new(plan: &'a Plan, job: &'a Job) -> Self {
        let mut clients = BTreeMap::new();
        let mut programs = BTreeMap::new();
        for (number, flow) in job.flows.iter().enumerate() {
            let Some(parts) = flow.traffic.parts() else {
                programs.insert(flow.server.address, number);
                continue;
            };
            // For sessions that share connections, only those that begin a connection.
            for k in 0..parts.min(flow.traffic.connections()) {
                clients.insert((flow.client.address, flow.client.port + k as u16), (number, k));
            }
        }
        let captured = plan.record.captured();
        Self {
            plan,
            job,
            tables: Tables::default(),
            capture: Writer::new(captured.iter().map(|&lane| plan.lanes[lane].name.as_str())),
            captured,
            begin: None,
            clients,
            programs,
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            opened: BTreeMap::new(),
            acked: BTreeMap::new(),
            lanes: vec![Lane::default(); plan.lanes.len()],
            marks: Marks::new(plan, job),
            strangers: BTreeMap::new(),
            undecided: BTreeMap::new(),
            exits: BTreeMap::new(),
            held: crate::least_memory(plan),
        }
    }

    /// The memory that the run holds.
    pub fn held(&self) -> Held {
        // Each connection has two sockets, and may serve many sessions or requests.
        let connections = self.sockets.len().div_ceil(2) as u64;
        let flows = connections * crate::FLOW_BYTES + self.connections.len() as u64 * PART;
        let waiting = self.marks.as_ref().map_or(0, Marks::waiting);
        Held {
            flows: self.held.flows.max(flows),
            samples: self.tables.samples.in_memory() as u64 * ROW,
            links: self.tables.links.in_memory() as u64 * ROW,
            drops: self.tables.drops.in_memory() as u64 * DROP,
            captures: self.capture.packets() as u64 * CAPTURED,
            points: self.tables.packets.in_memory() as u64 * ROW,
            intervals: (self.tables.intervals.in_memory() + waiting) as u64 * ROW,
            ..self.held
        }
    }

    /// Processes a record.
    ///
    /// # Errors
    /// The record refers to a flow, connection or lane that is not in the job: the guest was
    /// manipulated.
    pub fn take(&mut self, record: Record) -> Result<(), Unreadable> {
        let Record { time, id, content } = record;
        // Sockets appear before the beginning too: programs may communicate as soon as they run.
        let after = self.begin.map(|begin| time.saturating_sub(begin));
        match content {
            Content::Tick(Tick::Begin) => self.begin = Some(time),
            Content::Tick(Tick::Mark) => self.mark(after.unwrap_or(0))?,
            Content::Tick(_) => {}
            Content::Report(report) => self.report(report)?,
            Content::Socket(socket) => self.socket(id, after.unwrap_or(0), socket),
            Content::Summary(summary) => self.summary(id, after.unwrap_or(0), summary),
            Content::Sample(sample) => {
                if let Some(time) = after.filter(|&time| time <= self.job.duration) {
                    self.sample(id, time, &sample);
                }
            }
            Content::Lane(state) => {
                self.known_lane(id)?;
                if let Some(time) = after {
                    self.lane(id as usize, time, &state);
                }
            }
            Content::Drop(drop) => {
                if id != NO_LANE {
                    self.known_lane(id)?;
                }
                if let Some(time) = after {
                    self.drop(id as usize, time, &drop);
                }
            }
            Content::Packet(packet) => {
                self.known_lane(id)?;
                if let Some(time) = after {
                    self.packet(id as usize, time, packet);
                }
            }
        }
        Ok(())
    }

    fn known_lane(&self, id: u32) -> Result<(), Unreadable> {
        if (id as usize) < self.lanes.len() {
            return Ok(());
        }
        Err(Unreadable::forged(format!("lane {id}, but there are only {}", self.lanes.len())))
    }

    /// Checks the numbers of a flow and of one of its connections or sessions.
    fn known_part(&self, flow: usize, number: usize) -> Result<(), Unreadable> {
        let Some(known) = self.job.flows.get(flow) else {
            let flows = self.job.flows.len();
            return Err(Unreadable::forged(format!("flow {flow}, but there are only {flows}")));
        };
        match known.traffic.parts() {
            Some(parts) if number < parts => Ok(()),
            Some(parts) => Err(Unreadable::forged(format!(
                "connection {number} of flow {flow}, which has {parts}"
            ))),
            // Connections of programs are reported by the kernel, not by the guest.
            None => Err(Unreadable::forged(format!("a connection of flow {flow}, of programs"))),
        }
    }

    fn report(&mut self, report: Report) -> Result<(), Unreadable> {
        match report {
            Report::Failed { .. } => {}
            Report::Connection {
                flow,
                number,
                port,
                start,
                received,
                complete,
                datagrams,
                error,
            } => {
                self.known_part(flow, number)?;
                let error = error.map(|error| error.to_lowercase());
                let reported = Reported { port, start, received, complete, datagrams, error };
                if reported.completed(self.job.duration).is_some() {
                    self.note_transfer(flow, 0, 1);
                }
                self.connections.entry((flow, number)).or_default().reported = Some(reported);
            }
            Report::Session { flow, number, port } => {
                self.known_part(flow, number)?;
                self.go_on(flow, number);
                self.note_transfer(flow, 1, 0);
                self.clients.insert((self.job.flows[flow].client.address, port), (flow, number));
            }
            Report::Datagrams { flow, sent, arrived, bytes } => match &mut self.marks {
                Some(marks) => {
                    marks.datagrams(flow, marks::of_datagrams(sent, arrived, bytes))?;
                }
                None => {
                    return Err(Unreadable::forged(
                        "a snapshot record that was not scheduled".into(),
                    ));
                }
            },
            Report::Exited { flow, side, status } => {
                let has_programs = flow < self.job.flows.len() && self.is_of_programs(flow);
                if !has_programs || !["server", "client"].contains(&side.as_str()) {
                    let what = format!("the program {side:?} of flow {flow}");
                    return Err(Unreadable::forged(what));
                }
                self.exits.insert((flow, side), status);
            }
        }
        Ok(())
    }

    /// A connection continues with the next request. The kernel's counters start at zero again, and
    /// acknowledged bytes only count the connection's own data; samples continue.
    fn go_on(&mut self, flow: usize, number: usize) {
        let Some(before) = number.checked_sub(1).filter(|_| !self.has_numbers(flow)) else {
            return;
        };
        let client_sends = self.client_sends((flow, before));
        let Some(connection) = self.connections.get(&(flow, before)) else { return };
        let sender = if client_sends { &connection.client } else { &connection.server };
        let acked = self.acked.entry(flow).or_default();
        *acked = acked.saturating_add(sender.as_ref().map_or(0, |sender| sender.written_bytes));
    }

    fn socket(&mut self, id: u32, time: u64, socket: Socket) {
        let client = client_of(&socket);
        let server = if socket.is_client { socket.peer_address } else { socket.address };
        let key = self.clients.get(&client).copied().or_else(|| {
            // A connection of programs: the first of its two ends assigns a number.
            let flow = *self.programs.get(&server).or_else(|| self.programs.get(&client.0))?;
            let number = self.opened.entry(flow).or_default();
            *number += 1;
            let key = (flow, *number - 1);
            self.clients.insert(client, key);
            Some(key)
        });
        if let Some(key) = key {
            let opened = &mut self.connections.entry(key).or_default().opened;
            if opened.replace(opened.unwrap_or(time)).is_none() {
                self.note_transfer(key.0, 1, 0);
            }
        }
        self.sockets.insert(id, socket);
    }

    /// A socket, and its current connection or session.
    fn known(&self, id: u32) -> Option<(Socket, (usize, usize))> {
        let socket = *self.sockets.get(&id)?;
        Some((socket, *self.clients.get(&client_of(&socket))?))
    }

    fn summary(&mut self, id: u32, time: u64, mut summary: Summary) {
        let Some((socket, key)) = self.known(id) else { return };
        self.note_done((id, socket.is_client), key, &summary);
        let connection = self.connections.entry(key).or_default();
        if summary.occasion == Occasion::Closed {
            connection.closed = Some(time);
        }
        let end = if socket.is_client { &mut connection.client } else { &mut connection.server };
        if let Some(before) = end.take().filter(|before| before.occasion == Occasion::Marked) {
            summary.add_rtts(&before);
        }
        *end = Some(summary);
    }

    fn sample(&mut self, id: u32, time: u64, sample: &Sample) {
        let Some((socket, key)) = self.known(id) else { return };
        if self.is_of_programs(key.0) {
            self.add_undecided(key, socket.is_client, (time, sample));
        } else if socket.is_client == self.client_sends(key) {
            let name = self.name(key);
            let label = self.tables.samples.label(&name);
            self.add_sample(key, label, time, sample);
        }
    }

    fn is_of_programs(&self, flow: usize) -> bool {
        matches!(self.job.flows[flow].traffic, Traffic::Command { .. })
    }

    /// Whether the client of a connection sends the data.
    fn client_sends(&self, key: (usize, usize)) -> bool {
        if !self.is_of_programs(key.0) {
            return self.job.flows[key.0].client.host == self.plan.flows[key.0].from;
        }
        let sent = |end: &Option<Summary>| end.as_ref().map_or(0, |end| end.acked_bytes);
        self.connections.get(&key).is_none_or(|it| sent(&it.client) >= sent(&it.server))
    }

    /// The name of a connection in tables.
    fn name(&self, (flow, number): (usize, usize)) -> String {
        let name = &self.plan.flows[flow].name;
        if self.has_numbers(flow) { format!("{name}#{}", number + 1) } else { name.clone() }
    }

    /// The exit status of programs, by flow and side.
    pub fn take_exits(&mut self) -> BTreeMap<(usize, String), Option<i32>> {
        std::mem::take(&mut self.exits)
    }

    /// Adds the final data: the flows, the run itself and the captured packets.
    pub fn finish(mut self) -> Produced {
        self.order_undecided();
        self.order_drops();
        self.order_packets();
        self.add_flows();
        self.tables.totals.lanes = self.lanes.iter().map(Lane::totals).collect();
        let plan = self.plan;
        let run = accounts::run(plan, self.packet_hops());
        self.tables.add_run(&run);
        let mut files = Vec::new();
        if !self.captured.is_empty() {
            files.push((tcplab_capture::FILE.into(), self.capture.finish()));
        }
        Produced { tables: self.tables, files }
    }
}

/// The end that opened the connection.
fn client_of(socket: &Socket) -> (Ipv4Addr, u16) {
    if socket.is_client {
        (socket.address, socket.port)
    } else {
        (socket.peer_address, socket.peer_port)
    }
}

/// Sort keys for the order of time.
fn in_time(times: &[f64]) -> Vec<Option<u64>> {
    times.iter().map(|time| Some(time.to_bits())).collect()
}

/// Converts nanoseconds to seconds.
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
