//! Resolves everything that an experiment leaves open: from the settings to a plan.

mod flows;
mod hosts;
mod names;
mod queues;
mod stacks;
mod topology;
mod warnings;

use crate::mistake::{Mistake, Problem};
use crate::plan::{MeasurePlan, Plan, RecordPlan};
use crate::schema::{Experiment, MOST_SEED, Profile, Queue, Record, Samples, Traffic};
use tcplab_units::Duration;
use topology::Topology;

/// The plan of one variant, without what differs between repetitions and without an id. If there
/// are mistakes, the plan only serves to find more of them.
pub(crate) fn resolve(
    experiment: &Experiment,
    profile: Profile,
    mistakes: &mut Vec<Mistake>,
) -> Option<Resolved> {
    if experiment.flows.is_empty() {
        let reason = "there are none; an experiment needs one [[flows]] at least";
        mistakes.push(Problem::Invalid(reason.into()).at("flows"));
    }
    if experiment.seed > MOST_SEED - experiment.repeat.most().saturating_sub(1) {
        let (seed, repeat) = (experiment.seed, experiment.repeat.most());
        let reason =
            format!("is {seed}: the last of {repeat} repetitions has more than {MOST_SEED}");
        mistakes.push(Problem::Invalid(reason).at("seed"));
    }
    names::check(&experiment.name, "name", mistakes);
    for name in experiment.network.lan.keys() {
        names::check(name, "network.lan", mistakes);
    }
    let mut topology =
        Topology::build(&experiment.network, experiment.duration, experiment.seed, mistakes)?;
    let hosts = hosts::resolve(experiment, &mut topology);
    queues::place(&mut topology.lanes, &topology.queues);
    let flows = flows::resolve(experiment, profile, &topology, mistakes);
    hosts::check_routers(&hosts, &flows, &topology, mistakes);
    let record = record(&experiment.record, &topology, mistakes);
    let measure = measure(experiment, mistakes);
    check_rows(experiment, flows.len(), topology.lanes.len(), mistakes);
    queues::resolve(&mut topology.lanes, &topology.queues, &flows);
    queues::check(&topology.lanes, mistakes);
    let warnings = warnings::all(&topology, &flows, experiment);
    let plan = Plan {
        id: String::new(),
        experiment: experiment.name.clone(),
        backend: String::new(),
        version: String::new(),
        kernel: experiment.kernel.clone(),
        seed: experiment.seed,
        repetition: 0,
        swept: Vec::new(),
        duration: experiment.duration,
        nodes: topology.nodes.into(),
        lanes: topology.lanes.into(),
        flows: flows.into(),
        hosts: hosts.into(),
        record,
        measure,
        change: None,
        until: None,
        warnings: warnings.into(),
    };
    let traffic = experiment.flows.iter().map(|flow| flow.traffic.clone()).collect();
    Some(Resolved { plan, queues: topology.queues, traffic })
}

/// A plan, with the written settings by which it is compared with that of a change.
pub(crate) struct Resolved {
    pub plan: Plan,
    /// Queues by lane.
    pub queues: Vec<Queue>,
    /// Traffic by entry of the experiment's flows.
    pub traffic: Vec<Traffic>,
}

/// The most rows of one table; more do not fit into memory.
const MOST_ROWS: u64 = 50_000_000;

/// Rejects sampling intervals so short that the samples would fill the memory.
fn check_rows(experiment: &Experiment, flows: usize, lanes: usize, mistakes: &mut Vec<Mistake>) {
    let samples = match experiment.record.samples {
        Samples::Every(interval) => Some(interval),
        Samples::Ack | Samples::Off => None,
    };
    for (key, what, interval, each) in [
        ("record.samples", "samples of flows", samples, flows),
        ("record.links", "samples of links", experiment.record.links.on(), lanes),
        ("every", "intervals of flows", experiment.every, flows),
    ] {
        let Some(interval) = interval.filter(|interval| !interval.is_zero()) else { continue };
        let times = experiment.duration.as_picos() / interval.as_picos();
        let number = u128::from(times) * each as u128;
        if number > u128::from(MOST_ROWS) {
            let problem = Problem::TooMany { what, number, most: MOST_ROWS };
            mistakes.push(problem.at(key));
        }
    }
}

/// The part of the experiment that results cover, unless it is all of it.
fn measure(experiment: &Experiment, mistakes: &mut Vec<Mistake>) -> Option<MeasurePlan> {
    let duration = experiment.duration;
    let asked = experiment.measure.as_ref();
    let from = asked.and_then(|it| it.from).map_or(Duration::ZERO, in_nanos);
    let to = asked.and_then(|it| it.to).filter(|to| *to != duration).map_or(duration, in_nanos);
    let every = experiment.every.map(|every| in_nanos(every).max(Duration::from_nanos(1)));
    let mut is_wrong = |key: &str, reason: String| {
        mistakes.push(Problem::Invalid(reason).at(format!("measure.{key}")));
    };
    if from >= duration {
        let reason =
            format!("is {from}: nothing is left to measure of an experiment of {duration}");
        is_wrong("from", reason);
    } else if to > duration {
        is_wrong("to", format!("is {to}, after the end of the experiment at {duration}"));
    } else if from >= to {
        is_wrong("to", format!("is {to}, not after `measure.from`, which is {from}"));
    }
    let is_all = from.is_zero() && to == duration && every.is_none();
    (!is_all).then_some(MeasurePlan { from, to, every })
}

/// Rounds to the nearest nanosecond.
fn in_nanos(time: Duration) -> Duration {
    Duration::from_nanos(time.as_picos().saturating_add(500) / 1000)
}

fn record(record: &Record, topology: &Topology, mistakes: &mut Vec<Mistake>) -> RecordPlan {
    let captures = lanes(&record.captures, "captures", topology, mistakes);
    let packets = lanes(&record.packets, "packets", topology, mistakes);
    RecordPlan { samples: record.samples, links: record.links, captures, packets }
}

/// The numbers of lanes that a key of `record` names.
fn lanes(
    names: &[String],
    key: &str,
    topology: &Topology,
    mistakes: &mut Vec<Mistake>,
) -> Vec<usize> {
    let mut found = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let Some(lane) = topology.lanes.iter().position(|lane| lane.name == *name) else {
            let known = topology.lanes.iter().map(|lane| &lane.name);
            let problem = Problem::unknown("direction of a link", name, known);
            mistakes.push(problem.at(format!("record.{key}[{i}]")));
            continue;
        };
        found.push(lane);
    }
    found
}
