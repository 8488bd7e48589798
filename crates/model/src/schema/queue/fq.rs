//! Fair queueing with pacing, as in Linux `sch_fq`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{AT_LEAST_ONE, Limit};
use serde::{Deserialize, Serialize};

table! {
    /// Serves flows in turn.
    pub struct Fq {
        /// The limit of all queues together: "10000 packets".
        pub limit: Limit = Limit::Packets(10_000),
        /// The packet limit of one flow: 100.
        pub flow_limit: u64 [AT_LEAST_ONE] = 100,
        /// The bytes that a flow may send in a turn: 3028.
        pub quantum: u64 [1..=1 << 20] = 3028,
        /// The bytes that a new flow may send in its first turn: 15140.
        pub initial_quantum: u64 [1..=1 << 30] = 15_140,
    }
}

/// Fair queueing with pacing, as in Linux `sch_fq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqPlan {
    /// The packet limit of one flow.
    pub flow_limit: u64,
    /// The bytes that a flow may send in a turn.
    pub quantum: u64,
    /// The bytes that a new flow may send in its first turn.
    pub initial_quantum: u64,
}

impl Fq {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> FqPlan {
        let Self { flow_limit, quantum, initial_quantum, .. } = *self;
        FqPlan { flow_limit, quantum, initial_quantum }
    }
}
