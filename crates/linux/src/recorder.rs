//! Writes the tables from what the kernel says.

use crate::Outcome;
use crate::capture::Capture;
use crate::files;
use crate::records::{
    Content, Drop, Internals, LaneState, Record, Sample, Socket, Summary, Tick, Unreadable,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tcplab_guest::job::{Job, Traffic};
use tcplab_guest::report::{Datagrams, Report};
use tcplab_model::memory::{CAPTURED, DROP, Held, ROW};
use tcplab_model::{self as model, FlowPlan, Plan};
use tcplab_tables::{
    DropRow, FlowRow, FlowTotals, Kind, LaneTotals, LinkRow, Run, SampleRow, Tables,
};
use tcplab_workload::web;

/// What TCP calls a threshold that has not been set (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

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
    lanes: Vec<Lane>,
    drops: Vec<Dropped>,
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
    start: u64,
    received: Option<u64>,
    complete: Option<u64>,
    datagrams: Option<Datagrams>,
    error: Option<String>,
}

/// A lane as it was last seen, and as it was last sampled.
#[derive(Clone, Copy, Default)]
struct Lane {
    seen: LaneState,
    /// When it was sampled, and what had been counted then.
    sampled: u64,
    busy_ps: u64,
    queue_packet_ps: u128,
    queue_byte_ps: u128,
    /// Packets that were dropped or lost after the end of the experiment, before the kernel stopped.
    late_dropped: u64,
    late_lost: u64,
}

/// A packet that did not arrive.
struct Dropped {
    time: u64,
    lane: usize,
    flow: Option<String>,
    bytes: u32,
    reason: String,
}

/// The lane of packets that are on none (`TCPLAB_NO_LANE`).
const NO_LANE: u32 = u32::MAX;

/// How the kernel part of this backend calls a loss on the wire.
const LOST: &str = "LOST_ON_THE_WIRE";

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
            lanes: vec![Lane::default(); plan.lanes.len()],
            drops: Vec::new(),
            exits: BTreeMap::new(),
            undecided: 0,
            held: crate::least_memory(plan),
        }
    }

    /// What the run holds in memory.
    pub fn held(&self) -> Held {
        let flows = self.connections.len() as u64 * crate::FLOW_BYTES;
        Held {
            flows: self.held.flows.max(flows),
            samples: (self.tables.samples.len() + self.undecided) as u64 * ROW,
            links: self.tables.links.len() as u64 * ROW,
            drops: self.drops.len() as u64 * DROP,
            captures: self.capture.len() as u64 * CAPTURED,
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
                    self.capture.add(id, time, length, bytes);
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
                start,
                received,
                complete,
                datagrams,
                error,
                ..
            } => {
                self.known_part(flow, number)?;
                let told = Told { start, received, complete, datagrams, error };
                self.connections.entry((flow, number)).or_default().told = Some(told);
            }
            Report::Session { flow, number, port } => {
                self.known_part(flow, number)?;
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
        match self.job.flows[flow].traffic {
            Traffic::Command { .. } | Traffic::Transfers(_) | Traffic::Sessions(_) => {
                format!("{name}#{}", number + 1)
            }
            _ => name.clone(),
        }
    }

    fn add_sample(&mut self, key: (usize, usize), time: u64, sample: &Sample) {
        let name = self.name(key);
        let cc = self.plan.flows[key.0].cc().algorithm();
        let samples = &mut self.tables.samples;
        let row = SampleRow {
            run: samples.label(&self.plan.id),
            flow: samples.label(&name),
            time_s: seconds(time),
            cwnd_segments: sample.cwnd.into(),
            ssthresh_segments: (sample.ssthresh < NO_THRESHOLD).then_some(sample.ssthresh.into()),
            srtt_ms: (sample.srtt_us > 0).then_some(f64::from(sample.srtt_us) / 1e3),
            rto_ms: f64::from(sample.rto_us) / 1e3,
            in_flight_segments: sample.in_flight.into(),
            acked_bytes: sample.acked_bytes,
            pacing_mbit_s: megabits(sample.pacing),
            delivery_rate_mbit_s: megabits(sample.delivery_rate),
        };
        samples.push(row);
        let mut internal = |name: &str, value: f64| {
            let column = samples.extra(&format!("{cc}_{name}"), Kind::Number);
            samples.set_number(column, value);
        };
        // Gains are in 1/256, the share of marks in 1/1024.
        match sample.internals {
            Internals::None => {}
            Internals::Vegas { rtt_us, min_rtt_us } => {
                // Here the least of the connection is called the RTT (`tcp_vegas_get_info`).
                let is_swapped = matches!(cc, "vegas" | "yeah");
                let (rtt_us, min_rtt_us) =
                    if is_swapped { (min_rtt_us, rtt_us) } else { (rtt_us, min_rtt_us) };
                // No sample in this round trip: 0x7fffffff.
                if rtt_us < NO_THRESHOLD {
                    internal("rtt_ms", f64::from(rtt_us) / 1e3);
                }
                if min_rtt_us < NO_THRESHOLD {
                    internal("base_rtt_ms", f64::from(min_rtt_us) / 1e3);
                }
            }
            Internals::Dctcp { alpha, ce_state } => {
                internal("alpha", f64::from(alpha) / 1024.0);
                internal("ce_state", f64::from(ce_state));
            }
            Internals::Bbr { bandwidth, min_rtt_us, pacing_gain, cwnd_gain } => {
                internal("bandwidth_mbit_s", bandwidth as f64 * 8.0 / 1e6);
                internal("min_rtt_ms", f64::from(min_rtt_us) / 1e3);
                internal("pacing_gain", f64::from(pacing_gain) / 256.0);
                internal("cwnd_gain", f64::from(cwnd_gain) / 256.0);
            }
        }
    }

    fn lane(&mut self, number: usize, time: u64, state: &LaneState) {
        let lane = &mut self.lanes[number];
        lane.seen = *state;
        let is_due = self.job.record.links.is_some_and(|interval| time.is_multiple_of(interval));
        // The end has a record of its own, beside that of the interval.
        if !is_due || time <= lane.sampled || time > self.job.duration {
            return;
        }
        // The kernel may look some nanoseconds after the time it means, at a packet that has just come.
        let busy_ps = state.busy_ps.max(lane.busy_ps);
        let interval = time - lane.sampled;
        let utilisation = (busy_ps - lane.busy_ps) as f64 / interval as f64 / 1e3;
        // An integral over the queue since the last sample, as a mean.
        let mean = |until: u128, since: u128| {
            until.saturating_sub(since) as f64 / (u128::from(interval) * 1000) as f64
        };
        let queue_mean_packets = mean(state.queue_packet_ps, lane.queue_packet_ps);
        let queue_mean_bytes = mean(state.queue_byte_ps, lane.queue_byte_ps);
        (lane.sampled, lane.busy_ps) = (time, busy_ps);
        (lane.queue_packet_ps, lane.queue_byte_ps) = (state.queue_packet_ps, state.queue_byte_ps);
        let links = &mut self.tables.links;
        let row = LinkRow {
            run: links.label(&self.plan.id),
            link: links.label(&self.plan.lanes[number].name),
            time_s: seconds(time),
            queue_packets: state.queue_packets,
            queue_bytes: state.queue_bytes,
            queue_max_packets: state.queue_max_packets,
            queue_max_bytes: state.queue_max_bytes,
            queue_mean_packets,
            queue_mean_bytes,
            dropped_packets: state.dropped_packets,
            lost_packets: state.lost_packets,
            marked_packets: state.marked_packets,
            sent_packets: state.sent_packets,
            sent_bytes: state.sent_bytes,
            utilisation,
        };
        links.push(row);
    }

    fn drop(&mut self, lane: usize, time: u64, drop: &Drop) {
        let key = self.clients.get(&drop.from).or_else(|| self.clients.get(&drop.to)).copied();
        if time > self.job.duration {
            if let Some(lane) = self.lanes.get_mut(lane) {
                let is_lost = drop.reason == LOST;
                *if is_lost { &mut lane.late_lost } else { &mut lane.late_dropped } += 1;
            }
            return;
        }
        let flow = key.map(|key| self.name(key));
        let (bytes, reason) = (drop.bytes, drop.reason.clone());
        self.drops.push(Dropped { time, lane, flow, bytes, reason });
    }

    fn add_drops(&mut self) {
        let drops = &mut self.tables.drops;
        // The kernel hears of a loss on the wire when it next looks at the lane.
        self.drops.sort_by_key(|drop| drop.time);
        for drop in &self.drops {
            let row = DropRow {
                run: drops.label(&self.plan.id),
                time_s: seconds(drop.time),
                link: self.plan.lanes.get(drop.lane).map(|lane| drops.label(&lane.name)),
                flow: drop.flow.as_ref().map(|name| drops.label(name)),
                bytes: drop.bytes.into(),
                reason: drops.label(&drop.reason),
            };
            drops.push(row);
        }
    }

    fn packet_hops(&self) -> u64 {
        let arrived = self.lanes.iter().map(|lane| lane.seen.arrived_packets);
        arrived.fold(0, u64::saturating_add)
    }

    /// How the programs of flows ended, by flow and side.
    pub fn take_exits(&mut self) -> BTreeMap<(usize, String), Option<i32>> {
        std::mem::take(&mut self.exits)
    }

    /// Adds what is known at the end: the flows, the run itself and the captured packets.
    pub fn finish(mut self) -> Outcome {
        for (number, planned) in self.plan.flows.iter().enumerate() {
            let opened = || self.opened.get(&number).copied().unwrap_or_default();
            let parts = self.job.flows[number].traffic.parts().unwrap_or_else(opened);
            let mut classes = classes(planned);
            for key in (0..parts).map(|part| (number, part)) {
                let connection = self.connections.remove(&key).unwrap_or_default();
                let class = classes.next().unwrap_or(&planned.class);
                self.add_flow(planned, class, key, connection);
            }
        }
        self.add_drops();
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
        Outcome { tables: self.tables, files }
    }

    fn add_flow(
        &mut self,
        planned: &FlowPlan,
        class: &str,
        key: (usize, usize),
        mut connection: Connection,
    ) {
        let samples = std::mem::take(&mut connection.samples);
        self.connections.insert(key, connection);
        let client_sends = self.client_sends(key);
        for (_, time, sample) in samples.iter().filter(|(side, ..)| *side == client_sends) {
            self.add_sample(key, *time, sample);
        }
        let connection = &self.connections[&key];
        let (sender, receiver) = if client_sends {
            (&connection.client, &connection.server)
        } else {
            (&connection.server, &connection.client)
        };
        let told = connection.told.as_ref();
        let duration = self.job.duration;
        let complete = told.and_then(|told| told.complete).filter(|&time| time <= duration);
        let opened = connection.opened.unwrap_or(self.job.flows[key.0].start);
        let start = told.map_or(opened, |told| told.start);
        // A program closes its connections when it is done with them.
        let closed =
            connection.closed.filter(|&time| self.is_of_programs(key.0) && time <= duration);
        let datagrams = told.and_then(|told| told.datagrams);
        // All datagrams were sent: when the last arrived, or if none did, when the last was sent.
        let spent = datagrams.and_then(|it| it.finished.map(|sent| it.arrived.unwrap_or(sent)));
        let end = complete.or(closed).or(spent).unwrap_or(duration);
        let arrived = receiver.as_ref().map_or(0, |receiver| receiver.received_bytes);
        let bytes = told.and_then(|told| told.received).unwrap_or(arrived);
        let elapsed = seconds(end.saturating_sub(start));
        let traffic = &self.job.flows[key.0].traffic;
        // With Fast Open data arrives before the answer to the SYN does.
        let has_connected = datagrams.is_some()
            || bytes > 0
            || [sender, receiver].into_iter().flatten().any(|end| end.is_open);
        let goodput = (has_connected && elapsed > 0.0).then_some(bytes as f64 * 8.0 / elapsed);
        let bottleneck = &self.plan.lanes[planned.bottleneck];
        let rtt = sender.as_ref().filter(|sender| sender.rtt_count > 0);
        let micros = |value: u64| value as f64 / 1e3;
        let count = |of: fn(&Summary) -> u64| sender.as_ref().map_or(0, of);
        let has_begun = told.is_some() || connection.opened.is_some();
        let outcome = match told.and_then(|told| told.error.as_deref()) {
            _ if complete.or(closed).is_some() => "completed".to_string(),
            Some(error) if error.contains("reset") => "reset".into(),
            Some(error) if error.contains("timed out") => "timed out".into(),
            Some(error) => error.to_lowercase(),
            None if spent.is_some() => "partial".into(),
            None if has_begun && start < duration => {
                if traffic.ends() { "unfinished" } else { "running" }.into()
            }
            None => "not started".into(),
        };
        // What is on its way where a session begins is counted with the one before at one end, and with
        // the new one at the other.
        let totals = sender.as_ref().filter(|_| !matches!(traffic, Traffic::Sessions(_)));
        let totals = totals.map(|sender| FlowTotals {
            written_bytes: sender.written_bytes,
            sent_bytes: sender.sent_bytes,
        });
        let cc = match (traffic, sender) {
            (Traffic::Udp { .. }, _) => "udp",
            (Traffic::Command { .. }, Some(sender)) => &sender.algorithm,
            _ => &planned.cc().name,
        };
        let is_turned = self.is_of_programs(key.0) && client_sends;
        let (from, to) =
            if is_turned { (planned.to, planned.from) } else { (planned.from, planned.to) };
        let name = self.name(key);
        let table = &mut self.tables.flows;
        let row = FlowRow {
            run: table.label(&self.plan.id),
            flow: table.label(&name),
            class: table.label(class),
            from: table.label(&self.plan.nodes[from]),
            to: table.label(&self.plan.nodes[to]),
            cc: table.label(cc),
            start_s: seconds(start),
            end_s: seconds(end),
            bytes,
            goodput_mbit_s: goodput.map(|goodput| goodput / 1e6),
            bottleneck: table.label(&bottleneck.name),
            bottleneck_share: goodput
                .map(|goodput| goodput / bottleneck.rate.bits_per_second() as f64),
            completion_s: complete.or(closed).map(|_| elapsed),
            outcome: table.label(&outcome),
            sent_segments: datagrams.map_or_else(|| count(|it| it.sent_segments), |it| it.sent),
            retransmitted_segments: count(|it| it.retransmitted_segments),
            timeouts: count(|it| it.timeouts),
            loss_episodes: count(|it| it.episodes),
            rtt_min_ms: rtt.map(|it| micros(it.rtt_min_us)),
            rtt_mean_ms: rtt.map(|it| micros(it.rtt_sum_us) / it.rtt_count as f64),
            rtt_max_ms: rtt.map(|it| micros(it.rtt_max_us)),
        };
        table.push(row);
        self.tables.totals.flows.push(totals);
    }
}

impl Lane {
    /// Where the packets are that had entered it at the end of the experiment.
    fn totals(&self) -> LaneTotals {
        let state = &self.seen;
        // What a kernel that counts wrong says breaks the laws; that is found later.
        let late = self.late_dropped + self.late_lost;
        LaneTotals {
            entered: state.entered_packets.saturating_sub(late),
            arrived: state.arrived_packets,
            dropped: state.dropped_packets.saturating_sub(self.late_dropped),
            lost: state.lost_packets.saturating_sub(self.late_lost),
            queued: state.queue_packets,
            in_transit: state.transit_packets,
        }
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

/// The classes of a flow's rows where its traffic has them.
fn classes(planned: &FlowPlan) -> impl Iterator<Item = &str> {
    let web = match &*planned.traffic {
        model::Traffic::Web(web) => Some(web),
        _ => None,
    };
    web.into_iter().flat_map(|web| web::sessions(web).map(|session| session.class))
}

/// Bytes a second; none for zero.
fn megabits(rate: u64) -> Option<f64> {
    (rate > 0).then_some(rate as f64 * 8.0 / 1e6)
}

/// Nanoseconds as seconds.
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
