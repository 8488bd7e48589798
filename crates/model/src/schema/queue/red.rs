//! Random Early Detection.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, Probability};
use serde::{Deserialize, Serialize};

table! {
    /// Drops packets at random, more often the longer the average queue. With `ecn`, a `weight` of
    /// 1 and `min` equal to `max`, RED is a threshold: a packet that finds so long a queue is
    /// marked (DCTCP).
    pub struct Red {
        /// The queue limit: "250 packets".
        pub limit: Limit = Limit::Bdp(1.0),
        /// The average length from which packets are dropped: "0.1 BDP".
        pub min: Limit,
        /// The average length at which the probability reaches `probability`: "0.3 BDP". At least
        /// `min`.
        pub max: Limit,
        /// The probability at `max`: 0.1.
        pub probability: Probability = Probability(0.1),
        /// The weight of the newest length in the average: 0.002.
        pub weight: f64 [1e-9..=1.0] = 0.002,
        /// Whether the probability rises to 1 between `max` and twice `max` instead of at once.
        /// Linux RED has no gentle mode.
        pub gentle: bool = false,
        /// Whether ECN-capable packets are marked instead of dropped.
        pub ecn: bool = false,
        /// Whether `probability` is only the initial value: each half second it is increased while
        /// the average is above the middle between `min` and `max`, and decreased while the average
        /// is below (Floyd et al. 2001).
        pub adaptive: bool = false,
    }
}

/// Random Early Detection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RedPlan {
    /// The average length from which packets are dropped.
    pub min: QueueLimit,
    /// The average length at which the probability reaches `probability`.
    pub max: QueueLimit,
    /// The probability at `max`.
    pub probability: f64,
    /// The weight of the newest length in the average.
    pub weight: f64,
    /// Whether the probability rises to 1 between `max` and twice `max`.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
    /// Whether the probability at `max` adapts to the average.
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
