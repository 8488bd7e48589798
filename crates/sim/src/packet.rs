//! Packets of any protocol on the network, with their headers.

use crate::ack_filter;
use crate::udp::{Fragment, memory_of};
use tcplab_engine::{Flow, Packet as Carried};
use tcplab_tcp::{Flags, FragNeeded, SEGMENT_OVERHEAD, Segment};

/// The size of an IP header.
const IP_HEADER: u16 = 20;

/// A packet on the network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packet {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram, or a fragment of one.
    Udp(Fragment),
    /// An ICMP message of a router: a segment was too large for the next link.
    Icmp(FragNeeded),
}

impl Carried for Packet {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        // By far most packets are segments, and every lane asks for their size.
        if let Self::Tcp(segment) = self { segment.wire_bytes() } else { self.other_wire_bytes() }
    }

    #[inline]
    fn has_payload(&self) -> bool {
        match self {
            Self::Tcp(segment) => segment.payload > 0,
            Self::Udp(_) => true,
            Self::Icmp(_) => false,
        }
    }

    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Tcp(segment) => SEGMENT_OVERHEAD + u64::from(segment.payload),
            Self::Udp(fragment) => memory_of(fragment.bytes()),
            Self::Icmp(message) => memory_of(message.wire_bytes - IP_HEADER),
        }
    }

    fn is_control(&self) -> bool {
        matches!(self, Self::Icmp(message) if message.is_control)
    }

    fn wash(&mut self) {
        if let Self::Icmp(message) = self {
            message.is_control = false;
        }
    }

    fn echo(&self) -> Option<u8> {
        self.segment().map(ack_filter::echo)
    }

    fn is_ack(&self) -> bool {
        self.segment()
            .is_some_and(|segment| segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN))
    }

    fn is_superseded(&self, newer: &Self) -> bool {
        self.segment()
            .zip(newer.segment())
            .is_some_and(|(older, newer)| ack_filter::is_superseded(older, newer))
    }

    #[inline]
    fn is_marked(&self) -> bool {
        matches!(self, Self::Tcp(segment) if segment.flags.has(Flags::CE))
    }

    fn is_l4s(&self) -> bool {
        matches!(self, Self::Tcp(segment)
            if segment.flags.has(Flags::ECT1) || segment.flags.has(Flags::CE))
    }

    fn flow(&self, flow: Flow) -> Flow {
        let has_ports = match self {
            Self::Tcp(_) => true,
            Self::Udp(fragment) => fragment.is_whole(),
            Self::Icmp(_) => false,
        };
        // Without ports, only the addresses are left to tell flows apart.
        let hosts = u64::from(flow.from) << 32 | u64::from(flow.to);
        Flow { key: if has_ports { flow.key } else { hosts }, ..flow }
    }

    fn mark(&mut self) -> bool {
        if let Self::Tcp(segment) = self
            && segment.flags.has(Flags::ECT)
        {
            segment.flags = segment.flags.with(Flags::CE);
        }
        self.is_marked()
    }
}

/// Header fields of a packet, as shown in the table of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Headers {
    /// The transport protocol.
    pub transport: &'static str,
    pub seq: Option<u32>,
    pub ack: Option<u32>,
    /// The window field of the TCP header.
    pub window: Option<u16>,
    /// The TCP flags as bits.
    pub flags: Option<u16>,
    /// The ECN field of the IP header.
    pub ecn: u8,
    /// Bytes of application data.
    pub payload: u32,
}

impl Packet {
    fn segment(&self) -> Option<&Segment> {
        match self {
            Self::Tcp(segment) => Some(segment),
            Self::Udp(_) | Self::Icmp(_) => None,
        }
    }

    /// The size of a packet that is not a TCP segment.
    #[inline(never)]
    fn other_wire_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_bytes(),
            Self::Udp(fragment) => fragment.wire_bytes(),
            Self::Icmp(message) => message.wire_bytes.into(),
        }
    }

    /// The header fields of the packet.
    pub fn headers(&self) -> Headers {
        match self {
            Self::Tcp(segment) => Headers {
                transport: "tcp",
                seq: Some(segment.seq.0),
                ack: segment.flags.has(Flags::ACK).then_some(segment.ack.0),
                window: Some(segment.window),
                flags: Some(flag_bits(segment.flags)),
                ecn: ecn_bits(segment.flags),
                payload: segment.payload.into(),
            },
            Self::Udp(fragment) => {
                Headers { transport: "udp", payload: fragment.payload(), ..Headers::default() }
            }
            Self::Icmp(_) => Headers { transport: "icmp", ..Headers::default() },
        }
    }
}

/// The flags of a segment as bits of its header (RFC 9293 §3.1, RFC 9768 §3.1).
pub(crate) fn flag_bits(flags: Flags) -> u16 {
    let bits = [
        (Flags::FIN, 0),
        (Flags::SYN, 1),
        (Flags::RST, 2),
        (Flags::PUSH, 3),
        (Flags::ACK, 4),
        (Flags::ECE, 6),
        (Flags::CWR, 7),
        (Flags::AE, 8),
    ];
    bits.iter().fold(0, |all, &(flag, bit)| all | u16::from(flags.has(flag)) << bit)
}

/// The ECN field of a segment's packet (RFC 3168 §5).
pub(crate) fn ecn_bits(flags: Flags) -> u8 {
    match flags {
        _ if flags.has(Flags::CE) => 3,
        _ if flags.has(Flags::ECT1) => 1,
        _ if flags.has(Flags::ECT) => 2,
        _ => 0,
    }
}

#[cfg(test)]
#[test]
fn washing_an_icmp_message_clears_its_dscp() {
    let segment = Segment::new(Flags::ACK, tcplab_tcp::SeqNumber(1), tcplab_tcp::SeqNumber(1));
    let mut notice = Packet::Icmp(segment.frag_needed(1400, 1500));
    assert!(notice.is_control());
    notice.wash();
    assert!(!notice.is_control());
}

#[cfg(test)]
#[test]
fn a_packet_is_no_larger_than_a_segment() {
    // Packets are copied from lane to lane: reading and writing them is most of the work in a large
    // network.
    assert_eq!(size_of::<Packet>(), size_of::<Segment>());
}
