//! Proportional Integral controller Enhanced (RFC 8033).

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Drops packets at random, with a probability that keeps the delay at its target.
    pub struct Pie {
        /// The queue limit: "1000 packets".
        pub limit: Limit = Limit::Packets(1000),
        /// The target delay: "15 ms".
        pub target: Duration [SOME_TIME] = Duration::from_millis(15),
        /// The update interval of the probability: "15 ms".
        pub update: Duration [SOME_TIME] = Duration::from_millis(15),
        /// The integral gain, for the distance of the delay from its target, in sixteenths per
        /// second: 2.
        pub alpha: u64 [0..=32] = 2,
        /// The proportional gain, for the change of the delay, in sixteenths per second: 20.
        pub beta: u64 [0..=32] = 20,
        /// Whether small packets are dropped less often than large ones.
        pub bytemode: bool = false,
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = false,
    }
}

/// Proportional Integral controller Enhanced (RFC 8033).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PiePlan {
    /// The target delay.
    pub target: Duration,
    /// The update interval of the probability.
    pub update: Duration,
    /// The integral gain, in sixteenths.
    pub alpha: u64,
    /// The proportional gain, in sixteenths.
    pub beta: u64,
    /// Whether small packets are dropped less often.
    pub bytemode: bool,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
}

impl Pie {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> PiePlan {
        let Self { target, update, alpha, beta, bytemode, ecn, .. } = *self;
        PiePlan { target, update, alpha, beta, bytemode, ecn }
    }
}
