//! Decides everything that an experiment leaves open: from what was written to a plan.

mod flows;
mod names;
mod queues;
mod stacks;
mod topology;
mod warnings;

use crate::mistake::{Mistake, Problem};
use crate::plan::{Plan, RecordPlan};
use crate::schema::{Experiment, MOST_SEED, Profile, Record, Samples};
use topology::Topology;

/// The plan of one variant, without what differs between repetitions and without an id. With mistakes
/// it is good for nothing but finding more of them.
pub(crate) fn resolve(
    experiment: &Experiment,
    profile: Profile,
    mistakes: &mut Vec<Mistake>,
) -> Option<Plan> {
    if experiment.flows.is_empty() {
        let reason = "there are none; an experiment needs one [[flows]] at least";
        mistakes.push(Problem::Invalid(reason.into()).at("flows"));
    }
    if experiment.seed > MOST_SEED - experiment.repeat.saturating_sub(1) {
        let (seed, repeat) = (experiment.seed, experiment.repeat);
        let reason =
            format!("is {seed}: the last of {repeat} repetitions has more than {MOST_SEED}");
        mistakes.push(Problem::Invalid(reason).at("seed"));
    }
    names::check(&experiment.name, "name", mistakes);
    for name in experiment.network.lan.keys() {
        names::check(name, "network.lan", mistakes);
    }
    let mut topology = Topology::build(&experiment.network, mistakes)?;
    let flows = flows::resolve(experiment, profile, &topology, mistakes);
    let record = record(&experiment.record, &topology, mistakes);
    check_rows(experiment, flows.len(), topology.lanes.len(), mistakes);
    queues::resolve(&mut topology.lanes, &topology.queues, &flows);
    let warnings = warnings::all(&topology, &flows, experiment.duration);
    Some(Plan {
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
        record,
        warnings: warnings.into(),
    })
}

/// The rows of one table; more would not fit into memory.
const MOST_ROWS: u64 = 50_000_000;

/// Refuses intervals so short that their samples would fill the memory.
fn check_rows(experiment: &Experiment, flows: usize, lanes: usize, mistakes: &mut Vec<Mistake>) {
    let samples = match experiment.record.samples {
        Samples::Every(interval) => Some(interval),
        Samples::Ack | Samples::Off => None,
    };
    for (key, what, interval, each) in [
        ("samples", "samples of flows", samples, flows),
        ("links", "samples of links", experiment.record.links.on(), lanes),
    ] {
        let Some(interval) = interval.filter(|interval| !interval.is_zero()) else { continue };
        let times = experiment.duration.as_picos() / interval.as_picos();
        let number = u128::from(times) * each as u128;
        if number > u128::from(MOST_ROWS) {
            let problem = Problem::TooMany { what, number, most: MOST_ROWS };
            mistakes.push(problem.at(format!("record.{key}")));
        }
    }
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
