//! Routers at which packets may be too large for the next link (RFC 1191): they drop them, and say so, or
//! do not.
//!
//! Only the ways of flows have any that find out by themselves how large packets may be, and only where
//! a link takes less than all before it. There a route ends, and another goes on.

use crate::connections::ROUTERS;
use crate::observer::Network;
use crate::packet::Packet;
use std::collections::BTreeMap;
use std::ops::Range;
use tcplab_engine::{EndpointId, LaneId, Packet as _, RouteId};
use tcplab_model::LanePlan;

/// A place on the way of one end of a flow.
#[derive(Clone)]
struct Router {
    mtu: u16,
    lane: LaneId,
    /// The way on, and the way back by which the sender hears of what was dropped, with its MTU.
    on: RouteId,
    back: Option<(RouteId, u16)>,
    /// Who sends this way: the end of a connection, or what is left of it, by its number as an end of routes.
    end: usize,
}

/// All of them. As ends of routes they have an even number for what comes to a router, an odd one for what it
/// says, from `ROUTERS` on.
#[derive(Clone, Default)]
pub(crate) struct Routers {
    list: Vec<Router>,
    /// What hosts have heard of the way to others, by their nodes.
    known: BTreeMap<(usize, usize), u16>,
}

impl Routers {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// These routers are now on the way of the connection of which this is the end that sends the data, or of
    /// what is left of it.
    pub fn hand_over(&mut self, routers: Range<u32>, first: usize) {
        for router in &mut self.list[routers.start as usize..routers.end as usize] {
            router.end = first + router.end % 2;
        }
    }

    /// A way by these lanes, with the routers that it needs: the route on which it begins, and the one on which
    /// it ends, which is the same without routers.
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
            // Lanes of the same link have numbers that differ in the last bit.
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

    /// The ways on from these routers, each with the side of the connection that sends this way.
    pub fn ways_on(&self, routers: Range<u32>) -> impl Iterator<Item = (usize, RouteId)> {
        self.list[routers.start as usize..routers.end as usize]
            .iter()
            .map(|router| (router.end % 2, router.on))
    }

    /// The end that a router belongs to, of a connection or of what is left of one.
    pub fn end_of(&self, to: EndpointId) -> usize {
        // What a router drops, or says, is of its sender.
        self.list[(to.0 - ROUTERS) as usize / 2].end
    }

    /// The lane to which a router leads.
    pub fn lane_of(&self, to: EndpointId) -> LaneId {
        self.list[(to.0 - ROUTERS) as usize / 2].lane
    }

    /// A packet of a flow comes to a router: it goes on, or its sender may hear that it was too large.
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
            network.send(back, Packet::Icmp(segment.too_large(router.mtu, room)));
        }
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
