//! A token bucket, as Linux `tbf`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Rate};

table! {
    /// Lets packets out at a rate below that of the link, but for bursts after a pause.
    pub struct Tbf {
        /// How much waits for tokens: "50 ms" or "1 BDP" of the rate below, or "64 kB".
        pub limit: Limit,
        /// The rate at which tokens come: "10 Mbit/s".
        pub rate: Rate,
        /// How many bytes may leave at once after a pause, at the rate of the link: "32 kB". Larger packets
        /// are dropped.
        pub burst: Bytes [Bytes(1)..=Bytes(4_294_967_295)],
        /// The rate at which a burst leaves, above that of the tokens: "50 Mbit/s". Without one, it is the
        /// rate of the link.
        pub peakrate: Option<Rate> = None,
        /// With a `peakrate`: how many bytes may leave faster than that, "1500 B". By default a full packet;
        /// larger packets are dropped.
        pub mtu: Option<Bytes> [Bytes(1)..=Bytes(4_294_967_295)] = None,
    }
}

/// A token bucket, as Linux `tbf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TbfPlan {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// How many bytes may leave at once.
    pub burst: u64,
    /// The rate at which a burst leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peakrate: Option<Rate>,
    /// How many bytes may leave faster than that, if not those of a full packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u64>,
}

impl Tbf {
    pub(super) fn plan(&self, _size: &dyn Fn(Limit) -> QueueLimit) -> TbfPlan {
        TbfPlan {
            rate: self.rate,
            burst: self.burst.0,
            peakrate: self.peakrate,
            mtu: self.mtu.map(|mtu| mtu.0),
        }
    }
}
