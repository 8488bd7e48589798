//! Counts flows out: who sends to whom, when, by which way.

use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan};
use crate::resolve::names::{self, Ends, ends};
use crate::resolve::stacks::{Stacks, stack_of};
use crate::resolve::traffic;
use crate::routes::Routes;
use crate::schema::{Experiment, Flow, MILLION, Profile, Traffic};
use std::collections::BTreeMap;
use std::sync::Arc;
use tcplab_units::Duration;

/// The lanes of all flows together; more would not fit into memory.
const MOST_HOPS: usize = 50_000_000;

/// The bytes of an ACK without options.
const LEAST_PACKET: u64 = 40;

/// All flows, in the order of the file.
pub(crate) fn resolve(
    experiment: &Experiment,
    profile: Profile,
    topology: &Topology,
    mistakes: &mut Vec<Mistake>,
) -> Vec<FlowPlan> {
    let mut routes = Routes::new(topology.nodes.len(), &topology.lanes);
    for (place, path) in &topology.routes {
        if let Err((from, to)) = routes.fix(path) {
            let (from, to) = (&topology.nodes[from], &topology.nodes[to]);
            let problem = Problem::Invalid(format!("no link connects \"{from}\" with \"{to}\""));
            mistakes.push(problem.at(place));
        }
    }
    let stacks = Stacks::new(experiment, profile, topology, mistakes);
    let mut flows =
        Flows { topology, routes, stacks: &stacks, plans: Vec::new(), hops: 0, mistakes };
    let entries = flows.entries(experiment);
    let total = entries.iter().fold(0_u64, |total, entry| total.saturating_add(entry.count));
    if total > MILLION {
        let problem = Problem::TooMany { what: "flows", number: total.into(), most: MILLION };
        flows.mistakes.push(problem.at("flows"));
        return Vec::new();
    }
    for entry in &entries {
        flows.count_out(entry);
    }
    flows.plans
}

/// An entry of the list of flows.
struct Entry<'a> {
    flow: &'a Flow,
    name: String,
    place: String,
    ends: Ends,
    count: u64,
    traffic: Arc<Traffic>,
}

struct Flows<'a> {
    topology: &'a Topology,
    routes: Routes<'a>,
    stacks: &'a Stacks<'a>,
    plans: Vec<FlowPlan>,
    hops: usize,
    mistakes: &'a mut Vec<Mistake>,
}

impl Flows<'_> {
    /// The entries that make sense.
    fn entries<'b>(&mut self, experiment: &'b Experiment) -> Vec<Entry<'b>> {
        let mut names = BTreeMap::new();
        let mut entries = Vec::new();
        for (i, flow) in experiment.flows.iter().enumerate() {
            let place = format!("flows[{i}]");
            let name = flow.name.clone().unwrap_or_else(|| format!("flow{}", i + 1));
            self.check_name(&name, &place, &mut names);
            if let Some(class) = &flow.class {
                names::check(class, format!("{place}.class"), self.mistakes);
            }
            if flow.start >= experiment.duration {
                let (start, end) = (flow.start, experiment.duration);
                let reason = format!("is {start}, when the experiment is over: it lasts {end}");
                self.mistakes.push(Problem::Invalid(reason).at(format!("{place}.start")));
            }
            let traffic = traffic::resolve(flow, experiment.duration, &place, self.mistakes);
            let (Some(ends), Some(traffic)) = (self.ends(flow, &place), traffic) else { continue };
            let count = flow.count.unwrap_or(ends.len());
            entries.push(Entry { flow, name, place, ends, count, traffic });
        }
        entries
    }

    fn check_name(&mut self, name: &str, place: &str, names: &mut BTreeMap<String, String>) {
        let at = format!("{place}.name");
        names::check(name, &at, self.mistakes);
        if name.contains('/') {
            let reason = "has a `/`, which stands before the number of a flow";
            self.mistakes.push(Problem::Invalid(reason.into()).at(&at));
        }
        if let Some(other) = names.insert(name.into(), place.into()) {
            self.mistakes.push(Problem::Duplicate { name: name.into(), other }.at(&at));
        }
    }

    fn ends(&mut self, flow: &Flow, place: &str) -> Option<Ends> {
        let mut side = |name: &str, key: &str| match ends(name, self.topology) {
            Ok(nodes) => Some(nodes),
            Err(problem) => {
                self.mistakes.push(problem.at(format!("{place}.{key}")));
                None
            }
        };
        match (side(&flow.from, "from"), side(&flow.to, "to")) {
            (Some(from), Some(to)) => Some(Ends { from, to }),
            // The ends of a link stand in, so that the rest of the flow is looked at too.
            _ => self
                .topology
                .lanes
                .first()
                .map(|lane| Ends { from: vec![lane.from], to: vec![lane.to] }),
        }
    }

    fn count_out(&mut self, entry: &Entry<'_>) {
        let Entry { flow, name, place, ends, count, traffic } = entry;
        let stack = stack_of(flow, place, self.mistakes);
        let mut stacks = self.stacks.of(&stack, place);
        let is_numbered = *count > 1;
        for k in 0..*count {
            let (from, to) = ends.pair(k);
            let Some(path) = self.path(from, to, place) else { return };
            self.hops += path.forward.len() + path.back.len();
            if self.hops > MOST_HOPS {
                let (number, most) = (self.hops as u128, MOST_HOPS as u64);
                let problem = Problem::TooMany { what: "hops of flows", number, most };
                return self.mistakes.push(problem.at(place));
            }
            let number = k + 1;
            self.plans.push(FlowPlan {
                name: if is_numbered { format!("{name}/{number}") } else { name.clone() },
                place: place.clone(),
                from,
                to,
                class: flow.class.clone().unwrap_or_else(|| name.clone()),
                start: flow.start + flow.stagger.saturating_mul(k),
                start_jitter: flow.start_jitter,
                traffic: Arc::clone(traffic),
                stack: stacks.at(from, self.mistakes),
                peer_stack: stacks.at(to, self.mistakes),
                mss_limit: path.mtu - 40,
                forward: path.forward,
                back: path.back,
                base_rtt: path.base_rtt,
                bottleneck: path.bottleneck,
            });
        }
    }

    fn path(&mut self, from: usize, to: usize, place: &str) -> Option<Path> {
        let name = |node: usize| self.topology.nodes[node].clone();
        if from == to {
            let problem = Problem::Invalid(format!("leads from \"{}\" to itself", name(from)));
            self.mistakes.push(problem.at(place));
            return None;
        }
        let mut way = |from, to| {
            let path = self.routes.path(from, to);
            if path.is_none() {
                let problem = Problem::NoPath { from: name(from), to: name(to) };
                self.mistakes.push(problem.at(place));
            }
            path
        };
        let forward = way(from, to)?;
        let back = way(to, from)?;
        let lanes = &self.topology.lanes;
        if forward.iter().chain(&back).all(|&lane| takes_no_time(&lanes[lane])) {
            let (from, to) = (name(from), name(to));
            let reason = format!(
                "packets take no time from \"{from}\" to \"{to}\" and back, and nothing would ever \
                 end; give a link between them a delay, or a rate of 100 Tbit/s or less"
            );
            self.mistakes.push(Problem::Invalid(reason).at(place));
            return None;
        }
        let both = || forward.iter().chain(&back).map(|&lane| &lanes[lane]);
        Some(Path {
            mtu: both().map(|lane| lane.mtu).min()?,
            base_rtt: both().map(|lane| lane.delay).sum(),
            bottleneck: forward.iter().copied().min_by_key(|&lane| lanes[lane].rate)?,
            forward,
            back,
        })
    }
}

/// The least packet passes it in less than half a picosecond, in which time is counted.
fn takes_no_time(lane: &LanePlan) -> bool {
    lane.delay.is_zero() && lane.rate.time_for(LEAST_PACKET).is_zero()
}

/// The way of a flow and what follows from it.
struct Path {
    forward: Vec<usize>,
    back: Vec<usize>,
    mtu: u64,
    base_rtt: Duration,
    bottleneck: usize,
}
