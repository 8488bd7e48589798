//! Drop-tail: drops what does not fit.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};

table! {
    /// Drops what does not fit.
    pub struct DropTail {
        /// How much it holds: "1 BDP".
        pub limit: Limit = Limit::Bdp(1.0),
    }
}

/// Drop-tail: drops what does not fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropTailPlan {}

impl DropTail {
    #[expect(clippy::unused_self, reason = "other disciplines have settings")]
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> DropTailPlan {
        DropTailPlan {}
    }
}
