//! Common Applications Kept Enhanced, as Linux `cake`.

use crate::plan::QueueLimit;
use crate::read::{table, words};
use crate::schema::{Limit, SOME_TIME};
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Duration, Rate};

table! {
    /// Serves hosts in turn and the flows of each in turn, each from a queue of its own.
    pub struct Cake {
        /// How much memory all queues take together: "4 MB".
        pub limit: Limit = Limit::Bytes(Bytes(4 << 20)),
        /// The round trip that it is tuned for: "100 ms". `tc` calls 100 us `datacentre`, 1 ms `lan`, 10 ms
        /// `metro`, 30 ms `regional`, 100 ms `internet`, 300 ms `oceanic`, 1 s `satellite`.
        pub rtt: Duration [SOME_TIME] = Duration::from_millis(100),
        /// The rate at which packets leave, below that of the link: "9 Mbit/s". Without one they leave at the
        /// rate of the link, and `overhead`, `mpu` and `framing` hold nothing back: they only say what packets
        /// count when flows are served in turn. What `tc` calls `bandwidth`.
        pub rate: Option<Rate> = None,
        /// Bytes that each packet counts at that rate beside its own: headers of the link, 38 on Ethernet.
        pub overhead: u64 [0..=256] = 0,
        /// The fewest bytes that a packet counts at that rate, with the overhead: 84 on Ethernet.
        pub mpu: u64 [0..=256] = 0,
        /// What packets are cut into on the link that the rate is of.
        pub framing: Framing = Framing::None,
        /// By what queues are told apart, and whose shares of the link are equal.
        pub isolation: Isolation = Isolation::Triple,
        /// The classes that packets are sorted into by their DSCP. That is 0 but for messages of routers (ICMP),
        /// which are control of the network (CS6).
        pub tins: Tins = Tins::Diffserv3,
        /// Whether ACKs that wait are dropped when a later one of the flow says as much.
        pub ack_filter: AckFilter = AckFilter::Off,
        /// Whether packets have passed the bottleneck already: then those that are dropped count as sent.
        pub ingress: bool = false,
    }
}

words! {
    /// What packets are cut into on a link.
    #[what("framing")]
    pub enum Framing {
        /// They are carried whole.
        "none" => None,
        /// ATM: each 48 bytes take 53.
        "atm" => Atm,
        /// PTM of VDSL2: each 64 bytes take 65.
        "ptm" => Ptm,
    }
}

words! {
    /// By what queues are told apart, and whose shares are equal.
    #[what("isolation")]
    pub enum Isolation {
        /// All packets share a queue.
        "flowblind" => Blind,
        /// Hosts that send have a queue each.
        "srchost" => Sources,
        /// Hosts that receive have a queue each.
        "dsthost" => Targets,
        /// Pairs of hosts have a queue each.
        "hosts" => Hosts,
        /// Flows have a queue each.
        "flows" => Flows,
        /// Hosts that send have equal shares, and so have the flows of each.
        "dual-srchost" => DualSources,
        /// Hosts that receive have equal shares, and so have the flows of each.
        "dual-dsthost" => DualTargets,
        /// Both: the share of a flow is the smaller one of what its two hosts leave it.
        "triple-isolate" => Triple,
    }
}

impl Isolation {
    /// Whether flows, hosts that send and hosts that receive are told apart, in this order.
    pub fn parts(self) -> [bool; 3] {
        match self {
            Self::Blind => [false, false, false],
            Self::Sources => [false, true, false],
            Self::Targets => [false, false, true],
            Self::Hosts => [false, true, true],
            Self::Flows => [true, false, false],
            Self::DualSources => [true, true, false],
            Self::DualTargets => [true, false, true],
            Self::Triple => [true, true, true],
        }
    }
}

words! {
    /// Classes of packets.
    #[what("set of tins")]
    pub enum Tins {
        /// One for all.
        "besteffort" => BestEffort,
        /// Eight, by the three bits of IP precedence.
        "precedence" => Precedence,
        /// Bulk, best effort, and what is sensitive to delay.
        "diffserv3" => Diffserv3,
        /// The same, and streaming.
        "diffserv4" => Diffserv4,
        /// Eight, by the kinds of RFC 4594.
        "diffserv8" => Diffserv8,
    }
}

words! {
    /// Which ACKs are dropped.
    #[what("filter of ACKs")]
    pub enum AckFilter {
        /// None.
        "off" => Off,
        /// Those without which two others still wait.
        "on" => On,
        /// Those without which one other still waits.
        "aggressive" => Aggressive,
    }
}

/// Common Applications Kept Enhanced, as Linux `cake`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CakePlan {
    /// The round trip that it is tuned for.
    pub rtt: Duration,
    /// The rate at which packets leave, where it is not that of the link.
    pub rate: Option<Rate>,
    /// Bytes that each packet counts there beside its own.
    pub overhead: u64,
    /// The fewest bytes that a packet counts there.
    pub mpu: u64,
    /// What packets are cut into there.
    pub framing: Framing,
    /// Whose shares are equal.
    pub isolation: Isolation,
    /// Classes of packets.
    pub tins: Tins,
    /// Which ACKs are dropped.
    pub ack_filter: AckFilter,
    /// Whether packets that are dropped count as sent.
    pub ingress: bool,
}

as_written!(Framing, Isolation, Tins, AckFilter);

impl CakePlan {
    /// The round trip and the waiting time that is acceptable in whole microseconds: a twentieth, as `tc`
    /// computes it.
    pub fn interval_and_target(&self) -> [u64; 2] {
        let interval = self.rtt.as_picos() / 1_000_000;
        [interval, interval / 20].map(|micros| micros.max(1))
    }
}

impl Cake {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> CakePlan {
        let Self {
            rtt, rate, overhead, mpu, framing, isolation, tins, ack_filter, ingress, ..
        } = *self;
        CakePlan { rtt, rate, overhead, mpu, framing, isolation, tins, ack_filter, ingress }
    }
}
