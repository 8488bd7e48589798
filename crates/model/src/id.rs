//! Identifies a run by everything that can change its result.
//!
//! The id is a hash over the resolved plan, the seed and the backend with its version. A plan no
//! longer contains how the experiment was spelled (units, explicit defaults, shapes or single
//! links), so spelling does not count. Nor do the experiment's name and positions in the file.

use crate::change::ChangePlan;
use crate::plan::{FlowPlan, LanePlan, MeasurePlan, Plan, RecordPlan, is_false, is_never};
use crate::schema::{
    Contention, Cpu, DelayChanges, Jitter, LanPlan, Light, Loss, Outages, Probability, RateChanges,
    Reordering, StackPlan, TrafficPlan,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use tcplab_units::{Duration, Rate};

/// The hash that all repetitions of a variant share: over the plan without its seed.
pub(crate) fn content(plan: &Plan) -> String {
    let mut shared = Shared::default();
    let flows = plan.flows.iter().map(|flow| FlowId::new(flow, &mut shared)).collect();
    let content = Content {
        duration: plan.duration,
        nodes: &plan.nodes,
        lanes: plan.lanes.iter().map(LaneId::new).collect(),
        flows,
        hosts: plan.hosts.iter().map(|host| (host.node, &host.cpu, host.has_qdisc)).collect(),
        gro: plan.hosts.iter().filter_map(|host| Some((host.node, host.gro?))).collect(),
        shared,
        record: &plan.record,
        measure: plan.measure,
        change: &plan.change,
    };
    hash(&content)
}

/// The part of the id shared by runs that are equal until a change, with its time; `None` for a run
/// without a change.
pub(crate) fn beginning(plan: &Plan) -> Option<String> {
    let at = plan.change.as_ref()?.at;
    let content = content(&Plan { change: None, ..plan.clone() });
    Some(hash(&(&plan.backend, plan.seed, at, content)))
}

/// The id of one run: 16 hexadecimal digits.
pub(crate) fn id(backend: &str, version: &str, seed: u64, content: &str) -> String {
    let mut id = hash(&(backend, version, seed, content));
    id.truncate(16);
    id
}

#[derive(Serialize)]
struct Content<'a> {
    duration: Duration,
    nodes: &'a [String],
    lanes: Vec<LaneId<'a>>,
    flows: Vec<FlowId<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<(usize, &'a Option<Cpu>, bool)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gro: Vec<(usize, Duration)>,
    shared: Shared<'a>,
    record: &'a RecordPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    measure: Option<MeasurePlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: &'a Option<Arc<ChangePlan>>,
}

/// A lane without its place in the experiment and without derived values.
#[derive(Serialize)]
struct LaneId<'a> {
    name: &'a str,
    from: usize,
    to: usize,
    rate: Rate,
    delay: Duration,
    jitter: &'a Jitter,
    mtu: u64,
    icmp: bool,
    queue: &'a crate::plan::QueuePlan,
    loss: &'a Option<Loss>,
    reordering: &'a Option<Reordering>,
    rate_changes: &'a Option<RateChanges>,
    lan: &'a Option<Arc<LanPlan>>,
    // Optional settings count only where they are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    light: &'a Option<Light>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_changes: &'a Option<DelayChanges>,
    #[serde(skip_serializing_if = "is_false")]
    overtaking: bool,
    #[serde(skip_serializing_if = "is_never")]
    corruption: Probability,
    #[serde(skip_serializing_if = "is_never")]
    duplication: Probability,
    #[serde(skip_serializing_if = "Option::is_none")]
    outages: &'a Option<Outages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contention: &'a Option<Contention>,
}

impl<'a> LaneId<'a> {
    fn new(lane: &'a LanePlan) -> Self {
        Self {
            name: &lane.name,
            from: lane.from,
            to: lane.to,
            rate: lane.rate,
            delay: lane.delay,
            jitter: &lane.jitter,
            mtu: lane.mtu,
            icmp: lane.icmp,
            queue: &lane.queue,
            loss: &lane.loss,
            reordering: &lane.reordering,
            rate_changes: &lane.rate_changes,
            lan: &lane.lan,
            light: &lane.light,
            delay_changes: &lane.delay_changes,
            overtaking: lane.overtaking,
            corruption: lane.corruption,
            duplication: lane.duplication,
            outages: &lane.outages,
            contention: &lane.contention,
        }
    }
}

/// State shared by many flows.
#[derive(Default, Serialize)]
struct Shared<'a> {
    traffic: Vec<&'a Arc<TrafficPlan>>,
    stacks: Vec<&'a Arc<StackPlan>>,
}

/// The index of `one` among the `known`, to which it is added if new.
fn number<'a, T: PartialEq>(one: &'a Arc<T>, known: &mut Vec<&'a Arc<T>>) -> usize {
    // The newest first: neighbours in the list of flows are likely to be equal.
    let newest = known.iter().rposition(|known| Arc::ptr_eq(known, one) || *known == one);
    newest.unwrap_or_else(|| {
        known.push(one);
        known.len() - 1
    })
}

/// A flow without its place; shared parts are given by index.
#[derive(Serialize)]
struct FlowId<'a> {
    name: &'a str,
    class: &'a str,
    from: usize,
    to: usize,
    start: Duration,
    start_jitter: Duration,
    traffic: usize,
    /// The stacks of both ends; `None` without TCP.
    stacks: Option<[usize; 2]>,
    forward: &'a [usize],
    back: &'a [usize],
}

impl<'a> FlowId<'a> {
    fn new(flow: &'a FlowPlan, shared: &mut Shared<'a>) -> Self {
        Self {
            name: &flow.name,
            class: &flow.class,
            from: flow.from,
            to: flow.to,
            start: flow.start,
            start_jitter: flow.start_jitter,
            traffic: number(&flow.traffic, &mut shared.traffic),
            stacks: flow.tcp().map(|tcp| tcp.stacks().map(|one| number(one, &mut shared.stacks))),
            forward: &flow.forward,
            back: &flow.back,
        }
    }
}

/// The SHA-256 of a value's JSON, in hexadecimal digits.
fn hash(value: &impl Serialize) -> String {
    let mut hash = Hash(Sha256::new());
    let mut buffer = io::BufWriter::with_capacity(1 << 16, &mut hash);
    // Neither hashing nor serializing can fail: all keys of tables are text.
    serde_json::to_writer(&mut buffer, value).expect("plans can be written as JSON");
    io::Write::flush(&mut buffer).expect("a hash takes everything");
    drop(buffer);
    let mut digits = String::new();
    for byte in hash.0.finalize() {
        write!(digits, "{byte:02x}").expect("text takes everything");
    }
    digits
}

struct Hash(Sha256);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
