//! Links: pairs of devices between hosts, with queueing disciplines, and the ways over them.

use crate::failure::Failure;
use crate::hosts::Host;
use crate::netlink::route::{self, Device};
use crate::netlink::{Batch, LONGEST_ATTRIBUTE, Netlink};
use std::collections::BTreeMap;
use tcplab_guest::Job;
use tcplab_guest::job::{End, Link};

/// The number of a host's first device. The kernel may have made some of its own there, which have
/// smaller numbers.
const FIRST: u32 = 100;

/// The numbers of devices, by host and name.
type Numbers<'a> = BTreeMap<(usize, &'a str), u32>;

/// Makes the links and routes of a job, whose devices are not in the namespace of `outside`.
pub(crate) fn make(job: &Job, hosts: &[Host], outside: &Netlink) -> Result<(), Failure> {
    let numbers = number(&job.links);
    make_pairs(&job.links, hosts, &numbers, outside)?;
    let mut batches: Vec<Batch> = hosts.iter().map(|_| Batch::default()).collect();
    for end in job.links.iter().flat_map(|link| &link.ends) {
        let index = numbers[&(end.host, end.device.as_str())];
        equip(&mut batches[end.host], &hosts[end.host].name, end, index)?;
    }
    for (number, host) in job.hosts.iter().enumerate() {
        for route in &host.routes {
            let what = format!("{}: route to {} over {}", host.name, route.to, route.device);
            let index = numbers
                .get(&(number, route.device.as_str()))
                .ok_or_else(|| Failure::new(&what, "there is no such device"))?;
            batches[number].push(route::add_route(route, *index), what);
        }
    }
    hosts.iter().zip(&batches).try_for_each(|(host, batch)| host.netlink.carry_out(batch))
}

/// Numbers the devices of each host, so that nobody has to ask the kernel how it numbered them.
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

/// The kernel looks for a device with the number of a new one in the namespace of the socket, wherever
/// the new one is to be (`rtnl_newlink`).
fn make_pairs(
    links: &[Link],
    hosts: &[Host],
    numbers: &Numbers,
    outside: &Netlink,
) -> Result<(), Failure> {
    let mut batch = Batch::default();
    for link in links {
        let [near, far] = &link.ends;
        let devices = link.ends.each_ref().map(|end| Device {
            namespace: hosts[end.host].namespace(),
            index: numbers[&(end.host, end.device.as_str())],
            name: &end.device,
            mtu: end.mtu,
        });
        let name = |end: &End| format!("{} {}", hosts[end.host].name, end.device);
        let what = format!("link from {} to {}", name(near), name(far));
        batch.push(route::make_pair(devices), what);
    }
    outside.carry_out(&batch)
}

/// The disciplines come before the device is up, or it would begin with others.
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
