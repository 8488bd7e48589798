//! Writes the tables.

use crate::capture::Capture;
use crate::connections::Whose;
use crate::observer::{Dropped, LEAVE, Network, Seen};
use tcplab_engine::{EndpointId, LaneId, LaneState, Packet as _};
use tcplab_model::{CongestionControl, FlowPlan, OrOff, Plan, Samples, memory};
use tcplab_tables::{
    Activity, DropRow, FlowFacts, Kind, Label, LaneTotals, LinkRow, Meters, PART, PacketRow,
    Produced, SampleRow, Tables, TransferFacts, Transfers, ecn, tcp_flags,
};
use tcplab_tcp::Endpoint;
use tcplab_units::{Duration, Time};
use tcplab_workload::accounts;

const _: () = assert!(memory::ROWS == PART as u64, "memory is estimated for parts of this size");

/// Tables are shown whenever so many rows were added to one of them, while the rows are still
/// cached.
pub const SHOWN: usize = 1024;

/// The records of a run so far.
#[derive(Clone)]
pub(crate) struct Recorder<'a> {
    plan: &'a Plan,
    tables: Tables,
    capture: Option<Box<Capture>>,
    show: Show<'a>,
    /// The sampling interval of flows; `None` if they are sampled at every ACK or never.
    pub sample_interval: Option<Duration>,
    /// The sampling interval of links.
    pub link_interval: Option<Duration>,
    /// Labels in the table of samples: the run's, and each flow's.
    run_in_samples: Label,
    flows_in_samples: Vec<Label>,
    /// The algorithm of each flow, and the columns of its internal state so far.
    algorithms: Vec<String>,
    internals: Vec<(String, &'static str, usize)>,
    run_in_links: Label,
    links: Vec<Link>,
    links_sampled: Time,
    /// Labels in the table of drops: by lane, and by flow.
    lanes_in_drops: Labels,
    flows_in_drops: Labels,
    /// Present if results are of part of a run, or of intervals.
    meters: Option<Meters>,
}

/// An observer of the tables while they grow, if there is one.
pub(crate) struct Show<'a>(pub Option<Look<'a>>);

/// The callback for tables that have grown.
type Look<'a> = Box<dyn FnMut(&Tables) + 'a>;

/// A copy of the tables has no observer.
impl Clone for Show<'_> {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// The labels of a table used so far, by number.
#[derive(Clone, Default)]
struct Labels(Vec<Option<Label>>);

impl Labels {
    /// Looking up a text among many would take longer than writing the row.
    fn get(&mut self, number: usize, label: impl FnOnce() -> Label) -> Label {
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        *self.0[number].get_or_insert_with(label)
    }
}

/// One direction of a link, and its counters at the last sample.
#[derive(Clone)]
struct Link {
    label: Label,
    busy: Duration,
    queue_packet_ps: u128,
    queue_byte_ps: u128,
}

impl<'a> Recorder<'a> {
    pub fn new(plan: &'a Plan, show: Show<'a>) -> Self {
        let mut tables = Tables::default();
        let run_in_samples = tables.samples.label(&plan.id);
        let mut flows_in_samples = Vec::new();
        let mut algorithms = Vec::new();
        if plan.record.samples != Samples::Off {
            flows_in_samples.extend(plan.flows.iter().map(|flow| tables.samples.label(&flow.name)));
            algorithms.extend(plan.flows.iter().map(|flow| {
                let cc = flow.cc().map(CongestionControl::algorithm);
                cc.unwrap_or_default().to_owned()
            }));
        }
        let run_in_links = tables.links.label(&plan.id);
        let links = plan.lanes.iter().map(|lane| Link {
            label: tables.links.label(&lane.name),
            busy: Duration::ZERO,
            queue_packet_ps: 0,
            queue_byte_ps: 0,
        });
        let links = links.collect();
        Self {
            plan,
            sample_interval: match plan.record.samples {
                Samples::Every(interval) => Some(interval),
                Samples::Ack | Samples::Off => None,
            },
            link_interval: match plan.record.links {
                OrOff::On(interval) => Some(interval),
                OrOff::Off => None,
            },
            tables,
            capture: Capture::new(plan),
            show,
            run_in_samples,
            flows_in_samples,
            algorithms,
            internals: Vec::new(),
            run_in_links,
            links,
            links_sampled: Time::ZERO,
            lanes_in_drops: Labels::default(),
            flows_in_drops: Labels::default(),
            meters: plan.measure.map(|_| {
                let start = |flow| Time::ZERO + tcplab_workload::start(flow, plan.seed);
                let flows = plan.flows.iter().map(|flow| (start(flow), accounts::work(flow)));
                Meters::new(accounts::window(plan), flows)
            }),
        }
    }

    /// The tables so far.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Whether packets are captured.
    pub fn captures(&self) -> bool {
        self.capture.is_some()
    }

    /// The number of captured packets.
    pub fn captured_packets(&self) -> usize {
        self.capture.as_ref().map_or(0, |capture| capture.packets())
    }

    /// A row was added to a table, which now has this length.
    #[inline]
    fn added(&mut self, rows: usize) {
        if rows.is_multiple_of(SHOWN)
            && let Some(show) = &mut self.show.0
        {
            show(&self.tables);
        }
    }

    /// The run continues as that of another plan, which has been equal so far, with these flows.
    pub fn go_on_as(&mut self, plan: &'a Plan, flows: &[FlowPlan]) {
        self.tables.rename(&self.plan.id, &plan.id);
        self.plan = plan;
        for (algorithm, flow) in self.algorithms.iter_mut().zip(flows) {
            if let Some(cc) = flow.cc() {
                cc.algorithm().clone_into(algorithm);
            }
        }
    }

    /// The label of a flow's transfer in the samples.
    pub fn label_of(&mut self, flow: &str, transfer: u64) -> Label {
        self.tables.samples.label(&format!("{flow}#{transfer}"))
    }

    /// Records a transfer that is over, or cut short by the end of the experiment.
    pub fn add_transfer(&mut self, facts: &TransferFacts<'_>, of_flow: &mut Transfers) {
        self.tables.add_transfer(&self.plan.id, facts, of_flow);
        self.added(self.tables.transfers.len());
    }

    /// Reserves space for so many flows.
    pub fn make_room_for(&mut self, flows: usize) {
        self.tables.flows.reserve(flows);
    }

    /// Records a flow at the end of the experiment.
    pub fn add_flow(&mut self, number: usize, facts: &mut FlowFacts<'_>) {
        if let Some(meters) = &self.meters {
            meters.narrow(number, facts);
        }
        self.tables.add_flow(&self.plan.id, facts);
    }

    /// When the counters of flows are read next.
    pub fn next_mark(&self) -> Option<Time> {
        self.meters.as_ref()?.next_mark()
    }

    /// Whether the counters of flows are read at marks.
    pub fn has_meters(&self) -> bool {
        self.meters.is_some()
    }

    /// Takes the activity of flows since the last mark.
    pub fn read_meters(&mut self, at: Time, done: impl IntoIterator<Item = Activity>) {
        let (plan, Some(meters)) = (self.plan, &mut self.meters) else { return };
        let identity = |flow: usize| accounts::identity(plan, &plan.flows[flow]);
        meters.read(at, done, (&mut self.tables, &plan.id), identity);
    }

    /// Samples the sender of a flow. `label`: that of one of its transfers.
    pub fn sample_flow(
        &mut self,
        now: Time,
        (flow, label): (usize, Option<Label>),
        end: &Endpoint,
    ) {
        let seen = end.snapshot();
        let samples = &mut self.tables.samples;
        samples.push(SampleRow {
            run: self.run_in_samples,
            flow: label.unwrap_or(self.flows_in_samples[flow]),
            time_s: now.as_secs_f64(),
            cwnd_segments: seen.cwnd,
            ssthresh_segments: seen.ssthresh,
            rtt_ms: (!seen.rtt.is_zero()).then(|| seen.rtt.as_millis_f64()),
            srtt_ms: (!seen.srtt.is_zero()).then(|| seen.srtt.as_millis_f64()),
            rto_ms: seen.rto.as_millis_f64(),
            in_flight_segments: seen.in_flight,
            acked_bytes: seen.acked_bytes,
            pacing_mbit_s: seen.pacing.map(|rate| rate.bits_per_second() as f64 / 1e6),
            delivery_rate_mbit_s: seen
                .delivery_rate
                .map(|rate| rate.bits_per_second() as f64 / 1e6),
        });
        let (algorithm, internals) = (&self.algorithms[flow], &mut self.internals);
        end.probe(&mut |name, value| {
            let known = internals.iter().find(|known| known.1 == name && known.0 == *algorithm);
            let column = if let Some(known) = known {
                known.2
            } else {
                let column = samples.extra(&format!("{algorithm}_{name}"), Kind::Number);
                internals.push((algorithm.clone(), name, column));
                column
            };
            samples.set_number(column, value);
        });
        self.added(self.tables.samples.len());
    }

    pub fn sample_links(&mut self, now: Time, network: &mut Network) {
        let interval = now.since(self.links_sampled);
        // The mean of an integral over the queue since the last sample.
        let mean = |until: u128, since: u128| (until - since) as f64 / interval.as_picos() as f64;
        self.links_sampled = now;
        for number in 0..self.links.len() {
            let link = &mut self.links[number];
            let state = network.sample(LaneId(number as u32));
            let LaneState { counters, occupancy, .. } = state;
            self.tables.links.push(LinkRow {
                run: self.run_in_links,
                link: link.label,
                time_s: now.as_secs_f64(),
                queue_packets: state.queue_packets,
                queue_bytes: state.queue_bytes,
                queue_max_packets: occupancy.max_packets,
                queue_max_bytes: occupancy.max_bytes,
                queue_mean_packets: mean(occupancy.packet_ps, link.queue_packet_ps),
                queue_mean_bytes: mean(occupancy.byte_ps, link.queue_byte_ps),
                dropped_packets: counters.dropped_packets,
                lost_packets: counters.lost_packets,
                marked_packets: counters.marked_packets,
                sent_packets: counters.sent_packets,
                sent_bytes: counters.sent_bytes,
                utilisation: (state.busy - link.busy).as_secs_f64() / interval.as_secs_f64(),
            });
            link.busy = state.busy;
            link.queue_packet_ps = occupancy.packet_ps;
            link.queue_byte_ps = occupancy.byte_ps;
            self.added(self.tables.links.len());
        }
    }

    /// Records drops. `whose`: the connection of packets for a route endpoint.
    #[cold]
    pub fn add_drops(&mut self, drops: Vec<Dropped>, whose: impl Fn(EndpointId) -> Whose) {
        let plan = self.plan;
        let run = self.tables.drops.label(&plan.id);
        for drop in drops {
            let table = &mut self.tables.drops;
            let (lane, flow) = (drop.lane.0 as usize, whose(drop.to).flow);
            let link = self.lanes_in_drops.get(lane, || table.label(&plan.lanes[lane].name));
            let row = DropRow {
                run,
                time_s: drop.at.as_secs_f64(),
                link: Some(link),
                flow: Some(self.flows_in_drops.get(flow, || table.label(&plan.flows[flow].name))),
                bytes: drop.bytes.into(),
                reason: table.label(drop.reason),
            };
            table.push(row);
            self.added(self.tables.drops.len());
        }
    }

    /// Records packets at points; `whose` as for drops.
    #[cold]
    pub fn add_packets(&mut self, seen: Vec<Seen>, whose: impl Fn(EndpointId) -> Whose) {
        let plan = self.plan;
        let run = self.tables.packets.label(&plan.id);
        for seen in seen {
            let whose = whose(seen.to);
            if seen.point == LEAVE
                && let Some(capture) = &mut self.capture
            {
                capture.add(plan, &seen, &whose);
            }
            if !plan.record.packets.contains(&(seen.lane.0 as usize)) {
                continue;
            }
            let Seen { at, lane, point, packet, .. } = seen;
            let table = &mut self.tables.packets;
            let headers = packet.headers();
            let flags = headers.flags.map(tcp_flags);
            let row = PacketRow {
                run,
                time_s: at.as_secs_f64(),
                link: table.label(&plan.lanes[lane.0 as usize].name),
                point: table.label(point),
                flow: Some(table.label(&plan.flows[whose.flow].name)),
                transport: table.label(headers.transport),
                seq: headers.seq.map(u64::from),
                ack: headers.ack.map(u64::from),
                window: headers.window.map(u64::from),
                flags: flags.map(|flags| table.label(&flags)),
                ecn: ecn(headers.ecn).map(|ecn| table.label(ecn)),
                payload_bytes: headers.payload.into(),
                bytes: packet.wire_bytes().into(),
            };
            table.push(row);
            self.added(self.tables.packets.len());
        }
    }

    /// Adds the final data: lane counters, the run itself and the captured packets.
    pub fn finish(mut self, lanes: impl Iterator<Item = LaneState>) -> Produced {
        let plan = self.plan;
        self.tables.totals.lanes.extend(lanes.map(|lane| totals(&lane)));
        let packet_hops = self.tables.totals.lanes.iter().map(|lane| lane.arrived).sum();
        self.tables.add_run(&accounts::run(plan, packet_hops));
        let capture = self.capture.map(|capture| (tcplab_capture::FILE.into(), capture.finish()));
        Produced { tables: self.tables, files: capture.into_iter().collect() }
    }
}

/// The whereabouts of the packets that entered a lane.
fn totals(lane: &LaneState) -> LaneTotals {
    LaneTotals {
        entered: lane.counters.entered_packets,
        arrived: lane.counters.arrived_packets,
        dropped: lane.counters.dropped_packets,
        lost: lane.counters.lost_packets,
        queued: lane.queue_packets,
        in_transit: lane.transit_packets,
    }
}
