//! Fair queueing with `CoDel` (RFC 8290).

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Serves flows in turn, each from its own `CoDel` queue.
    pub struct FqCoDel {
        /// The limit of all queues together: "10240 packets".
        pub limit: Limit = Limit::Packets(10_240),
        /// The number of queues to which flows are hashed: 1024.
        pub flows: u64 [1..=65_536] = 1024,
        /// The bytes that a flow may send in a turn: 1514.
        pub quantum: u64 [256..=1 << 20] = 1514,
        /// The target sojourn time: "5 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(5),
        /// The interval for which the target may be exceeded: "100 ms".
        pub interval: Duration [SOME_TIME] = Duration::from_millis(100),
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = true,
    }
}

/// Fair queueing with `CoDel` (RFC 8290).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqCoDelPlan {
    /// The number of queues.
    pub flows: u64,
    /// The bytes that a flow may send in a turn.
    pub quantum: u64,
    /// The target sojourn time.
    pub target: Duration,
    /// The interval for which the target may be exceeded.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
}

impl FqCoDel {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> FqCoDelPlan {
        FqCoDelPlan {
            flows: self.flows,
            quantum: self.quantum,
            target: self.target,
            interval: self.interval,
            ecn: self.ecn,
        }
    }
}
