//! A shared half-duplex LAN: one medium, and the stations that contend for it.

use super::link::MTU;
use super::{AT_LEAST_ONE, DropTail, Jitter, Limit, MILLION, Queue, SOME_TIME};
use crate::mistake::Problem;
use crate::read::table;
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration, Rate};

/// The header and checksum of an Ethernet frame (IEEE 802.3).
const FRAMING: Bytes = Bytes(18);

/// A frame is at most twice as large as the largest packet.
const OF_A_FRAME: RangeInclusive<Bytes> = Bytes(1)..=Bytes(65_535);

/// The interframe gap of Ethernet: 96 bits.
const GAP: Bytes = Bytes(12);

/// The most slots in the time of a frame. A waiting station senses the medium about every 500
/// slots.
const MOST_SLOTS: u64 = 10 * MILLION;

table! {
    /// A shared half-duplex medium: one station sends at a time, and all receive. A station that
    /// finds the medium busy backs off for a random time, longer with each attempt (CSMA with
    /// binary exponential back-off, as in the CSMA channel of ns-3).
    pub struct Lan {
        /// The stations: `["a", "b"]`. Nodes need no other declaration. The LAN itself is a node of
        /// its own name, so that links are called `a>office` and `office>b`.
        pub nodes: Vec<String>,
        /// The rate: "100 Mbit/s".
        pub rate: Rate,
        /// The propagation delay between any two stations: "2 us".
        pub delay: Duration,
        /// The queue of each station.
        pub queue: Queue = Queue::DropTail(DropTail { limit: Limit::Packets(1000) }),
        /// The MTU in bytes, with the IP header: 1500.
        pub mtu: u64 [MTU] = 1500,
        /// Bytes that a frame adds to its packet: "18 B", the header and checksum of Ethernet.
        pub framing: Bytes [OF_A_FRAME] = FRAMING,
        /// The gap after a station's own frame, as the time of so many bytes: "12 B".
        pub gap: Bytes [OF_A_FRAME] = GAP,
        /// The unit of the back-off: "1 us".
        pub slot: Duration [SOME_TIME] = Duration::from_micros(1),
        /// Address resolution between stations. By default, addresses are known.
        pub arp: Option<Arp> = None,
    }
}

table! {
    /// Address resolution (ARP, RFC 826): the first packet to another station waits for a request
    /// and a reply. A resolved address stays known.
    pub struct Arp {
        /// The random delay before a station sends a request: uniform up to "10 ms", or a table
        /// with the `kind` of distribution.
        pub wait: Jitter = Jitter::default(),
        /// The most packets that wait for one address: 3. Later ones are dropped.
        pub pending: u64 [AT_LEAST_ONE] = 3,
        /// Whether a station learns the requester's address from a request (RFC 826): true.
        /// Otherwise, as in ns-3, the station sends a request of its own.
        pub learns: bool = true,
    }
}

as_written!(Arp);

/// The medium that a lane belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanPlan {
    /// Its name.
    pub name: String,
    /// Its node.
    pub node: usize,
    /// Bytes that a frame adds to its packet.
    pub framing: Bytes,
    /// The gap after a station's own frame.
    pub gap: Duration,
    /// The unit of the back-off.
    pub slot: Duration,
    /// Address resolution between stations.
    pub arp: Option<Arp>,
}

impl Lan {
    /// Checks the slot: waiting stations sense the medium repeatedly while a frame is on it.
    pub(crate) fn check_slot(&self) -> Result<(), Problem> {
        let frame = self.rate.time_for(self.mtu.saturating_add(self.framing.0));
        let least = Duration::from_picos((frame + self.delay).as_picos() / MOST_SLOTS);
        if self.slot >= least {
            return Ok(());
        }
        let slot = self.slot;
        let reason = format!(
            "is {slot}: more than {MOST_SLOTS} slots pass while a frame is on the medium; give {least} or more"
        );
        Err(Problem::Invalid(reason))
    }

    /// The plan of the medium, whose node has no number yet.
    pub(crate) fn plan(&self, name: &str) -> LanPlan {
        LanPlan {
            name: name.into(),
            node: 0,
            framing: self.framing,
            gap: self.rate.time_for(self.gap.0),
            slot: self.slot,
            arp: self.arp.clone(),
        }
    }
}
