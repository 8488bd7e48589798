//! Links: pairs of devices between hosts, with queueing disciplines, and routes over them.

use crate::failure::Failure;
use crate::hosts::Host;
use crate::netlink::route::{self, Device};
use crate::netlink::{Batch, LONGEST_ATTRIBUTE, Netlink};
use std::collections::BTreeMap;
use tcplab_guest::Job;
use tcplab_guest::job::{End, Link, Namespace};

/// The index of a host's first device. Devices made by the kernel itself have smaller indices.
const FIRST: u32 = 100;

/// The difference between device indices in successive namespaces of a host.
const NEXT_NAMESPACE: u32 = 1 << 20;

/// Device indices by host and name.
type Numbers<'a> = BTreeMap<(usize, &'a str), u32>;

/// Makes the links and routes of a job, whose devices are not in the namespace of `outside`.
pub(crate) fn make(job: &Job, hosts: &[Vec<Host>], outside: &Netlink) -> Result<(), Failure> {
    let numbers = number(&job.links);
    make_pairs(&job.links, hosts, &numbers, outside)?;
    let mut batches: Vec<Vec<Batch>> =
        hosts.iter().map(|all| all.iter().map(|_| Batch::default()).collect()).collect();
    for end in job.links.iter().flat_map(|link| &link.ends) {
        let index = numbers[&(end.host, end.device.as_str())];
        let (first, others) = batches[end.host].split_at_mut(1);
        equip(&mut first[0], &hosts[end.host][0].name, end, index)?;
        let made = hosts[end.host][1..].iter().zip(&job.hosts[end.host].namespaces[1..]);
        for (place, ((host, spec), batch)) in made.zip(others).enumerate() {
            let device = Device {
                namespace: host.namespace(),
                index: index_in(place + 1, index),
                name: &end.device,
                mtu: end.mtu,
            };
            share((&mut first[0], index), (batch, &device), &host.name, spec);
        }
    }
    for (number, host) in job.hosts.iter().enumerate() {
        for (place, namespace) in host.namespaces.iter().enumerate() {
            for route in &namespace.routes {
                let what = format!("{}: route to {} over {}", host.name, route.to, route.device);
                let index = numbers
                    .get(&(number, route.device.as_str()))
                    .ok_or_else(|| Failure::new(&what, "there is no such device"))?;
                let index = index_in(place, *index);
                batches[number][place].push(route::add_route(route, index), what);
            }
        }
    }
    // Devices must exist before others share them: the first namespace of a host comes first.
    let all = hosts.iter().flatten().zip(batches.iter().flatten());
    all.into_iter().try_for_each(|(host, batch)| host.netlink.carry_out(batch))
}

/// Gives another namespace of a host a device of the same name, which sends through the first
/// namespace's device and receives packets for the namespace's addresses.
fn share(
    (first, shared): (&mut Batch, u32),
    (batch, device): (&mut Batch, &Device),
    host: &str,
    spec: &Namespace,
) {
    let what = |what: &str| format!("{host} {}: {what}", device.name);
    first.push(route::share_device(device, shared), what("share"));
    for address in &spec.addresses {
        let message = route::add_address(*address, device.index);
        batch.push(message, what(&format!("address {address}")));
    }
    batch.push(route::bring_up(device.index), what("up"));
    batch.push(route::without_arp(device.index), what("without ARP"));
}

/// The index of a device in one of its host's namespaces. It differs from all those in the first,
/// in which a device is made before it is moved.
fn index_in(namespace: usize, index: u32) -> u32 {
    index + namespace as u32 * NEXT_NAMESPACE
}

/// Assigns the indices of each host's devices, so that the kernel need not be asked for them.
fn number(links: &[Link]) -> Numbers<'_> {
    let mut numbers = Numbers::new();
    let mut next: BTreeMap<usize, u32> = BTreeMap::new();
    for end in links.iter().flat_map(|link| &link.ends) {
        let next = next.entry(end.host).or_insert(FIRST);
        numbers.insert((end.host, &end.device), *next);
        *next += 1;
    }
    numbers
}

/// The kernel checks the index of a new device in the namespace of the socket, whatever namespace
/// the device is for (`rtnl_newlink`).
fn make_pairs(
    links: &[Link],
    hosts: &[Vec<Host>],
    numbers: &Numbers,
    outside: &Netlink,
) -> Result<(), Failure> {
    let mut batch = Batch::default();
    for link in links {
        let [near, far] = &link.ends;
        let devices = link.ends.each_ref().map(|end| Device {
            namespace: hosts[end.host][0].namespace(),
            index: numbers[&(end.host, end.device.as_str())],
            name: &end.device,
            mtu: end.mtu,
        });
        let name = |end: &End| format!("{} {}", hosts[end.host][0].name, end.device);
        let what = format!("link from {} to {}", name(near), name(far));
        batch.push(route::make_pair(devices), what);
    }
    outside.carry_out(&batch)
}

/// Disciplines are added before the device is up; otherwise it would begin with the default ones.
fn equip(batch: &mut Batch, host: &str, end: &End, index: u32) -> Result<(), Failure> {
    for (depth, discipline) in end.disciplines.iter().enumerate() {
        let what = format!("{host} {}: discipline {}", end.device, discipline.kind);
        let all = std::iter::once(&discipline.options).chain(&discipline.more);
        let length = all.map(Vec::len).max().unwrap_or(0);
        if length > LONGEST_ATTRIBUTE {
            let reason =
                format!("options of {length} bytes; at most {LONGEST_ATTRIBUTE} are possible");
            return Err(Failure::new(what, reason));
        }
        let depth = depth as u32;
        batch.push(route::add_discipline(index, depth, discipline), what.clone());
        for options in &discipline.more {
            let message = route::change_discipline(index, depth, &discipline.kind, options);
            batch.push(message, what.clone());
        }
        if let Some(filter) = &discipline.filter {
            let what = format!("{host} {}: filter {}", end.device, filter.kind);
            batch.push(route::add_filter(index, depth, filter), what);
        }
    }
    batch.push(route::bring_up(index), format!("{host} {}: up", end.device));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbered_within_their_host() {
        let end = |host, device: &str| End {
            host,
            device: device.into(),
            mtu: 1500,
            disciplines: vec![],
        };
        let links = [
            Link { ends: [end(0, "eth0"), end(1, "eth0")] },
            Link { ends: [end(1, "eth1"), end(2, "eth0")] },
        ];
        let numbers: Vec<u32> = number(&links).into_values().collect();
        assert_eq!(numbers, [FIRST, FIRST, FIRST + 1, FIRST]);
    }
}
