//! What is said of hosts, by node.

use super::names::ends;
use super::topology::Topology;
use crate::plan::HostPlan;
use crate::read::Place;
use crate::schema::{Experiment, Host};
use std::collections::BTreeMap;

/// What each entry says of hosts, with its place and its nodes. What counts more comes later: a name
/// without a `*` more than one with it. Names that no node has are refused where stacks are decided.
fn entries<'a>(
    experiment: &'a Experiment,
    topology: &Topology,
) -> impl Iterator<Item = (String, &'a Host, Vec<usize>)> {
    let (patterns, names): (Vec<_>, Vec<_>) =
        experiment.hosts.iter().partition(|(name, _)| name.contains('*'));
    patterns.into_iter().chain(names).filter_map(|(name, host)| {
        let place = Place::Root.key("hosts").key(name).to_string();
        Some((place, host, ends(name, topology).ok()?))
    })
}

/// Hosts that take time, in the order of their nodes.
pub(crate) fn resolve(experiment: &Experiment, topology: &Topology) -> Vec<HostPlan> {
    let mut hosts = BTreeMap::new();
    for (place, host, nodes) in entries(experiment, topology) {
        let Some(cpu) = &host.cpu else { continue };
        for node in nodes {
            let plan = HostPlan { node, place: place.clone(), cpu: cpu.clone() };
            hosts.insert(node, plan);
        }
    }
    let takes_time = |host: &HostPlan| {
        [host.cpu.packet, host.cpu.ack, host.cpu.call].iter().any(|it| !it.is_zero())
    };
    hosts.into_values().filter(takes_time).collect()
}
