//! Addresses and routes.
//!
//! Linux keeps some options of a connection with the route to the peer. A host therefore has an
//! address for each set of options that others use towards it, and for each path by which they
//! reach it.

use super::stacks::RouteOptions;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tcplab_guest::job::{Link, Route};
use tcplab_model::Plan;

pub(super) struct Addresses<'a> {
    plan: &'a Plan,
    known: Vec<Address>,
}

/// A node and one of its namespaces.
pub(super) type Place = (usize, usize);

struct Address {
    at: Place,
    options: RouteOptions,
    /// Whether only one flow uses the address, so that its programs' connections can be identified.
    is_private: bool,
    /// The lanes that lead there.
    ways: BTreeMap<Place, usize>,
    /// The origins of flows to the address, with the largest packet on their path.
    origins: BTreeMap<Place, u64>,
}

impl<'a> Addresses<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, known: Vec::new() }
    }

    /// The address by which a namespace is reached from another one over these lanes with these
    /// options.
    pub fn way(
        &mut self,
        (from, at): (Place, Place),
        lanes: &[usize],
        options: &RouteOptions,
        is_private: bool,
    ) -> Ipv4Addr {
        // The first namespace of a node forwards packets.
        let router = |&lane: &usize| ((self.plan.lanes[lane].from, 0), lane);
        let first = lanes.iter().take(1).map(|&lane| (from, lane));
        let hops: Vec<_> = first.chain(lanes.iter().skip(1).map(router)).collect();
        let fits = |address: &Address| {
            let agrees =
                |(at, lane): &(Place, usize)| address.ways.get(at).is_none_or(|it| it == lane);
            address.at == at
                && address.options == *options
                && !address.is_private
                && !is_private
                && hops.iter().all(agrees)
        };
        let number = self.known.iter().position(fits).unwrap_or_else(|| {
            let (ways, origins) = (BTreeMap::new(), BTreeMap::new());
            self.known.push(Address { at, options: options.clone(), is_private, ways, origins });
            self.known.len() - 1
        });
        let address = &mut self.known[number];
        address.ways.extend(hops);
        if !lanes.is_empty() {
            let known = if options.known_mtu { lanes } else { &lanes[..1] };
            let mtu = known.iter().map(|&lane| self.plan.lanes[lane].mtu).min();
            address.origins.insert(from, mtu.unwrap_or_default());
        }
        spelled(number)
    }

    /// The addresses of a namespace.
    pub fn of(&self, at: Place) -> Vec<Ipv4Addr> {
        let numbers = (0..self.known.len()).filter(|&number| self.known[number].at == at);
        numbers.map(spelled).collect()
    }

    /// The routes of each namespace.
    pub fn routes(&self, plan: &Plan, links: &[(Link, [usize; 2])]) -> BTreeMap<Place, Vec<Route>> {
        let mut devices = vec![""; plan.lanes.len()];
        for (link, lanes) in links {
            for (end, lane) in link.ends.iter().zip(lanes) {
                devices[*lane] = &end.device;
            }
        }
        let mut routes = BTreeMap::<Place, Vec<Route>>::new();
        for (number, address) in self.known.iter().enumerate() {
            for (&place, &lane) in &address.ways {
                let mtu = address.origins.get(&place);
                let options =
                    if mtu.is_some() { &address.options } else { &RouteOptions::default() };
                routes.entry(place).or_default().push(Route {
                    to: spelled(number),
                    device: devices[lane].into(),
                    mtu: mtu.filter(|&&mtu| mtu < plan.lanes[lane].mtu).map(|&mtu| mtu as u32),
                    initial_window: options.initial_window,
                    min_rto_ms: options.min_rto_ms,
                    quick_ack: options.quick_ack,
                    initial_receive_window: options.initial_receive_window,
                    congestion_control: options.congestion_control.clone(),
                });
            }
        }
        routes
    }
}

/// 10.0.0.1 and following.
fn spelled(number: usize) -> Ipv4Addr {
    Ipv4Addr::from((10 << 24) + 1 + number as u32)
}
