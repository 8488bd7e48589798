//! Settings that do nothing, or hardly what was meant.
//!
//! A setting that cannot be meant is a mistake. What stands here has a meaning that somebody may want,
//! so the experiment runs.

use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan, QueueLimit, TcpPlan};
use crate::schema::{Discipline, Limit, Queue};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::{Bytes, Duration};

/// A queue of fewer packets drops from bursts that every sender makes: in slow start the ACK of two
/// segments releases four (RFC 5681 §3.1, RFC 1122 §4.2.3.2).
const FEW_PACKETS: u64 = 4;

/// All warnings about one variant, one for each place.
pub(crate) fn all(topology: &Topology, flows: &[FlowPlan], duration: Duration) -> Vec<Mistake> {
    let mut warnings = parallel_links(topology);
    warnings.extend(late_flows(flows, duration));
    warnings.extend(short_queues(topology, flows));
    warnings.extend(small_buffers(flows));
    warnings.extend(overloads(topology, flows));
    warnings
}

/// Links beside others: routes go by nodes, and take the first link between two of them.
fn parallel_links(topology: &Topology) -> Vec<Mistake> {
    let mut first: BTreeMap<_, &LanePlan> = BTreeMap::new();
    let mut warnings = Vec::new();
    for lane in topology.lanes.iter().step_by(2) {
        let used = *first.entry((lane.from.min(lane.to), lane.from.max(lane.to))).or_insert(lane);
        if std::ptr::eq(used, lane) {
            continue;
        }
        let [from, to] = [lane.from, lane.to].map(|node| &topology.nodes[node]);
        let reason = format!(
            "is never used: packets between \"{from}\" and \"{to}\" take the link of {}; to use both, \
             lead this one through a node of its own and choose that with [[network.routes]]",
            used.place
        );
        warnings.push(Problem::Invalid(reason).at(&lane.place));
    }
    warnings
}

/// Flows that are to begin when the experiment is over: they are in no statistic.
fn late_flows(flows: &[FlowPlan], duration: Duration) -> Vec<Mistake> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for flow in flows {
        let (late, all) = counts.entry(&flow.place).or_default();
        *late += usize::from(flow.start >= duration);
        *all += 1;
    }
    let late = counts.into_iter().filter(|(_, (late, _))| *late > 0);
    let warnings = late.map(|(place, (late, all))| {
        let reason = format!(
            "{late} of {all} would begin at the end of the experiment or later, which is at {duration}, \
             and do not run: they are in no statistic; to run all, make `duration` longer"
        );
        Problem::Invalid(reason).at(place)
    });
    warnings.collect()
}

/// Queues that are a multiple of a BDP of next to nothing.
fn short_queues(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let mut is_used = vec![false; topology.lanes.len()];
    for &lane in flows.iter().flat_map(|flow| flow.forward.iter().chain(&flow.back)) {
        is_used[lane] = true;
    }
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    let lanes = topology.lanes.iter().zip(&topology.queues).zip(is_used);
    for ((lane, queue), _) in lanes.filter(|(_, is_used)| *is_used) {
        let Some((key, limit, packets)) = short(queue, lane) else { continue };
        if places.insert(&lane.place) {
            let reason = format!(
                "\"{limit}\" of {} comes to {}, because its BDP is {}: bursts of a few packets are \
                 dropped; to avoid that, give the size in packets, like \"20 packets\"",
                lane.name,
                Limit::Packets(packets),
                lane.bdp
            );
            warnings.push(Problem::Invalid(reason).at(format!("{}.{key}", lane.place)));
        }
    }
    warnings
}

/// The first size of a queue that is a multiple of the BDP and comes to few packets: its key, how it
/// was written, and what it comes to.
fn short(queue: &Queue, lane: &LanePlan) -> Option<(&'static str, Limit, u64)> {
    let max = match (queue, &lane.queue.discipline) {
        (Queue::Red(red), Discipline::Red(plan)) => Some(("queue.max", red.max, plan.max)),
        _ => None,
    };
    let limit = ("queue", queue.limit(), lane.queue.limit);
    std::iter::once(limit).chain(max).find_map(|(key, written, size)| match (written, size) {
        (Limit::Bdp(_), QueueLimit::Packets(size)) => {
            (size < FEW_PACKETS).then_some((key, written, size))
        }
        _ => None,
    })
}

/// Transfers that begin faster than their bottleneck can carry them.
fn overloads(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let mut loads: BTreeMap<usize, (f64, &str)> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.tcp().is_some()) {
        if let Some(offered) = flow.traffic.offered() {
            loads.entry(flow.bottleneck).or_insert((0.0, &flow.place)).0 += offered;
        }
    }
    let over = loads.into_iter().filter(|(_, (load, _))| *load > 1.0);
    let warnings = over.map(|(lane, (load, place))| {
        let reason = format!(
            "transfers ask for {:.0} % of the rate of {}: they pile up for as long as the experiment \
             lasts (0.6 is 60 %, and so is \"60 %\")",
            load * 100.0,
            topology.lanes[lane].name
        );
        Problem::Invalid(reason).at(format!("{place}.traffic"))
    });
    warnings.collect()
}

/// The bytes of the headers of IPv4 and TCP without options.
const HEADERS: u64 = 40;

/// Buffers that do not hold one segment of the data.
fn small_buffers(flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        let Some(TcpPlan { stack, peer_stack }) = flow.tcp() else { continue };
        let segment = Bytes((flow.mtu - HEADERS).min(stack.mss).min(peer_stack.mss));
        let buffers = [
            ("wmem", stack.wmem, "Linux keeps a packet in spite of it, others send pieces"),
            ("rmem", peer_stack.rmem, "no full segment ever fits into the window"),
        ];
        for (option, size, effect) in buffers {
            if size < segment && places.insert((&flow.place, option)) {
                let reason = format!(
                    "{size} is less than a segment, which has up to {segment}: {effect}; to avoid \
                     that, give {segment} or more"
                );
                let place = format!("{}.stack.{option}", flow.place);
                warnings.push(Problem::Invalid(reason).at(place));
            }
        }
    }
    warnings
}
