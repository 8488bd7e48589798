//! Expands flows: sender, receiver, start, and path of each.

use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan, TcpPlan, Transport};
use crate::resolve::names::{self, Ends, ends};
use crate::resolve::stacks::{Stacks, check_stack, stack_of};
use crate::routes::Routes;
use crate::schema::{
    Experiment, Flow, MILLION, Profile, Setting, Traffic, TrafficPlan, default_name,
};
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;
use tcplab_units::{Duration, Rate};

/// The most lanes on the paths of all flows together; more do not fit into memory.
const MOST_HOPS: usize = 50_000_000;

/// The most transfers of all flows together: the row limit of a table.
const MOST_TRANSFERS: u64 = 50_000_000;

/// The most datagrams of all flows together: a run of some minutes.
const MOST_DATAGRAMS: u64 = 1_000_000_000;

/// The size of an ACK without options: the headers of IPv4 and TCP.
const LEAST_PACKET: u64 = 40;

/// The bytes that timestamps take of every segment (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;

/// All flows, in the order of the file.
pub(crate) fn resolve(
    experiment: &Experiment,
    profile: Profile,
    topology: &Topology,
    mistakes: &mut Vec<Mistake>,
) -> Vec<FlowPlan> {
    let mut routes = Routes::new(topology.nodes.len(), &topology.lanes, topology.rule());
    for (place, path) in &topology.routes {
        if let Err((from, to)) = routes.fix(path) {
            let (from, to) = (&topology.nodes[from], &topology.nodes[to]);
            let problem = Problem::Invalid(format!("no link connects \"{from}\" with \"{to}\""));
            mistakes.push(problem.at(place));
        }
    }
    let stacks = Stacks::new(experiment, profile, topology, mistakes);
    let mut flows = Flows {
        topology,
        routes,
        stacks: &stacks,
        plans: Vec::new(),
        hops: 0,
        transfers: 0.0,
        datagrams: 0.0,
        mistakes,
    };
    let duration = experiment.duration;
    let entries = flows.entries(experiment);
    let total = entries.iter().fold(0_u64, |total, entry| total.saturating_add(entry.count));
    if total > MILLION {
        let problem = Problem::TooMany { what: "flows", number: total.into(), most: MILLION };
        flows.mistakes.push(problem.at("flows"));
        return Vec::new();
    }
    for entry in &entries {
        flows.count_out(entry, duration);
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
}

struct Flows<'a> {
    topology: &'a Topology,
    routes: Routes<'a>,
    stacks: &'a Stacks<'a>,
    plans: Vec<FlowPlan>,
    hops: usize,
    /// The mean number of transfers.
    transfers: f64,
    /// The mean number of datagrams.
    datagrams: f64,
    mistakes: &'a mut Vec<Mistake>,
}

impl Flows<'_> {
    /// The valid entries.
    fn entries<'b>(&mut self, experiment: &'b Experiment) -> Vec<Entry<'b>> {
        let mut names = BTreeMap::new();
        let mut entries = Vec::new();
        for (i, flow) in experiment.flows.iter().enumerate() {
            let place = format!("flows[{i}]");
            let name = flow.name.clone().unwrap_or_else(|| default_name(i));
            self.check_name(&name, &place, &mut names);
            if let Some(class) = &flow.class {
                names::check(class, format!("{place}.class"), self.mistakes);
            }
            if flow.start >= experiment.duration {
                let (start, end) = (flow.start, experiment.duration);
                let reason = format!("is {start}, but the experiment ends at {end}");
                self.mistakes.push(Problem::Invalid(reason).at(format!("{place}.start")));
            }
            if let Traffic::Web(web) = &flow.traffic {
                for (i, class) in web.classes.iter().enumerate() {
                    let place = format!("{place}.traffic.classes[{i}].name");
                    names::check(&class.name, place, self.mistakes);
                }
            }
            // Finds mistakes that do not depend on the path, also where there is none.
            let traffic = flow.traffic.plan(&Setting {
                duration: experiment.duration,
                class: "",
                mtu: 1500,
                segment_data: 1460,
                segment_bytes: 1500,
                bottleneck: Rate::from_bits_per_second(1_000_000_000),
                sharers: 1,
            });
            if let Err(problem) = &traffic {
                self.mistakes.push(problem.clone().at(format!("{place}.traffic")));
            }
            let (Some(ends), Ok(_)) = (self.ends(flow, &place), traffic) else { continue };
            let count = flow.count.unwrap_or(ends.len());
            entries.push(Entry { flow, name, place, ends, count });
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
            // The ends of a link stand in, so that the rest of the flow is checked too.
            _ => self
                .topology
                .lanes
                .first()
                .map(|lane| Ends { from: vec![lane.from], to: vec![lane.to] }),
        }
    }

    fn count_out(&mut self, entry: &Entry<'_>, duration: Duration) {
        let Entry { flow, name, place, ends, count } = entry;
        let stack = stack_of(flow, place, self.mistakes);
        if flow.traffic.is_datagrams() {
            check_stack(flow, place, self.mistakes);
        }
        let Some(paths) = self.paths(ends, *count, place) else { return };
        let mut sharers = BTreeMap::new();
        for path in &paths {
            *sharers.entry(path.bottleneck).or_default() += 1;
        }
        let class = flow.class.as_ref().unwrap_or(name);
        let (mut stacks, mut known) = (self.stacks.of(&stack, place), BTreeMap::new());
        let is_numbered = *count > 1;
        for (k, path) in (0..).zip(paths) {
            let (from, to) = ends.pair(k);
            if flow.traffic.is_datagrams() {
                self.check_copies(&path, place);
            }
            let (transport, mtu) = if flow.traffic.is_datagrams() {
                (Transport::Udp, path.forward_mtu)
            } else {
                let [stack, peer_stack] = [from, to].map(|node| stacks.at(node, self.mistakes));
                (Transport::Tcp(TcpPlan { stack, peer_stack }), path.mtu)
            };
            let (segment_data, segment_bytes) = segment(&transport, mtu);
            let setting = Setting {
                duration,
                class,
                mtu,
                segment_data,
                segment_bytes,
                bottleneck: self.topology.lanes[path.bottleneck].lasting_rate(),
                sharers: sharers[&path.bottleneck],
            };
            let key = flow.traffic.depends_on_path().then_some(setting);
            let traffic: &Arc<TrafficPlan> = match known.entry(key) {
                btree_map::Entry::Occupied(known) => known.into_mut(),
                btree_map::Entry::Vacant(new) => match flow.traffic.plan(&setting) {
                    Ok(traffic) => new.insert(Arc::new(traffic)),
                    Err(problem) => {
                        return self.mistakes.push(problem.at(format!("{place}.traffic")));
                    }
                },
            };
            if let Err((key, problem)) = self.add_objects(flow, traffic, duration) {
                return self.mistakes.push(problem.at(format!("{place}.traffic.{key}")));
            }
            let number = k + 1;
            self.plans.push(FlowPlan {
                name: if is_numbered { format!("{name}/{number}") } else { name.clone() },
                place: place.clone(),
                from,
                to,
                class: class.clone(),
                start: flow.start + flow.stagger.saturating_mul(k),
                start_jitter: flow.start_jitter,
                traffic: Arc::clone(traffic),
                transport,
                mtu,
                forward: path.forward,
                back: path.back,
                base_rtt: path.base_rtt,
                bottleneck: path.bottleneck,
            });
        }
    }

    /// Rejects transfers whose connections would fill the memory or whose rows would fill a disk,
    /// and datagrams that would take hours.
    fn add_objects(
        &mut self,
        flow: &Flow,
        plan: &TrafficPlan,
        duration: Duration,
    ) -> Result<(), (&'static str, Problem)> {
        let left = duration.saturating_sub(flow.start);
        let (what, key, all, number, most) = match (&flow.traffic, plan) {
            (Traffic::Arrivals(written), TrafficPlan::Arrivals(plan)) => {
                let number = plan.expected(left).unwrap_or(0.0);
                ("transfers", written.key(), &mut self.transfers, number, MOST_TRANSFERS)
            }
            (Traffic::Udp(written), TrafficPlan::Udp(plan)) => {
                let number = plan.expected(left);
                ("datagrams", written.key(), &mut self.datagrams, number, MOST_DATAGRAMS)
            }
            _ => return Ok(()),
        };
        *all += number;
        if *all <= most as f64 {
            return Ok(());
        }
        Err((key, Problem::TooMany { what, number: *all as u128, most }))
    }

    /// The paths of all flows of an entry.
    fn paths(&mut self, ends: &Ends, count: u64, place: &str) -> Option<Vec<Path>> {
        let mut paths = Vec::new();
        for k in 0..count {
            let (from, to) = ends.pair(k);
            let path = self.path(from, to, place)?;
            self.hops += path.forward.len() + path.back.len();
            if self.hops > MOST_HOPS {
                let (number, most) = (self.hops as u128, MOST_HOPS as u64);
                let problem = Problem::TooMany { what: "hops of flows", number, most };
                self.mistakes.push(problem.at(place));
                return None;
            }
            paths.push(path);
        }
        Some(paths)
    }

    /// Rejects datagrams on links with duplication: the receiver counts datagrams, and could not
    /// tell a copy.
    fn check_copies(&mut self, path: &Path, place: &str) {
        let copies = |lane: &&usize| self.topology.lanes[**lane].duplication.0 > 0.0;
        if let Some(lane) = path.forward.iter().find(copies) {
            let reason = format!(
                "is UDP over a link with `duplication` ({}), where copies would count as datagrams; \
                 use TCP, or a link without",
                self.topology.links[lane / 2]
            );
            let mistake = Problem::Invalid(reason).at(format!("{place}.traffic"));
            if !self.mistakes.contains(&mistake) {
                self.mistakes.push(mistake);
            }
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
            forward_mtu: forward.iter().map(|&lane| lanes[lane].mtu).min()?,
            base_rtt: both().map(|lane| lane.delay).sum(),
            bottleneck: forward.iter().copied().min_by_key(|&lane| lanes[lane].lasting_rate())?,
            forward,
            back,
        })
    }
}

/// The sizes of a full segment, without and with headers.
fn segment(transport: &Transport, mtu: u64) -> (u64, u64) {
    let most = mtu - LEAST_PACKET;
    let Transport::Tcp(TcpPlan { stack, peer_stack }) = transport else { return (most, mtu) };
    let mss = most.min(stack.mss).min(peer_stack.mss);
    let options = if stack.timestamps && peer_stack.timestamps { TIMESTAMPS } else { 0 };
    (mss.saturating_sub(options).max(1), mss + LEAST_PACKET)
}

/// Whether the smallest packet passes a lane in less than half a picosecond, the resolution of
/// time.
fn takes_no_time(lane: &LanePlan) -> bool {
    lane.delay.is_zero() && lane.rate.time_for(LEAST_PACKET).is_zero()
}

/// The path of a flow and values derived from it.
struct Path {
    forward: Vec<usize>,
    back: Vec<usize>,
    /// The largest packet on the path: in both directions, and forward.
    mtu: u64,
    forward_mtu: u64,
    base_rtt: Duration,
    bottleneck: usize,
}
