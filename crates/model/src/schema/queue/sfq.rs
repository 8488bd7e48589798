//! Stochastic Fairness Queueing, as in Linux `sch_sfq`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};

table! {
    /// Serves flows in turn. When the limit is reached, the longest queue loses its last packet.
    pub struct Sfq {
        /// The limit of all queues together: "127 packets".
        pub limit: Limit = Limit::Packets(127),
        /// The packet limit of one flow: 127.
        pub depth: u64 [1..=127] = 127,
        /// The most flows that may be backlogged at once: 128.
        pub flows: u64 [1..=65_408] = 128,
        /// The bytes that a flow may send in a turn: 1514.
        pub quantum: u64 [256..=1 << 20] = 1514,
    }
}

/// Stochastic Fairness Queueing, as in Linux `sch_sfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SfqPlan {
    /// The packet limit of one flow.
    pub depth: u64,
    /// The most flows that may be backlogged at once.
    pub flows: u64,
    /// The bytes that a flow may send in a turn.
    pub quantum: u64,
}

impl SfqPlan {
    /// The number of hash values, which is the default of `tc`.
    pub const DIVISOR: u32 = 1024;
}

impl Sfq {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> SfqPlan {
        SfqPlan { depth: self.depth, flows: self.flows, quantum: self.quantum }
    }
}
