//! Hosts: one network namespace each, or several if their settings differ.

use crate::failure::{Failure, Trying};
use crate::machine;
use crate::netlink::{Batch, Netlink, route};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use tcplab_guest::job;

/// Disables IPv6 for all devices, including later ones. A kernel without IPv6 has no such file.
const NO_IPV6: &str = "/proc/sys/net/ipv6/conf/all/disable_ipv6";

/// A namespace of a host.
pub(crate) struct Host {
    pub name: String,
    namespace: OwnedFd,
    pub netlink: Netlink,
}

impl Host {
    /// Moves the calling thread into the host. Sockets stay where they were created.
    pub fn enter(&self) -> Result<(), Failure> {
        move_into_link_name_space(self.namespace(), Some(LinkNameSpaceType::Network))
            .trying(|| format!("setns {}", self.name))
    }

    pub fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// Makes the namespaces of the hosts with their settings and addresses. The calling thread ends up
/// in the last one.
pub(crate) fn make(hosts: &[job::Host]) -> Result<Vec<Vec<Host>>, Failure> {
    prepare_first_namespace()?;
    let make = |host: &job::Host| {
        host.namespaces.iter().map(|namespace| make_one(&host.name, namespace)).collect()
    };
    hosts.iter().map(make).collect()
}

/// Sets the settings that all hosts share, once: a new namespace inherits the forwarding setting.
fn prepare_first_namespace() -> Result<(), Failure> {
    // Only the first namespace gets the fallback tunnels.
    machine::set("/proc/sys/net/core/fb_tunnels_only_for_init_net", "1")?;
    machine::set("/proc/sys/net/ipv4/ip_forward", "1")
}

fn make_one(name: &str, host: &job::Namespace) -> Result<Host, Failure> {
    unshare(CloneFlags::CLONE_NEWNET).trying(|| format!("{name}: unshare"))?;
    let namespace = open("/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .trying(|| format!("{name}: /proc/self/ns/net"))?;
    // IPv6 sends packets by itself, at random times. A namespace does not inherit this setting,
    // which must be made before any device is up.
    if Path::new(NO_IPV6).exists() {
        machine::set(NO_IPV6, "1")?;
    }
    for (file, value) in &host.settings {
        machine::set(&format!("/proc/sys/{file}"), value)
            .map_err(|failure| Failure::new(name, failure.to_string()))?;
    }
    let netlink = Netlink::open()?;
    let mut batch = Batch::default();
    batch.push(route::bring_loopback_up(), format!("{name}: lo up"));
    for address in &host.addresses {
        batch.push(
            route::add_address(*address, route::LOOPBACK),
            format!("{name}: address {address}"),
        );
    }
    netlink.carry_out(&batch)?;
    Ok(Host { name: name.into(), namespace, netlink })
}
