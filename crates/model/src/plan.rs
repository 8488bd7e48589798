//! One run with nothing left open: what a backend is given.

use crate::mistake::Mistake;
use crate::schema::{
    CongestionControl, Loss, OrOff, RateChanges, Reordering, Samples, StackPlan, Traffic,
};
use crate::stored;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tcplab_units::{Bytes, Duration, Rate};

/// One run, with every name, default and relative quantity resolved. A clone shares the large parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// 16 hexadecimal digits that differ if anything differs that can change the result.
    pub id: String,
    /// The experiment's name.
    pub experiment: String,
    /// The backend that is to run it.
    pub backend: String,
    /// The backend's version.
    pub version: String,
    /// The kernel that is asked for, on the backend `linux`.
    pub kernel: Option<String>,
    /// The seed of this repetition.
    pub seed: u64,
    /// Which repetition, from 0.
    pub repetition: u64,
    /// The swept values of this run as text, by path, in the order of the file.
    pub swept: Vec<(String, String)>,
    /// How long to simulate.
    pub duration: Duration,
    /// The nodes' names; a node's number is its index.
    pub nodes: Arc<[String]>,
    /// The directions of all links: numbers 2k and 2k + 1 belong to the same one.
    pub lanes: Arc<[LanePlan]>,
    /// The flows, counted out.
    pub flows: Arc<[FlowPlan]>,
    /// What to write down.
    pub record: RecordPlan,
    /// Settings that do nothing, or hardly what was meant. The plan runs in spite of them.
    /// Written as text; a plan that is read back has none.
    #[serde(skip_deserializing)]
    pub warnings: Arc<[Mistake]>,
}

/// One direction of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanePlan {
    /// Unique: `left>right`; of several between the same nodes, the second is `left>right/2`.
    pub name: String,
    /// Where in the experiment it was described, for messages: `network.links[0]`.
    pub place: String,
    /// The node where it begins.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// How fast bits leave.
    pub rate: Rate,
    /// How long a bit travels.
    pub delay: Duration,
    /// The most that is added to the delay by chance, keeping packets in order; zero for none.
    pub jitter: Duration,
    /// The largest packet with its IP header, in bytes.
    pub mtu: u64,
    /// Whether the router before it says so when a packet is larger than that.
    pub icmp: bool,
    /// The queue in front of it.
    pub queue: QueuePlan,
    /// Losses on the way.
    #[serde(deserialize_with = "stored::optional")]
    pub loss: Option<Loss>,
    /// Packets that others overtake.
    #[serde(deserialize_with = "stored::optional")]
    pub reordering: Option<Reordering>,
    /// How the rate changes.
    #[serde(deserialize_with = "stored::optional")]
    pub rate_changes: Option<RateChanges>,
    /// The shared medium that it is part of, if it is.
    pub lan: Option<String>,
    /// The rate times the largest base RTT of the flows that use it, or twice its own delay if none
    /// does.
    pub bdp: Bytes,
}

/// A queue with its sizes in packets or bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuePlan {
    /// Which packets it drops, and in which order it serves them.
    pub discipline: Discipline,
    /// How much it holds.
    pub limit: QueueLimit,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueLimit {
    /// So many packets, whatever their size.
    Packets(u64),
    /// So many bytes.
    Bytes(u64),
}

/// Which packets a queue drops, and in which order it serves them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Discipline {
    /// Drops what does not fit.
    #[serde(rename = "droptail")]
    DropTail,
    /// Random Early Detection.
    #[serde(rename = "red")]
    Red {
        /// The average length from which packets are dropped.
        min: QueueLimit,
        /// The average length at which the probability reaches its most.
        max: QueueLimit,
        /// The probability at `max`.
        probability: f64,
        /// The weight of the newest length in the average.
        weight: f64,
        /// Whether the probability climbs on to 1 between `max` and twice `max`.
        gentle: bool,
        /// Whether packets are marked where they can be.
        ecn: bool,
    },
    /// Controlled Delay (RFC 8289).
    #[serde(rename = "codel")]
    CoDel {
        /// The acceptable waiting time.
        target: Duration,
        /// How long it may be exceeded.
        interval: Duration,
        /// Whether packets are marked where they can be.
        ecn: bool,
    },
    /// Fair queue with `CoDel` (RFC 8290).
    #[serde(rename = "fq-codel")]
    FqCoDel {
        /// The number of queues.
        flows: u64,
        /// The bytes a flow may send in its turn.
        quantum: u64,
        /// The acceptable waiting time.
        target: Duration,
        /// How long it may be exceeded.
        interval: Duration,
        /// Whether packets are marked where they can be.
        ecn: bool,
    },
    /// Proportional Integral controller Enhanced (RFC 8033).
    #[serde(rename = "pie")]
    Pie {
        /// The waiting time to aim for.
        target: Duration,
        /// How often the probability is set anew.
        update: Duration,
        /// Whether packets are marked where they can be.
        ecn: bool,
    },
    /// Common Applications Kept Enhanced.
    #[serde(rename = "cake")]
    Cake {
        /// The round trip that it is tuned for.
        rtt: Duration,
    },
    /// Fair queue with pacing.
    #[serde(rename = "fq")]
    Fq {
        /// How many packets of one flow it holds.
        flow_limit: u64,
        /// The bytes a flow may send in its turn.
        quantum: u64,
    },
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// Unique.
    pub name: String,
    /// Where in the experiment it was described, for messages: `flows[1]`.
    pub place: String,
    /// The node that sends the data.
    pub from: usize,
    /// The node that receives it.
    pub to: usize,
    /// The label to group by.
    pub class: String,
    /// When it begins.
    pub start: Duration,
    /// The most that chance adds to `start`. The backend draws it, from the seed and the name.
    pub start_jitter: Duration,
    /// What the application does. On and off times are always given as `periods`.
    #[serde(deserialize_with = "stored::shared")]
    pub traffic: Arc<Traffic>,
    /// The transport at `from`.
    #[serde(deserialize_with = "stored::stack")]
    pub stack: Arc<StackPlan>,
    /// The transport at `to`.
    #[serde(deserialize_with = "stored::stack")]
    pub peer_stack: Arc<StackPlan>,
    /// The most data in one segment that the path allows: its least MTU less 40 bytes of headers.
    pub mss_limit: u64,
    /// The lanes from `from` to `to`.
    pub forward: Vec<usize>,
    /// The lanes from `to` to `from`.
    pub back: Vec<usize>,
    /// The delays of all these lanes together.
    pub base_rtt: Duration,
    /// The lane of the way forward with the least rate; the first among equals.
    pub bottleneck: usize,
}

/// What to write down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlan {
    /// When the state of flows is written down.
    #[serde(deserialize_with = "stored::setting")]
    pub samples: Samples,
    /// How often the state of lanes is written down.
    #[serde(deserialize_with = "stored::setting")]
    pub links: OrOff<Duration>,
    /// The lanes whose packets are captured.
    pub captures: Vec<usize>,
}

impl FlowPlan {
    /// The congestion control of the sender.
    pub fn cc(&self) -> &CongestionControl {
        &self.stack.cc
    }
}
