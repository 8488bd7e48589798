//! What the schema can say and this backend does not run.

use crate::stack::try_build;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use tcplab_cc::{BuildError, CutBase, Flavour, Init, names};
use tcplab_engine::MOST;
use tcplab_model::{
    Discipline, FlowPlan, LanePlan, Loss, Mistake, Plan, Problem, StackPlan, Traffic,
};

/// Everything of the plan that cannot be run, each with its place.
pub(crate) fn refuse(plan: &Plan) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    // Links and flows made by one description share its place, and its mistakes.
    let mut seen = Vec::new();
    for lane in plan.lanes.iter() {
        if !seen.contains(&(&lane.place, lane_kind(lane))) {
            seen.push((&lane.place, lane_kind(lane)));
            refuse_lane(lane, &mut mistakes);
        }
    }
    let mut seen = "";
    let mut stacks = BTreeSet::new();
    for flow in plan.flows.iter() {
        if flow.place != seen {
            seen = &flow.place;
            refuse_traffic(flow, &mut mistakes);
            stacks.clear();
        }
        // Each host may have its own, and both ends have a congestion control.
        for stack in [&flow.stack, &flow.peer_stack] {
            if stacks.insert(Arc::as_ptr(stack)) {
                refuse_cc(stack, &flow.place, &mut mistakes);
            }
        }
    }
    refuse_memory(plan, &mut mistakes);
    if !plan.record.captures.is_empty() {
        mistakes.push(not_here("a packet capture").at("record.captures"));
    }
    let timers = plan.flows.len() * 3 + 2;
    if plan.lanes.len().max(timers) >= MOST {
        let (what, number) = ("links and flows in one run", (plan.lanes.len() + timers) as u128);
        mistakes.push(Problem::TooMany { what, number, most: MOST as u64 }.at("network"));
    }
    mistakes
}

/// What tells the two directions of a link apart as far as refusing goes.
fn lane_kind(lane: &LanePlan) -> [bool; 5] {
    [
        matches!(
            lane.queue.discipline,
            Discipline::DropTail | Discipline::Red { .. } | Discipline::CoDel { .. }
        ),
        matches!(lane.loss, None | Some(Loss::Independent(_) | Loss::Listed(_))),
        lane.reordering.is_none(),
        lane.rate_changes.is_none(),
        lane.lan.is_none(),
    ]
}

fn refuse_lane(lane: &LanePlan, mistakes: &mut Vec<Mistake>) {
    let [queue, loss, reordering, rate, lan] = lane_kind(lane);
    let mut add = |fine: bool, key: &str, problem: Problem| {
        if !fine {
            mistakes.push(problem.at(format!("{}.{key}", lane.place)));
        }
    };
    let discipline = named("the queue discipline", &lane.queue.discipline);
    add(queue, "queue", instead(discipline, &["droptail", "red", "codel"]));
    add(loss, "loss", instead(named("the loss", &lane.loss), &["independent", "listed"]));
    add(reordering, "reordering", not_here("reordering"));
    add(rate, "rate_changes", not_here("a changing rate"));
    if !lan {
        let what = "a shared medium".into();
        mistakes.push(Problem::NotYet { what, have: Vec::new() }.at(&lane.place));
    }
}

fn refuse_traffic(flow: &FlowPlan, mistakes: &mut Vec<Mistake>) {
    if !matches!(*flow.traffic, Traffic::Bulk(_) | Traffic::OnOff(_)) {
        let problem = instead(named("the traffic", &*flow.traffic), &["bulk", "on-off"]);
        mistakes.push(problem.at(format!("{}.traffic", flow.place)));
    }
}

fn refuse_cc(stack: &StackPlan, place: &str, mistakes: &mut Vec<Mistake>) {
    let init = Init {
        mss: 1460,
        initial_window: 10,
        cut_base: CutBase::FlightSize,
        flavour: Flavour::Rfc,
        seed: 0,
    };
    if let Err(error) = try_build(stack, &init) {
        let place = format!("{place}.cc");
        let mistake = match error {
            BuildError::WrongValue { name, problem } if stack.cc.params.get(&name).is_some() => {
                Problem::Invalid(problem).at(format!("{place}.{name}"))
            }
            error => wrong_cc(&error, &stack.cc.name).at(place),
        };
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
}

/// A host has one memory for all its connections, and limits to it that do not fall.
fn refuse_memory(plan: &Plan, mistakes: &mut Vec<Mistake>) {
    let mut known = vec![None; plan.nodes.len()];
    for flow in plan.flows.iter() {
        for (node, stack) in [(flow.from, &flow.stack), (flow.to, &flow.peer_stack)] {
            let first = *known[node].get_or_insert(stack.mem);
            let reason = if first != stack.mem {
                let host = &plan.nodes[node];
                format!("differs between flows of the host \"{host}\"; it has one memory for all")
            } else if stack.mem.on().is_some_and(|it| it.low > it.pressure || it.pressure > it.high)
            {
                "has limits that fall: `low`, `pressure` and `high` go up".into()
            } else {
                continue;
            };
            let mistake = Problem::Invalid(reason).at(format!("{}.stack.mem", flow.place));
            if !mistakes.contains(&mistake) {
                mistakes.push(mistake);
            }
        }
    }
}

fn wrong_cc(error: &BuildError, name: &str) -> Problem {
    match error {
        BuildError::UnknownAlgorithm { .. } => {
            let known: Vec<_> = names().collect();
            Problem::unknown("congestion control", name, known.iter().map(String::as_str))
        }
        other => Problem::Invalid(other.to_string()),
    }
}

/// What the key `kind` calls it in an experiment: the queue discipline `fq-codel`.
fn named(what: &str, chosen: &impl Serialize) -> String {
    let written = serde_json::to_value(chosen).unwrap_or_default();
    format!("{what} `{}`", written["kind"].as_str().unwrap_or("none"))
}

fn not_here(what: &str) -> Problem {
    instead(what.into(), &[])
}

fn instead(what: String, have: &[&str]) -> Problem {
    let have = have.iter().map(|&name| name.into()).collect();
    Problem::NotHere { what, backend: crate::NAME, have }
}
