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
        /// The weight of how far the waiting time is from its target, in sixteenths per second: 2.
        pub alpha: u64 [0..=32] = 2,
        /// The weight of how far the waiting time has moved, in sixteenths per second: 20.
        pub beta: u64 [0..=32] = 20,
        /// Whether small packets are dropped less often than large ones.
        pub bytemode: bool = false,
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
    /// The weight of how far the waiting time is from its target, in sixteenths.
    pub alpha: u64,
    /// The weight of how far the waiting time has moved, in sixteenths.
    pub beta: u64,
    /// Whether small packets are dropped less often.
    pub bytemode: bool,
    /// Whether packets are marked where they can be.
    pub ecn: bool,
}

impl Pie {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> PiePlan {
        let Self { target, update, alpha, beta, bytemode, ecn, .. } = *self;
        PiePlan { target, update, alpha, beta, bytemode, ecn }
    }
}
