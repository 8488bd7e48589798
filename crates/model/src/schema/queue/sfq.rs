//! Stochastic Fairness Queueing, as Linux `sfq`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};

table! {
    /// Serves flows in turn. For a packet that does not fit, the longest queue loses its last.
    pub struct Sfq {
        /// How much all queues hold together: "127 packets".
        pub limit: Limit = Limit::Packets(127),
        /// How many packets of one flow it holds: 127.
        pub depth: u64 [1..=127] = 127,
        /// How many flows can have packets in it at once: 128.
        pub flows: u64 [1..=65_408] = 128,
        /// The bytes a flow may send in its turn: 1514.
        pub quantum: u64 [256..=1 << 20] = 1514,
    }
}

/// Stochastic Fairness Queueing, as Linux `sfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SfqPlan {
    /// How many packets of one flow it holds.
    pub depth: u64,
    /// How many flows can have packets in it at once.
    pub flows: u64,
    /// The bytes a flow may send in its turn.
    pub quantum: u64,
}

impl SfqPlan {
    /// The number of values that the hash of a flow has, which is that of `tc`.
    pub const DIVISOR: u32 = 1024;
}

impl Sfq {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> SfqPlan {
        SfqPlan { depth: self.depth, flows: self.flows, quantum: self.quantum }
    }
}
