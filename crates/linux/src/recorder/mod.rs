//! Writes the tables from what the kernel says.

mod drops;
mod flows;
mod lanes;
mod packets;
mod samples;

use crate::Produced;
use crate::capture::Capture;
use crate::files;
use crate::records::{Content, Record, Sample, Socket, Summary, Tick, Unreadable};
use drops::Dropped;
use lanes::Lane;
use packets::Seen;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tcplab_guest::job::{Job, Traffic};
use tcplab_guest::report::{Datagrams, Report};
use tcplab_model::Plan;
use tcplab_model::memory::{CAPTURED, DROP, Held, ROW};
use tcplab_tables::{Run, Tables};

/// What was recorded so far.
pub(crate) struct Recorder<'a> {
    plan: &'a Plan,
    job: &'a Job,
    tables: Tables,
    capture: Capture,
    /// When the experiment began.
    begin: Option<u64>,
    /// By client, the flow whose connection or session it is, and which of them.
    clients: BTreeMap<(Ipv4Addr, u16), (usize, usize)>,
    /// By the server's address, flows of programs.
    programs: BTreeMap<Ipv4Addr, usize>,
    /// By the kernel's number.
    sockets: BTreeMap<u32, Socket>,
    /// By flow and number.
    connections: BTreeMap<(usize, usize), Connection>,
    /// How many connections each flow of programs has opened.
    opened: BTreeMap<usize, usize>,
    /// By flow of requests, the bytes of the answers before the present one.
    acked: BTreeMap<usize, u64>,
    lanes: Vec<Lane>,
    drops: Vec<Dropped>,
    /// Packets that are to be rows of a table.
    packets: Vec<Seen>,
    exits: BTreeMap<(usize, String), Option<i32>>,
    /// Samples of connections of which it is not known yet which end sends.
    undecided: usize,
    held: Held,
}

/// A connection with all that is known of it.
#[derive(Default)]
struct Connection {
    client: Option<Summary>,
    server: Option<Summary>,
    told: Option<Told>,
    opened: Option<u64>,
    closed: Option<u64>,
    /// Samples of both ends, while it is not known which of them sends the data.
    samples: Vec<(bool, u64, Sample)>,
}

/// What the guest reports of a connection.
struct Told {
    port: u16,
    start: u64,
    received: Option<u64>,
    complete: Option<u64>,
    datagrams: Option<Datagrams>,
    error: Option<String>,
}

/// The bytes of all that is known of a session or request.
const PART: u64 = 1000;

/// The lane of packets that are on none (`TCPLAB_NO_LANE`).
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
            // Of sessions that share connections, those that begin them.
            for k in 0..parts.min(flow.traffic.connections()) {
                clients.insert((flow.client.address, flow.client.port + k as u16), (number, k));
            }
        }
        Self {
            plan,
            job,
            tables: Tables::default(),
            capture: Capture::default(),
            begin: None,
            clients,
            programs,
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            opened: BTreeMap::new(),
            acked: BTreeMap::new(),
            lanes: vec![Lane::default(); plan.lanes.len()],
            drops: Vec::new(),
            packets: Vec::new(),
            exits: BTreeMap::new(),
            undecided: 0,
            held: crate::least_memory(plan),
        }
    }

    /// What the run holds in memory.
    pub fn held(&self) -> Held {
        // Each connection has two sockets, and may serve many sessions or requests.
        let connections = self.sockets.len().div_ceil(2) as u64;
        let flows = connections * crate::FLOW_BYTES + self.connections.len() as u64 * PART;
        Held {
            flows: self.held.flows.max(flows),
            samples: (self.tables.samples.len() + self.undecided) as u64 * ROW,
            links: self.tables.links.len() as u64 * ROW,
            drops: self.drops.len() as u64 * DROP,
            captures: self.capture.len() as u64 * CAPTURED,
            points: self.packets.len() as u64 * ROW,
            ..self.held
        }
    }

    /// Takes in a record.
    ///
    /// # Errors
    /// The record speaks of a flow, a connection or a lane that is not of the job: the guest is not as it was
    /// started.
    pub fn take(&mut self, record: Record) -> Result<(), Unreadable> {
        let Record { time, id, content } = record;
        // Sockets appear before the beginning too: programs may talk as soon as they are there.
        let after = self.begin.map(|begin| time.saturating_sub(begin));
        match content {
            Content::Tick(Tick::Begin) => self.begin = Some(time),
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
            Content::Packet { length, bytes } => {
                self.known_lane(id)?;
                if let Some(time) = after {
                    self.packet(id as usize, time, length, bytes);
                }
            }
        }
        Ok(())
    }

    fn known_lane(&self, id: u32) -> Result<(), Unreadable> {
        if (id as usize) < self.lanes.len() {
            return Ok(());
        }
        Err(Unreadable::forged(format!("lane {id}, where there are {}", self.lanes.len())))
    }

    /// A flow's number and that of one of its connections or sessions.
    fn known_part(&self, flow: usize, number: usize) -> Result<(), Unreadable> {
        let Some(known) = self.job.flows.get(flow) else {
            let flows = self.job.flows.len();
            return Err(Unreadable::forged(format!("flow {flow}, where there are {flows}")));
        };
        match known.traffic.parts() {
            Some(parts) if number < parts => Ok(()),
            Some(parts) => Err(Unreadable::forged(format!(
                "connection {number} of flow {flow}, which has {parts}"
            ))),
            // The kernel tells of connections of programs, not the guest.
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
                let told = Told { port, start, received, complete, datagrams, error };
                self.connections.entry((flow, number)).or_default().told = Some(told);
            }
            Report::Session { flow, number, port } => {
                self.known_part(flow, number)?;
                self.go_on(flow, number);
                self.clients.insert((self.job.flows[flow].client.address, port), (flow, number));
            }
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

    /// A connection goes on with the next request. The kernel counts from zero again, and only what is
    /// acknowledged of its own data; samples go on.
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
            // A connection of programs: the first of its two ends gives it a number.
            let flow = *self.programs.get(&server).or_else(|| self.programs.get(&client.0))?;
            let number = self.opened.entry(flow).or_default();
            *number += 1;
            let key = (flow, *number - 1);
            self.clients.insert(client, key);
            Some(key)
        });
        if let Some(key) = key {
            self.connections.entry(key).or_default().opened.get_or_insert(time);
        }
        self.sockets.insert(id, socket);
    }

    /// A socket, and whose it is at present.
    fn known(&self, id: u32) -> Option<(Socket, (usize, usize))> {
        let socket = *self.sockets.get(&id)?;
        Some((socket, *self.clients.get(&client_of(&socket))?))
    }

    fn summary(&mut self, id: u32, time: u64, summary: Summary) {
        let Some((socket, key)) = self.known(id) else { return };
        let connection = self.connections.entry(key).or_default();
        if summary.is_over {
            connection.closed = Some(time);
        }
        *if socket.is_client { &mut connection.client } else { &mut connection.server } =
            Some(summary);
    }

    fn sample(&mut self, id: u32, time: u64, sample: &Sample) {
        let Some((socket, key)) = self.known(id) else { return };
        if self.is_of_programs(key.0) {
            let connection = self.connections.entry(key).or_default();
            connection.samples.push((socket.is_client, time, *sample));
            self.undecided += 1;
        } else if socket.is_client == self.client_sends(key) {
            self.add_sample(key, time, sample);
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

    /// What tables call a connection.
    fn name(&self, (flow, number): (usize, usize)) -> String {
        let name = &self.plan.flows[flow].name;
        if self.has_numbers(flow) { format!("{name}#{}", number + 1) } else { name.clone() }
    }

    /// How the programs of flows ended, by flow and side.
    pub fn take_exits(&mut self) -> BTreeMap<(usize, String), Option<i32>> {
        std::mem::take(&mut self.exits)
    }

    /// Adds what is known at the end: the flows, the run itself and the captured packets.
    pub fn finish(mut self) -> Produced {
        self.add_flows();
        self.add_drops();
        self.add_packets();
        self.tables.totals.lanes = self.lanes.iter().map(Lane::totals).collect();
        let plan = self.plan;
        self.tables.add_run(&Run {
            id: &plan.id,
            experiment: &plan.experiment,
            backend: &plan.backend,
            version: &plan.version,
            seed: plan.seed,
            repetition: plan.repetition,
            simulated_s: plan.duration.as_secs_f64(),
            packet_hops: self.packet_hops(),
            swept: &plan.swept,
        });
        let mut files = Vec::new();
        if !plan.record.captures.is_empty() {
            let lanes = plan.record.captures.iter();
            let lanes = lanes.map(|&lane| (lane as u32, plan.lanes[lane].name.as_str()));
            files.push((files::CAPTURE.into(), self.capture.file(&lanes.collect())));
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

/// Nanoseconds as seconds.
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
