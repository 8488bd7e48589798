//! A policer: a token bucket that drops.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Rate};

table! {
    /// Drops packets that find no tokens. Packets do not wait for tokens as in `tbf`: those that
    /// pass only wait for the link.
    pub struct Policer {
        /// The limit of the queue behind the policer: "1 BDP" of the link's rate.
        pub limit: Limit = Limit::Bdp(1.0),
        /// The rate at which tokens come: "10 Mbit/s".
        pub rate: Rate,
        /// The burst size, which may pass at once after a pause: "32 kB". Larger packets are
        /// dropped.
        pub burst: Bytes [Bytes(1)..=Bytes(4_294_967_295)],
    }
}

/// A policer: a token bucket that drops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicerPlan {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// The burst size in bytes.
    pub burst: u64,
}

impl Policer {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> PolicerPlan {
        PolicerPlan { rate: self.rate, burst: self.burst.0 }
    }
}
