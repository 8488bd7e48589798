//! The observer of a lane, and the state that lanes share.

use super::medium::Medium;
use crate::observer::{Observer, Point, Reason};
use crate::route::Routes;
use tcplab_units::Time;

/// The observer of a lane, and the state that the lane shares with others.
pub(crate) struct LaneContext<'a, O> {
    pub observer: &'a mut O,
    pub routes: &'a Routes,
    pub media: &'a mut [Medium],
}

impl<O> LaneContext<'_, O> {
    pub(super) fn drop<P>(&mut self, at: Time, place: u32, packet: &P, reason: Reason)
    where
        O: Observer<P>,
    {
        self.observer.drop(Point { at, place, routes: self.routes }, packet, reason);
    }
}
