//! A fair queue with PIE, as Linux `fq_pie`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Serves flows in turn, each from a `PIE` queue of its own.
    pub struct FqPie {
        /// How much all queues hold together: "10240 packets".
        pub limit: Limit = Limit::Packets(10_240),
        /// The number of queues that flows are spread over: 1024.
        pub flows: u64 [1..=65_536] = 1024,
        /// The bytes a flow may send in its turn: 1514.
        pub quantum: u64 [1..=1 << 20] = 1514,
        /// The waiting time to aim for: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// How often the probabilities are set anew: "15 ms".
        pub update: Duration [SOME_TIME] = Duration::from_millis(15),
        /// The weight of how far the waiting time is from its target, in sixteenths per second: 2.
        pub alpha: u64 [0..=32] = 2,
        /// The weight of how far the waiting time has moved, in sixteenths per second: 20.
        pub beta: u64 [0..=32] = 20,
        /// Whether small packets are dropped less often than large ones.
        pub bytemode: bool = false,
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
        /// Up to which probability, in percent, packets are marked and not dropped: 10.
        pub ecn_prob: u64 [0..=100] = 10,
    }
}

/// A fair queue with PIE, as Linux `fq_pie`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqPiePlan {
    /// The number of queues.
    pub flows: u64,
    /// The bytes a flow may send in its turn.
    pub quantum: u64,
    /// The waiting time to aim for.
    pub target: Duration,
    /// How often the probabilities are set anew.
    pub update: Duration,
    /// The weight of how far the waiting time is from its target, in sixteenths.
    pub alpha: u64,
    /// The weight of how far the waiting time has moved, in sixteenths.
    pub beta: u64,
    /// Whether small packets are dropped less often.
    pub bytemode: bool,
    /// Whether packets are marked where they can be.
    pub ecn: bool,
    /// Up to which probability they are, in percent.
    pub ecn_prob: u64,
}

impl FqPie {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> FqPiePlan {
        let Self { flows, quantum, target, update, alpha, beta, bytemode, ecn, ecn_prob, .. } =
            *self;
        FqPiePlan { flows, quantum, target, update, alpha, beta, bytemode, ecn, ecn_prob }
    }
}
