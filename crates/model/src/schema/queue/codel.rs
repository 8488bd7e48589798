//! Controlled Delay (RFC 8289).

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Drops when packets have waited too long for too long.
    pub struct CoDel {
        /// How much it holds: "1000 packets".
        pub limit: Limit = Limit::Packets(1000),
        /// The waiting time that is acceptable: "5 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(5),
        /// How long it may be exceeded: "100 ms".
        pub interval: Duration [SOME_TIME] = Duration::from_millis(100),
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
    }
}

/// Controlled Delay (RFC 8289).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoDelPlan {
    /// The acceptable waiting time.
    pub target: Duration,
    /// How long it may be exceeded.
    pub interval: Duration,
    /// Whether packets are marked where they can be.
    pub ecn: bool,
}

impl CoDel {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> CoDelPlan {
        CoDelPlan { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}
