//! The network: shapes that expand to nodes and links, single links, routes and shared LANs.

use super::link::{Reordering, link_table};
use super::{
    Contention, DelayChanges, Jitter, Lan, Light, Link, LinkSettings, Loss, Outages, Probability,
    Queue, RateChanges, Rtts,
};
use crate::read::table;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use tcplab_units::{Duration, Rate};

const PAIRS: RangeInclusive<u64> = 1..=100_000;
const PORTS: RangeInclusive<u64> = 2..=64;
const HOPS: RangeInclusive<u64> = 1..=1_000;

table! {
    /// The nodes and the links between them: shapes, single links, or both. Parts that use the same
    /// name for a node share that node.
    #[derive(Default)]
    pub struct Network {
        /// Pairs of hosts that share one bottleneck.
        pub dumbbell: Option<Dumbbell> = None,
        /// A row of bottlenecks, with one path through all of them and cross traffic at each.
        pub parking_lot: Option<ParkingLot> = None,
        /// A row of links from a client to a server.
        pub chain: Option<Chain> = None,
        /// Hosts around a hub.
        pub star: Option<Star> = None,
        /// Switches in three layers, as in a data centre.
        pub fat_tree: Option<FatTree> = None,
        /// A network from a file of nodes and links.
        pub graph: Option<Graph> = None,
        /// A client and a server, whose traffic in both directions meets on an asymmetric link.
        pub antiparallel: Option<Antiparallel> = None,
        /// Single links.
        pub links: Vec<Link> = Vec::new(),
        /// Explicit routes of packets. The default is the path with the fewest hops; among equals,
        /// the one whose first link comes first in the file. A fat tree has routes of its own.
        pub routes: Vec<Route> = Vec::new(),
        /// Shared media on which only one station sends at a time, by name: `[network.lan.office]`.
        pub lan: BTreeMap<String, Lan> = BTreeMap::new(),
    }
}

impl Network {
    /// Whether any part of the network is drawn from the seed.
    pub(crate) fn is_drawn(&self) -> bool {
        let dumbbell = self.dumbbell.as_ref().and_then(|shape| shape.rtts.as_ref());
        let star = self.star.as_ref().and_then(|shape| shape.rtts.as_ref());
        [dumbbell, star].into_iter().flatten().any(|rtts| matches!(rtts, Rtts::Drawn(_)))
    }
}

link_table! {
    /// Pairs of hosts that share one bottleneck: `left1`, `left2`, ... are connected to the router
    /// `left`, `right1`, `right2`, ... to the router `right`. Link settings here apply to the
    /// bottleneck between the routers.
    pub struct Dumbbell {
        /// The number of pairs: 2. By default as many as there are `rtts`, or 1.
        pub pairs: Option<u64> [PAIRS] = None,
        /// The links between hosts and routers; by default ten times as fast as the bottleneck,
        /// with a delay of 1 ms.
        pub access: LinkSettings = LinkSettings::default(),
        /// The RTTs of the pairs without queues, evenly spaced between two values, instead of
        /// `access.delay`: `["20 ms", "250 ms"]`. Of M pairs, the i-th, from 1, has
        /// from + i * (to - from) / M: the last has the second value, none the first. With 4 pairs,
        /// `["20 ms", "100 ms"]` is 40, 60, 80 and 100 ms.
        pub rtt: Option<(Duration, Duration)> = None,
        /// The RTTs one by one, `["10 ms", "80 ms"]`, or drawn for each pair from a distribution,
        /// `{ kind = "uniform", least = "10 ms", most = "200 ms" }`. Random RTTs depend on the
        /// seed, so each repetition has its own.
        pub rtts: Option<Rtts> = None,
        /// Settings that differ in the direction from `right` to `left`.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// A row of routers `router1`, `router2`, ... with equal links between neighbours. `source` and
    /// `sink` are at the ends; `entry1`, `entry2`, ... and `exit1`, `exit2`, ... are connected
    /// before and behind the k-th link. Link settings here apply to the links between routers.
    pub struct ParkingLot {
        /// The number of links between routers: 3.
        pub hops: u64 [HOPS],
        /// The links between hosts and routers; by default ten times as fast as those between
        /// routers, with a delay of 1 ms.
        pub access: LinkSettings = LinkSettings::default(),
        /// Settings that differ in the direction from `sink` to `source`.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// A row of equal links: `client`, `router1`, `router2`, ..., `server`.
    pub struct Chain {
        /// The number of links: 2.
        pub hops: u64 [HOPS] = 1,
        /// Settings that differ in the direction from `server` to `client`.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// Hosts around a hub: `host1`, `host2`, ... are connected to `hub`, each by a link of its own.
    /// Link settings here apply to each of these links.
    pub struct Star {
        /// The number of hosts: 5. By default as many as there are `rtts`.
        pub hosts: Option<u64> [PAIRS] = None,
        /// The RTTs between each host and the hub without queues, instead of `delay`: one by one,
        /// `["10 ms", "80 ms"]`, or drawn for each host from a distribution,
        /// `{ kind = "exponential", mean = "50 ms" }`. Random RTTs depend on the seed, so each
        /// repetition has its own.
        pub rtts: Option<Rtts> = None,
        /// Settings that differ in the direction from `hub` to the hosts.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// The fat tree of Al-Fares et al. (SIGCOMM 2008), of equal switches: hosts `host1`, `host2`,
    /// ... at the switches `edge1-1`, `edge1-2`, ... of pod 1 and so on, above these
    /// `aggregation1-1`, ..., and above all pods `core1`, `core2`, ... Link settings here apply to
    /// all links. Routes between hosts follow the paper's two-level routing tables: the
    /// destination's number at its edge switch selects the switches of the upper layers, so that
    /// the hosts of a switch are reached over different core switches.
    pub struct FatTree {
        /// The ports of a switch, an even number: 4. There are k pods and k^3/4 hosts.
        pub k: u64 [PORTS] = 4,
        /// Settings that differ for links between hosts and switches.
        pub access: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// A network from a file of nodes and links. Link settings here are defaults for the file's
    /// links.
    pub struct Graph {
        /// A file: `GraphML`, as in the Internet Topology Zoo, if its name ends in `.graphml`, or a
        /// table of links, `.csv`, with the columns `from`, `to` and optionally `rate`, `delay`,
        /// `queue` and `loss`. In `GraphML`, edges may have these attributes or `LinkSpeedRaw` (in
        /// bit/s), and nodes are called by their `label`. A missing delay is the propagation delay
        /// in fibre (5 us/km) between the positions of the nodes, if both have `Latitude` and
        /// `Longitude`.
        pub file: Option<String> = None,
        /// The links one by one, instead of a file.
        pub links: Vec<Link> = Vec::new(),
    }
}

table! {
    /// A `client` behind the router `near` and a `server` behind the router `far`, with an
    /// asymmetric link between the routers.
    pub struct Antiparallel {
        /// The link from `far` to `near`, for downloads. Rate and delay are required.
        pub down: LinkSettings,
        /// The link from `near` to `far`, for uploads. Rate and delay are required.
        pub up: LinkSettings,
        /// The links between hosts and routers; by default ten times as fast as the faster
        /// direction between the routers, without delay.
        pub access: LinkSettings = LinkSettings::default(),
    }
}

table! {
    /// An explicit route of packets, in one direction.
    pub struct Route {
        /// The nodes from the first to the last: `["client", "router1", "server"]`.
        pub path: Vec<String>,
    }
}
