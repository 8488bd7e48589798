//! A fair queue with pacing, as Linux `fq`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{AT_LEAST_ONE, Limit};
use serde::{Deserialize, Serialize};

table! {
    /// Serves flows in turn.
    pub struct Fq {
        /// How much all queues hold together: "10000 packets".
        pub limit: Limit = Limit::Packets(10_000),
        /// How many packets of one flow it holds: 100.
        pub flow_limit: u64 [AT_LEAST_ONE] = 100,
        /// The bytes a flow may send in its turn: 3028.
        pub quantum: u64 [1..=1 << 20] = 3028,
        /// The bytes a flow may send at first: 15140.
        pub initial_quantum: u64 [1..=1 << 30] = 15_140,
    }
}

/// A fair queue with pacing, as Linux `fq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqPlan {
    /// How many packets of one flow it holds.
    pub flow_limit: u64,
    /// The bytes a flow may send in its turn.
    pub quantum: u64,
    /// The bytes a flow may send at first.
    pub initial_quantum: u64,
}

impl Fq {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> FqPlan {
        let Self { flow_limit, quantum, initial_quantum, .. } = *self;
        FqPlan { flow_limit, quantum, initial_quantum }
    }
}
