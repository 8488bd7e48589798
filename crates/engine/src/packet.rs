//! The packet interface of the engine: size, payload, flow key and marks.

use crate::route::Flow;
use std::fmt::Debug;
use tcplab_units::Time;

/// How a packet leaves its sending host, for a queue of that host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// The earliest departure time: a pacing queue (`fq`) keeps the packet until then.
    pub at: Time,
    /// The next packet belongs to the same burst.
    pub goes_on: bool,
    /// The sender acts on the [`Admission`], so no [`Event::Left`](crate::Event::Left) reports a
    /// burst that is dropped whole.
    pub is_answered: bool,
}

/// The answer of a sending host's own queue to a complete burst, as Linux returns it to the sender
/// (`net_xmit_eval`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// The burst is in the queue (`NET_XMIT_SUCCESS`), or is not complete.
    #[default]
    Accepted,
    /// The burst is in the queue, and another of the same flow was dropped (`NET_XMIT_CN`).
    Crowded,
    /// The burst is dropped, and counts as sent (`NET_XMIT_CN`).
    Dropped,
    /// The burst is dropped, and was not sent (`NET_XMIT_DROP`).
    Refused,
}

/// The properties of a packet that the engine uses. Packets are small values, copied from lane to
/// lane.
pub trait Packet: Copy + Debug + 'static {
    /// The packet's size on the wire, headers included.
    fn wire_bytes(&self) -> u32;
    /// Whether the packet carries application data: such packets are numbered by [`Loss::Listed`].
    ///
    /// [`Loss::Listed`]: crate::Loss::Listed
    fn has_payload(&self) -> bool;
    /// The flow to which a router assigns the packet, on a route of `flow`.
    fn flow(&self, flow: Flow) -> Flow {
        flow
    }
    /// The earliest departure time, for a queue that paces.
    fn departs(&self) -> Time {
        Time::ZERO
    }
    /// The router memory that the packet takes while it waits.
    fn memory_bytes(&self) -> u64 {
        self.wire_bytes().into()
    }
    /// Whether the packet is network control traffic (DSCP CS6).
    fn is_control(&self) -> bool {
        false
    }
    /// Clears the packet's DSCP.
    fn wash(&mut self) {}
    /// How the packet echoes congestion marks, if its protocol has ACKs that can be filtered.
    fn echo(&self) -> Option<u8> {
        None
    }
    /// Whether the packet carries an acknowledgement, alone or piggybacked, on an established
    /// connection.
    fn is_ack(&self) -> bool {
        false
    }
    /// Whether the packet is redundant given `newer`, of the same flow, apart from congestion
    /// marks.
    fn is_superseded(&self, _newer: &Self) -> bool {
        false
    }
    /// Whether the packet carries a congestion mark.
    fn is_marked(&self) -> bool {
        false
    }
    /// Whether the packet is L4S traffic: ECT(1), or CE set by an earlier queue (RFC 9331 §5.1).
    fn is_l4s(&self) -> bool {
        false
    }
    /// Marks the packet if it is ECN-capable. Returns whether the packet carries a mark then.
    fn mark(&mut self) -> bool {
        false
    }
}
