//! The seam to packets: size, payload, flow key and marks.

use crate::route::Flow;
use std::fmt::Debug;
use tcplab_units::Time;

/// How a packet leaves the host that sends it for a queue of that host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// A queue that paces (`fq`) keeps the packet until then.
    pub at: Time,
    /// The next packet belongs to the same burst.
    pub goes_on: bool,
}

/// What the engine must know of a packet. Packets are small values, copied from lane to lane.
pub trait Packet: Copy + Debug + 'static {
    /// Its size on the wire, headers included.
    fn wire_bytes(&self) -> u32;
    /// Whether it carries data of an application: such packets are numbered by [`Loss::Listed`].
    ///
    /// [`Loss::Listed`]: crate::Loss::Listed
    fn has_payload(&self) -> bool;
    /// The flow to which a router takes it to belong, on a route of `flow`.
    fn flow(&self, flow: Flow) -> Flow {
        flow
    }
    /// A queue that paces keeps it until then.
    fn departs(&self) -> Time {
        Time::ZERO
    }
    /// The memory of a router that it takes while it waits.
    fn memory_bytes(&self) -> u64 {
        self.wire_bytes().into()
    }
    /// Whether it belongs to the control of the network (DSCP CS6).
    fn is_control(&self) -> bool {
        false
    }
    /// It loses the class of its DSCP.
    fn wash(&mut self) {}
    /// How it echoes marks of congestion, if it is of a protocol whose ACKs can be filtered.
    fn echo(&self) -> Option<u8> {
        None
    }
    /// Whether it acknowledges something, if only by the way, on an established connection.
    fn is_ack(&self) -> bool {
        false
    }
    /// Whether it says nothing that `newer`, of the same flow, does not say as well, marks excepted.
    fn is_superseded(&self, _newer: &Self) -> bool {
        false
    }
    /// Whether it carries a mark of congestion.
    fn is_marked(&self) -> bool {
        false
    }
    /// Whether it is of the service L4S: ECT(1), or a mark that an earlier queue has set (RFC 9331 §5.1).
    fn is_l4s(&self) -> bool {
        false
    }
    /// Marks it, if it can be marked. Says whether it carries a mark then.
    fn mark(&mut self) -> bool {
        false
    }
}
