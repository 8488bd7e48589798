//! Controlled Delay (RFC 8289).

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Drops packets when the sojourn time has exceeded the target for an interval.
    pub struct CoDel {
        /// The queue limit: "1000 packets".
        pub limit: Limit = Limit::Packets(1000),
        /// The target sojourn time: "5 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(5),
        /// The interval for which the target may be exceeded: "100 ms".
        pub interval: Duration [SOME_TIME] = Duration::from_millis(100),
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = false,
    }
}

/// Controlled Delay (RFC 8289).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoDelPlan {
    /// The target sojourn time.
    pub target: Duration,
    /// The interval for which the target may be exceeded.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
}

impl CoDel {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> CoDelPlan {
        CoDelPlan { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}
