//! Settings of hosts, by node.

use super::names::ends;
use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, HostPlan};
use crate::read::Place;
use crate::schema::{Experiment, Host, Queue, Stack};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::Duration;

/// The entries for hosts, with their places and nodes, in ascending precedence: a name without a
/// `*` comes after one with it. Names that match no node are rejected where stacks are resolved.
fn entries<'a>(
    experiment: &'a Experiment,
    topology: &Topology,
) -> Vec<(String, &'a Host, Vec<usize>)> {
    let (patterns, names): (Vec<_>, Vec<_>) =
        experiment.hosts.iter().partition(|(name, _)| name.contains('*'));
    let all = patterns.into_iter().chain(names).filter_map(|(name, host)| {
        let place = Place::Root.key("hosts").key(name).to_string();
        Some((place, host, ends(name, topology).ok()?))
    });
    all.collect()
}

/// Hosts with processing time, a queue of their own or receive offload, in the order of their
/// nodes. Sets the queues of the lanes that begin at hosts with a queue.
pub(crate) fn resolve(experiment: &Experiment, topology: &mut Topology) -> Vec<HostPlan> {
    let mut hosts: BTreeMap<usize, HostPlan> = BTreeMap::new();
    let mut qdiscs = BTreeMap::new();
    for (place, host, nodes) in entries(experiment, topology) {
        for node in nodes {
            let new =
                || HostPlan { node, place: place.clone(), cpu: None, has_qdisc: false, gro: None };
            let known = hosts.entry(node).or_insert_with(new);
            if let Some(cpu) = &host.cpu {
                let costs = [cpu.packet, cpu.ack, cpu.call];
                known.cpu = costs.iter().any(|it| !it.is_zero()).then(|| cpu.clone());
                known.place.clone_from(&place);
            }
            if let Some(qdisc) = &host.qdisc {
                known.has_qdisc = true;
                known.place.clone_from(&place);
                qdiscs.insert(node, qdisc);
            }
            if let Some(gro) = host.gro {
                known.gro = gro.on().map(|wait| Duration::from_nanos(wait.as_nanos()));
                known.place.clone_from(&place);
            }
        }
    }
    for (lane, queue) in topology.lanes.iter().zip(&mut topology.queues) {
        if let Some(&qdisc) = qdiscs.get(&lane.from) {
            queue.clone_from(qdisc);
        }
    }
    let has_any = |host: &HostPlan| host.cpu.is_some() || host.has_qdisc || host.gro.is_some();
    hosts.into_values().filter(has_any).collect()
}

/// Warnings about host settings of nodes at which no flow begins or ends, where they have no effect
/// or another one.
pub(crate) fn odd(
    experiment: &Experiment,
    topology: &Topology,
    flows: &[FlowPlan],
) -> Vec<Mistake> {
    let ends = |is_meant: fn(&FlowPlan) -> bool| -> BTreeSet<usize> {
        let meant = flows.iter().filter(|flow| is_meant(flow));
        meant.flat_map(|flow| [flow.from, flow.to]).collect()
    };
    let (all, tcp) = (ends(|_| true), ends(|flow| flow.tcp().is_some()));
    let mut warnings = Vec::new();
    for (place, host, nodes) in entries(experiment, topology) {
        let has = |ends: &BTreeSet<usize>| nodes.iter().any(|node| ends.contains(node));
        let mut warn = |key: &str, reason: &str| {
            warnings.push(Problem::Invalid(reason.into()).at(format!("{place}.{key}")));
        };
        if host.stack != Stack::default() && !has(&tcp) {
            warn("stack", "does nothing: no flow of TCP begins or ends here");
        }
        if host.cpu.is_some() && !has(&all) {
            warn(
                "cpu",
                "does nothing: no flow begins or ends here, and routers forward in no time",
            );
        }
        if host.qdisc.is_some() && !has(&all) {
            let reason = "no flow begins here: it takes the place of the `queue` of all links from here; \
                          to give one link another queue, write that there";
            warn("qdisc", reason);
        }
    }
    warnings
}

/// Rejects receive offload at nodes that forward packets: a router would segment what it has
/// merged.
pub(crate) fn check_routers(
    hosts: &[HostPlan],
    flows: &[FlowPlan],
    topology: &Topology,
    mistakes: &mut Vec<Mistake>,
) {
    if hosts.iter().all(|host| host.gro.is_none()) {
        return;
    }
    let mut passed = BTreeMap::new();
    for flow in flows {
        for way in [&flow.forward, &flow.back] {
            for &lane in way.iter().skip(1) {
                passed.entry(topology.lanes[lane].from).or_insert(&flow.name);
            }
        }
    }
    for host in hosts.iter().filter(|host| host.gro.is_some()) {
        if let Some(flow) = passed.get(&host.node) {
            let name = &topology.nodes[host.node];
            let reason = format!(
                "is for hosts at the ends of flows, and flow \"{flow}\" passes through \"{name}\""
            );
            mistakes.push(Problem::Invalid(reason).at(format!("{}.gro", host.place)));
        }
    }
}

/// Hosts whose own queue paces their senders (`SK_PACING_FQ`).
pub(crate) fn paced(experiment: &Experiment, topology: &Topology) -> BTreeSet<usize> {
    let mut paced = BTreeSet::new();
    for (_, host, nodes) in entries(experiment, topology) {
        match &host.qdisc {
            None => {}
            Some(Queue::Fq(_)) => paced.extend(nodes),
            Some(_) => paced.retain(|node| !nodes.contains(node)),
        }
    }
    paced
}
