//! Rejects features of the schema that this backend does not run.

use crate::stack::{marks, try_build};
use std::collections::BTreeSet;
use std::sync::Arc;
use tcplab_cc::{BuildError, CutBase, Flavour, Init, names};
use tcplab_engine::MOST;
use tcplab_model::{Mistake, Plan, Problem, StackPlan, TcpPlan, support};

/// Every feature of the plan that cannot be run, with its place.
pub(crate) fn unsupported(plan: &Plan) -> Vec<Mistake> {
    let mut mistakes = support::unsupported(plan, crate::NAME);
    let mut seen = "";
    let mut stacks = BTreeSet::new();
    for flow in plan.flows.iter() {
        if flow.place != seen {
            seen = &flow.place;
            stacks.clear();
        }
        // Each host may have its own stack, and both ends have a congestion control.
        for stack in flow.tcp().into_iter().flat_map(TcpPlan::stacks) {
            if stacks.insert(Arc::as_ptr(stack)) {
                unsupported_cc(stack, &flow.place, &mut mistakes);
            }
        }
    }
    unsupported_marks(plan, &mut mistakes);
    unsupported_memory(plan, &mut mistakes);
    // Each flow has two timers for its ends, and one for its application.
    let (lanes, timers) = (plan.lanes.len(), plan.flows.len() * 2 + 2);
    if lanes.max(timers) >= MOST {
        let (what, number) = ("links and flows in one run", (lanes + timers) as u128);
        mistakes.push(Problem::TooMany { what, number, most: MOST as u64 }.at("network"));
    }
    mistakes
}

fn unsupported_cc(stack: &StackPlan, place: &str, mistakes: &mut Vec<Mistake>) {
    let init = Init {
        mss: 1460,
        initial_window: 10,
        cut_base: CutBase::FlightSize,
        flavour: Flavour::Rfc,
        seed: 0,
        max_pacing: None,
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

/// Both ends agree on ECN feedback when a connection opens.
fn unsupported_marks(plan: &Plan, mistakes: &mut Vec<Mistake>) {
    let Some(after) = plan.after_change() else { return };
    for (before, after) in plan.flows.iter().zip(after.flows.iter()) {
        let (Some(was), Some(is)) = (before.tcp(), after.tcp()) else { continue };
        if marks(&was.stack) != marks(&is.stack) {
            let [was, is] = [was, is].map(|tcp| &tcp.stack.cc.name);
            let reason = format!(
                "`{was}` cannot become `{is}` while a run goes on: the two use ECN marks \
                 differently, and both ends agree on that use when a connection opens"
            );
            let mistake = Problem::Invalid(reason).at("change");
            if !mistakes.contains(&mistake) {
                mistakes.push(mistake);
            }
        }
    }
}

/// A host has one memory for all its connections, with ascending limits.
fn unsupported_memory(plan: &Plan, mistakes: &mut Vec<Mistake>) {
    let mut known = vec![None; plan.nodes.len()];
    for flow in plan.flows.iter() {
        let stacks = flow.tcp().into_iter().flat_map(TcpPlan::stacks);
        for (node, stack) in [flow.from, flow.to].into_iter().zip(stacks) {
            let first = *known[node].get_or_insert(stack.mem);
            let reason = if first != stack.mem {
                let host = &plan.nodes[node];
                format!("differs between flows of the host \"{host}\"; it has one memory for all")
            } else if stack.mem.on().is_some_and(|it| it.low > it.pressure || it.pressure > it.high)
            {
                "has limits out of order: `low` is the least, then `pressure`, then `high`".into()
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
