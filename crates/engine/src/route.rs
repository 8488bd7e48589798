//! The lanes that packets take, one after the other, and where they end.

/// A lane, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// Where a route ends: a number whose meaning is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// A list of lanes that ends at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId(pub(crate) u32);

/// Whose packets take a route: what disciplines with many queues tell flows apart by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Equal for the packets of one direction of a connection, and for no others. It is hashed.
    pub key: u64,
    /// The number of the host that the packets come from.
    pub from: u32,
    /// The number of the host that they go to.
    pub to: u32,
}

/// One step of a route: the number of a lane, or with the top bit set that of an endpoint.
#[derive(Clone, Copy, Debug)]
struct Hop(u32);

const TOP: u32 = 1 << 31;

/// All routes, one behind the other. A packet carries its place in here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    hops: Vec<Hop>,
    /// Flows that were told, and for each hop the number of its route's; `UNTOLD`, or no entry, without one.
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

    /// From now on packets on this route are of that flow.
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

    /// Whose packets take the route that goes through a place. The number of a route's end is a key where
    /// each connection has routes of its own.
    #[inline]
    pub fn flow(&self, place: u32) -> Flow {
        let told = self.flow_of_hop.get(place as usize);
        let told = told.and_then(|&number| self.flows.get(number as usize));
        told.copied().unwrap_or_else(|| Flow { key: self.end(place).0.into(), ..Flow::default() })
    }

    /// The lane at a place where a packet is, or comes to.
    #[inline]
    pub fn lane(&self, place: u32) -> u32 {
        self.hops[place as usize].0
    }

    /// Where the route ends, if it does so behind this place.
    #[inline]
    pub fn ends_behind(&self, place: u32) -> Option<EndpointId> {
        let Hop(next) = self.hops[place as usize + 1];
        (next & TOP != 0).then_some(EndpointId(next & !TOP))
    }

    /// Where the route that goes through a place ends.
    pub fn end(&self, place: u32) -> EndpointId {
        EndpointId(self.hops[self.last(place)].0 & !TOP)
    }

    fn last(&self, place: u32) -> usize {
        let end = self.hops[place as usize..].iter().position(|hop| hop.0 & TOP != 0);
        place as usize + end.expect("a route ends at an endpoint")
    }
}
