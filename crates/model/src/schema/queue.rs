//! Queues: where packets wait for a link, and which of them are dropped.

use super::{AT_LEAST_ONE, Limit, Probability, SOME_TIME};
use crate::read::{choice, table};
use serde_json::{Value, json};
use tcplab_units::Duration;

choice! {
    /// The queue in front of a link: its size alone (`"1 BDP"`, `"250 packets"`, `"64 kB"`) for
    /// drop-tail, or a table with the `kind` of discipline and its settings.
    #[what("queue discipline")]
    #[short(only_limit)]
    pub enum Queue {
        /// Drops what does not fit.
        "droptail" => DropTail,
        /// Random Early Detection (Floyd & Jacobson 1993).
        "red" => Red,
        /// Controlled Delay (RFC 8289).
        "codel" => CoDel,
        /// A fair queue of flows, each under `CoDel` (RFC 8290).
        "fq-codel" => FqCoDel,
        /// Proportional Integral controller Enhanced (RFC 8033).
        "pie" => Pie,
        /// A fair queue of flows that also paces them, as Linux `fq`.
        "fq" => Fq,
        /// A fair queue with `CoDel`, host by host and flow by flow, as Linux `cake`.
        "cake" => Cake,
    }
}

table! {
    /// Drops what does not fit.
    pub struct DropTail {
        /// How much it holds: "1 BDP".
        pub limit: Limit = Limit::Bdp(1.0),
    }
}

table! {
    /// Drops at random, the more the longer the queue has been. With `ecn`, a `weight` of 1 and `min`
    /// equal to `max` it is a threshold: a packet that finds so much waiting is marked (DCTCP).
    pub struct Red {
        /// How much it holds: "250 packets".
        pub limit: Limit = Limit::Bdp(1.0),
        /// The average length from which packets are dropped: "0.1 BDP".
        pub min: Limit,
        /// The average length at which the probability reaches its most: "0.3 BDP".
        pub max: Limit,
        /// The probability at `max`: 0.1.
        pub probability: Probability = Probability(0.1),
        /// The weight of the newest length in the average: 0.002.
        pub weight: f64 [1e-9..=1.0] = 0.002,
        /// Whether the probability climbs on to 1 between `max` and twice `max`, not at once.
        pub gentle: bool = true,
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
    }
}

table! {
    /// Drops when packets have waited too long for too long.
    pub struct CoDel {
        /// How much it holds: "1000 packets".
        pub limit: Limit = Limit::Packets(1000),
        /// The waiting time that is acceptable: "5 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(5),
        /// How long it may be exceeded: "100 ms".
        pub interval: Duration [SOME_TIME] = Duration::from_millis(100),
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
    }
}

table! {
    /// Serves flows in turn, each from a `CoDel` queue of its own.
    pub struct FqCoDel {
        /// How much all queues hold together: "10240 packets".
        pub limit: Limit = Limit::Packets(10_240),
        /// The number of queues that flows are spread over: 1024.
        pub flows: u64 [AT_LEAST_ONE] = 1024,
        /// The bytes a flow may send in its turn: 1514.
        pub quantum: u64 [AT_LEAST_ONE] = 1514,
        /// The waiting time that is acceptable: "5 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(5),
        /// How long it may be exceeded: "100 ms".
        pub interval: Duration [SOME_TIME] = Duration::from_millis(100),
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = true,
    }
}

table! {
    /// Drops at random so that packets wait as long as it aims for.
    pub struct Pie {
        /// How much it holds: "1000 packets".
        pub limit: Limit = Limit::Packets(1000),
        /// The waiting time to aim for: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// How often the probability is set anew: "15 ms".
        pub update: Duration [SOME_TIME] = Duration::from_millis(15),
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
    }
}

table! {
    /// Serves flows in turn.
    pub struct Fq {
        /// How much all queues hold together: "10000 packets".
        pub limit: Limit = Limit::Packets(10_000),
        /// How many packets of one flow it holds: 100.
        pub flow_limit: u64 [AT_LEAST_ONE] = 100,
        /// The bytes a flow may send in its turn: 3028.
        pub quantum: u64 [AT_LEAST_ONE] = 3028,
    }
}

table! {
    /// Serves hosts in turn and the flows of each in turn, each from a queue of its own.
    pub struct Cake {
        /// How much memory all queues take together: "4 MB".
        pub limit: Limit = Limit::Bytes(tcplab_units::Bytes(4 << 20)),
        /// The round trip that it is tuned for: "100 ms".
        pub rtt: Duration [SOME_TIME] = Duration::from_millis(100),
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail { limit: Limit::Bdp(1.0) })
    }
}

/// A size alone is drop-tail; a word alone is a discipline.
fn only_limit(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text.trim_start().starts_with(|c: char| c.is_alphabetic()) => None,
        Value::String(_) | Value::Number(_) => Some(json!({ "kind": "droptail", "limit": value })),
        _ => None,
    }
}
