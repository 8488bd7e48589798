//! Hosts and the flows between them.

use super::{CongestionControl, MILLION, OrOff, Queue, Stack, Traffic};
use crate::read::table;
use std::ops::RangeInclusive;
use tcplab_units::Duration;

/// The range of a processing cost.
const COST: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(1);

/// The range of an interrupt delay.
const MODERATION: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_millis(10);

/// The name of an unnamed flow, by its place in the list.
pub(crate) fn default_name(index: usize) -> String {
    format!("flow{}", index + 1)
}

table! {
    /// Settings of one host.
    #[derive(Default)]
    pub struct Host {
        /// The transport of all flows that begin or end here, unless a flow sets its own.
        pub stack: Stack = Stack::default(),
        /// The host's processing time for packets and system calls: `{ packet = "10 us" }`. By
        /// default none.
        pub cpu: Option<Cpu> = None,
        /// The queue of the host's own devices, instead of the `queue` of the links that begin at
        /// the host: "fq", "fq-codel", "1000 packets" (`pfifo_fast`). Linux senders keep few
        /// packets there (TCP small queues), and with "fq" they are paced. By default these links
        /// have queues of routers, of which senders know nothing.
        pub qdisc: Option<Queue> = None,
        /// Generic receive offload (GRO) of the host's devices: the time from the arrival of a
        /// packet to the interrupt, "20 us". All packets that have arrived by then are received
        /// together, and consecutive segments of a flow are merged into one packet, which is
        /// acknowledged as one. On a real host that is `ethtool -K eth0 gro on` with
        /// `ethtool -C eth0 rx-usecs 20`. By default "off": each packet is received when it
        /// arrives.
        pub gro: Option<OrOff<Duration>> [MODERATION] = None,
    }
}

table! {
    /// The processing time of a host. The processor does one thing at a time, in order of arrival.
    /// Packets that the host sends in response to an event leave before the next event has its
    /// turn.
    pub struct Cpu {
        /// The time for each packet with data, sent or received: "10 us".
        pub packet: Duration [COST] = Duration::ZERO,
        /// The time for each packet without data, sent or received, like an ACK: "2 us".
        pub ack: Duration [COST] = Duration::ZERO,
        /// The time for each system call in which a program writes or reads, and each time that a
        /// program continues after a wait: "1 us".
        pub call: Duration [COST] = Duration::ZERO,
    }
}

table! {
    /// Traffic from one node to another, once or several times.
    pub struct Flow {
        /// The name in tables, like "download". By default "flow" with its number in the list,
        /// from 1. With a count, the k-th flow is "download/k".
        pub name: Option<String> = None,
        /// The node that sends the data. A `*` stands for a number: flows are assigned round robin
        /// to all matching nodes, so that `from = "left*"`, `to = "right*"` is one flow for each
        /// pair.
        pub from: String,
        /// The node that receives the data, written like `from`.
        pub to: String,
        /// The number of flows: 20. By default 1 or, with a `*` in a name, one for each node.
        pub count: Option<u64> [1..=MILLION] = None,
        /// The start of the flow, after the start of the experiment: "5 s".
        pub start: Duration = Duration::ZERO,
        /// The time between the starts of several flows: "100 ms".
        pub stagger: Duration = Duration::ZERO,
        /// The maximum random addition to the start: "1 s". The addition is uniform and depends on
        /// the seed and the flow's name.
        pub start_jitter: Duration = Duration::ZERO,
        /// The congestion control, short for `stack.cc`: "cubic", or
        /// `{ name = "cubic", beta = 0.5 }` with parameters.
        pub cc: Option<CongestionControl> = None,
        /// The traffic of the application: "bulk" (send as fast as possible), or a table with its
        /// `kind`.
        pub traffic: Traffic = Traffic::default(),
        /// A label that groups flows in tables and plots, like "large". By default the name without
        /// the number.
        pub class: Option<String> = None,
        /// The transport of both ends of this flow.
        pub stack: Stack = Stack::default(),
    }
}
