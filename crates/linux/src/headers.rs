//! Reads the headers of a captured packet: IPv4 with TCP, UDP or ICMP.

use std::net::Ipv4Addr;

/// An address and port.
pub(crate) type Side = (Ipv4Addr, u16);

/// The header fields of a packet that tables show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub from: Side,
    pub to: Side,
    pub transport: &'static str,
    /// The TCP header.
    pub tcp: Option<Tcp>,
    /// The ECN field.
    pub ecn: u8,
    pub payload_bytes: u32,
}

/// The fields of the TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub seq: u32,
    pub ack: u32,
    /// The flags as bits.
    pub flags: u16,
    pub window: u16,
}

/// The headers of a packet of this length, if its kind is known. An ICMP message has the sides of
/// the quoted packet.
pub(crate) fn read(bytes: &[u8], length: u32) -> Option<Headers> {
    let ip = bytes.get(..20).filter(|ip| ip[0] >> 4 == 4)?;
    let ip_bytes = usize::from(ip[0] & 0xf) * 4;
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let inner = bytes.get(ip_bytes..)?;
    let short = |at: usize| Some(u16::from_be_bytes(inner.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_be_bytes(inner.get(at..at + 4)?.try_into().ok()?));
    let own = |from, to| ((address(12), from), (address(16), to));
    let (transport, (from, to), tcp, header) = match ip[9] {
        1 => {
            let quoted = inner.get(8..).and_then(|quoted| read(quoted, 0));
            let sides = quoted.map_or_else(|| own(0, 0), |quoted| (quoted.from, quoted.to));
            // The quoted packet is not payload.
            ("icmp", sides, None, length)
        }
        6 => {
            let rest = short(12)?;
            let (seq, ack, window) = (word(4)?, word(8)?, short(14)?);
            let tcp = Tcp { seq, ack, flags: rest & 0x1ff, window };
            ("tcp", own(short(0)?, short(2)?), Some(tcp), u32::from(rest >> 12) * 4)
        }
        17 => ("udp", own(short(0)?, short(2)?), None, 8),
        _ => return None,
    };
    let payload_bytes = length.saturating_sub(header.saturating_add(ip_bytes as u32));
    Some(Headers { from, to, transport, tcp, ecn: ip[1] & 3, payload_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header (RFC 791 §3.1) from 10.0.0.1 to 10.0.0.2.
    fn ip(protocol: u8, ecn: u8) -> Vec<u8> {
        let mut bytes = vec![0x45, ecn, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes
    }

    /// A TCP header (RFC 9293 §3.1) with 12 bytes of options: SYN and ACK.
    fn tcp() -> Vec<u8> {
        let mut bytes = vec![0x27, 0x11, 0x13, 0x89, 0, 0, 1, 0, 0, 0, 0, 9, 0x80, 0x12, 1, 2];
        bytes.extend([0; 16]);
        bytes
    }

    const A: Side = (Ipv4Addr::new(10, 0, 0, 1), 10_001);
    const B: Side = (Ipv4Addr::new(10, 0, 0, 2), 5001);

    #[test]
    fn a_segment_has_sequence_numbers_and_flags() {
        let headers = read(&[ip(6, 2), tcp()].concat(), 1500).unwrap();
        // 20 bytes of IP and 32 of TCP.
        let expected = Headers {
            from: A,
            to: B,
            transport: "tcp",
            tcp: Some(Tcp { seq: 256, ack: 9, flags: 0b1_0010, window: 258 }),
            ecn: 2,
            payload_bytes: 1448,
        };
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_datagram_has_a_length_and_a_message_the_sides_of_what_it_quotes() {
        let udp = [ip(17, 0), vec![0x27, 0x11, 0x13, 0x89, 0, 0, 0, 0]].concat();
        let headers = read(&udp, 128).unwrap();
        assert_eq!((headers.transport, headers.tcp, headers.payload_bytes), ("udp", None, 100));
        let icmp = [ip(1, 0), vec![3, 4, 0, 0, 0, 0, 5, 0x78], ip(6, 0), tcp()].concat();
        let headers = read(&icmp, 88).unwrap();
        assert_eq!((headers.transport, headers.from, headers.to), ("icmp", A, B));
        assert_eq!(headers.payload_bytes, 0);
    }

    #[test]
    fn truncated_and_unknown_packets_have_no_header() {
        let whole = [ip(6, 0), tcp()].concat();
        assert!((0..34).all(|length| read(&whole[..length], 52).is_none()));
        assert_eq!(read(&[ip(47, 0), tcp()].concat(), 52), None);
    }
}
