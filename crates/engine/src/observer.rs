//! Observers of packets on their way: recorders, captures, tests.
//!
//! An observer is a type parameter of the network, and all its methods are empty by default.
//! Packets that pass are reported only by lanes configured for it (`LaneConfig::observed`), so
//! unused observation costs nothing. Every drop, wherever and for whatever reason, is reported here
//! and nowhere else.
//!
//! A reported time may lie ahead of the clock or behind it. On an unmanaged lane, a loss on the
//! wire is known when the packet enters the lane, and reported then. A managed lane catches up only
//! when a packet comes to it or arrives at its end. After [`settle`] everything before the time of
//! the network has been reported.
//!
//! [`settle`]: crate::Network::settle

use crate::route::{EndpointId, LaneId, Routes};
use tcplab_units::Time;

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The queue was full.
    Full,
    /// The queue discipline dropped the packet.
    Discipline,
    /// The queue in which the packet waited was replaced.
    Purged,
    /// The next station's address was unknown, and the limit of packets waiting for it was reached.
    Unresolved,
    /// The wire lost the packet.
    Lost,
    /// The wire corrupted the packet, and its checksum failed.
    Corrupted,
}

/// Where and when something happens to a packet. Accessors look their answers up only when called.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// When.
    pub at: Time,
    pub(crate) place: u32,
    pub(crate) routes: &'a Routes,
}

impl Point<'_> {
    /// The lane.
    pub fn lane(&self) -> LaneId {
        LaneId(self.routes.lane(self.place))
    }

    /// Where the route of the packet ends.
    pub fn end(&self) -> EndpointId {
        self.routes.end(self.place)
    }
}

/// Receives reports of what happens to packets.
pub trait Observer<P> {
    /// A packet comes to a lane.
    #[inline]
    fn enter(&mut self, _point: Point<'_>, _packet: &P) {}

    /// The transmission of a packet begins: it has left the queue.
    #[inline]
    fn leave(&mut self, _point: Point<'_>, _packet: &P) {}

    /// The packet that leaves the queue, as reported next, was ECN-marked there.
    #[inline]
    fn mark(&mut self, _point: Point<'_>, _packet: &P) {}

    /// A packet is dropped: on arrival at the queue, in the queue, or on the wire when its
    /// transmission begins. In the last case the departure is reported before.
    #[inline]
    fn drop(&mut self, _point: Point<'_>, _packet: &P, _reason: Reason) {}

    /// A packet arrives at the end of a lane.
    #[inline]
    fn arrive(&mut self, _point: Point<'_>, _packet: &P) {}
}

/// Observes nothing.
impl<P> Observer<P> for () {}
