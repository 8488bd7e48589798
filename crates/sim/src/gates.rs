//! Gates: routers at which packets may exceed the MTU of the next link (RFC 1191). They drop such
//! packets, with an ICMP message or without.
//!
//! Only flows with path MTU discovery have gates, and only before a link with a smaller MTU than
//! all links before it. A route ends at the gate, and another one continues.

use crate::connections::GATES;
use crate::packet::Packet;
use crate::watcher::Network;
use std::collections::BTreeMap;
use std::ops::Range;
use tcplab_engine::{EndpointId, LaneId, Packet as _, RouteId};
use tcplab_model::LanePlan;

/// A gate on the path of one end of a flow.
#[derive(Clone)]
struct Gate {
    mtu: u16,
    lane: LaneId,
    /// The onward route, and the route back by which the sender hears of dropped packets, with the
    /// next MTU.
    on: RouteId,
    back: Option<(RouteId, u16)>,
    /// The sender: the end of a connection, or its remains, by its number as a route endpoint.
    end: usize,
}

/// All gates. As route endpoints, from `GATES` on, they have an even number for packets that come
/// to a gate and an odd one for the gate's messages.
#[derive(Clone, Default)]
pub(crate) struct Gates {
    list: Vec<Gate>,
    /// Path MTUs that hosts have learned, by the nodes of both hosts.
    known: BTreeMap<(usize, usize), u16>,
}

impl Gates {
    /// The number of gates.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Assigns these gates to the connection whose data-sending end this is, or to its remains.
    pub fn hand_over(&mut self, gates: Range<u32>, first: usize) {
        for gate in &mut self.list[gates.start as usize..gates.end as usize] {
            gate.end = first + gate.end % 2;
        }
    }

    /// A path over these lanes with the gates that it needs. Returns the first route and the last
    /// one, which are the same without gates.
    pub fn add_route(
        &mut self,
        network: &mut Network,
        plan: &[LanePlan],
        lanes: &[usize],
        (end, to): (usize, EndpointId),
    ) -> (RouteId, RouteId) {
        let ids: Vec<LaneId> = lanes.iter().map(|&lane| LaneId(lane as u32)).collect();
        let mut least = u64::MAX;
        let mut narrows = Vec::new();
        for (place, &lane) in lanes.iter().enumerate() {
            if plan[lane].mtu < least && place > 0 {
                narrows.push(place);
            }
            least = least.min(plan[lane].mtu);
        }
        let (mut to, mut until, mut end_route) = (to, lanes.len(), None);
        for &place in narrows.iter().rev() {
            let lane = &plan[lanes[place]];
            let number = EndpointId(GATES + 2 * self.list.len() as u32);
            let on = network.add_route(&ids[place..until], to);
            end_route.get_or_insert(on);
            // The two lanes of a link have numbers that differ in the last bit.
            let back: Vec<LaneId> = ids[..place].iter().rev().map(|id| LaneId(id.0 ^ 1)).collect();
            let room = back.iter().map(|id| plan[id.0 as usize].mtu as u16).min();
            let back = lane.icmp.then(|| network.add_route(&back, EndpointId(number.0 + 1)));
            let back = back.zip(room);
            let mtu = lane.mtu as u16;
            self.list.push(Gate { mtu, lane: ids[place], on, back, end });
            (to, until) = (number, place);
        }
        let first = network.add_route(&ids[..until], to);
        (first, end_route.unwrap_or(first))
    }

    /// The onward routes of these gates, each with the side of the connection that sends over it.
    pub fn ways_on(&self, gates: Range<u32>) -> impl Iterator<Item = (usize, RouteId)> {
        self.list[gates.start as usize..gates.end as usize]
            .iter()
            .map(|gate| (gate.end % 2, gate.on))
    }

    /// The end to which a gate belongs, of a connection or of its remains.
    pub fn end_of(&self, to: EndpointId) -> usize {
        // Drops and messages of a gate belong to its sender.
        self.list[(to.0 - GATES) as usize / 2].end
    }

    /// The lane behind a gate.
    pub fn lane_of(&self, to: EndpointId) -> LaneId {
        self.list[(to.0 - GATES) as usize / 2].lane
    }

    /// A packet of a flow comes to a gate: it is forwarded, or dropped with a possible message to
    /// its sender.
    #[cold]
    pub fn meet(&mut self, network: &mut Network, EndpointId(to): EndpointId, packet: Packet) {
        let gate = &self.list[(to - GATES) as usize / 2];
        if packet.wire_bytes() <= u32::from(gate.mtu) {
            network.send(gate.on, packet);
            return;
        }
        let (at, lane) = (network.now(), gate.lane);
        network.observer().drop_too_large(at, lane, EndpointId(to), &packet);
        if let (Some((back, room)), Packet::Tcp(segment)) = (gate.back, packet) {
            network.send(back, Packet::Icmp(segment.too_large(gate.mtu, room)));
        }
    }

    /// A host has learned the path MTU to another one.
    pub fn learn(&mut self, between: (usize, usize), mtu: u16) {
        let known = self.known.entry(between).or_insert(mtu);
        *known = mtu.min(*known);
    }

    /// The path MTU that a host has learned.
    pub fn known(&self, between: (usize, usize)) -> Option<u16> {
        self.known.get(&between).copied()
    }
}
