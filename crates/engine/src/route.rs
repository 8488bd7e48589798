//! The lanes that packets take, one after the other, and where they end.

/// A lane, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// The end of a route: a number whose meaning is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// A list of lanes that ends at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId(pub(crate) u32);

/// The flow on a route, by which disciplines with many queues classify packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Equal for the packets of one direction of a connection, and for no others. Disciplines hash
    /// it.
    pub key: u64,
    /// The number of the source host.
    pub from: u32,
    /// The number of the destination host.
    pub to: u32,
}

/// One step of a route: the number of a lane, or with the top bit set the number of an endpoint.
#[derive(Clone, Copy, Debug)]
struct Hop(u32);

const TOP: u32 = 1 << 31;

/// All routes, one behind the other. A packet carries its index in here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    hops: Vec<Hop>,
    /// The flows that were set, and for each hop the number of its route's flow; `UNTOLD`, or no
    /// entry, without one.
    flows: Vec<Flow>,
    flow_of_hop: Vec<u32>,
}

const UNTOLD: u32 = u32::MAX;

impl Routes {
    pub fn add(&mut self, lanes: &[LaneId], end: EndpointId) -> RouteId {
        let hops = lanes.iter().map(|lane| Hop(lane.0)).chain([Hop(end.0 | TOP)]);
        let start = self.hops.len() as u32;
        self.hops.extend(hops);
        RouteId(start)
    }

    pub fn redirect(&mut self, route: RouteId, end: EndpointId) {
        let last = self.last(route.0);
        self.hops[last] = Hop(end.0 | TOP);
    }

    /// Sets the flow of packets on this route from now on.
    pub fn set_flow(&mut self, route: RouteId, flow: Flow) {
        let (start, last) = (route.0 as usize, self.last(route.0));
        if self.flow_of_hop.len() <= last {
            self.flow_of_hop.resize(self.hops.len(), UNTOLD);
        }
        let known = self.flow_of_hop[last];
        if let Some(known) = self.flows.get_mut(known as usize) {
            *known = flow;
            return;
        }
        self.flow_of_hop[start..=last].fill(self.flows.len() as u32);
        self.flows.push(flow);
    }

    /// The flow on the route that goes through a place. Where each connection has its own routes,
    /// the number of the route's end is the key.
    #[inline]
    pub fn flow(&self, place: u32) -> Flow {
        let number = self.flow_of_hop.get(place as usize);
        let flow = number.and_then(|&number| self.flows.get(number as usize));
        flow.copied().unwrap_or_else(|| Flow { key: self.end(place).0.into(), ..Flow::default() })
    }

    /// The lane at a place.
    #[inline]
    pub fn lane(&self, place: u32) -> u32 {
        self.hops[place as usize].0
    }

    /// The end of the route, if the route ends behind this place.
    #[inline]
    pub fn ends_behind(&self, place: u32) -> Option<EndpointId> {
        let Hop(next) = self.hops[place as usize + 1];
        (next & TOP != 0).then_some(EndpointId(next & !TOP))
    }

    /// The end of the route that goes through a place.
    pub fn end(&self, place: u32) -> EndpointId {
        EndpointId(self.hops[self.last(place)].0 & !TOP)
    }

    fn last(&self, place: u32) -> usize {
        let end = self.hops[place as usize..].iter().position(|hop| hop.0 & TOP != 0);
        place as usize + end.expect("a route ends at an endpoint")
    }
}
