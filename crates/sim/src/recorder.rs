//! Writes the tables.

use crate::packet::OnWire;
use crate::traffic::Flow;
use tcplab_engine::{LaneId, LaneState, Network, Packet, Reason};
use tcplab_model::{OrOff, Plan, Samples};
use tcplab_tables::{
    DropRow, FlowRow, FlowTotals, Kind, Label, LaneTotals, LinkRow, Run, SampleRow, Tables,
};
use tcplab_tcp::{Ended, Endpoint};
use tcplab_units::{Duration, Time};

/// What was recorded so far.
pub(crate) struct Recorder {
    tables: Tables,
    /// How often flows are sampled; none if at every ACK or never.
    pub sample_interval: Option<Duration>,
    /// How often links are sampled.
    pub link_interval: Option<Duration>,
    /// Labels in the table of samples: the run's, and each flow's.
    run_in_samples: Label,
    flows_in_samples: Vec<Label>,
    /// The algorithm of each flow, and the columns found for its internals so far.
    algorithms: Vec<String>,
    internals: Vec<(String, &'static str, usize)>,
    run_in_links: Label,
    links: Vec<Link>,
    links_sampled: Time,
}

/// A packet that did not arrive.
#[derive(Clone, Copy)]
pub(crate) struct Dropped {
    pub at: Time,
    pub lane: LaneId,
    /// The end of a flow that it was for, or from.
    pub end: usize,
    pub packet: OnWire,
    /// As the kernel calls it.
    pub reason: &'static str,
}

/// One direction of a link, and what had been counted when it was last sampled.
struct Link {
    label: Label,
    busy: Duration,
    queue_packet_ps: u128,
    queue_byte_ps: u128,
}

impl Recorder {
    pub fn new(plan: &Plan) -> Self {
        let mut tables = Tables::default();
        let run_in_samples = tables.samples.label(&plan.id);
        let mut flows_in_samples = Vec::new();
        let mut algorithms = Vec::new();
        if plan.record.samples != Samples::Off {
            flows_in_samples.extend(plan.flows.iter().map(|flow| tables.samples.label(&flow.name)));
            algorithms.extend(plan.flows.iter().map(|flow| flow.cc().algorithm().to_owned()));
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
            sample_interval: match plan.record.samples {
                Samples::Every(interval) => Some(interval),
                Samples::Ack | Samples::Off => None,
            },
            link_interval: match plan.record.links {
                OrOff::On(interval) => Some(interval),
                OrOff::Off => None,
            },
            tables,
            run_in_samples,
            flows_in_samples,
            algorithms,
            internals: Vec::new(),
            run_in_links,
            links,
            links_sampled: Time::ZERO,
        }
    }

    /// Samples of flows so far.
    pub fn samples(&self) -> usize {
        self.tables.samples.len()
    }

    /// Samples of links so far.
    pub fn links(&self) -> usize {
        self.tables.links.len()
    }

    pub fn sample_flow(&mut self, now: Time, flow: usize, end: &Endpoint) {
        let seen = end.snapshot();
        let samples = &mut self.tables.samples;
        samples.push(SampleRow {
            run: self.run_in_samples,
            flow: self.flows_in_samples[flow],
            time_s: now.as_secs_f64(),
            cwnd_segments: seen.cwnd,
            ssthresh_segments: seen.ssthresh,
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
    }

    pub fn sample_links(&mut self, now: Time, network: &mut Network<OnWire>) {
        let interval = now.since(self.links_sampled);
        // An integral over the queue since the last sample, as a mean.
        let mean = |until: u128, since: u128| (until - since) as f64 / interval.as_picos() as f64;
        self.links_sampled = now;
        for (number, link) in self.links.iter_mut().enumerate() {
            let state = network.lane(LaneId(number as u32)).sample(now);
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
        }
    }

    /// Adds what is known at the end: the flows and the run itself.
    pub fn finish<'a>(
        mut self,
        plan: &Plan,
        flows: impl Iterator<Item = (&'a Flow, &'a Endpoint)>,
        lanes: impl Iterator<Item = LaneState>,
        mut drops: Vec<Dropped>,
    ) -> Tables {
        self.tables.totals.lanes.extend(lanes.map(|lane| totals(&lane)));
        let packet_hops = self.tables.totals.lanes.iter().map(|lane| lane.arrived).sum();
        // What is lost is known before it enters the wire.
        drops.sort_by_key(|drop| drop.at);
        self.tables.flows.reserve(plan.flows.len());
        for (planned, (flow, sender)) in plan.flows.iter().zip(flows) {
            let table = &mut self.tables.flows;
            let ended_at = Time::ZERO + plan.duration;
            let end = if flow.is_complete() { flow.last_arrival } else { ended_at };
            let elapsed = end.since(flow.start).as_secs_f64();
            let bits = flow.received as f64 * 8.0;
            // With Fast Open data arrives before the answer to the SYN does.
            let has_connected = sender.has_connected() || flow.received > 0;
            let goodput = (has_connected && elapsed > 0.0).then_some(bits / elapsed);
            let bottleneck = &plan.lanes[planned.bottleneck];
            let counters = sender.counters();
            let rtt = sender.rtt();
            let row = FlowRow {
                run: table.label(&plan.id),
                flow: table.label(&planned.name),
                class: table.label(&planned.class),
                from: table.label(&plan.nodes[planned.from]),
                to: table.label(&plan.nodes[planned.to]),
                cc: table.label(&planned.cc().name),
                start_s: flow.start.as_secs_f64(),
                end_s: end.as_secs_f64(),
                bytes: flow.received,
                goodput_mbit_s: goodput.map(|goodput| goodput / 1e6),
                bottleneck: table.label(&bottleneck.name),
                bottleneck_share: goodput
                    .map(|goodput| goodput / bottleneck.rate.bits_per_second() as f64),
                completion_s: flow.is_complete().then_some(elapsed),
                outcome: table.label(outcome(flow, sender)),
                sent_segments: counters.sent_segments,
                retransmitted_segments: counters.retransmitted_segments,
                timeouts: counters.timeouts,
                loss_episodes: counters.episodes,
                rtt_min_ms: rtt.map(|rtt| rtt.min.as_millis_f64()),
                rtt_mean_ms: rtt.map(|rtt| rtt.mean.as_millis_f64()),
                rtt_max_ms: rtt.map(|rtt| rtt.max.as_millis_f64()),
            };
            table.push(row);
            self.tables.totals.flows.push(Some(FlowTotals {
                written_bytes: sender.written_bytes(),
                sent_bytes: sender.sent_bytes(),
            }));
        }
        self.add_drops(plan, drops);
        self.tables.add_run(&Run {
            id: &plan.id,
            experiment: &plan.experiment,
            backend: &plan.backend,
            version: &plan.version,
            seed: plan.seed,
            repetition: plan.repetition,
            simulated_s: plan.duration.as_secs_f64(),
            packet_hops,
            swept: &plan.swept,
        });
        self.tables
    }
}

impl Recorder {
    fn add_drops(&mut self, plan: &Plan, drops: Vec<Dropped>) {
        let table = &mut self.tables.drops;
        let end = Time::ZERO + plan.duration;
        for drop in drops.into_iter().take_while(|drop| drop.at <= end) {
            let row = DropRow {
                run: table.label(&plan.id),
                time_s: drop.at.as_secs_f64(),
                link: Some(table.label(&plan.lanes[drop.lane.0 as usize].name)),
                flow: Some(table.label(&plan.flows[drop.end / 2].name)),
                bytes: drop.packet.wire_bytes().into(),
                reason: table.label(drop.reason),
            };
            table.push(row);
        }
    }
}

/// Where the packets are that entered a lane.
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

/// As the kernel calls it.
pub(crate) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Full => "QUEUE_FULL",
        Reason::Discipline => "QDISC_DROP",
        Reason::Lost => "LOST_ON_THE_WIRE",
    }
}

/// As the backend `linux` says it.
fn outcome(flow: &Flow, sender: &Endpoint) -> &'static str {
    match sender.ended() {
        _ if flow.is_complete() => "completed",
        Some(Ended::Reset) => "reset",
        Some(Ended::TimedOut) => "timed out",
        Some(Ended::Normally) | None if flow.has_started && flow.source.size.is_some() => {
            "unfinished"
        }
        Some(Ended::Normally) | None if flow.has_started => "running",
        Some(Ended::Normally) | None => "not started",
    }
}
