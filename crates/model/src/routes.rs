//! Finds the paths of packets: explicit routes, else that of a shape, else the fewest hops.
//!
//! Most nodes of a large network have a single link and are never in the middle of a path, so the
//! search skips them, and each result is cached.

use crate::plan::LanePlan;
use std::collections::{BTreeMap, VecDeque};

/// The lanes out of each node, and the known paths.
pub(crate) struct Routes<'a> {
    lanes: &'a [LanePlan],
    out: Vec<Vec<usize>>,
    explicit: BTreeMap<(usize, usize), Vec<usize>>,
    found: BTreeMap<(usize, usize), Option<Vec<usize>>>,
    rule: Rule<'a>,
}

/// The nodes of a path that a shape defines between two nodes.
pub(crate) type Rule<'a> = Box<dyn Fn(usize, usize) -> Option<Vec<usize>> + 'a>;

impl<'a> Routes<'a> {
    pub fn new(nodes: usize, lanes: &'a [LanePlan], rule: Rule<'a>) -> Self {
        let mut out = vec![Vec::new(); nodes];
        for (number, lane) in lanes.iter().enumerate() {
            out[lane.from].push(number);
        }
        Self { lanes, out, explicit: BTreeMap::new(), found: BTreeMap::new(), rule }
    }

    /// Makes packets from the first node of `path` to its last take this path. The error is a pair
    /// of nodes without a link between them.
    pub fn fix(&mut self, path: &[usize]) -> Result<(), (usize, usize)> {
        let lanes = self.along(path)?;
        if let (Some(first), Some(last)) = (path.first(), path.last()) {
            self.explicit.insert((*first, *last), lanes);
        }
        Ok(())
    }

    /// The lanes along these nodes, or a pair of nodes without a lane.
    fn along(&self, path: &[usize]) -> Result<Vec<usize>, (usize, usize)> {
        let mut lanes = Vec::new();
        for pair in path.windows(2) {
            let lane = self.out[pair[0]].iter().find(|lane| self.lanes[**lane].to == pair[1]);
            lanes.push(*lane.ok_or((pair[0], pair[1]))?);
        }
        Ok(lanes)
    }

    /// The lanes from one node to another, if there is a path.
    pub fn path(&mut self, from: usize, to: usize) -> Option<Vec<usize>> {
        if let Some(lanes) = self.explicit.get(&(from, to)) {
            return Some(lanes.clone());
        }
        if let Some(nodes) = (self.rule)(from, to) {
            return self.along(&nodes).ok();
        }
        let mut path = Vec::new();
        let mut start = from;
        if let [only] = self.out[from][..]
            && from != to
        {
            path.push(only);
            start = self.lanes[only].to;
        }
        if start == to {
            return Some(path);
        }
        let last = match self.out[to][..] {
            // The path into a node with one link is the other direction of the path out of it.
            [only] => Some(only ^ 1),
            _ => None,
        };
        let end = last.map_or(to, |last| self.lanes[last].from);
        if start != end {
            let (lanes, out) = (self.lanes, &self.out);
            let found = self.found.entry((start, end));
            let core = found.or_insert_with(|| search(lanes, out, start, end));
            path.extend(core.as_ref()?);
        }
        path.extend(last);
        Some(path)
    }
}

/// Breadth-first search, in the order of the lanes.
fn search(lanes: &[LanePlan], out: &[Vec<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut reached_by = vec![None; out.len()];
    let mut waiting = VecDeque::from([from]);
    while let Some(node) = waiting.pop_front() {
        if node == to {
            let mut path = Vec::new();
            let mut node = to;
            while let Some(lane) = reached_by[node] {
                path.push(lane);
                let lane: &LanePlan = &lanes[lane];
                node = lane.from;
            }
            path.reverse();
            return Some(path);
        }
        for &lane in &out[node] {
            let next = lanes[lane].to;
            let is_dead_end = out[next].len() == 1 && next != to;
            if next != from && !is_dead_end && reached_by[next].is_none() {
                reached_by[next] = Some(lane);
                waiting.push_back(next);
            }
        }
    }
    None
}
