//! Common Applications Kept Enhanced, as in Linux `sch_cake`.

use crate::mistake::Mistake;
use crate::plan::{QueueLimit, is_false};
use crate::read::{Bounded, Definitions, Place, Read, table, word, words};
use crate::schema::{Limit, SOME_TIME};
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tcplab_units::{Bytes, Duration, Rate};

table! {
    /// Serves hosts in turn and each host's flows in turn, with a queue for each flow.
    pub struct Cake {
        /// The memory limit of all queues together: "4 MB".
        pub limit: Limit = Limit::Bytes(Bytes(4 << 20)),
        /// The round-trip time for which CAKE is tuned: "100 ms", or a word of `tc`: "datacentre"
        /// (100 us), "lan" (1 ms), "metro" (10 ms), "regional" (30 ms), "internet" (100 ms),
        /// "oceanic" (300 ms), "satellite" (1 s), "interplanetary" (1000 s).
        pub rtt: Tuning [SOME_TIME] = Tuning(Duration::from_millis(100)),
        /// The rate of the shaper, below that of the link: "9 Mbit/s" (`bandwidth` in `tc`).
        /// Without a shaper, packets leave at the rate of the link, and `overhead`, `mpu` and
        /// `framing` do not slow them down: they only set the packet sizes that count when flows
        /// are served in turn.
        pub rate: Option<Rate> = None,
        /// Bytes added to the size of each packet, for headers of the link: 38 on Ethernet.
        pub overhead: u64 [0..=256] = 0,
        /// The minimum size of a packet, with the overhead: 84 on Ethernet.
        pub mpu: u64 [0..=256] = 0,
        /// The cell framing of the link that the shaper models.
        pub framing: Framing = Framing::None,
        /// How queues are told apart, and who gets equal shares of the link.
        pub isolation: Isolation = Isolation::Triple,
        /// The traffic classes into which packets are sorted by their DSCP. The DSCP is 0 except
        /// for ICMP messages of routers, which are network control (CS6).
        pub tins: Tins = Tins::Diffserv3,
        /// Whether queued ACKs that a later one of the flow makes redundant are dropped.
        pub ack_filter: AckFilter = AckFilter::Off,
        /// Whether packets have passed the bottleneck already. If so, dropped packets count as
        /// sent.
        pub ingress: bool = false,
        /// Whether the DSCP is cleared once packets are sorted: behind this queue all packets have
        /// the same class.
        pub wash: bool = false,
    }
}

/// The round-trip times for which `tc` has words.
const TUNINGS: [(&str, Duration); 8] = [
    ("datacentre", Duration::from_micros(100)),
    ("lan", Duration::from_millis(1)),
    ("metro", Duration::from_millis(10)),
    ("regional", Duration::from_millis(30)),
    ("internet", Duration::from_millis(100)),
    ("oceanic", Duration::from_millis(300)),
    ("satellite", Duration::from_secs(1)),
    ("interplanetary", Duration::from_secs(1000)),
];

/// A round-trip time, in figures or by a word.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Tuning(pub Duration);

impl Bounded for Tuning {
    type Item = Duration;
    fn items(&self) -> &[Duration] {
        std::slice::from_ref(&self.0)
    }
}

impl Read for Tuning {
    const EXAMPLE: &'static str = Duration::EXAMPLE;

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let is_word = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        if !value.as_str().is_some_and(is_word) {
            return Duration::read(value, at, mistakes).map(Self);
        }
        let word = word(value, at, "round trip of CAKE", &TUNINGS.map(|it| it.0), mistakes)?;
        TUNINGS.iter().find(|known| known.0 == word).map(|known| Self(known.1))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "anyOf": [{ "enum": TUNINGS.map(|it| it.0) }, Duration::schema(definitions)] })
    }
}

words! {
    /// The cell framing of a link.
    #[what("framing")]
    pub enum Framing {
        /// None: packets are carried whole.
        "none" => None,
        /// ATM: each 48 bytes take 53.
        "atm" => Atm,
        /// PTM of VDSL2: each 64 bytes take 65.
        "ptm" => Ptm,
    }
}

words! {
    /// How queues are told apart, and who gets equal shares.
    #[what("isolation")]
    pub enum Isolation {
        /// All packets share a queue.
        "flowblind" => Blind,
        /// A queue for each source host.
        "srchost" => Sources,
        /// A queue for each destination host.
        "dsthost" => Targets,
        /// A queue for each pair of hosts.
        "hosts" => Hosts,
        /// A queue for each flow.
        "flows" => Flows,
        /// Equal shares for source hosts, and for the flows of each.
        "dual-srchost" => DualSources,
        /// Equal shares for destination hosts, and for the flows of each.
        "dual-dsthost" => DualTargets,
        /// Both: a flow gets the smaller of its shares at its two hosts.
        "triple-isolate" => Triple,
    }
}

impl Isolation {
    /// Whether flows, source hosts and destination hosts are told apart, in this order.
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
    /// Sets of traffic classes.
    #[what("set of tins")]
    pub enum Tins {
        /// One for all packets.
        "besteffort" => BestEffort,
        /// Eight, by the three bits of IP precedence.
        "precedence" => Precedence,
        /// Bulk, best effort, and latency-sensitive traffic.
        "diffserv3" => Diffserv3,
        /// The same and streaming.
        "diffserv4" => Diffserv4,
        /// Eight, by the service classes of RFC 4594.
        "diffserv8" => Diffserv8,
    }
}

words! {
    /// Which redundant ACKs are dropped.
    #[what("filter of ACKs")]
    pub enum AckFilter {
        /// None.
        "off" => Off,
        /// ACKs made redundant by two others.
        "on" => On,
        /// ACKs made redundant by one other.
        "aggressive" => Aggressive,
    }
}

/// Common Applications Kept Enhanced, as in Linux `sch_cake`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CakePlan {
    /// The round-trip time for which CAKE is tuned.
    pub rtt: Duration,
    /// The rate of the shaper, if there is one.
    pub rate: Option<Rate>,
    /// Bytes added to the size of each packet.
    pub overhead: u64,
    /// The minimum size of a packet.
    pub mpu: u64,
    /// The cell framing.
    pub framing: Framing,
    /// The unit of fairness: flows, hosts or both.
    pub isolation: Isolation,
    /// The traffic classes.
    pub tins: Tins,
    /// Which redundant ACKs are dropped.
    pub ack_filter: AckFilter,
    /// Whether dropped packets count as sent.
    pub ingress: bool,
    /// Whether the DSCP is cleared.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wash: bool,
}

as_written!(Framing, Isolation, Tins, AckFilter);

impl CakePlan {
    /// The interval, which is the round-trip time, and the target, a twentieth of it, in whole
    /// microseconds as `tc` computes them.
    pub fn interval_and_target(&self) -> [u64; 2] {
        let interval = self.rtt.as_picos() / 1_000_000;
        [interval, interval / 20].map(|micros| micros.max(1))
    }
}

impl Cake {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> CakePlan {
        let Self {
            rtt,
            rate,
            overhead,
            mpu,
            framing,
            isolation,
            tins,
            ack_filter,
            ingress,
            wash,
            ..
        } = *self;
        let rtt = rtt.0;
        CakePlan { rtt, rate, overhead, mpu, framing, isolation, tins, ack_filter, ingress, wash }
    }
}
