//! A fair queue with `CoDel` (RFC 8290).

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Serves flows in turn, each from a `CoDel` queue of its own.
    pub struct FqCoDel {
        /// How much all queues hold together: "10240 packets".
        pub limit: Limit = Limit::Packets(10_240),
        /// The number of queues that flows are spread over: 1024.
        pub flows: u64 [1..=65_536] = 1024,
        /// The bytes a flow may send in its turn: 1514.
        pub quantum: u64 [256..=1 << 20] = 1514,
        /// The waiting time that is acceptable: "5 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(5),
        /// How long it may be exceeded: "100 ms".
        pub interval: Duration [SOME_TIME] = Duration::from_millis(100),
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = true,
    }
}

/// A fair queue with `CoDel` (RFC 8290).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqCoDelPlan {
    /// The number of queues.
    pub flows: u64,
    /// The bytes a flow may send in its turn.
    pub quantum: u64,
    /// The acceptable waiting time.
    pub target: Duration,
    /// How long it may be exceeded.
    pub interval: Duration,
    /// Whether packets are marked where they can be.
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
