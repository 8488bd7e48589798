//! Common Applications Kept Enhanced, as Linux `cake`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::{Limit, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Duration};

table! {
    /// Serves hosts in turn and the flows of each in turn, each from a queue of its own.
    pub struct Cake {
        /// How much memory all queues take together: "4 MB".
        pub limit: Limit = Limit::Bytes(Bytes(4 << 20)),
        /// The round trip that it is tuned for: "100 ms".
        pub rtt: Duration [SOME_TIME] = Duration::from_millis(100),
    }
}

/// Common Applications Kept Enhanced, as Linux `cake`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CakePlan {
    /// The round trip that it is tuned for.
    pub rtt: Duration,
}

impl Cake {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> CakePlan {
        CakePlan { rtt: self.rtt }
    }
}
