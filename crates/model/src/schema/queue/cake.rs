//! Common Applications Kept Enhanced, as Linux `cake`.

use crate::mistake::Mistake;
use crate::plan::{QueueLimit, is_false};
use crate::read::{Bounded, Definitions, Place, Read, table, word, words};
use crate::schema::{Limit, SOME_TIME};
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tcplab_units::{Bytes, Duration, Rate};

table! {
    /// Serves hosts in turn and the flows of each in turn, each from a queue of its own.
    pub struct Cake {
        /// How much memory all queues take together: "4 MB".
        pub limit: Limit = Limit::Bytes(Bytes(4 << 20)),
        /// The round trip that it is tuned for: "100 ms", or by its word of `tc`: "datacentre" (100 us),
        /// "lan" (1 ms), "metro" (10 ms), "regional" (30 ms), "internet" (100 ms), "oceanic" (300 ms),
        /// "satellite" (1 s), "interplanetary" (1000 s).
        pub rtt: Tuning [SOME_TIME] = Tuning(Duration::from_millis(100)),
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
        /// Whether packets lose their DSCP here, once they are sorted: behind this queue all are of one class.
        pub wash: bool = false,
    }
}

/// The round trips that `tc` has words for.
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

/// A round trip, by its length or by a word.
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
    /// Whether packets lose their DSCP.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wash: bool,
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
