//! Random Early Detection.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, Probability};
use serde::{Deserialize, Serialize};

table! {
    /// Drops at random, the more the longer the queue has been. With `ecn`, a `weight` of 1 and `min`
    /// equal to `max` it is a threshold: a packet that finds so much waiting is marked (DCTCP).
    pub struct Red {
        /// How much it holds: "250 packets".
        pub limit: Limit = Limit::Bdp(1.0),
        /// The average length from which packets are dropped: "0.1 BDP".
        pub min: Limit,
        /// The average length at which the probability reaches its most: "0.3 BDP". Not less than
        /// `min`.
        pub max: Limit,
        /// The probability at `max`: 0.1.
        pub probability: Probability = Probability(0.1),
        /// The weight of the newest length in the average: 0.002.
        pub weight: f64 [1e-9..=1.0] = 0.002,
        /// Whether the probability climbs on to 1 between `max` and twice `max`, not at once. Linux
        /// has no such RED.
        pub gentle: bool = false,
        /// Whether packets that can be are marked, not dropped.
        pub ecn: bool = false,
        /// Whether `probability` is only where it begins: each half second it grows while the average is
        /// above the middle between `min` and `max`, and falls while it is below (Floyd et al. 2001).
        pub adaptive: bool = false,
    }
}

/// Random Early Detection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RedPlan {
    /// The average length from which packets are dropped.
    pub min: QueueLimit,
    /// The average length at which the probability reaches its most.
    pub max: QueueLimit,
    /// The probability at `max`.
    pub probability: f64,
    /// The weight of the newest length in the average.
    pub weight: f64,
    /// Whether the probability climbs on to 1 between `max` and twice `max`.
    pub gentle: bool,
    /// Whether packets are marked where they can be.
    pub ecn: bool,
    /// Whether the probability at `max` follows the average.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
}

impl Red {
    pub(super) fn plan(&self, size: &dyn Fn(Limit) -> QueueLimit) -> RedPlan {
        RedPlan {
            min: size(self.min),
            max: size(self.max),
            probability: self.probability.0,
            weight: self.weight,
            gentle: self.gentle,
            ecn: self.ecn,
            adaptive: self.adaptive,
        }
    }
}
