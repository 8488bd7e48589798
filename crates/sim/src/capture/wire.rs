//! Packets as bytes: IPv4 (RFC 791) with TCP (RFC 9293), UDP (RFC 768) or ICMP (RFC 792), as the
//! kernel writes them. Payload is zeros, except for a datagram's number, as the guest sends it.

use crate::packet::{ecn_bits, flag_bits};
use crate::udp::Fragment;
use tcplab_tcp::{FastOpenOption, Flags, FragNeeded, IP_HEADER, Segment, TCP_HEADER};

/// IP protocol numbers.
pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// Flags beside the fragment offset: "don't fragment" and "more fragments".
const DO_NOT_CUT: u16 = 1 << 14;
const MORE_FOLLOW: u16 = 1 << 13;

/// TCP option kinds.
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;

/// An address and a port.
pub type Side = (u32, u16);

/// The IPv4 header of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Ip {
    pub from: u32,
    pub to: u32,
    pub protocol: u8,
    /// DSCP and ECN.
    pub service: u8,
    /// The length of the packet in bytes.
    pub length: u32,
    pub id: u16,
    /// The flags, and the fragment offset in units of eight bytes.
    pub fragment: u16,
    pub ttl: u8,
}

impl Ip {
    /// Appends the header.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        bytes.extend([0x45, self.service]);
        for short in [self.length as u16, self.id, self.fragment] {
            bytes.extend(short.to_be_bytes());
        }
        bytes.extend([self.ttl, self.protocol, 0, 0]);
        bytes.extend(self.from.to_be_bytes());
        bytes.extend(self.to.to_be_bytes());
        let sum = checksum(0, &bytes[begin..]);
        bytes[begin + 10..begin + 12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The IP header of a segment.
pub fn ip_of_segment(segment: &Segment, (from, to): (Side, Side), id: u16, ttl: u8) -> Ip {
    Ip {
        from: from.0,
        to: to.0,
        protocol: TCP,
        service: ecn_bits(segment.flags),
        length: segment.wire_bytes(),
        id,
        fragment: DO_NOT_CUT,
        ttl,
    }
}

/// The IP header of a datagram or a fragment.
pub fn ip_of_fragment(fragment: &Fragment, (from, to): (Side, Side), id: u16, ttl: u8) -> Ip {
    let flags = match () {
        () if fragment.is_whole() => DO_NOT_CUT,
        () if fragment.is_last() => 0,
        () => MORE_FOLLOW,
    };
    Ip {
        from: from.0,
        to: to.0,
        protocol: UDP,
        service: 0,
        length: fragment.wire_bytes(),
        id,
        fragment: flags | (fragment.offset() / 8),
        ttl,
    }
}

/// Appends the TCP header of a segment, with its options in the order of `tcp_options_write`.
pub fn write_segment(segment: &Segment, (from, to): (Side, Side), bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(segment.seq.0.to_be_bytes());
    let ack = if segment.flags.has(Flags::ACK) { segment.ack.0 } else { 0 };
    bytes.extend(ack.to_be_bytes());
    let header = segment.header_bytes() - IP_HEADER;
    bytes.extend(((header as u16 / 4) << 12 | flag_bits(segment.flags)).to_be_bytes());
    bytes.extend(segment.window.to_be_bytes());
    // Checksum and urgent pointer.
    bytes.extend([0; 4]);
    debug_assert_eq!(bytes.len() - begin, TCP_HEADER as usize, "fields of the header");
    write_options(segment, bytes);
    // The remainder is padding, or options whose values were not kept.
    bytes.resize(begin + header as usize, NO_OPERATION);
    let length = header + u32::from(segment.payload);
    let sum = checksum(pseudo_header(TCP, (from, to), length), &bytes[begin..]);
    bytes[begin + 16..begin + 18].copy_from_slice(&sum.to_be_bytes());
}

fn write_options(segment: &Segment, bytes: &mut Vec<u8>) {
    let syn = segment.syn_options();
    let permits_sack = syn.is_some_and(|syn| syn.sack_permitted);
    if let Some(syn) = syn.filter(|syn| syn.mss > 0) {
        bytes.extend([MSS, 4]);
        bytes.extend(syn.mss.to_be_bytes());
    }
    if let Some(timestamps) = segment.timestamps() {
        bytes.extend(if permits_sack { [SACK_PERMITTED, 2] } else { [NO_OPERATION; 2] });
        bytes.extend([TIMESTAMPS, 10]);
        bytes.extend(timestamps.value.to_be_bytes());
        bytes.extend(timestamps.echo.to_be_bytes());
    } else if permits_sack {
        bytes.extend([NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
    }
    if let Some(scale) = syn.and_then(|syn| syn.window_scale) {
        bytes.extend([NO_OPERATION, WINDOW_SCALE, 3, scale]);
    }
    let blocks = segment.sack();
    if !blocks.is_empty() {
        bytes.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8]);
        for (begin, end) in blocks {
            bytes.extend(begin.0.to_be_bytes());
            bytes.extend(end.0.to_be_bytes());
        }
    }
    match segment.fast_open() {
        Some(FastOpenOption::Request) => bytes.extend([FAST_OPEN, 2]),
        Some(FastOpenOption::Cookie(cookie)) => {
            bytes.extend([FAST_OPEN, 10]);
            bytes.extend(cookie.0.to_be_bytes());
        }
        None => {}
    }
}

/// Appends the UDP header and the captured data of a fragment that begins a datagram. Later
/// fragments get neither.
pub fn write_fragment(fragment: &Fragment, (from, to): (Side, Side), bytes: &mut Vec<u8>) {
    if fragment.offset() > 0 {
        return;
    }
    let begin = bytes.len();
    let length = fragment.datagram_bytes();
    for short in [from.1, to.1, length as u16, 0] {
        bytes.extend(short.to_be_bytes());
    }
    let number = u64::from(fragment.number).to_le_bytes();
    if fragment.datagram_bytes() as usize >= 8 + number.len() {
        bytes.extend(number);
    }
    let sum = checksum(pseudo_header(UDP, (from, to), length), &bytes[begin..]);
    // A checksum of zero means that there is none.
    let sum = if sum == 0 { u16::MAX } else { sum };
    bytes[begin + 6..begin + 8].copy_from_slice(&sum.to_be_bytes());
}

/// Appends an ICMP message, "fragmentation needed" (RFC 1191 §4), which quotes the segment of these
/// sides with the IP header that the router saw.
pub fn write_notice(message: &FragNeeded, quoted: &Ip, sides: (Side, Side), bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.extend([3, 4, 0, 0, 0, 0]);
    bytes.extend(message.mtu.to_be_bytes());
    quoted.write(bytes);
    write_segment(&message.quoted(), sides, bytes);
    bytes.truncate(begin + usize::from(message.wire_bytes) - IP_HEADER as usize);
    let sum = checksum(0, &bytes[begin..]);
    bytes[begin + 2..begin + 4].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071) of these bytes, padded with zero to an even number, and of a
/// partial sum.
fn checksum(before: u32, bytes: &[u8]) -> u16 {
    let shorts = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let sum: u32 = before + shorts.sum::<u32>();
    let sum = (sum >> 16) + (sum & 0xffff);
    !((sum >> 16) + sum) as u16
}

/// The partial checksum of the pseudo-header of TCP and UDP.
fn pseudo_header(protocol: u8, (from, to): (Side, Side), length: u32) -> u32 {
    let halves = |word: u32| (word >> 16) + (word & 0xffff);
    halves(from.0) + halves(to.0) + u32::from(protocol) + length
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_tcp::{Cookie, SeqNumber, SynOptions, Timestamps};
    use tcplab_units::Time;

    const A: Side = (0x0a00_0002, 10_001);
    const B: Side = (0x0a00_0001, 5001);

    /// The receiver's check (RFC 1071): the sum of everything, checksum included, is all ones.
    fn is_whole(before: u32, bytes: &[u8]) -> bool {
        checksum(before, bytes) == 0
    }

    fn tcp(segment: &Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_segment(segment, (A, B), &mut bytes);
        assert_eq!(bytes.len(), segment.header_bytes() as usize - 20);
        let length = segment.wire_bytes() - 20;
        assert!(is_whole(pseudo_header(TCP, (A, B), length), &bytes));
        bytes
    }

    #[test]
    fn an_ip_header_has_its_checksum() {
        // The example of the Wikipedia article on the checksum of IPv4 headers: b861.
        let ip = Ip {
            from: 0xc0a8_0001,
            to: 0xc0a8_00c7,
            protocol: UDP,
            service: 0,
            length: 0x73,
            id: 0,
            fragment: DO_NOT_CUT,
            ttl: 64,
        };
        let mut bytes = Vec::new();
        ip.write(&mut bytes);
        let expected = [
            [0x45, 0x00, 0x00, 0x73],
            [0x00, 0x00, 0x40, 0x00],
            [0x40, 0x11, 0xb8, 0x61],
            [0xc0, 0xa8, 0x00, 0x01],
            [0xc0, 0xa8, 0x00, 0xc7],
        ];
        assert_eq!(bytes, expected.as_flattened());
    }

    #[test]
    fn syn_options_are_in_the_order_of_linux() {
        let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        let syn =
            Segment::new(Flags::SYN, SeqNumber(0x0102_0304), SeqNumber(0)).with_window(64_240);
        let full = syn
            .with_timestamps(Timestamps { value: 0x11, echo: 0 })
            .with_syn_options(options)
            .with_fast_open(FastOpenOption::Cookie(Cookie(0x0123_4567_89ab_cdef)));
        let bytes = tcp(&full);
        assert_eq!(bytes[..4], [0x27, 0x11, 0x13, 0x89]);
        assert_eq!(bytes[4..16], [1, 2, 3, 4, 0, 0, 0, 0, 0xd0, 0x02, 0xfa, 0xf0]);
        let expected = [
            [2, 4, 0x05, 0xb4],
            [4, 2, 8, 10],
            [0, 0, 0, 0x11],
            [0, 0, 0, 0],
            [1, 3, 3, 7],
            [34, 10, 0x01, 0x23],
            [0x45, 0x67, 0x89, 0xab],
            [0xcd, 0xef, 1, 1],
        ];
        assert_eq!(bytes[20..], *expected.as_flattened());
        let plain = SynOptions { window_scale: None, ..options };
        assert_eq!(tcp(&syn.with_syn_options(plain))[20..], [2, 4, 5, 0xb4, 1, 1, 4, 2]);
        let asks = syn.with_syn_options(SynOptions { sack_permitted: false, ..plain });
        let asks = asks.with_fast_open(FastOpenOption::Request);
        assert_eq!(tcp(&asks)[20..], [2, 4, 5, 0xb4, 34, 2, 1, 1]);
    }

    #[test]
    fn an_ack_has_its_sack_blocks_and_ecn_flags() {
        let flags = Flags::ACK.with(Flags::ECE).with(Flags::AE).with(Flags::ECT);
        let ack = Segment::new(flags, SeqNumber(9), SeqNumber(8))
            .with_timestamps(Timestamps { value: 2, echo: 1 })
            .with_sack([(SeqNumber(100), SeqNumber(200)), (SeqNumber(300), SeqNumber(400))]);
        let bytes = tcp(&ack);
        // 20 bytes, 12 of timestamps and 20 of two blocks are thirteen words; AE, ECE and ACK are
        // 0x150.
        assert_eq!(bytes[12..14], [0xd1, 0x50]);
        assert_eq!(bytes[20..32], [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1]);
        assert_eq!(bytes[32..36], [1, 1, 5, 18]);
        assert_eq!(bytes[36..], [0, 0, 0, 100, 0, 0, 0, 200, 0, 0, 1, 44, 0, 0, 1, 144]);
        assert_eq!(ip_of_segment(&ack, (A, B), 7, 64).service, 2);
    }

    #[test]
    fn fragments_have_offsets_and_the_first_the_udp_header() {
        let fragments: Vec<_> = Fragment::all_of(5, Time::ZERO, 3000, 1500).collect();
        let heads = fragments.iter().map(|it| {
            let ip = ip_of_fragment(it, (A, B), 1, 64);
            (ip.fragment, ip.length)
        });
        // 3008 bytes are 1480, 1480 and 48: at 0, 185 and 370 times eight.
        let heads: Vec<_> = heads.collect();
        assert_eq!(heads, [(0x2000, 1500), (0x2000 + 185, 1500), (370, 68)]);
        let mut bytes = Vec::new();
        write_fragment(&fragments[0], (A, B), &mut bytes);
        assert_eq!(bytes[..6], [0x27, 0x11, 0x13, 0x89, 0x0b, 0xc0]);
        assert_eq!(bytes[8..], [5, 0, 0, 0, 0, 0, 0, 0]);
        assert!(is_whole(pseudo_header(UDP, (A, B), 3008), &bytes));
        let begun = bytes.len();
        write_fragment(&fragments[1], (A, B), &mut bytes);
        assert_eq!(bytes.len(), begun);
        let whole = Fragment::all_of(0, Time::ZERO, 7, 1500).next().unwrap();
        bytes.clear();
        write_fragment(&whole, (A, B), &mut bytes);
        assert_eq!((bytes.len(), ip_of_fragment(&whole, (A, B), 1, 64).fragment), (8, 0x4000));
    }

    #[test]
    fn an_icmp_message_quotes_the_segment() {
        let timestamps = Timestamps { value: 2, echo: 1 };
        let segment = Segment::new(Flags::ACK, SeqNumber(9), SeqNumber(8))
            .with_timestamps(timestamps)
            .with_sack([(SeqNumber(100), SeqNumber(200))])
            .with_payload(1436);
        let message = segment.frag_needed(1000, 1500);
        let quoted = ip_of_segment(&message.quoted(), (A, B), 3, 64);
        let mut bytes = Vec::new();
        write_notice(&message, &quoted, (A, B), &mut bytes);
        assert_eq!(bytes[..2], [3, 4]);
        assert_eq!(bytes[4..8], [0, 0, 0x03, 0xe8]);
        // 1436 and 44 bytes of TCP, 20 of IP.
        assert_eq!(bytes[10..12], 1500_u16.to_be_bytes());
        let mut whole = Vec::new();
        write_segment(&segment, (A, B), &mut whole);
        // The same apart from the checksum and the SACK block, whose place is padded.
        assert_eq!(bytes[28..44], whole[..16]);
        assert_eq!(bytes[48..60], whole[20..32]);
        assert_eq!(bytes[60..], [1; 12]);
        assert!(is_whole(0, &bytes));
    }
}
