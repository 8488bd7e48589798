//! Finds the IP packet behind the headers of a link.
//!
//! The numbers of links are those of <https://www.tcpdump.org/linktypes.html>.

use super::short;

/// The payload of a link frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner<'a> {
    /// An IP packet of either version.
    Ip(&'a [u8]),
    /// ARP.
    Arp,
    /// Another protocol, by its number on Ethernet (or on PPP, or in the packet).
    Other(u16),
    /// The packet ends within the link headers.
    Cut,
    /// A link type whose headers are unknown.
    Unknown,
}

mod kind {
    pub const NULL: u16 = 0;
    pub const ETHERNET: u16 = 1;
    pub const PPP: u16 = 9;
    pub const PPP_HDLC: u16 = 50;
    /// Raw IP, by the numbers of OpenBSD and other systems, which also appear in files.
    pub const RAW_SYSTEM: [u16; 2] = [12, 14];
    pub const RAW: u16 = 101;
    pub const LOOP: u16 = 108;
    pub const LINUX_SLL: u16 = 113;
    pub const PPP_WITH_DIRECTION: u16 = 204;
    pub const IPV4: u16 = 228;
    pub const IPV6: u16 = 229;
    pub const LINUX_SLL2: u16 = 276;
}

/// The limit of VLAN tags on a frame.
const MOST_TAGS: usize = 8;

/// The payload behind the link headers.
#[inline]
pub fn inner(link: u16, bytes: &[u8]) -> Inner<'_> {
    match link {
        kind::ETHERNET => behind(short(bytes, 12), bytes, 14),
        kind::RAW | kind::IPV4 | kind::IPV6 => Inner::Ip(bytes),
        kind::LINUX_SLL => cooked(short(bytes, 2), short(bytes, 14), bytes, 16),
        kind::LINUX_SLL2 => cooked(short(bytes, 8), short(bytes, 0), bytes, 20),
        kind::NULL | kind::LOOP => loopback(bytes),
        kind::PPP | kind::PPP_HDLC => ppp(bytes),
        kind::PPP_WITH_DIRECTION => bytes.get(1..).map_or(Inner::Cut, ppp),
        _ if kind::RAW_SYSTEM.contains(&link) => Inner::Ip(bytes),
        _ => Inner::Unknown,
    }
}

/// The payload of an Ethernet protocol (`ETH_P_...`) at this position. VLAN tags (802.1Q, also
/// several: 802.1ad) may precede it.
#[inline]
fn behind(protocol: Option<u16>, bytes: &[u8], mut at: usize) -> Inner<'_> {
    let mut protocol = protocol;
    for _ in 0..MOST_TAGS {
        match protocol {
            None => return Inner::Cut,
            Some(0x0800 | 0x86dd) => return bytes.get(at..).map_or(Inner::Cut, Inner::Ip),
            Some(0x8100 | 0x88a8 | 0x9100) => {
                protocol = short(bytes, at + 2);
                at += 4;
            }
            Some(0x8847 | 0x8848) => return bytes.get(at..).map_or(Inner::Cut, mpls),
            // PPPoE (RFC 2516): six bytes of header, then PPP.
            Some(0x8864) => return bytes.get(at + 6..).map_or(Inner::Cut, ppp),
            Some(0x0806) => return Inner::Arp,
            // IEEE 802.3: a length instead, followed by SNAP (RFC 1042).
            Some(..0x0600) if bytes.get(at..at + 3) == Some(&[0xaa, 0xaa, 3]) => {
                protocol = short(bytes, at + 6);
                at += 8;
            }
            Some(other) => return Inner::Other(other),
        }
    }
    Inner::Other(0x8100)
}

/// The payload behind MPLS labels (RFC 3032); the last label has the bottom-of-stack bit. MPLS has
/// no protocol field, so IP is recognized by its version.
fn mpls(bytes: &[u8]) -> Inner<'_> {
    let mut labels = bytes.chunks_exact(4);
    let Some(last) = labels.position(|label| label[2] & 1 == 1) else { return Inner::Cut };
    match &bytes[4 * (last + 1)..] {
        [] => Inner::Cut,
        packet @ [first, ..] if matches!(first >> 4, 4 | 6) => Inner::Ip(packet),
        _ => Inner::Other(0x8847),
    }
}

/// Linux cooked captures: an Ethernet protocol, except on some device types (`ARPHRD_...`).
fn cooked(device: Option<u16>, protocol: Option<u16>, bytes: &[u8], at: usize) -> Inner<'_> {
    // Netlink, and GRE with protocols of its own.
    if device == Some(824) {
        return Inner::Other(0);
    }
    behind(protocol, bytes, at)
}

/// BSD loopback: the address family, in the byte order of the capturing machine or in network
/// order.
fn loopback(bytes: &[u8]) -> Inner<'_> {
    let Some((family, rest)) = bytes.split_first_chunk::<4>() else { return Inner::Cut };
    let family = match *family {
        [0, 0, high, low] | [low, high, 0, 0] => u16::from_be_bytes([high, low]),
        _ => return Inner::Other(0),
    };
    match family {
        // IPv6 has different numbers on NetBSD and OpenBSD, FreeBSD, and Darwin; 10 is Linux's.
        2 | 24 | 28 | 30 | 10 => Inner::Ip(rest),
        other => Inner::Other(other),
    }
}

/// PPP (RFC 1661), with or without the two bytes of HDLC (RFC 1662), with full or compressed
/// protocol fields.
fn ppp(bytes: &[u8]) -> Inner<'_> {
    let bytes = bytes.strip_prefix(&[0xff, 3]).unwrap_or(bytes);
    let (protocol, rest) = match *bytes {
        // A protocol field of one byte is odd.
        [first, ref rest @ ..] if first & 1 == 1 => (u16::from(first), rest),
        [first, second, ref rest @ ..] => (u16::from_be_bytes([first, second]), rest),
        _ => return Inner::Cut,
    };
    match protocol {
        0x21 | 0x57 => Inner::Ip(rest),
        0x281 | 0x283 => mpls(rest),
        other => Inner::Other(other),
    }
}
