//! Which backend runs what. Refusals of all backends and the lists in the documentation come from the
//! one table here.
//!
//! A backend may have further limits, of sizes or of combinations, which it finds itself.

use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan, Plan};
use crate::schema::{DelayChanges, RateChanges, TrafficPlan};

/// Something that an experiment may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The key of a link, a flow or the experiment that asks for it: `queue`.
    pub key: &'static str,
    /// The kind that stands under this key, where it has kinds: `codel`.
    pub kind: Option<&'static str>,
    /// Its name in documentation, after the heading of its list ([`GROUPS`]): "PIE".
    pub name: &'static str,
    /// The backends that run it.
    pub on: &'static [&'static str],
}

const LINUX: &[&str] = &["linux"];
const BOTH: &[&str] = &["sim", "linux"];
const SIM: &[&str] = &["sim"];

/// All features that some backend does not run, and what there is beside them.
pub const FEATURES: &[Feature] = &[
    kind("queue", "droptail", "drop-tail", BOTH),
    kind("queue", "drophead", "drop-head", BOTH),
    kind("queue", "red", "RED", BOTH),
    kind("queue", "codel", "CoDel", BOTH),
    kind("queue", "fq-codel", "FQ-CoDel", BOTH),
    kind("queue", "pie", "PIE", BOTH),
    kind("queue", "fq-pie", "FQ-PIE", BOTH),
    kind("queue", "sfq", "SFQ", BOTH),
    kind("queue", "tbf", "a token bucket", BOTH),
    kind("queue", "fq", "FQ", BOTH),
    kind("queue", "cake", "CAKE", LINUX),
    kind("loss", "independent", "independent", BOTH),
    kind("loss", "listed", "listed", BOTH),
    kind("loss", "gilbert", "Gilbert", BOTH),
    kind("loss", "gilbert-time", "Gilbert by time", BOTH),
    kind("traffic", "bulk", "bulk", BOTH),
    kind("traffic", "on-off", "on-off", BOTH),
    kind("traffic", "udp", "UDP", BOTH),
    kind("traffic", "requests", "requests", BOTH),
    kind("traffic", "web", "web pages", BOTH),
    kind("traffic", "arrivals", "arrivals", BOTH),
    kind("traffic", "command", "programs", LINUX),
    kind("rate_changes", "steps", "steps", BOTH),
    kind("rate_changes", "sine", "a sine", BOTH),
    kind("rate_changes", "random-walk", "a random walk", BOTH),
    kind("rate_changes", "trace", "a trace", BOTH),
    kind("delay_changes", "steps", "steps", BOTH),
    kind("delay_changes", "handover", "handovers", BOTH),
    one("traffic.write", "a size of writes", BOTH),
    one("reordering", "reordering", BOTH),
    one("corruption", "corruption", BOTH),
    one("duplication", "duplication", BOTH),
    one("outages", "outages", BOTH),
    one("contention", "contention for the channel", BOTH),
    one("record.captures", "a packet capture", LINUX),
    one("lan", "a shared LAN", SIM),
];

/// What experiments may have one of several kinds of: the key, what messages call it, and the heading of
/// its list in documentation.
pub const GROUPS: &[(&str, &str, &str)] = &[
    ("queue", "the queue discipline", "queues"),
    ("loss", "the loss", "losses"),
    ("traffic", "the traffic", "traffic"),
    ("rate_changes", "a rate that changes by", "changing rates"),
    ("delay_changes", "a delay that changes by", "changing delays"),
];

const fn kind(
    key: &'static str,
    kind: &'static str,
    name: &'static str,
    on: &'static [&'static str],
) -> Feature {
    Feature { key, kind: Some(kind), name, on }
}

const fn one(key: &'static str, name: &'static str, on: &'static [&'static str]) -> Feature {
    Feature { key, kind: None, name, on }
}

/// What a plan asks for and this backend does not run, each with its place.
pub fn refuse(plan: &Plan, backend: &'static str) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut add = |place: &str, asked: &[Asked]| {
        for mistake in asked.iter().filter_map(|one| refusal(*one, place, backend)) {
            if !mistakes.contains(&mistake) {
                mistakes.push(mistake);
            }
        }
    };
    // Links and flows made by one description share its place, and mostly what they ask for.
    let mut last = ("", Vec::new());
    for lane in plan.lanes.iter() {
        let this = (lane.place.as_str(), asked_by_lane(lane));
        if this != last {
            add(this.0, &this.1);
            last = this;
        }
    }
    let mut last = "";
    for flow in plan
        .flows
        .iter()
        .filter(|flow| std::mem::replace(&mut last, flow.place.as_str()) != flow.place.as_str())
    {
        add(&flow.place, &asked_by_flow(flow));
    }
    if !plan.record.captures.is_empty() {
        add("", &[("record.captures", None)]);
    }
    mistakes
}

/// A key, and the kind under it.
type Asked = (&'static str, Option<&'static str>);

fn asked_by_lane(lane: &LanePlan) -> Vec<Asked> {
    let rate = lane.rate_changes.as_ref().map(RateChanges::word);
    let delay = lane.delay_changes.as_ref().map(DelayChanges::word);
    [
        Some(("queue", Some(lane.queue.discipline.word()))),
        lane.loss.as_ref().map(|loss| ("loss", Some(loss.word()))),
        rate.map(|kind| ("rate_changes", Some(kind))),
        delay.map(|kind| ("delay_changes", Some(kind))),
        lane.reordering.as_ref().map(|_| ("reordering", None)),
        (lane.corruption.0 > 0.0).then_some(("corruption", None)),
        (lane.duplication.0 > 0.0).then_some(("duplication", None)),
        lane.outages.as_ref().map(|_| ("outages", None)),
        lane.contention.as_ref().map(|_| ("contention", None)),
        lane.lan.as_ref().map(|_| ("lan", None)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn asked_by_flow(flow: &FlowPlan) -> Vec<Asked> {
    let mut asked = vec![("traffic", Some(flow.traffic.word()))];
    if matches!(&*flow.traffic, TrafficPlan::Bulk(bulk) if bulk.write.is_some()) {
        asked.push(("traffic.write", None));
    }
    asked
}

/// What is wrong with a feature on this backend, if anything is.
fn refusal((key, kind): Asked, place: &str, backend: &'static str) -> Option<Mistake> {
    let runs = |feature: &&Feature| feature.on.contains(&backend);
    let feature = FEATURES.iter().find(|feature| feature.key == key && feature.kind == kind);
    let feature = feature.expect("every feature stands in the table");
    if runs(&feature) {
        return None;
    }
    let group = GROUPS.iter().find(|group| group.0 == key);
    let what = match (group, kind) {
        (Some((_, group, _)), Some(kind)) => format!("{group} `{kind}`"),
        _ => feature.name.into(),
    };
    let others = FEATURES.iter().filter(|other| other.key == key && kind.is_some());
    let have: Vec<String> = others.filter(runs).filter_map(|it| Some(it.kind?.into())).collect();
    let problem = if feature.on.is_empty() {
        Problem::NotYet { what, have }
    } else {
        Problem::NotHere { what, backend, have }
    };
    // Nobody writes that a link is part of a shared medium.
    Some(problem.at(match (place, key) {
        (place, "lan") => place.into(),
        ("", key) => key.into(),
        (place, key) => format!("{place}.{key}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Loss, Queue, Traffic};

    #[test]
    fn every_kind_stands_in_the_table_once() {
        for (key, words) in
            [("queue", Queue::WORDS), ("loss", Loss::WORDS), ("traffic", Traffic::WORDS)]
        {
            let mut listed: Vec<_> =
                FEATURES.iter().filter(|it| it.key == key).filter_map(|it| it.kind).collect();
            let mut words = words.to_vec();
            listed.sort_unstable();
            words.sort_unstable();
            assert_eq!(listed, words, "{key}");
        }
    }
}
