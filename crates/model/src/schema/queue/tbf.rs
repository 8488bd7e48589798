//! A token bucket filter, as in Linux `sch_tbf`.

use crate::plan::QueueLimit;
use crate::read::table;
use crate::schema::Limit;
use serde::{Deserialize, Serialize};
use tcplab_units::{Bytes, Rate};

table! {
    /// Limits packets to a rate below that of the link, except for bursts after a pause.
    pub struct Tbf {
        /// The limit of packets that wait for tokens: "50 ms" or "1 BDP" of the rate below, or "64
        /// kB".
        pub limit: Limit,
        /// The rate at which tokens come: "10 Mbit/s".
        pub rate: Rate,
        /// The burst size, which may leave at the rate of the link after a pause: "32 kB". Larger
        /// packets are dropped.
        pub burst: Bytes [Bytes(1)..=Bytes(4_294_967_295)],
        /// The rate at which a burst leaves, above that of the tokens: "50 Mbit/s". By default the
        /// rate of the link.
        pub peakrate: Option<Rate> = None,
        /// With a `peakrate`: the bytes that may exceed it, "1500 B". By default a full packet;
        /// larger packets are dropped.
        pub mtu: Option<Bytes> [Bytes(1)..=Bytes(4_294_967_295)] = None,
    }
}

/// A token bucket filter, as in Linux `sch_tbf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TbfPlan {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// The burst size in bytes.
    pub burst: u64,
    /// The peak rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peakrate: Option<Rate>,
    /// The bytes that may exceed the peak rate, if not those of a full packet.
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
