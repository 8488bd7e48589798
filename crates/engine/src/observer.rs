//! Who looks at packets on their way: recorders, captures, tests.
//!
//! An observer is a type parameter of the network, all its methods are empty by default, and of packets
//! that get through it is told at lanes alone whose configuration says so (`LaneConfig::observed`): a
//! look that nobody takes costs nothing. What is dropped, wherever and for whatever reason, is told here
//! and nowhere else.
//!
//! A time may lie ahead of the clock or behind it. With a drop-tail queue that nobody looks at, a loss on
//! the wire is known when the packet enters the lane, and told then; another queue is caught up with no
//! sooner than a packet comes to the lane or arrives at its end. After [`settle`] all that happened before
//! the time of the network has been told.
//!
//! [`settle`]: crate::Network::settle

use crate::route::{EndpointId, LaneId, Routes};
use tcplab_units::Time;

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The queue had no room.
    Full,
    /// The discipline of the queue dropped it.
    Discipline,
    /// Another queue took the place of the one in which it waited.
    Purged,
    /// The address of the next station was not known, and enough packets waited for it.
    Unresolved,
    /// The wire lost it.
    Lost,
    /// The wire damaged it, and its checksum says so.
    Corrupted,
}

/// Where and when something happens to a packet. What of it is not asked for is not looked up.
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

/// Is told what happens to packets.
pub trait Observer<P> {
    /// A packet comes to a lane.
    #[inline]
    fn enter(&mut self, _point: Point<'_>, _packet: &P) {}

    /// The transmission of a packet begins: it has left the queue.
    #[inline]
    fn leave(&mut self, _point: Point<'_>, _packet: &P) {}

    /// A packet that leaves the queue, as is told next, was marked there.
    #[inline]
    fn mark(&mut self, _point: Point<'_>, _packet: &P) {}

    /// A packet does not get further than this: it does so when it comes to the queue, in the queue, or,
    /// lost on the wire, when its transmission begins, which is told before.
    #[inline]
    fn drop(&mut self, _point: Point<'_>, _packet: &P, _reason: Reason) {}

    /// A packet arrives at the end of a lane.
    #[inline]
    fn arrive(&mut self, _point: Point<'_>, _packet: &P) {}
}

/// Looks at nothing.
impl<P> Observer<P> for () {}
