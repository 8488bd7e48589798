//! A token bucket, as Linux `tbf`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Rate};

table! {
    /// Lets packets out at a rate below that of the link, but for bursts after a pause.
    pub struct Tbf {
        /// How much waits for tokens: "50 ms" of the rate below, or "64 kB".
        pub limit: Limit,
        /// The rate at which tokens come: "10 Mbit/s".
        pub rate: Rate,
        /// How many bytes may leave at once after a pause, at the rate of the link: "32 kB". Larger packets
        /// are dropped.
        pub burst: Bytes [Bytes(1)..=Bytes(4_294_967_295)],
    }
}

/// A token bucket, as Linux `tbf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TbfPlan {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// How many bytes may leave at once.
    pub burst: u64,
}

impl Tbf {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> TbfPlan {
        TbfPlan { rate: self.rate, burst: self.burst.0 }
    }
}
