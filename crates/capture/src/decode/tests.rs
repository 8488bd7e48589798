use super::*;
use std::net::Ipv4Addr;

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2 (RFC 791 §3.1).
fn ip(protocol: u8, place: u16, options: &[u8], content: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut bytes = vec![0x40 | (header / 4) as u8, 2];
    bytes.extend(((header + content.len()) as u16).to_be_bytes());
    bytes.extend([0x12, 0x34]);
    bytes.extend(place.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    [&bytes, options, content].concat()
}

/// A segment from port 10001 to port 5001 with sequence number 256, acknowledgment 9, ACK and PSH.
fn tcp(options: &[u8], data: usize) -> Vec<u8> {
    let words = (5 + options.len() / 4) as u8;
    let mut bytes =
        vec![0x27, 0x11, 0x13, 0x89, 0, 0, 1, 0, 0, 0, 0, 9, words << 4, 0x18, 1, 2, 0, 0, 0, 0];
    bytes.extend(options);
    bytes.resize(bytes.len() + data, 7);
    bytes
}

fn read(bytes: &[u8], length: u32) -> Option<Tcp> {
    let mut segment = Tcp::default();
    segment.fill(bytes, length).then_some(segment)
}

#[test]
fn ip_is_found_behind_every_link_layer_header() {
    let packet = ip(6, 0, &[], &tcp(&[], 3));
    let ethernet = [2; 12];
    let heads: &[(u16, &[&[u8]])] = &[
        (1, &[&ethernet, &[8, 0]]),
        // One VLAN tag; two of them, as in 802.1ad and as written by older devices.
        (1, &[&ethernet, &[0x81, 0, 0, 5, 8, 0]]),
        (1, &[&ethernet, &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]]),
        (1, &[&ethernet, &[0x91, 0, 0, 5, 0x81, 0, 0, 6, 8, 0]]),
        // PPPoE, and SNAP behind a length.
        (1, &[&ethernet, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 45, 0, 0x21]]),
        // MPLS (RFC 3032) with one label, and with two: the last has the bottom-of-stack bit.
        (1, &[&ethernet, &[0x88, 0x47, 0, 1, 1, 64]]),
        (1, &[&ethernet, &[0x81, 0, 0, 5, 0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]]),
        (1, &[&ethernet, &[0, 60, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]]),
        // Linux cooked captures, versions 1 and 2, with a tag.
        (113, &[&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]]),
        (113, &[&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x81, 0, 0, 5, 8, 0]]),
        (276, &[&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]]),
        // Raw IP, by each of its numbers.
        (101, &[]),
        (12, &[]),
        (14, &[]),
        (228, &[]),
        // BSD loopback in either byte order.
        (0, &[&[2, 0, 0, 0]]),
        (0, &[&[0, 0, 0, 2]]),
        (108, &[&[0, 0, 0, 2]]),
        // PPP: plain, with HDLC, with a compressed protocol, with MPLS, with a direction.
        (9, &[&[0, 0x21]]),
        (9, &[&[0xff, 3, 0, 0x21]]),
        (50, &[&[0xff, 3, 0x21]]),
        (9, &[&[0xff, 3, 2, 0x81, 0, 1, 1, 64]]),
        (204, &[&[1, 0xff, 3, 0, 0x21]]),
    ];
    for (link, head) in heads {
        let bytes = [&head.concat()[..], &packet].concat();
        assert_eq!(inner(*link, &bytes), Inner::Ip(&packet), "{link} {head:?}");
        // A frame truncated anywhere in its headers has no packet.
        for cut in 0..head.concat().len() {
            assert!(!matches!(inner(*link, &bytes[..cut]), Inner::Ip([_, ..])), "{link} {cut}");
        }
    }
    assert_eq!(inner(1, &[&ethernet[..], &[8, 6], &[0; 28]].concat()), Inner::Arp);
    assert_eq!(inner(1, &[&ethernet[..], &[0x88, 0xcc]].concat()), Inner::Other(0x88cc));
    assert_eq!(inner(147, &[0; 20]), Inner::Unknown);
}

#[test]
fn ipv4_options_and_ethernet_padding_are_skipped() {
    let content = tcp(&[], 3);
    for options in [&[][..], &[1, 1, 1, 0], &[1; 40]] {
        let mut bytes = ip(6, 0x4000, options, &content);
        let whole = bytes.len() as u32;
        // Ethernet pads small frames.
        bytes.extend([0; 6]);
        let found = Ip::read(&bytes, bytes.len() as u32).unwrap();
        assert_eq!(found.content, content);
        assert_eq!((found.whole, found.length), (whole, 23));
        assert_eq!((found.version, found.protocol, found.ecn, found.id), (4, 6, 2, Some(0x1234)));
        assert_eq!(found.from, Address::from(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!((found.to.to_string(), found.place), ("10.0.0.2".into(), None));
    }
    // A packet that a network card is to segment has no length of its own.
    let mut bytes = ip(6, 0, &[], &content);
    bytes[2..4].fill(0);
    assert_eq!(Ip::read(&bytes, 3000).unwrap().length, 2980);
    bytes[0] = 0x44;
    assert_eq!(Ip::read(&bytes, 3000), None);
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let content = tcp(&[], 3);
    // Hop-by-hop options, routing, a fragment header of a whole packet, authentication of 16 bytes,
    // destination options.
    let extensions = [
        &[43, 0, 1, 4, 0, 0, 0, 0][..],
        &[44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 9],
        &[60, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
        &[6, 0, 1, 4, 0, 0, 0, 0],
    ]
    .concat();
    let mut bytes = vec![0x60, 0x30, 0, 0];
    bytes.extend(((extensions.len() + content.len()) as u16).to_be_bytes());
    bytes.extend([0, 64]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(&extensions);
    bytes.extend(&content);
    let found = Ip::read(&bytes, bytes.len() as u32).unwrap();
    assert_eq!((found.content, found.length), (&content[..], 23));
    assert_eq!((found.version, found.protocol, found.ecn, found.place), (6, 6, 3, None));
    assert_eq!(found.from.to_string(), "2001:db8::1");
    for cut in 0..40 {
        assert_eq!(Ip::read(&bytes[..cut], 200), None, "{cut}");
    }
    for cut in 40..bytes.len() {
        assert!(Ip::read(&bytes[..cut], bytes.len() as u32).is_some());
    }
}

#[test]
fn a_packet_is_complete_with_its_last_fragment() {
    let whole = tcp(&[], 100);
    let pieces = [(0x2000, &whole[..48]), (0x2000 | 6, &whole[48..96]), (12, &whole[96..])];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut fragments = Fragments::default();
        let mut found = None;
        for number in order {
            assert_eq!(found, None);
            let (place, piece) = pieces[number];
            let bytes = ip(6, place, &[], piece);
            let read = Ip::read(&bytes, bytes.len() as u32).unwrap();
            found = fragments.add(&read, read.place.unwrap());
        }
        assert_eq!(found, Some((whole[..48].to_vec(), 120)));
        assert_eq!(fragments.incomplete(), 0);
    }
    // Incomplete packets take limited memory.
    let mut fragments = Fragments::default();
    for id in 0..10_000_u16 {
        let mut bytes = ip(6, 0x2000, &[], &whole[..48]);
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        let read = Ip::read(&bytes, bytes.len() as u32).unwrap();
        assert_eq!(fragments.add(&read, read.place.unwrap()), None);
    }
    assert_eq!(fragments.incomplete(), 10_000);
}

#[test]
fn tcp_headers_are_decoded_with_their_options() {
    let plain = read(&tcp(&[], 100), 120).unwrap();
    assert_eq!((plain.from, plain.to, plain.seq, plain.ack), (10_001, 5001, 256, 9));
    assert_eq!((plain.window, plain.payload), (258, 100));
    assert!(plain.flags.has(Flags::ACK) && plain.flags.has(Flags::PUSH));
    assert!(!plain.flags.has(Flags::SYN));
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6];
    let sack = [1, 1, 5, 18, 0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40];
    let both = read(&tcp(&[&timestamps[..], &sack].concat(), 0), 52).unwrap().options;
    assert_eq!(both.timestamps, Some((5, 6)));
    assert_eq!(both.sack(), [(10, 20), (30, 40)]);
    // The options of a SYN, in the order of Linux.
    let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 1, 3, 3, 7];
    let syn = read(&tcp(&syn, 0), 40).unwrap().options;
    assert_eq!((syn.mss, syn.window_scale, syn.sack_permitted), (Some(1460), Some(7), true));
    assert_eq!((syn.timestamps, syn.is_cut), (Some((5, 0)), false));
    // A scale of more than 14 counts as 14 (RFC 7323 §2.3).
    assert_eq!(read(&tcp(&[3, 3, 200, 0], 0), 24).unwrap().options.window_scale, Some(14));
}

#[test]
fn truncated_and_malformed_headers_are_rejected() {
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6];
    let whole = tcp(&timestamps, 10);
    for cut in 0..16 {
        assert_eq!(read(&whole[..cut], 42), None);
    }
    for cut in 16..32 {
        assert!(read(&whole[..cut], 42).unwrap().options.is_cut);
    }
    for options in [[8, 1, 0, 0], [8, 0, 0, 0], [5, 200, 0, 0], [1, 1, 1, 9]] {
        assert!(read(&tcp(&options, 0), 24).unwrap().options.is_cut, "{options:?}");
    }
    // A header longer than the segment, and one shorter than the minimum.
    assert_eq!(read(&whole, 20), None);
    let mut short = whole;
    short[12] = 0x40;
    assert_eq!(read(&short, 42), None);
}
