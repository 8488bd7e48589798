//! Gates: routers at which packets may exceed the MTU of the next link (RFC 1191). They drop such
//! packets, with an ICMP message or without.
//!
//! Only flows with path MTU discovery have gates, and only before a link with a smaller MTU than
//! all links before it. A route ends at the gate, and another one continues.

use crate::connections::ROUTERS;
use crate::observer::Network;
use crate::packet::Packet;
use std::collections::BTreeMap;
use std::ops::Range;
use tcplab_engine::{EndpointId, LaneId, Packet as _, RouteId};
use tcplab_model::LanePlan;

/// A gate on the path of one end of a flow.
#[derive(Clone)]
struct Router {
    mtu: u16,
    lane: LaneId,
    /// The onward route, and the route back by which the sender receives ICMP messages about
    /// dropped packets, with the next MTU.
    on: RouteId,
    back: Option<(RouteId, u16)>,
    /// The sender: the end of a connection, or its remains, by its number as a route endpoint.
    end: usize,
}

/// All routers. As route endpoints, from `ROUTERS` on, they have an even number for packets that
/// come to a router and an odd one for the router's messages.
#[derive(Clone, Default)]
pub(crate) struct Routers {
    list: Vec<Router>,
    /// Path MTUs that hosts have learned, by the nodes of both hosts.
    known: BTreeMap<(usize, usize), u16>,
}

impl Routers {
    /// The number of routers.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Assigns these routers to the connection whose data-sending end this is, or to its remains.
    pub fn hand_over(&mut self, routers: Range<u32>, first: usize) {
        for router in &mut self.list[routers.start as usize..routers.end as usize] {
            router.end = first + router.end % 2;
        }
    }

    /// A path over these lanes with the routers that it needs. Returns the first route and the last
    /// one, which are the same without routers.
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
            let number = EndpointId(ROUTERS + 2 * self.list.len() as u32);
            let on = network.add_route(&ids[place..until], to);
            end_route.get_or_insert(on);
            // The two lanes of a link have numbers that differ in the last bit.
            let back: Vec<LaneId> = ids[..place].iter().rev().map(|id| LaneId(id.0 ^ 1)).collect();
            let room = back.iter().map(|id| plan[id.0 as usize].mtu as u16).min();
            let back = lane.icmp.then(|| network.add_route(&back, EndpointId(number.0 + 1)));
            let back = back.zip(room);
            let mtu = lane.mtu as u16;
            self.list.push(Router { mtu, lane: ids[place], on, back, end });
            (to, until) = (number, place);
        }
        let first = network.add_route(&ids[..until], to);
        (first, end_route.unwrap_or(first))
    }

    /// The onward routes of these routers, each with the side of the connection that sends over it.
    pub fn ways_on(&self, routers: Range<u32>) -> impl Iterator<Item = (usize, RouteId)> {
        self.list[routers.start as usize..routers.end as usize]
            .iter()
            .map(|router| (router.end % 2, router.on))
    }

    /// The end to which a router belongs, of a connection or of its remains.
    pub fn end_of(&self, to: EndpointId) -> usize {
        // Drops and messages of a router belong to its sender.
        self.list[(to.0 - ROUTERS) as usize / 2].end
    }

    /// The lane behind a router.
    pub fn lane_of(&self, to: EndpointId) -> LaneId {
        self.list[(to.0 - ROUTERS) as usize / 2].lane
    }

    /// A packet of a flow comes to a router: it is forwarded, or dropped with a possible message to
    /// its sender.
    #[cold]
    pub fn meet(&mut self, network: &mut Network, EndpointId(to): EndpointId, packet: Packet) {
        let router = &self.list[(to - ROUTERS) as usize / 2];
        if packet.wire_bytes() <= u32::from(router.mtu) {
            network.send(router.on, packet);
            return;
        }
        let (at, lane) = (network.now(), router.lane);
        network.observer().drop_too_large(at, lane, EndpointId(to), &packet);
        if let (Some((back, room)), Packet::Tcp(segment)) = (router.back, packet) {
            network.send(back, Packet::Icmp(segment.frag_needed(router.mtu, room)));
        }
    }

    /// A host has learned the path MTU to another one.
    pub fn record_mtu(&mut self, between: (usize, usize), mtu: u16) {
        let known = self.known.entry(between).or_insert(mtu);
        *known = mtu.min(*known);
    }

    /// The path MTU that a host has learned.
    pub fn known(&self, between: (usize, usize)) -> Option<u16> {
        self.known.get(&between).copied()
    }
}
