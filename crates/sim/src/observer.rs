//! Observes packets on the network: drops everywhere, and all packets on chosen lanes.
//!
//! The network reports an event before or after its time. Reports are therefore held until their
//! time is over, and then recorded in order of time.

use crate::packet::Packet;
use tcplab_engine::{EndpointId, LaneId, Observer, Packet as _, Point, Reason};
use tcplab_model::Plan;
use tcplab_units::Time;

/// The network of this backend.
pub(crate) type Network = tcplab_engine::Network<Packet, Watcher>;

/// A packet that was dropped or lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped {
    pub at: Time,
    pub lane: LaneId,
    /// The packet's route endpoint.
    pub to: EndpointId,
    pub bytes: u32,
    /// The reason, as the kernel names it.
    pub reason: &'static str,
    /// Whether a router found the packet too large.
    pub is_too_large: bool,
}

/// A packet at a point of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub at: Time,
    pub lane: LaneId,
    /// The packet's route endpoint.
    pub to: EndpointId,
    /// The point on the lane, as named in the table.
    pub point: &'static str,
    pub packet: Packet,
}

/// The point where the transmission of a packet begins, at which it is captured.
pub(crate) const LEAVE: &str = "leave";

/// Which packets of a lane are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Not,
    /// Packets that are transmitted.
    Leaving,
    /// All packets, at all points.
    Throughout,
}

/// Reports that are not yet recorded.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    drops: Vec<Dropped>,
    /// For each lane, whether packets are observed at all points, only where they leave the queue,
    /// or not at all; empty if no lane is observed.
    chosen: Vec<Chosen>,
    seen: Vec<Seen>,
}

impl Watcher {
    /// An observer for what this plan records.
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

    /// How many drops, and how many packets at points, are not yet recorded.
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

    /// The packets at points whose times are over, in order.
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

    /// The drops whose times are over, in order.
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

/// The reason as the kernel names it.
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
