//! Translates a plan into a job: the experiment in the kernel's own terms.
//!
//! | file | job |
//! |---|---|
//! | `lanes` | the links, each direction with its rate, losses and queue |
//! | `queues` | the kernel's queue disciplines |
//! | `losses` | losses on the wire |
//! | `attributes` | netlink attributes |
//! | `addresses` | addresses of hosts, and the routes to them |
//! | `stacks` | transport options as settings of hosts, routes and sockets |
//! | `traffic` | traffic of flows |

mod addresses;
mod attributes;
mod lanes;
mod losses;
mod queues;
mod stacks;
mod traffic;

use addresses::Addresses;
pub(crate) use stacks::Abilities;
use stacks::Hosts;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use tcplab_engine::Random;
use tcplab_guest::job::{Flow, Host, Job, Namespace, Record, Side};
use tcplab_model::{MeasurePlan, Mistake, OrOff, Plan, Problem, Samples, support};
use tcplab_tables::Window;
use tcplab_units::Duration;
use tcplab_workload::ports::{self, CLIENT_PORTS, EPHEMERAL_PORTS, SERVER_PORTS};

/// Both ends of a flow have a thread, whose stack takes mappings of the host. A process may have
/// 65530 of them (`vm.max_map_count`), and more flows have been observed to need more.
const MOST_FLOWS: u64 = 12_000;

/// The job of a plan.
///
/// # Errors
/// All features that Linux, or this kernel, lacks.
pub(crate) fn job(plan: &Plan, kernel: Abilities<'_>) -> Result<Job, Vec<Mistake>> {
    let mut mistakes = support::unsupported(plan, crate::NAME);
    let mut hosts = Hosts::new(plan, kernel);
    let mut addresses = Addresses::new(plan);
    let mut flows = Vec::new();
    let mut taken = Ports::default();
    for planned in plan.flows.iter() {
        let Some(traffic) = traffic::traffic(plan, planned, &mut mistakes) else { continue };
        lanes::unsupported_sizes(plan, planned, &mut mistakes);
        let [sender, receiver] = hosts.ends(planned, &mut mistakes);
        let is_program = matches!(traffic, tcplab_guest::job::Traffic::Command { .. });
        let sends_at = (planned.from, sender.namespace);
        let receives_at = (planned.to, receiver.namespace);
        let mut way = |places, lanes: &[usize], route: &stacks::RouteOptions| {
            addresses.way(places, lanes, route, is_program)
        };
        let to = way((sends_at, receives_at), &planned.forward, &sender.route);
        let from = way((receives_at, sends_at), &planned.back, &receiver.route);
        let (socket, peer_socket) = (sender.socket, receiver.socket);
        // With requests and programs, the end that sends the data is the server.
        let asks = ports::asks(planned);
        let client_port = taken.clients(traffic.connections(), planned, &mut mistakes);
        let [seed, peer_seed] =
            [true, false].map(|sends| Random::of_end(plan.seed, sends, &planned.name).1);
        let side = |(host, namespace), address, seed, socket| Side {
            host,
            namespace,
            address,
            port: 0,
            seed,
            socket,
        };
        let sending = side(sends_at, from, seed, socket);
        let receiving = side(receives_at, to, peer_seed, peer_socket);
        let (mut client, mut server) =
            if asks { (receiving, sending) } else { (sending, receiving) };
        client.port = client_port;
        server.port = taken.server(server.address, planned, &mut mistakes);
        let traffic = traffic::with_addresses(traffic, server.address, client.address);
        flows.push(Flow {
            client,
            server,
            start: nanos(tcplab_workload::start(planned, plan.seed)),
            traffic,
        });
    }
    if flows.len() as u64 > MOST_FLOWS {
        let (what, number, most) = ("flows in one run", flows.len() as u128, MOST_FLOWS);
        mistakes.push(Problem::TooMany { what, number, most }.at("flows"));
    }
    lanes::unsupported_processors(plan, &mut mistakes);
    let links = lanes::links(plan, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let (settings, host_settings) = hosts.settings();
    let mut routes = addresses.routes(plan, &links);
    let hosts = host_settings.into_iter().enumerate().map(|(node, namespaces)| Host {
        name: plan.nodes[node].clone(),
        namespaces: namespaces
            .into_iter()
            .enumerate()
            .map(|(number, settings)| Namespace {
                addresses: addresses.of((node, number)),
                settings,
                routes: routes.remove(&(node, number)).unwrap_or_default(),
            })
            .collect(),
    });
    Ok(Job {
        duration: nanos(plan.duration),
        settings,
        hosts: hosts.collect(),
        links: links.into_iter().map(|(link, _)| link).collect(),
        flows,
        record: Record {
            samples: match plan.record.samples {
                Samples::Every(interval) => Some(nanos(interval).max(1)),
                Samples::Ack => Some(0),
                Samples::Off => None,
            },
            links: match plan.record.links {
                OrOff::On(interval) => Some(nanos(interval).max(1)),
                OrOff::Off => None,
            },
            window: plan.measure.map(|MeasurePlan { from, to, every }| {
                Window::new(from, to, every, Duration::from_nanos(nanos(plan.duration)))
            }),
        },
        programs: None,
    })
}

/// Assigns ports, so that each connection can be identified by its client's.
#[derive(Default)]
struct Ports {
    servers: u16,
    /// Used ports, by the server's address.
    taken: BTreeMap<Ipv4Addr, BTreeSet<u16>>,
    clients: u32,
}

impl Ports {
    /// Flows may share a server's port: each has an address of its own, or gets the next free port.
    fn server(
        &mut self,
        address: Ipv4Addr,
        flow: &tcplab_model::FlowPlan,
        mistakes: &mut Vec<Mistake>,
    ) -> u16 {
        const MOST: u16 = CLIENT_PORTS - SERVER_PORTS;
        let first = self.servers;
        self.servers = (self.servers + 1) % MOST;
        let taken = self.taken.entry(address).or_default();
        if taken.len() == usize::from(MOST) {
            let (what, most) = ("flows with the same server", MOST.into());
            let number = u128::from(MOST) + 1;
            let mistake = Problem::TooMany { what, number, most }.at(&flow.place);
            if mistakes.last() != Some(&mistake) {
                mistakes.push(mistake);
            }
            return SERVER_PORTS;
        }
        let mut ports = (0..MOST).map(|step| SERVER_PORTS + (first + step) % MOST);
        ports.find(|&port| taken.insert(port)).expect("one is free")
    }

    fn clients(
        &mut self,
        number: usize,
        flow: &tcplab_model::FlowPlan,
        mistakes: &mut Vec<Mistake>,
    ) -> u16 {
        let first = self.clients;
        self.clients += number as u32;
        let most = u32::from(EPHEMERAL_PORTS - CLIENT_PORTS);
        if self.clients > most {
            let number = u128::from(self.clients);
            let problem =
                Problem::TooMany { what: "connections in one run", number, most: most.into() };
            mistakes.push(problem.at(&flow.place));
            self.clients = first;
        }
        CLIENT_PORTS + first as u16
    }
}

/// Rounds to the nearest nanosecond.
fn nanos(time: Duration) -> u64 {
    time.as_picos().saturating_add(500) / 1000
}

#[cfg(test)]
#[test]
fn the_longest_time_is_rounded_without_overflow() {
    assert_eq!(nanos(Duration::from_picos(1_499)), 1);
    assert_eq!(nanos(Duration::from_picos(1_500)), 2);
    assert_eq!(nanos(Duration::MAX), u64::MAX / 1000);
}
