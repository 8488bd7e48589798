//! The fat tree of Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network
//! Architecture" (SIGCOMM 2008): switches of k ports, k pods, k^3/4 hosts.
//!
//! Routes between hosts follow its two-level routing tables (§3.3): up by the destination's number
//! at its edge switch, down by its pod and edge switch. The hosts of a switch are thus reached over
//! different core switches, and each host always over the same one.

/// A fat tree. Pods and switches are numbered from 0 here, and from 1 in names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FatTree {
    /// Half of the ports of a switch: the number of a pod's switches in each layer, and of an edge
    /// switch's hosts.
    half: u64,
}

/// The position of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seat {
    pod: u64,
    edge: u64,
    /// The number of the host at its edge switch.
    place: u64,
}

impl FatTree {
    /// A fat tree of switches with `ports` ports, an even number.
    pub fn new(ports: u64) -> Self {
        Self { half: ports / 2 }
    }

    /// All hosts, in the order of their numbers.
    pub fn seats(self) -> impl Iterator<Item = Seat> {
        let pods = 0..2 * self.half;
        let edges = pods.flat_map(move |pod| (0..self.half).map(move |edge| (pod, edge)));
        edges
            .flat_map(move |(pod, edge)| (0..self.half).map(move |place| Seat { pod, edge, place }))
    }

    /// The name of a host.
    pub fn host(self, seat: Seat) -> String {
        format!("host{}", (seat.pod * self.half + seat.edge) * self.half + seat.place + 1)
    }

    /// The links between switches, edge layer first, each from the lower switch to the upper one.
    pub fn links(self) -> Vec<[String; 2]> {
        let (mut links, layer) = (Vec::new(), 0..self.half);
        for pod in 0..2 * self.half {
            for edge in layer.clone() {
                links.extend(layer.clone().map(|up| [edge_name(pod, edge), aggregation(pod, up)]));
            }
        }
        for pod in 0..2 * self.half {
            for up in layer.clone() {
                links.extend(layer.clone().map(|port| [aggregation(pod, up), self.core(up, port)]));
            }
        }
        links
    }

    /// The links of hosts.
    pub fn access(self) -> impl Iterator<Item = [String; 2]> {
        self.seats().map(move |seat| [self.host(seat), edge_name(seat.pod, seat.edge)])
    }

    /// The nodes on the route from one host to another.
    pub fn way(self, from: Seat, to: Seat) -> Vec<String> {
        let mut way = vec![self.host(from), edge_name(from.pod, from.edge)];
        if (from.pod, from.edge) != (to.pod, to.edge) {
            let up = (to.place + from.edge) % self.half;
            way.push(aggregation(from.pod, up));
            if from.pod != to.pod {
                way.push(self.core(up, (to.place + up) % self.half));
                way.push(aggregation(to.pod, up));
            }
            way.push(edge_name(to.pod, to.edge));
        }
        way.push(self.host(to));
        way
    }

    /// The core switch at an uplink port of the aggregation switches with this number.
    fn core(self, up: u64, port: u64) -> String {
        format!("core{}", up * self.half + port + 1)
    }
}

fn edge_name(pod: u64, edge: u64) -> String {
    format!("edge{}-{}", pod + 1, edge + 1)
}

fn aggregation(pod: u64, up: u64) -> String {
    format!("aggregation{}-{}", pod + 1, up + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn there_are_as_many_switches_links_and_hosts_as_in_the_paper() {
        // §3: k^3/4 hosts, (k/2)^2 core switches, k pods of k switches, and k^3/4 links a layer.
        for k in [2, 4, 8] {
            let tree = FatTree::new(k);
            assert_eq!(tree.seats().count() as u64, k * k * k / 4);
            let links = tree.links();
            assert_eq!(links.len() as u64, 2 * k * k * k / 4);
            let switches: BTreeSet<_> = links.iter().flatten().collect();
            assert_eq!(switches.len() as u64, k * k / 4 + k * k);
            // Every switch has k ports.
            let mut ports: BTreeMap<String, u64> = BTreeMap::new();
            for node in links.into_iter().chain(tree.access()).flatten() {
                *ports.entry(node).or_default() += 1;
            }
            assert!(
                ports
                    .iter()
                    .all(|(name, &ports)| ports == if name.contains("host") { 1 } else { k })
            );
        }
    }

    #[test]
    fn routes_follow_links_and_spread_over_the_cores() {
        let tree = FatTree::new(4);
        let links: BTreeSet<_> = tree.links().into_iter().chain(tree.access()).collect();
        let mut cores: BTreeMap<String, u64> = BTreeMap::new();
        let seats: Vec<_> = tree.seats().collect();
        for &from in &seats {
            for &to in seats.iter().filter(|to| **to != from) {
                let way = tree.way(from, to);
                for pair in way.windows(2) {
                    let [one, other] = [pair[0].clone(), pair[1].clone()];
                    let ways = [[one.clone(), other.clone()], [other, one]];
                    assert!(ways.iter().any(|link| links.contains(link)), "{way:?}");
                }
                // 3 nodes at one switch, 5 in one pod, 7 in two pods.
                let length = match (from.pod == to.pod, from.edge == to.edge) {
                    (true, true) => 3,
                    (true, false) => 5,
                    (false, _) => 7,
                };
                assert_eq!(way.len(), length);
                for node in way.into_iter().filter(|name| name.starts_with("core")) {
                    *cores.entry(node).or_default() += 1;
                }
            }
        }
        // 16 hosts send to 12 in other pods: 192 routes, a quarter over each of four core switches.
        let cores: Vec<_> = cores.into_values().collect();
        assert_eq!(cores, [48; 4]);
    }
}
