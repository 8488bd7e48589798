//! Drop from the head of a full queue.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};

table! {
    /// Drops the oldest packets when the queue is full, so that senders detect losses sooner.
    pub struct DropHead {
        /// The queue limit: "1 BDP".
        pub limit: Limit = Limit::Bdp(1.0),
    }
}

/// Drop from the head of a full queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropHeadPlan {}

impl DropHead {
    #[expect(clippy::unused_self, reason = "other disciplines have settings")]
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> DropHeadPlan {
        DropHeadPlan {}
    }
}
