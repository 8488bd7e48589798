//! The length of names, and names with a `*`, which match all nodes that differ in a number.

use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use std::fmt::Display;

/// Names become parts of file names, and file systems allow 255 bytes.
const MOST_BYTES: usize = 128;

/// Rejects a name that is too long.
pub(crate) fn check(name: &str, at: impl Display, mistakes: &mut Vec<Mistake>) {
    if name.len() > MOST_BYTES {
        let reason = format!("has {} bytes; a name has at most {MOST_BYTES}", name.len());
        mistakes.push(Problem::Invalid(reason).at(at));
    }
}

/// The nodes between which the flows of one entry run.
pub(crate) struct Ends {
    pub from: Vec<usize>,
    pub to: Vec<usize>,
}

impl Ends {
    /// The number of flows unless a count is given.
    pub fn len(&self) -> u64 {
        self.from.len().max(self.to.len()) as u64
    }

    /// The nodes of the k-th flow, round robin.
    pub fn pair(&self, k: u64) -> (usize, usize) {
        let k = k as usize;
        (self.from[k % self.from.len()], self.to[k % self.to.len()])
    }
}

/// The nodes that match `name`, in the order of their numbers; at least one.
pub(crate) fn ends(name: &str, topology: &Topology) -> Result<Vec<usize>, Problem> {
    let Some((before, after)) = name.split_once('*') else {
        let node = topology.node(name)?;
        if topology.media.contains(&node) {
            let reason = format!("\"{name}\" is a LAN; name one of its stations");
            return Err(Problem::Invalid(reason));
        }
        return Ok(vec![node]);
    };
    let mut found: Vec<(u64, usize)> = topology
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(node, name)| {
            let number = name.strip_prefix(before)?.strip_suffix(after)?;
            let is_host = !topology.media.contains(&node);
            let is_number = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
            Some((number.parse().ok().filter(|_| is_number && is_host)?, node))
        })
        .collect();
    found.sort_unstable();
    if found.is_empty() {
        return Err(Problem::unknown("node", name, &topology.nodes));
    }
    Ok(found.into_iter().map(|(_, node)| node).collect())
}
