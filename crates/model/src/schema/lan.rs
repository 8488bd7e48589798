//! A shared half-duplex LAN: one medium, and the stations that contend for it.

use super::link::MTU;
use super::{AT_LEAST_ONE, DropTail, Jitter, Limit, MILLION, Queue, SOME_TIME};
use crate::mistake::Problem;
use crate::read::table;
use crate::stored::as_written;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration, Rate};

/// The header and the checksum of an Ethernet frame (IEEE 802.3).
const FRAMING: Bytes = Bytes(18);

/// No frame is larger than the largest packet and as much again.
const OF_A_FRAME: RangeInclusive<Bytes> = Bytes(1)..=Bytes(65_535);

/// The interframe gap of Ethernet: 96 bits.
const GAP: Bytes = Bytes(12);

/// The slots that may pass while a frame is on the medium. A station looks every 500 slots or so.
const MOST_SLOTS: u64 = 10 * MILLION;

table! {
    /// A shared medium, half duplex: one station sends at a time, and all hear it. A station that
    /// finds the medium busy waits for a random time, longer with each attempt (CSMA with binary
    /// exponential back-off, as in the CSMA channel of ns-3).
    pub struct Lan {
        /// The stations: `["a", "b"]`. A node is there as soon as a LAN or a link names it. The LAN
        /// itself is a node of its own name, so that links are called `a>office` and `office>b`.
        pub nodes: Vec<String>,
        /// How fast bits leave: "100 Mbit/s".
        pub rate: Rate,
        /// How long a bit travels from any station to any other: "2 us".
        pub delay: Duration,
        /// The queue of each station.
        pub queue: Queue = Queue::DropTail(DropTail { limit: Limit::Packets(1000) }),
        /// The largest packet, with its IP header, in bytes: 1500.
        pub mtu: u64 [MTU] = 1500,
        /// Bytes that a frame adds to its packet: "18 B", the header and the checksum of Ethernet.
        pub framing: Bytes [OF_A_FRAME] = FRAMING,
        /// How long a station pauses after a frame of its own, as the time of so many bytes: "12 B".
        pub gap: Bytes [OF_A_FRAME] = GAP,
        /// The unit of the back-off: "1 us".
        pub slot: Duration [SOME_TIME] = Duration::from_micros(1),
        /// How stations find each other's addresses. Without it, addresses are known.
        pub arp: Option<Arp> = None,
    }
}

table! {
    /// Address resolution (ARP, RFC 826): the first packet to another station waits for a request and
    /// the answer. An address that is known stays known.
    pub struct Arp {
        /// How long a station waits before it asks, by chance: any time up to "10 ms", or a table with
        /// the `kind` of distribution.
        pub wait: Jitter = Jitter::default(),
        /// How many packets wait for one address: 3. Those that come later are dropped.
        pub pending: u64 [AT_LEAST_ONE] = 3,
        /// Whether a station that is asked learns the address of the one that asks (RFC 826): true. Without,
        /// as in ns-3, it asks in turn.
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
    /// How long a station pauses after a frame of its own.
    pub gap: Duration,
    /// The unit of the back-off.
    pub slot: Duration,
    /// How stations find each other's addresses.
    pub arp: Option<Arp>,
}

impl Lan {
    /// What is wrong with the slot, if anything is. Stations look at the medium all the time while a frame
    /// is on it.
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

    /// Everything but the node, which has no number yet.
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
