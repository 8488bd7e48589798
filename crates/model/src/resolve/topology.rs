//! Numbers nodes and lanes.

use super::names;
use crate::fat_tree::FatTree;
use crate::mistake::{Mistake, Problem};
use crate::plan::{LanePlan, QueueLimit, QueuePlan};
use crate::routes::Rule;
use crate::schema::{Discipline, DropTailPlan, LanPlan, Lane, LinkSettings, Network, Queue};
use crate::shapes::{LinkSpec, expand};
use std::collections::BTreeMap;
use std::sync::Arc;
use tcplab_units::{Bytes, Duration};

/// The nodes and lanes of a network.
pub(crate) struct Topology {
    pub nodes: Vec<String>,
    pub numbers: BTreeMap<String, usize>,
    /// Nodes of shared LANs, which are not hosts.
    pub media: Vec<usize>,
    pub lanes: Vec<LanePlan>,
    /// The queue of each lane as written: its size may depend on the flows.
    pub queues: Vec<Queue>,
    /// Where each link was described: `network.links[0]`.
    pub links: Vec<String>,
    /// Explicit routes: where each was written, and its nodes.
    pub routes: Vec<(String, Vec<usize>)>,
    fat_tree: Option<FatTree>,
}

impl Topology {
    pub fn build(
        network: &Network,
        duration: Duration,
        seed: u64,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<Self> {
        let before = mistakes.len();
        let links = expand(network, seed, mistakes);
        if network.graph.as_ref().is_some_and(|graph| graph.file.is_some()) {
            // The file could not be read.
            return None;
        }
        // A misspelt shape is reported alone.
        let is_read = mistakes.iter().all(|it| !it.at.starts_with("network"));
        if links.is_empty() && is_read {
            let reason = "is empty; give it a shape, like [network.dumbbell], or [[network.links]]";
            mistakes.push(Problem::Invalid(reason.into()).at("network"));
        }
        if mistakes.len() > before || links.is_empty() {
            return None;
        }
        let mut topology = Self {
            nodes: Vec::new(),
            numbers: BTreeMap::new(),
            media: Vec::new(),
            lanes: Vec::with_capacity(links.len() * 2),
            queues: Vec::with_capacity(links.len() * 2),
            links: links.iter().map(|link| link.place.clone()).collect(),
            routes: Vec::new(),
            fat_tree: network.fat_tree.as_ref().map(|shape| FatTree::new(shape.k)),
        };
        let mut names = BTreeMap::new();
        for link in &links {
            for lane in [&link.forward, &link.back] {
                if let Err((key, problem)) = LinkSettings::check_changes(lane, duration) {
                    let mistake = problem.at(format!("{}.{key}", lane.place));
                    if !mistakes.contains(&mistake) {
                        mistakes.push(mistake);
                    }
                }
            }
            topology.connect(link, &mut names, mistakes);
        }
        // A backend that checks such a plan would generate all of its changes.
        if mistakes.len() > before {
            return None;
        }
        for (i, route) in network.routes.iter().enumerate() {
            topology.route(&route.path, &format!("network.routes[{i}].path"), mistakes);
        }
        Some(topology)
    }

    /// The number of a node that must exist.
    pub fn node(&self, name: &str) -> Result<usize, Problem> {
        let number = self.numbers.get(name).copied();
        number.ok_or_else(|| Problem::unknown("node", name, &self.nodes))
    }

    /// The routes that shapes define.
    pub fn rule(&self) -> Rule<'_> {
        let Some(tree) = self.fat_tree else { return Box::new(|_, _| None) };
        let seats = tree.seats().map(|seat| (self.numbers[&tree.host(seat)], seat));
        let seats: BTreeMap<_, _> = seats.collect();
        Box::new(move |from, to| {
            let (from, to) = (seats.get(&from)?, seats.get(&to)?);
            let way = tree.way(*from, *to);
            way.iter().map(|name| self.numbers.get(name).copied()).collect()
        })
    }

    fn connect(
        &mut self,
        link: &LinkSpec,
        names: &mut BTreeMap<String, u64>,
        mistakes: &mut Vec<Mistake>,
    ) {
        let [from, to] = link.between.each_ref().map(|name| match self.numbers.get(name) {
            Some(number) => *number,
            None => self.add(name, &link.place, mistakes),
        });
        let lan = link.lan.clone().map(|lan| Arc::new(LanPlan { node: to, ..lan }));
        if lan.is_some() && !self.media.contains(&to) {
            self.media.push(to);
        }
        for (from, to, lane) in [(from, to, &link.forward), (to, from, &link.back)] {
            let mut name = format!("{}>{}", self.nodes[from], self.nodes[to]);
            let times = names.entry(name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                name = format!("{name}/{times}");
            }
            self.queues.push(lane.queue.clone());
            self.lanes.push(plan(name, (from, to), lane, lan.clone()));
        }
    }

    fn add(&mut self, name: &str, place: &str, mistakes: &mut Vec<Mistake>) -> usize {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !name.chars().all(is_plain) {
            let allowed = "the name of a node consists of letters, digits, `-`, `_` and `.`";
            let problem = Problem::Invalid(format!("\"{name}\" cannot be a name: {allowed}"));
            mistakes.push(problem.at(place));
        }
        names::check(name, place, mistakes);
        self.nodes.push(name.into());
        self.numbers.insert(name.into(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn route(&mut self, path: &[String], at: &str, mistakes: &mut Vec<Mistake>) {
        let mut nodes = Vec::new();
        for (i, name) in path.iter().enumerate() {
            match self.node(name) {
                Ok(node) if nodes.contains(&node) => {
                    let problem = Problem::Invalid(format!("comes by \"{name}\" twice"));
                    return mistakes.push(problem.at(format!("{at}[{i}]")));
                }
                Ok(node) => nodes.push(node),
                Err(problem) => return mistakes.push(problem.at(format!("{at}[{i}]"))),
            }
        }
        if nodes.len() < 2 {
            let problem = Problem::Invalid("needs two nodes at least".into());
            return mistakes.push(problem.at(at));
        }
        self.routes.push((at.into(), nodes));
    }
}

/// A lane without its queue, which may be the host's own.
fn plan(
    name: String,
    (from, to): (usize, usize),
    lane: &Lane,
    lan: Option<Arc<LanPlan>>,
) -> LanePlan {
    LanePlan {
        name,
        place: lane.place.clone(),
        from,
        to,
        rate: lane.rate,
        delay: lane.delay,
        jitter: lane.jitter.clone(),
        mtu: lane.mtu,
        icmp: lane.icmp,
        queue: QueuePlan {
            discipline: Discipline::DropTail(DropTailPlan {}),
            limit: QueueLimit::Packets(1),
        },
        loss: lane.loss.clone(),
        reordering: lane.reordering.clone(),
        rate_changes: lane.rate_changes.clone(),
        light: lane.light.clone(),
        lan,
        delay_changes: lane.delay_changes.clone(),
        overtaking: lane.overtaking,
        corruption: lane.corruption,
        duplication: lane.duplication,
        outages: lane.outages.clone(),
        contention: lane.contention.clone(),
        bdp: Bytes(0),
    }
}
