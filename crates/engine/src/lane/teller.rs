//! Who hears of packets on a lane, and what a lane shares with others.

use super::medium::Medium;
use crate::observer::{Observer, Point, Reason};
use crate::route::Routes;
use tcplab_units::Time;

/// To whom a lane tells what becomes of packets, and what it shares with others.
pub(crate) struct Teller<'a, O> {
    pub observer: &'a mut O,
    pub routes: &'a Routes,
    pub media: &'a mut [Medium],
}

impl<O> Teller<'_, O> {
    pub(super) fn drop<P>(&mut self, at: Time, place: u32, packet: &P, reason: Reason)
    where
        O: Observer<P>,
    {
        self.observer.drop(Point { at, place, routes: self.routes }, packet, reason);
    }
}
