//! Hosts and the flows between them.

use super::{CongestionControl, MILLION, OrOff, Queue, Stack, Traffic};
use crate::read::table;
use std::ops::RangeInclusive;
use tcplab_units::Duration;

/// What a processor may take for one thing.
const COST: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(1);

/// How long what has arrived may wait for a poll.
const MODERATION: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_millis(10);

/// The name of a flow that says none, by its place in the list.
pub(crate) fn default_name(index: usize) -> String {
    format!("flow{}", index + 1)
}

table! {
    /// Settings of one host.
    #[derive(Default)]
    pub struct Host {
        /// The transport of all flows that begin or end here, where the flow says nothing else.
        pub stack: Stack = Stack::default(),
        /// The time that the host's processor takes for what its flows send and receive:
        /// `{ packet = "10 us" }`. By default none.
        pub cpu: Option<Cpu> = None,
        /// The queue of the host's own devices, in place of the `queue` that its links have where they
        /// begin at the host: "fq", "fq-codel", "1000 packets" (`pfifo_fast`). Linux senders keep few
        /// packets there (TCP small queues), and with "fq" they are paced. By default the links have
        /// queues of routers, of which senders know nothing.
        pub qdisc: Option<Queue> = None,
        /// Receive offload (GRO) of the host's devices: the time from the arrival of a packet to the
        /// interrupt, "20 us". All that has arrived by then is received together, and consecutive
        /// segments of a flow as one packet, which is acknowledged as one. On a real host that is
        /// `ethtool -K eth0 gro on` with `ethtool -C eth0 rx-usecs 20`. By default "off": each packet
        /// is received when it arrives.
        pub gro: Option<OrOff<Duration>> [MODERATION] = None,
    }
}

table! {
    /// The time that a host's processor takes. It does one thing at a time, in the order in which they
    /// come; what an event makes the host send leaves before the next event has its turn.
    pub struct Cpu {
        /// For each packet with data that is sent or received: "10 us".
        pub packet: Duration [COST] = Duration::ZERO,
        /// For each packet without data that is sent or received, as an ACK: "2 us".
        pub ack: Duration [COST] = Duration::ZERO,
        /// For each system call in which a program writes or reads, and each time that one goes on after
        /// it has waited: "1 us".
        pub call: Duration [COST] = Duration::ZERO,
    }
}

table! {
    /// Traffic from one node to another, once or several times.
    pub struct Flow {
        /// What tables call it, like "download". Without a name it is "flow" and its number in the
        /// list, from 1. Of several, the k-th is "download/k".
        pub name: Option<String> = None,
        /// The node that sends the data. A `*` stands for a number: the flows go round all nodes of
        /// that form, so that `from = "left*"`, `to = "right*"` is one flow for each pair.
        pub from: String,
        /// The node that receives the data, written like `from`.
        pub to: String,
        /// How many of it there are: 20. Without a count there is 1 or, where a `*` stands in a name,
        /// one for each node.
        pub count: Option<u64> [1..=MILLION] = None,
        /// When it begins: "5 s" after the start of the experiment.
        pub start: Duration = Duration::ZERO,
        /// How much later each of several begins than the one before: "100 ms".
        pub stagger: Duration = Duration::ZERO,
        /// The most that is added to the beginning, by chance: "1 s". Any time up to it is equally
        /// likely and depends on the seed and the flow's name.
        pub start_jitter: Duration = Duration::ZERO,
        /// The congestion control, short for `stack.cc`: "cubic", or
        /// `{ name = "cubic", beta = 0.5 }` with parameters.
        pub cc: Option<CongestionControl> = None,
        /// What the application does: "bulk" (send as fast as possible), or a table with its `kind`.
        pub traffic: Traffic = Traffic::default(),
        /// A label to group flows by in tables and plots, like "large". By default the name,
        /// without the number.
        pub class: Option<String> = None,
        /// The transport of both ends of this flow.
        pub stack: Stack = Stack::default(),
    }
}
