//! Drop-tail: a full queue drops arriving packets.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};

table! {
    /// Drops arriving packets when the queue is full.
    pub struct DropTail {
        /// The queue limit: "1 BDP".
        pub limit: Limit = Limit::Bdp(1.0),
    }
}

/// Drop-tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropTailPlan {}

impl DropTail {
    #[expect(clippy::unused_self, reason = "other disciplines have settings")]
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> DropTailPlan {
        DropTailPlan {}
    }
}
