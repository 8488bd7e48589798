//! Resolves the transport of each end of each flow: the profile, then the experiment's options,
//! then the host's, then the flow's.

use super::hosts::paced;
use super::names::ends;
use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::read::Place;
use crate::schema::{Experiment, Flow, Profile, Recovery, Stack, StackPlan};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Transport settings outside of flows.
pub(crate) struct Stacks<'a> {
    /// The profile where no layer names one.
    profile: Profile,
    all: Layer<'a>,
    /// The layers of each node's host, in ascending precedence.
    hosts: BTreeMap<usize, Vec<Layer<'a>>>,
    /// Hosts whose own queue paces.
    paced: BTreeSet<usize>,
}

/// The transport settings at one place of an experiment.
#[derive(Clone)]
struct Layer<'a> {
    place: Arc<str>,
    stack: &'a Stack,
}

impl<'a> Stacks<'a> {
    pub fn new(
        experiment: &'a Experiment,
        profile: Profile,
        topology: &Topology,
        mistakes: &mut Vec<Mistake>,
    ) -> Self {
        let mut hosts: BTreeMap<usize, Vec<Layer<'a>>> = BTreeMap::new();
        let (patterns, names): (Vec<_>, Vec<_>) =
            experiment.hosts.iter().partition(|(name, _)| name.contains('*'));
        for (name, host) in patterns.into_iter().chain(names) {
            let hosts_table = Place::Root.key("hosts");
            let place = hosts_table.key(name);
            match ends(name, topology) {
                Ok(nodes) => {
                    let layer =
                        Layer { place: format!("{place}.stack").into(), stack: &host.stack };
                    for node in nodes {
                        hosts.entry(node).or_default().push(layer.clone());
                    }
                }
                Err(problem) => mistakes.push(problem.at(place)),
            }
        }
        let all = Layer { place: "stack".into(), stack: &experiment.stack };
        Self { profile, all, hosts, paced: paced(experiment, topology) }
    }

    /// The transport of both ends of the flows of one entry.
    pub fn of<'b>(&'b self, stack: &'b Stack, place: &str) -> FlowStacks<'a, 'b> {
        let flow = Layer { place: format!("{place}.stack").into(), stack };
        FlowStacks { stacks: self, flow, plain: None, hosts: BTreeMap::new() }
    }
}

/// The transport settings of a flow entry, its `cc` included.
pub(crate) fn stack_of(flow: &Flow, place: &str, mistakes: &mut Vec<Mistake>) -> Stack {
    let mut stack = flow.stack.clone();
    if let Some(cc) = &flow.cc
        && stack.cc.replace(cc.clone()).is_some()
    {
        let reason = "is given a second time as `stack.cc`; give one of them";
        mistakes.push(Problem::Invalid(reason.into()).at(format!("{place}.cc")));
    }
    stack
}

/// Rejects TCP settings of a datagram flow.
pub(crate) fn check_stack(flow: &Flow, place: &str, mistakes: &mut Vec<Mistake>) {
    for (key, is_given) in [("cc", flow.cc.is_some()), ("stack", flow.stack != Stack::default())] {
        if is_given {
            let reason =
                "is of TCP, and this traffic is carried by UDP, which has no such settings";
            mistakes.push(Problem::Invalid(reason.into()).at(format!("{place}.{key}")));
        }
    }
}

/// The transport of the flows of one entry, by node. Most hosts have the same.
pub(crate) struct FlowStacks<'a, 'b> {
    stacks: &'b Stacks<'a>,
    flow: Layer<'b>,
    plain: Option<Arc<StackPlan>>,
    hosts: BTreeMap<usize, Arc<StackPlan>>,
}

impl FlowStacks<'_, '_> {
    pub fn at(&mut self, node: usize, mistakes: &mut Vec<Mistake>) -> Arc<StackPlan> {
        let Some(host) = self.stacks.hosts.get(&node) else {
            let (profile, layers) = (self.stacks.profile, [&self.stacks.all, &self.flow]);
            let plain = self.plain.get_or_insert_with(|| decide(profile, &layers, mistakes));
            return Arc::clone(plain);
        };
        let decided = self.hosts.entry(node).or_insert_with(|| {
            let mut layers = vec![&self.stacks.all];
            layers.extend(host);
            layers.push(&self.flow);
            let mut decided = decide(self.stacks.profile, &layers, mistakes);
            if self.stacks.paced.contains(&node) {
                Arc::make_mut(&mut decided).pacing = true;
            }
            decided
        });
        Arc::clone(decided)
    }
}

/// The profile of the innermost layer that names one, then the options of all layers from the
/// outermost in.
fn decide(default: Profile, layers: &[&Layer<'_>], mistakes: &mut Vec<Mistake>) -> Arc<StackPlan> {
    let named = layers.iter().rev().find_map(|layer| layer.stack.profile);
    let mut report = |place: String, problem: Problem| {
        let mistake = problem.at(place);
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    };
    let mut decided = named.unwrap_or(default).options();
    for layer in layers {
        decided.apply(layer.stack);
    }
    if decided.min_rto > decided.max_rto {
        let sets =
            |layer: &&&Layer<'_>| layer.stack.min_rto.is_some() || layer.stack.max_rto.is_some();
        let place = layers.iter().rev().find(sets).map_or("stack", |layer| &layer.place);
        let (min, max) = (decided.min_rto, decided.max_rto);
        let reason = format!("is {min}, which is more than the `max_rto` of {max}");
        report(format!("{place}.min_rto"), Problem::Invalid(reason));
    }
    // Options of a profile may be ineffective with the given ones, but given options must have an
    // effect.
    let layer = layers.iter().rev().find(|layer| layer.stack.recovery.is_some());
    if let Some(layer) = layer.filter(|_| decided.sack)
        && matches!(decided.recovery, Recovery::Tahoe | Recovery::Reno)
    {
        let word = decided.recovery.word();
        let reason = format!("\"{word}\" is a recovery without SACK; add `sack = false`");
        report(format!("{}.recovery", layer.place), Problem::Invalid(reason));
    }
    let layer = layers.iter().rev().find(|layer| layer.stack.fack == Some(true));
    let useless = match (decided.sack, decided.rack) {
        (false, _) => Some("goes by SACK blocks, and `sack` is false"),
        (true, true) => Some("does nothing beside RACK; add `rack = false`"),
        (true, false) => None,
    };
    if let (Some(layer), Some(reason)) = (layer.filter(|_| decided.fack), useless) {
        report(format!("{}.fack", layer.place), Problem::Invalid(reason.into()));
    }
    Arc::new(decided)
}
