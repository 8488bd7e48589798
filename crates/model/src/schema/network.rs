//! The network: shapes that expand to nodes and links, single links, routes and shared LANs.

use super::link::{Reordering, link_table};
use super::{
    Contention, DelayChanges, Jitter, Lan, Link, LinkSettings, Loss, Outages, Probability, Queue,
    RateChanges,
};
use crate::read::table;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use tcplab_units::{Duration, Rate};

const PAIRS: RangeInclusive<u64> = 1..=100_000;
const HOPS: RangeInclusive<u64> = 1..=1_000;

table! {
    /// The nodes and the links between them: one or more shapes, single links, or both. Parts that
    /// use the same name for a node meet there.
    #[derive(Default)]
    pub struct Network {
        /// Pairs of hosts that share one bottleneck.
        pub dumbbell: Option<Dumbbell> = None,
        /// A row of bottlenecks, with one way through all of them and other traffic at each.
        pub parking_lot: Option<ParkingLot> = None,
        /// A row of links from a client to a server.
        pub chain: Option<Chain> = None,
        /// A client and a server, whose traffic in both directions meets on an asymmetric link.
        pub antiparallel: Option<Antiparallel> = None,
        /// Single links.
        pub links: Vec<Link> = Vec::new(),
        /// Ways that packets must take. Without them each takes the one with the fewest hops; among
        /// equals, the one whose first link comes first in the file.
        pub routes: Vec<Route> = Vec::new(),
        /// Shared media of which only one station uses at a time, by name: `[network.lan.office]`.
        pub lan: BTreeMap<String, Lan> = BTreeMap::new(),
    }
}

link_table! {
    /// Pairs of hosts that share one bottleneck: `left1`, `left2`, ... are connected to the router
    /// `left`, `right1`, `right2`, ... to the router `right`. What is said of it holds for the
    /// bottleneck between the routers.
    pub struct Dumbbell {
        /// How many pairs: 2.
        pub pairs: u64 [PAIRS] = 1,
        /// The links between hosts and routers; by default ten times as fast as those between
        /// routers, and 1 ms.
        pub access: LinkSettings = LinkSettings::default(),
        /// The RTTs of the pairs without queues, spread evenly from one to the other, in place of
        /// `access.delay`: `["20 ms", "250 ms"]`. Of M pairs, the i-th has from + i * (to - from) / M.
        pub rtt: Option<(Duration, Duration)> = None,
        /// What differs from `right` to `left`.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// A row of routers `router1`, `router2`, ... with the same link between each two. `source` and
    /// `sink` are at its ends; at the k-th link, `entry1`, `entry2`, ... and `exit1`, `exit2`, ...
    /// are connected before and behind it. What is said of it holds for the links between routers.
    pub struct ParkingLot {
        /// How many links between routers: 3.
        pub hops: u64 [HOPS],
        /// The links between hosts and routers; by default ten times as fast as those between
        /// routers, and 1 ms.
        pub access: LinkSettings = LinkSettings::default(),
        /// What differs in the direction from `sink` to `source`.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

link_table! {
    /// A row of equal links: `client`, `router1`, `router2`, ..., `server`.
    pub struct Chain {
        /// How many links: 2.
        pub hops: u64 [HOPS] = 1,
        /// What differs in the direction from `server` to `client`.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

table! {
    /// A `client` behind the router `near` and a `server` behind the router `far`, with an
    /// asymmetric link between the routers.
    pub struct Antiparallel {
        /// The link from `far` to `near`, which downloads take: rate and delay must be given.
        pub down: LinkSettings,
        /// The link from `near` to `far`, which uploads take: rate and delay must be given.
        pub up: LinkSettings,
        /// The links between hosts and routers; by default ten times as fast as the faster
        /// direction between the routers, without delay.
        pub access: LinkSettings = LinkSettings::default(),
    }
}

table! {
    /// A way that packets must take, in one direction.
    pub struct Route {
        /// The nodes from the first to the last: `["client", "router1", "server"]`.
        pub path: Vec<String>,
    }
}
