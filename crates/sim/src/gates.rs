//! Routers at which packets may be too large for the next link (RFC 1191): they drop them, and say so, or
//! do not.
//!
//! Only the ways of flows have any that find out by themselves how large packets may be, and only where
//! a link takes less than all before it. There a route ends, and another goes on.

use crate::packet::OnWire;
use crate::recorder::Dropped;
use std::collections::BTreeMap;
use tcplab_engine::{EndpointId, LaneId, Network, Packet, RouteId};
use tcplab_model::LanePlan;

/// A place on the way of one end of a flow.
struct Gate {
    mtu: u16,
    lane: LaneId,
    /// The way on, and the way back by which the sender hears of what was dropped, with its MTU.
    on: RouteId,
    back: Option<(RouteId, u16)>,
    /// Who sends this way.
    end: usize,
}

/// All of them. Their numbers, as ends of routes, are those behind the ends of flows: an even one for
/// what comes to a gate, an odd one for what it says.
pub(crate) struct Gates {
    first: u32,
    list: Vec<Gate>,
    /// What hosts have heard of the way to others, by their nodes.
    known: BTreeMap<(usize, usize), u16>,
    pub dropped: Vec<Dropped>,
}

impl Gates {
    /// None yet, beside so many ends of flows.
    pub fn new(ends: usize) -> Self {
        let (list, known, dropped) = Default::default();
        Self { first: ends as u32, list, known, dropped }
    }

    /// A route by these lanes, with the gates that it needs.
    pub fn add_route(
        &mut self,
        network: &mut Network<OnWire>,
        plan: &[LanePlan],
        lanes: &[usize],
        (end, to): (usize, EndpointId),
    ) -> RouteId {
        let ids: Vec<LaneId> = lanes.iter().map(|&lane| LaneId(lane as u32)).collect();
        let mut least = u64::MAX;
        let mut narrows = Vec::new();
        for (place, &lane) in lanes.iter().enumerate() {
            if plan[lane].mtu < least && place > 0 {
                narrows.push(place);
            }
            least = least.min(plan[lane].mtu);
        }
        let (mut to, mut until) = (to, lanes.len());
        for &place in narrows.iter().rev() {
            let lane = &plan[lanes[place]];
            let number = EndpointId(self.first + 2 * self.list.len() as u32);
            let on = network.add_route(&ids[place..until], to);
            // Lanes of the same link have numbers that differ in the last bit.
            let back: Vec<LaneId> = ids[..place].iter().rev().map(|id| LaneId(id.0 ^ 1)).collect();
            let room = back.iter().map(|id| plan[id.0 as usize].mtu as u16).min();
            let back = lane.icmp.then(|| network.add_route(&back, EndpointId(number.0 + 1)));
            let back = back.zip(room);
            let mtu = lane.mtu as u16;
            self.list.push(Gate { mtu, lane: ids[place], on, back, end });
            (to, until) = (number, place);
        }
        network.add_route(&ids[..until], to)
    }

    /// The end of a flow that this end of a route belongs to.
    pub fn end_behind(&self, to: EndpointId) -> usize {
        let number = to.0.checked_sub(self.first);
        // What a gate drops, or says, is of the flow of its sender.
        number.map_or(to.0 as usize, |number| self.list[number as usize / 2].end)
    }

    /// A packet comes to a gate. Says who is to hear of another one, if this is a notice.
    #[cold]
    pub fn meet(
        &mut self,
        network: &mut Network<OnWire>,
        EndpointId(to): EndpointId,
        packet: OnWire,
    ) -> Option<usize> {
        let number = to - self.first;
        let gate = &self.list[number as usize / 2];
        if number % 2 == 1 {
            return Some(gate.end);
        }
        if packet.wire_bytes() <= u32::from(gate.mtu) {
            network.send(gate.on, packet);
            return None;
        }
        let (at, lane, end) = (network.now(), gate.lane, gate.end);
        self.dropped.push(Dropped { at, lane, end, packet, reason: "PKT_TOO_BIG" });
        if let Some((back, room)) = gate.back {
            network.send(back, OnWire(packet.0.notice(gate.mtu, room)));
        }
        None
    }

    /// A host has heard how large packets to another may be.
    pub fn learn(&mut self, between: (usize, usize), mtu: u16) {
        let known = self.known.entry(between).or_insert(mtu);
        *known = mtu.min(*known);
    }

    /// What it has heard.
    pub fn known(&self, between: (usize, usize)) -> Option<u16> {
        self.known.get(&between).copied()
    }
}
