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
        pub quantum: u64 [AT_LEAST_ONE] = 3028,
    }
}

/// A fair queue with pacing, as Linux `fq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FqPlan {
    /// How many packets of one flow it holds.
    pub flow_limit: u64,
    /// The bytes a flow may send in its turn.
    pub quantum: u64,
}

impl Fq {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> FqPlan {
        FqPlan { flow_limit: self.flow_limit, quantum: self.quantum }
    }
}
