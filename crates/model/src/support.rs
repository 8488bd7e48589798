//! The table of features by backend. It is the source of all rejections and of the lists in the
//! documentation.
//!
//! A backend may have further limits, of sizes or of combinations, which it checks itself. If such
//! a limit is in the table, [`missing`] makes its message.

use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, HostPlan, LanePlan, Plan, TcpPlan};
use crate::schema::{
    AckCounting, DelayChanges, Ecn, OrOff, Profile, RateChanges, StackPlan, TrafficPlan,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use tcplab_units::{Bytes, Duration};

/// A feature that an experiment may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The key of a link, a flow or the experiment that uses the feature: `queue`.
    pub key: &'static str,
    /// The kind under this key, if the key has kinds: `codel`.
    pub kind: Option<&'static str>,
    /// The feature's name in the documentation, after the heading of its list ([`GROUPS`]): "PIE".
    pub name: &'static str,
    /// The backends that run it.
    pub on: &'static [&'static str],
}

const SIM: &[&str] = &["sim"];
const LINUX: &[&str] = &["linux"];
const BOTH: &[&str] = &["sim", "linux"];

/// All features that some backend lacks, and their alternatives.
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
    kind("queue", "cake", "CAKE", BOTH),
    kind("queue", "dualpi2", "DualPI2", SIM),
    kind("queue", "policer", "a policer", BOTH),
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
    one("light", "separate delivery opportunities for a light load", BOTH),
    one("traffic.write", "a size of writes", BOTH),
    one("reordering", "reordering", BOTH),
    one("corruption", "corruption", BOTH),
    one("duplication", "duplication", BOTH),
    one("outages", "outages", BOTH),
    one("contention", "contention for the channel", BOTH),
    one("record.captures", "a packet capture", BOTH),
    one("cpu", "time spent in hosts", BOTH),
    one("cpu.call", "time spent in system calls", SIM),
    kind("cpu", "datagrams", "a processor on a host that sends UDP", SIM),
    kind("cpu", "qdisc", "a processor on a host with a `qdisc`", SIM),
    kind("cpu", "gro", "a processor on a host with receive offload", SIM),
    kind("cpu", "router", "a processor on a host that forwards packets", SIM),
    one("change", "settings that change while a run goes on", SIM),
    one("qdisc", "a queue of the sending host", BOTH),
    one("gro", "receive offload (GRO)", BOTH),
    one("lan", "a shared LAN", SIM),
    kind("mtu", "small", "a router with an MTU below 552 bytes", SIM),
    kind("mtu", "unequal", "a link with a larger MTU in the other direction", SIM),
    one("icmp", "a router that sends no ICMP errors for packets too large for a link", SIM),
    kind("profile", "rfc", "`rfc`", SIM),
    kind("profile", "linux-6.12", "`linux-6.12`", BOTH),
    kind("profile", "linux-6.1", "`linux-6.1`", BOTH),
    kind("profile", "linux-2.6.26", "`linux-2.6.26`", SIM),
    kind("profile", "linux-2.6.20", "`linux-2.6.20`", SIM),
    kind("profile", "ns2", "`ns2`", SIM),
    kind("profile", "ns3", "`ns3`", SIM),
    kind("profile", "freebsd-9.2", "`freebsd-9.2`", SIM),
    kind("profile", "windows-7", "`windows-7`", SIM),
    kind("cc", "bbr3", "`bbr3`", SIM),
    kind(
        "cc",
        "compound",
        "`compound` (a kernel can be built with it: examples/linux/tcp_compound.c)",
        SIM,
    ),
    kind("cc", "copa", "`copa`", SIM),
    kind("cc", "ledbat", "`ledbat`", SIM),
    kind("cc", "prague", "`prague`", SIM),
    kind("cc", "westwood", "`westwood` (of 2002; the kernel's is `westwood+`)", SIM),
    one("cc.presets", "a preset of a congestion control", SIM),
    one("stack.fack", "FACK (gone from Linux since 4.15)", SIM),
    one("stack.recovery", "a recovery without SACK other than \"newreno-steady\"", SIM),
    one("stack.ecn", "accurate ECN feedback (RFC 9768)", SIM),
    one("stack.abc", "an `abc` other than `segment`", SIM),
    one("stack.delayed_ack", "a delayed-ACK timeout other than 40 ms or \"off\"", SIM),
    one("stack.ack_every", "delayed ACKs for more than two segments", SIM),
    one("stack.quick_ack", "a number of quick ACKs other than 16", SIM),
    one("stack.max_rto", "a maximum RTO other than 120 s", SIM),
    one("stack.initial_rto", "an initial RTO other than 1 s", SIM),
    one("stack.limited_transmit", "disabling limited transmit", SIM),
    one("stack.reduction", "a reduction other than \"proportional\"", SIM),
    one(
        "stack.mem",
        "a memory limit for one host (tcp_mem applies to all hosts of the machine)",
        SIM,
    ),
    one("stack.undo", "disabling undo", SIM),
    one("stack.tso", "disabling TSO", SIM),
    one("stack.flavour", "a flavour other than the profile's own", SIM),
    one("stack.cut_base", "a cut base other than the window", SIM),
    one("stack.time_wait", "a TIME-WAIT other than 60 s", SIM),
    one("stack.rmem", "a receive buffer of less than 4096 B", SIM),
    one(
        "stack.user_timeout",
        "a user timeout of more than 24 days or with a fraction of a millisecond",
        SIM,
    ),
    one("stack.keepalive.idle", KEEPALIVE, SIM),
    one("stack.keepalive.interval", KEEPALIVE, SIM),
];

const KEEPALIVE: &str = "a keepalive time that is not a whole number of seconds up to 32767";

/// Keys with several kinds: the key, its name in messages, and the heading of its list in the
/// documentation.
pub const GROUPS: &[(&str, &str, &str)] = &[
    ("queue", "the queue discipline", "queues"),
    ("loss", "the loss", "losses"),
    ("traffic", "the traffic", "traffic"),
    ("rate_changes", "a rate that changes by", "changing rates"),
    ("delay_changes", "a delay that changes by", "changing delays"),
    ("profile", "the profile", "profiles"),
    ("cc", "the congestion control", "congestion controls"),
];

/// The heading under which the documentation lists a feature with this key, if it is one of several
/// kinds.
pub fn heading(key: &str) -> Option<&'static str> {
    if key.starts_with("stack.") {
        return Some("transport options");
    }
    GROUPS.iter().find(|group| group.0 == key).map(|group| group.2)
}

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

/// The features of a plan that this backend lacks, each with its place.
pub fn unsupported(plan: &Plan, backend: &'static str) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut add = |place: &str, asked: &[Asked]| {
        for mistake in asked.iter().filter_map(|one| missing_feature(*one, place, backend)) {
            if !mistakes.contains(&mistake) {
                mistakes.push(mistake);
            }
        }
    };
    // Links and flows from one description share its place, and mostly their features.
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
    for host in plan.hosts.iter() {
        add(&host.place, &asked_by_host(host));
    }
    if !plan.record.captures.is_empty() {
        add("", &[("record.captures", None)]);
    }
    if plan.change.is_some() {
        add("", &[("change", None)]);
    }
    let usual = Profile::Linux612.options();
    let mut stacks = BTreeSet::new();
    let mut last = "";
    for flow in plan.flows.iter() {
        if std::mem::replace(&mut last, flow.place.as_str()) != flow.place.as_str() {
            stacks.clear();
        }
        // Each host may have its own stack.
        for stack in flow.tcp().into_iter().flat_map(TcpPlan::stacks) {
            if stacks.insert(Arc::as_ptr(stack)) {
                add(&flow.place, &asked_by_stack(stack, &usual));
            }
        }
    }
    mistakes
}

/// The feature of this kind.
pub fn find(key: &str, kind: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|feature| feature.key == key && feature.kind == Some(kind))
}

/// The problem of a feature that this backend lacks, where the backend checks it itself.
///
/// # Panics
/// The feature is not in the table, or the backend runs it.
pub fn missing(key: &'static str, kind: Option<&'static str>, backend: &'static str) -> Problem {
    problem((key, kind), backend).expect("the backend does not run the feature")
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
        lane.light.as_ref().map(|_| ("light", None)),
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

fn asked_by_host(host: &HostPlan) -> Vec<Asked> {
    let cpu = host.cpu.as_ref();
    [
        cpu.map(|_| ("cpu", None)),
        cpu.filter(|cpu| !cpu.call.is_zero()).map(|_| ("cpu.call", None)),
        cpu.filter(|_| host.has_qdisc).map(|_| ("cpu", Some("qdisc"))),
        cpu.filter(|_| host.gro.is_some()).map(|_| ("cpu", Some("gro"))),
        host.has_qdisc.then_some(("qdisc", None)),
        host.gro.map(|_| ("gro", None)),
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

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Linux does not accept less for `tcp_rmem`.
const LEAST_RMEM: Bytes = Bytes(4096);
/// The integer limits of `MAX_TCP_KEEPIDLE`, `MAX_TCP_KEEPINTVL` and `TCP_USER_TIMEOUT`.
const LONGEST_KEEPALIVE: Duration = Duration::from_secs(32_767);
const LONGEST_USER_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// The options that differ from `usual` and that a current kernel does not let one choose, or not
/// as precisely.
fn asked_by_stack(stack: &StackPlan, usual: &StackPlan) -> Vec<Asked> {
    let is_whole = |time: Duration, unit: Duration| time.as_picos().is_multiple_of(unit.as_picos());
    let is_delay_usual = stack.delayed_ack == usual.delayed_ack || stack.delayed_ack == OrOff::Off;
    let user_timeout = stack.user_timeout.on();
    let keepalive = stack.keepalive.on();
    let keeps = |time: Duration| is_whole(time, SECOND) && time <= LONGEST_KEEPALIVE;
    [
        ("stack.fack", !stack.fack),
        // With SACK the setting has no effect.
        ("stack.recovery", stack.sack || stack.recovery == usual.recovery),
        ("stack.ecn", stack.ecn != Ecn::Accurate),
        ("stack.abc", stack.abc == AckCounting::Segment),
        ("stack.delayed_ack", is_delay_usual),
        ("stack.ack_every", matches!(stack.ack_every, 1 | 2)),
        ("stack.quick_ack", stack.quick_ack == usual.quick_ack),
        ("stack.max_rto", stack.max_rto == usual.max_rto),
        ("stack.initial_rto", stack.initial_rto == usual.initial_rto),
        ("stack.limited_transmit", stack.limited_transmit),
        ("stack.reduction", stack.reduction == usual.reduction),
        ("stack.mem", stack.mem == OrOff::Off),
        ("stack.undo", stack.undo),
        ("stack.tso", stack.tso),
        ("stack.flavour", stack.flavour == usual.flavour),
        ("stack.cut_base", stack.cut_base == usual.cut_base),
        ("stack.time_wait", stack.time_wait == usual.time_wait),
        ("stack.rmem", stack.rmem >= LEAST_RMEM),
        (
            "stack.user_timeout",
            user_timeout
                .is_none_or(|time| is_whole(time, MILLISECOND) && time <= LONGEST_USER_TIMEOUT),
        ),
        ("stack.keepalive.idle", keepalive.is_none_or(|it| keeps(it.idle))),
        ("stack.keepalive.interval", keepalive.is_none_or(|it| keeps(it.interval))),
    ]
    .into_iter()
    .filter(|(_, is_usual)| !is_usual)
    .map(|(key, _)| (key, None))
    .collect()
}

/// The problem of a feature on this backend, if any, with its place.
fn missing_feature((key, kind): Asked, place: &str, backend: &'static str) -> Option<Mistake> {
    let problem = problem((key, kind), backend)?;
    // No key says that a link is part of a shared medium.
    Some(problem.at(match (place, key) {
        (place, "lan") => place.into(),
        ("", key) => key.into(),
        (place, key) => format!("{place}.{key}"),
    }))
}

fn problem((key, kind): Asked, backend: &'static str) -> Option<Problem> {
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
    Some(if feature.on.is_empty() {
        Problem::NotYet { what, have }
    } else {
        Problem::NotHere { what, backend, have }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Loss, Queue, Traffic};

    #[test]
    fn every_kind_is_in_the_support_table_once() {
        let profiles: Vec<_> = Profile::ALL.iter().map(|profile| profile.word()).collect();
        for (key, words) in [
            ("queue", Queue::WORDS),
            ("loss", Loss::WORDS),
            ("traffic", Traffic::WORDS),
            ("profile", &profiles),
        ] {
            let mut listed: Vec<_> =
                FEATURES.iter().filter(|it| it.key == key).filter_map(|it| it.kind).collect();
            let mut words = words.to_vec();
            listed.sort_unstable();
            words.sort_unstable();
            assert_eq!(listed, words, "{key}");
        }
    }

    #[test]
    fn profiles_run_where_all_their_options_do() {
        let usual = Profile::Linux612.options();
        for profile in Profile::ALL {
            let missing = asked_by_stack(&profile.options(), &usual);
            let word = Some(profile.word());
            let feature = FEATURES.iter().find(|it| it.key == "profile" && it.kind == word);
            let runs = feature.unwrap().on.contains(&"linux");
            assert_eq!(runs, missing.is_empty(), "{profile:?}: {missing:?}");
        }
    }

    #[test]
    fn checks_of_backends_use_the_messages_of_the_support_table() {
        let problem = missing("mtu", Some("small"), "linux").to_string();
        let expected = "a router with an MTU below 552 bytes is not available on `linux`";
        assert_eq!(problem, expected);
    }
}
