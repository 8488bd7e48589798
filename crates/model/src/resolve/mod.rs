//! Decides everything that an experiment leaves open: from what was written to a plan.

mod flows;
mod names;
mod queues;
mod stacks;
mod topology;
mod traffic;

use crate::mistake::{Mistake, Problem};
use crate::plan::{Plan, RecordPlan};
use crate::schema::{Experiment, Record};
use topology::Topology;

/// The plan of one variant, without what differs between repetitions and without an id. With mistakes
/// it is good for nothing but finding more of them.
pub(crate) fn resolve(experiment: &Experiment, mistakes: &mut Vec<Mistake>) -> Option<Plan> {
    if experiment.flows.is_empty() {
        let reason = "there are none; an experiment needs one [[flows]] at least";
        mistakes.push(Problem::Invalid(reason.into()).at("flows"));
    }
    let mut topology = Topology::build(&experiment.network, mistakes)?;
    let flows = flows::resolve(experiment, &topology, mistakes);
    let record = record(&experiment.record, &topology, mistakes);
    queues::resolve(&mut topology.lanes, &topology.queues, &flows);
    Some(Plan {
        id: String::new(),
        experiment: experiment.name.clone(),
        backend: String::new(),
        version: String::new(),
        seed: experiment.seed,
        repetition: 0,
        swept: Vec::new(),
        duration: experiment.duration,
        nodes: topology.nodes.into(),
        lanes: topology.lanes.into(),
        flows: flows.into(),
        record,
    })
}

fn record(record: &Record, topology: &Topology, mistakes: &mut Vec<Mistake>) -> RecordPlan {
    let mut captures = Vec::new();
    for (i, name) in record.captures.iter().enumerate() {
        let Some(lane) = topology.lanes.iter().position(|lane| lane.name == *name) else {
            let known = topology.lanes.iter().map(|lane| &lane.name);
            let problem = Problem::unknown("direction of a link", name, known);
            mistakes.push(problem.at(format!("record.captures[{i}]")));
            continue;
        };
        captures.push(lane);
    }
    RecordPlan { samples: record.samples, links: record.links, captures }
}
