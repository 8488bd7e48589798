//! Fair queueing with PIE, as in Linux `fq_pie`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Serves flows in turn, each from its own `PIE` queue.
    pub struct FqPie {
        /// The limit of all queues together: "10240 packets".
        pub limit: Limit = Limit::Packets(10_240),
        /// The number of queues to which flows are hashed: 1024.
        pub flows: u64 [1..=65_536] = 1024,
        /// The bytes that a flow may send in a turn: 1514.
        pub quantum: u64 [1..=1 << 20] = 1514,
        /// The target delay: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// The update interval of the probabilities: "15 ms".
        pub update: Duration [SOME_TIME] = Duration::from_millis(15),
        /// The integral gain, for the distance of the delay from its target, in sixteenths per
        /// second: 2.
        pub alpha: u64 [0..=32] = 2,
        /// The proportional gain, for the change of the delay, in sixteenths per second: 20.
        pub beta: u64 [0..=32] = 20,
        /// Whether small packets are dropped less often than large ones.
        pub bytemode: bool = false,
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = false,
        /// The probability up to which packets are marked instead of dropped, in percent: 10.
        pub ecn_prob: u64 [0..=100] = 10,
    }
}

/// Fair queueing with PIE, as in Linux `fq_pie`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqPiePlan {
    /// The number of queues.
    pub flows: u64,
    /// The bytes that a flow may send in a turn.
    pub quantum: u64,
    /// The target delay.
    pub target: Duration,
    /// The update interval of the probabilities.
    pub update: Duration,
    /// The integral gain, in sixteenths.
    pub alpha: u64,
    /// The proportional gain, in sixteenths.
    pub beta: u64,
    /// Whether small packets are dropped less often.
    pub bytemode: bool,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
    /// The probability up to which packets are marked, in percent.
    pub ecn_prob: u64,
}

impl FqPie {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> FqPiePlan {
        let Self { flows, quantum, target, update, alpha, beta, bytemode, ecn, ecn_prob, .. } =
            *self;
        FqPiePlan { flows, quantum, target, update, alpha, beta, bytemode, ecn, ecn_prob }
    }
}
