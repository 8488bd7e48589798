//! The messages of rtnetlink that a job needs.

use super::Message;
use super::message::MAKE;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};
use tcplab_guest::job::{Discipline, Filter, Route};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_QDISC: u16 = 36;
const NEW_FILTER: u16 = 44;

const AF_INET: u8 = 2;
const IFF_UP: u32 = 0x1;
const IFF_NOARP: u32 = 0x80;
pub(crate) const LOOPBACK: u32 = 1;

/// The address of every device. A packet to the other end of a pair is then always addressed to its
/// receiver, as the kernel requires, without address resolution.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A device of a pair that is to be made.
pub(crate) struct Device<'a> {
    /// Its namespace.
    pub namespace: BorrowedFd<'a>,
    /// Its index there.
    pub index: u32,
    pub name: &'a str,
    pub mtu: u32,
}

impl Device<'_> {
    fn describe(&self, message: &mut Message) {
        message.attribute(1, &MAC); // IFLA_ADDRESS
        message.text(3, self.name); // IFLA_IFNAME
        message.number(4, self.mtu); // IFLA_MTU
        message.number(28, self.namespace.as_raw_fd() as u32); // IFLA_NET_NS_FD
    }
}

/// Makes a pair of devices, each in its namespace, down.
pub(crate) fn make_pair(ends: [Device; 2]) -> Message {
    let [near, far] = ends;
    let mut message = Message::new(NEW_LINK, MAKE, &link(near.index, IFF_NOARP));
    near.describe(&mut message);
    // IFLA_LINKINFO
    message.nest(18, |info| {
        info.attribute(1, b"veth"); // IFLA_INFO_KIND
        // IFLA_INFO_DATA, VETH_INFO_PEER
        info.nest(2, |data| {
            data.nest(1, |peer| {
                peer.fixed(&link(far.index, IFF_NOARP));
                far.describe(peer);
            });
        });
    });
    message
}

/// Makes a device of type `ipvlan` that shares the one with this index: several namespaces send
/// through one device, and receive packets for their addresses. Packets of one are not delivered to
/// another (`VEPA`): all devices have the same MAC address.
pub(crate) fn share_device(device: &Device, shared: u32) -> Message {
    const L2: u16 = 0;
    const VEPA: u16 = 2;
    let mut message = Message::new(NEW_LINK, MAKE, &link(device.index, 0));
    message.number(5, shared); // IFLA_LINK
    device.describe(&mut message);
    // IFLA_LINKINFO
    message.nest(18, |info| {
        info.attribute(1, b"ipvlan"); // IFLA_INFO_KIND
        // IFLA_INFO_DATA
        info.nest(2, |data| {
            data.attribute(1, &L2.to_ne_bytes()); // IFLA_IPVLAN_MODE
            data.attribute(2, &VEPA.to_ne_bytes()); // IFLA_IPVLAN_FLAGS
        });
    });
    message
}

/// Disables address resolution for a device that is up.
pub(crate) fn without_arp(index: u32) -> Message {
    Message::new(NEW_LINK, 0, &link(index, IFF_NOARP))
}

/// Brings a device up.
pub(crate) fn bring_up(index: u32) -> Message {
    Message::new(NEW_LINK, 0, &link(index, IFF_UP))
}

/// Brings the loopback device up, which then gets 127.0.0.1 unless it has an address already.
pub(crate) fn bring_loopback_up() -> Message {
    bring_up(LOOPBACK)
}

/// `struct ifinfomsg` that sets these flags.
fn link(index: u32, flags: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..16].copy_from_slice(&flags.to_ne_bytes());
    fixed
}

/// Gives a device an address without a network around it.
pub(crate) fn add_address(address: Ipv4Addr, index: u32) -> Message {
    // struct ifaddrmsg: family, prefix length, flags, scope (everywhere), index
    let [a, b, c, d] = index.to_ne_bytes();
    let mut message = Message::new(NEW_ADDRESS, MAKE, &[AF_INET, 32, 0, 0, a, b, c, d]);
    message.attribute(2, &address.octets()); // IFA_LOCAL
    message.attribute(1, &address.octets()); // IFA_ADDRESS
    message
}

/// Adds a queueing discipline to a device: at depth 0 at its root, at 1 at class 1 of that one, and
/// so on.
pub(crate) fn add_discipline(index: u32, depth: u32, discipline: &Discipline) -> Message {
    discipline_message(index, depth, MAKE, &discipline.kind, &discipline.options)
}

/// Passes further options to an existing queueing discipline.
pub(crate) fn change_discipline(index: u32, depth: u32, kind: &str, options: &[u8]) -> Message {
    discipline_message(index, depth, 0, kind, options)
}

fn discipline_message(index: u32, depth: u32, flags: u16, kind: &str, options: &[u8]) -> Message {
    const ROOT: u32 = 0xffff_ffff;
    // struct tcmsg: family, device, handle (n:), parent (of the class n:1), info
    let handle = (depth + 1) << 16;
    let parent = if depth == 0 { ROOT } else { depth << 16 | 1 };
    let mut fixed = [0; 20];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&handle.to_ne_bytes());
    fixed[12..16].copy_from_slice(&parent.to_ne_bytes());
    let mut message = Message::new(NEW_QDISC, flags, &fixed);
    message.text(1, kind); // TCA_KIND
    if !options.is_empty() {
        // TCA_OPTIONS with NLA_F_NESTED, which newer disciplines require and all others accept.
        message.attribute(2 | 0x8000, options);
    }
    message
}

/// Adds a filter for all packets to the queueing discipline at this depth.
pub(crate) fn add_filter(index: u32, depth: u32, filter: &Filter) -> Message {
    // The first filter, for all protocols (`ETH_P_ALL`, in network byte order).
    const INFO: u32 = 1 << 16 | 0x0300;
    // struct tcmsg: family, device, handle (chosen by the kernel), parent (n:), info
    let parent = (depth + 1) << 16;
    let mut fixed = [0; 20];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[12..16].copy_from_slice(&parent.to_ne_bytes());
    fixed[16..20].copy_from_slice(&INFO.to_ne_bytes());
    let mut message = Message::new(NEW_FILTER, MAKE, &fixed);
    message.text(1, &filter.kind); // TCA_KIND
    message.attribute(2 | 0x8000, &filter.options); // TCA_OPTIONS, NLA_F_NESTED
    message
}

/// Adds the route to an address, over the device with this index.
pub(crate) fn add_route(route: &Route, index: u32) -> Message {
    const MAIN: u8 = 254;
    const STATIC: u8 = 4;
    const LINK: u8 = 253;
    const UNICAST: u8 = 1;
    // struct rtmsg: family, two prefix lengths, TOS, table, origin, scope, type, flags
    let fixed = [AF_INET, 32, 0, 0, MAIN, STATIC, LINK, UNICAST, 0, 0, 0, 0];
    // RTAX_LOCK: TCP uses a minimum timeout only if its bit is set here.
    let locked = route.min_rto_ms.map(|_| 1 << 13);
    let metrics = [
        (1, locked),
        (2, route.mtu),                     // RTAX_MTU
        (11, route.initial_window),         // RTAX_INITCWND
        (13, route.min_rto_ms),             // RTAX_RTO_MIN
        (14, route.initial_receive_window), // RTAX_INITRWND
        (15, route.quick_ack.then_some(1)), // RTAX_QUICKACK
    ];
    let mut message = Message::new(NEW_ROUTE, MAKE, &fixed);
    message.attribute(1, &route.to.octets()); // RTA_DST
    message.number(4, index); // RTA_OIF
    let congestion_control = route.congestion_control.as_deref();
    if congestion_control.is_some() || metrics.iter().any(|(_, value)| value.is_some()) {
        // RTA_METRICS
        message.nest(8, |nest| {
            for (kind, value) in metrics {
                if let Some(value) = value {
                    nest.number(kind, value);
                }
            }
            if let Some(name) = congestion_control {
                nest.text(16, name); // RTAX_CC_ALGO
            }
        });
    }
    message
}

// The expected bytes are little-endian; UML only runs on such machines.
#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// The bytes after the header of 16 bytes.
    fn body(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.append_to(&mut bytes, 0);
        bytes.split_off(16)
    }

    #[test]
    fn a_route_is_a_host_route_with_only_the_metrics_asked_for() {
        let mut route = Route {
            to: Ipv4Addr::new(10, 0, 0, 2),
            device: "eth0".into(),
            mtu: None,
            initial_window: None,
            min_rto_ms: None,
            quick_ack: false,
            initial_receive_window: None,
            congestion_control: None,
        };
        let plain = [
            2, 32, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0, // rtmsg
            8, 0, 1, 0, 10, 0, 0, 2, // RTA_DST
            8, 0, 4, 0, 7, 0, 0, 0, // RTA_OIF
        ];
        assert_eq!(body(&add_route(&route, 7)), plain);
        route.initial_window = Some(4);
        route.quick_ack = true;
        let metrics = [
            20, 0, 8, 0, // RTA_METRICS: 4 + 8 + 8
            8, 0, 11, 0, 4, 0, 0, 0, // RTAX_INITCWND
            8, 0, 15, 0, 1, 0, 0, 0, // RTAX_QUICKACK
        ];
        assert_eq!(body(&add_route(&route, 7)), [&plain[..], &metrics[..]].concat());
        route.initial_window = None;
        route.quick_ack = false;
        route.min_rto_ms = Some(300);
        let locked = [
            20, 0, 8, 0, // RTA_METRICS
            8, 0, 1, 0, 0, 0x20, 0, 0, // RTAX_LOCK: 1 << 13
            8, 0, 13, 0, 0x2c, 1, 0, 0, // RTAX_RTO_MIN: 300
        ];
        assert_eq!(body(&add_route(&route, 7)), [&plain[..], &locked[..]].concat());
        route.min_rto_ms = None;
        route.initial_receive_window = Some(20);
        route.congestion_control = Some("bbr".into());
        let named = [
            20, 0, 8, 0, // RTA_METRICS
            8, 0, 14, 0, 20, 0, 0, 0, // RTAX_INITRWND: 20
            8, 0, 16, 0, b'b', b'b', b'r', 0, // RTAX_CC_ALGO
        ];
        assert_eq!(body(&add_route(&route, 7)), [&plain[..], &named[..]].concat());
    }

    #[test]
    fn a_child_qdisc_is_attached_to_its_parent() {
        let (options, more, filter) = (vec![1, 2, 3, 4], vec![], None);
        let discipline = Discipline { kind: "tbf".into(), options, more, filter };
        let root = [
            0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, // tcmsg
            8, 0, 1, 0, b't', b'b', b'f', 0, // TCA_KIND
            8, 0, 2, 0x80, 1, 2, 3, 4, // TCA_OPTIONS
        ];
        assert_eq!(body(&add_discipline(7, 0, &discipline)), root);
        let child = Discipline { options: vec![], ..discipline };
        let below = [
            0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 0, 0, 0, // 2: below 1:1
            8, 0, 1, 0, b't', b'b', b'f', 0,
        ];
        assert_eq!(body(&add_discipline(7, 1, &child)), below);
    }

    #[test]
    fn a_filter_is_for_all_packets_of_a_discipline() {
        let filter = Filter { kind: "abc".into(), options: vec![1, 2, 3, 4] };
        let expected = [
            0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 1, 0, // tcmsg: of 2:
            8, 0, 1, 0, b'a', b'b', b'c', 0, // TCA_KIND
            8, 0, 2, 0x80, 1, 2, 3, 4, // TCA_OPTIONS
        ];
        assert_eq!(body(&add_filter(7, 1, &filter)), expected);
    }

    #[test]
    fn a_loopback_address_has_prefix_length_32() {
        let expected = [
            2, 32, 0, 0, 1, 0, 0, 0, // ifaddrmsg
            8, 0, 2, 0, 10, 0, 0, 1, // IFA_LOCAL
            8, 0, 1, 0, 10, 0, 0, 1, // IFA_ADDRESS
        ];
        assert_eq!(body(&add_address(Ipv4Addr::new(10, 0, 0, 1), LOOPBACK)), expected);
    }

    #[test]
    fn an_ipvlan_device_refers_to_its_link_by_index() {
        let here = std::io::stdin();
        let device = Device { namespace: here.as_fd(), index: 100, name: "a", mtu: 1500 };
        let bytes = body(&share_device(&device, 100));
        // 16 bytes of ifinfomsg; IFLA_LINK.
        assert_eq!(bytes[16..24], [8, 0, 5, 0, 100, 0, 0, 0]);
        // The last attributes: IFLA_IPVLAN_MODE 0 (L2), IFLA_IPVLAN_FLAGS 2 (VEPA).
        assert_eq!(bytes[bytes.len() - 16..], [6, 0, 1, 0, 0, 0, 0, 0, 6, 0, 2, 0, 2, 0, 0, 0]);
        assert_eq!(body(&without_arp(7))[4..12], [7, 0, 0, 0, 0x80, 0, 0, 0]);
    }

    #[test]
    fn a_veth_pair_is_one_message_with_the_peer_nested() {
        let here = std::io::stdin();
        let device = |index, name| Device { namespace: here.as_fd(), index, name, mtu: 1500 };
        let bytes = body(&make_pair([device(100, "a"), device(101, "b")]));
        // ifinfomsg 16; MAC 4 + 6 + 2; name 4 + 2 + 2; MTU 8; namespace 8: 52 for each end, and
        // 4 of link info, 8 of its kind, 4 of its data, 4 of its peer.
        assert_eq!(bytes.len(), 2 * 52 + 20);
        assert_eq!(bytes[4..16], [100, 0, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0]);
        assert_eq!(bytes[16..28], [10, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(bytes[52..56], [4 + 8 + 4 + 4 + 52, 0, 18, 0]);
        assert_eq!(bytes[56..64], *b"\x08\x00\x01\x00veth");
        assert_eq!(bytes[64..72], [60, 0, 2, 0, 56, 0, 1, 0]);
        assert_eq!(bytes[76..80], [101, 0, 0, 0]);
    }
}
