//! Drop-head: drops the oldest for what does not fit.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};

table! {
    /// Drops the packets that have waited longest for one that does not fit: senders hear of it sooner.
    pub struct DropHead {
        /// How much it holds: "1 BDP".
        pub limit: Limit = Limit::Bdp(1.0),
    }
}

/// Drop-head: drops the oldest for what does not fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropHeadPlan {}

impl DropHead {
    #[expect(clippy::unused_self, reason = "other disciplines have settings")]
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> DropHeadPlan {
        DropHeadPlan {}
    }
}
