//! Proportional Integral controller Enhanced (RFC 8033).

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Drops at random so that packets wait as long as it aims for.
    pub struct Pie {
        /// How much it holds: "1000 packets".
        pub limit: Limit = Limit::Packets(1000),
        /// The waiting time to aim for: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// How often the probability is set anew: "15 ms".
        pub update: Duration [SOME_TIME] = Duration::from_millis(15),
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
    }
}

/// Proportional Integral controller Enhanced (RFC 8033).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PiePlan {
    /// The waiting time to aim for.
    pub target: Duration,
    /// How often the probability is set anew.
    pub update: Duration,
    /// Whether packets are marked where they can be.
    pub ecn: bool,
}

impl Pie {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> PiePlan {
        PiePlan { target: self.target, update: self.update, ecn: self.ecn }
    }
}
