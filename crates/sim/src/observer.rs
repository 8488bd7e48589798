//! Looks at packets on the network: at those that are dropped, and at chosen lanes at all.
//!
//! The network tells of a packet before or after the time at which something happens to it; so what
//! it tells is kept until its time is over, and then written down in the order of time.

use crate::packet::Packet;
use tcplab_engine::{EndpointId, LaneId, Observer, Packet as _, Point, Reason};
use tcplab_model::Plan;
use tcplab_units::Time;

/// The network of this backend.
pub(crate) type Network = tcplab_engine::Network<Packet, Watcher>;

/// A packet that did not arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped {
    pub at: Time,
    pub lane: LaneId,
    /// Where its route ended.
    pub to: EndpointId,
    pub bytes: u32,
    /// As the kernel calls it.
    pub reason: &'static str,
    /// A router found it too large.
    pub is_too_large: bool,
}

/// A packet at a point of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub at: Time,
    pub lane: LaneId,
    /// Where its route ended.
    pub to: EndpointId,
    /// Where on the lane, as the table calls it.
    pub point: &'static str,
    pub packet: Packet,
}

/// Where the transmission of a packet begins: there it is captured.
pub(crate) const LEAVE: &str = "leave";

/// Which packets of a lane are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Not,
    /// Those that are transmitted.
    Leaving,
    /// All, wherever they are.
    Throughout,
}

/// What was seen and not yet written down.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    drops: Vec<Dropped>,
    /// By lane, whether packets are looked at, and whether at all points or only where they leave the queue;
    /// empty if there is no such lane.
    chosen: Vec<Chosen>,
    seen: Vec<Seen>,
}

impl Watcher {
    /// Looks at what this plan asks for.
    pub fn new(plan: &Plan) -> Self {
        let mut chosen = Vec::new();
        for (lanes, choice) in
            [(&plan.record.captures, Chosen::Leaving), (&plan.record.packets, Chosen::Throughout)]
        {
            for &lane in lanes {
                chosen.resize(plan.lanes.len(), Chosen::Not);
                chosen[lane] = choice;
            }
        }
        Self { drops: Vec::new(), chosen, seen: Vec::new() }
    }

    /// How many drops, and how many packets at points, wait to be written down.
    pub fn pending(&self) -> (usize, usize) {
        (self.drops.len(), self.seen.len())
    }

    /// A packet is at a point.
    #[inline]
    fn look(&mut self, point: Point<'_>, packet: &Packet, name: &'static str) {
        if !self.chosen.is_empty() {
            self.look_at(point.at, (point.lane(), point.end()), packet, name);
        }
    }

    #[cold]
    fn look_at(
        &mut self,
        at: Time,
        (lane, to): (LaneId, EndpointId),
        packet: &Packet,
        point: &'static str,
    ) {
        let is_looked_at = match self.chosen[lane.0 as usize] {
            Chosen::Not => false,
            Chosen::Leaving => point == LEAVE,
            Chosen::Throughout => true,
        };
        if is_looked_at {
            self.seen.push(Seen { at, lane, to, point, packet: *packet });
        }
    }

    /// Packets at points at times of which all is known, in their order.
    pub fn take_seen(&mut self, is_over: impl Fn(Time) -> bool) -> Vec<Seen> {
        self.seen.sort_by_key(|seen| seen.at);
        let over = self.seen.partition_point(|seen| is_over(seen.at));
        let later = self.seen.split_off(over);
        std::mem::replace(&mut self.seen, later)
    }

    /// A router drops a packet that is too large.
    pub fn drop_too_large(&mut self, at: Time, lane: LaneId, to: EndpointId, packet: &Packet) {
        if !self.chosen.is_empty() {
            self.look_at(at, (lane, to), packet, "drop");
        }
        let (bytes, reason) = (packet.wire_bytes(), "PKT_TOO_BIG");
        self.drops.push(Dropped { at, lane, to, bytes, reason, is_too_large: true });
    }

    /// What was dropped at times of which all is known, in their order.
    pub fn take_drops(&mut self, is_over: impl Fn(Time) -> bool) -> Vec<Dropped> {
        self.drops.sort_by_key(|drop| (drop.at, drop.is_too_large));
        let over = self.drops.partition_point(|drop| is_over(drop.at));
        let later = self.drops.split_off(over);
        std::mem::replace(&mut self.drops, later)
    }
}

impl Observer<Packet> for Watcher {
    #[inline]
    fn enter(&mut self, point: Point<'_>, packet: &Packet) {
        self.look(point, packet, "enter");
    }

    #[inline]
    fn leave(&mut self, point: Point<'_>, packet: &Packet) {
        self.look(point, packet, LEAVE);
    }

    #[inline]
    fn arrive(&mut self, point: Point<'_>, packet: &Packet) {
        self.look(point, packet, "arrive");
    }

    fn drop(&mut self, point: Point<'_>, packet: &Packet, reason: Reason) {
        self.look(point, packet, "drop");
        self.drops.push(Dropped {
            at: point.at,
            lane: point.lane(),
            to: point.end(),
            bytes: packet.wire_bytes(),
            reason: name(reason),
            is_too_large: false,
        });
    }
}

/// As the kernel calls it.
fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Full => "QUEUE_FULL",
        Reason::Discipline => "QDISC_DROP",
        Reason::Purged => "QUEUE_PURGE",
        Reason::Unresolved => "NEIGH_QUEUEFULL",
        Reason::Lost => "LOST_ON_THE_WIRE",
        Reason::Corrupted => "CORRUPTED",
    }
}
