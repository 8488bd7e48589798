use super::*;
use std::io::{Cursor, Write};

/// Encodes numbers in one of the byte orders.
#[derive(Clone, Copy)]
struct Ordered(bool);

impl Ordered {
    fn word(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn short(self, value: u16) -> [u8; 2] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

fn pcap(order: Ordered, magic: u32, packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
    let mut file = order.word(magic).to_vec();
    file.extend([order.short(2), order.short(4)].concat());
    file.extend([0; 8]);
    file.extend([order.word(65535), order.word(101)].concat());
    for (seconds, part, bytes, length) in packets {
        let head = [*seconds, *part, bytes.len() as u32, *length];
        file.extend(head.map(|word| order.word(word)).concat());
        file.extend(*bytes);
    }
    file
}

fn block(order: Ordered, kind: u32, content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    content.resize(content.len().next_multiple_of(4), 0);
    let length = order.word(content.len() as u32 + 12);
    [&order.word(kind)[..], &length, &content, &length].concat()
}

fn section(order: Ordered) -> Vec<u8> {
    let content =
        [&order.word(0x1a2b_3c4d)[..], &order.short(1), &order.short(0), &[0xff; 8]].concat();
    block(order, 0x0a0d_0d0a, &content)
}

fn interface(order: Ordered, link: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut content = [&order.short(link)[..], &[0, 0], &order.word(100)].concat();
    for (code, value) in options {
        content.extend([order.short(*code), order.short(value.len() as u16)].concat());
        content.extend(*value);
        content.resize(content.len().next_multiple_of(4), 0);
    }
    block(order, 1, &content)
}

fn packet(order: Ordered, interface: u32, ticks: u64, bytes: &[u8], length: u32) -> Vec<u8> {
    let words = [interface, (ticks >> 32) as u32, ticks as u32, bytes.len() as u32, length];
    block(order, 6, &[&words.map(|word| order.word(word)).concat()[..], bytes].concat())
}

type Read = (Vec<(i64, u32, u16, u32, Vec<u8>)>, Option<Damage>);

fn read(file: &[u8]) -> Result<Read, String> {
    let source = Box::new(Cursor::new(file.to_vec()));
    let mut reader = Reader::new(source, "x").map_err(|error| error.to_string())?;
    let mut packets = Vec::new();
    while let Some(it) = reader.next_packet() {
        packets.push((it.time, it.interface, it.link, it.length, it.bytes.to_vec()));
    }
    Ok((packets, reader.damage().cloned()))
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_time_units() {
    for is_big in [false, true] {
        for (magic, part) in [(0xa1b2_c3d4, 5), (0xa1b2_3c4d, 5000)] {
            let file = pcap(Ordered(is_big), magic, &[(7, part, b"abc", 60), (8, 0, b"", 0)]);
            let expected = vec![
                (7_000_005_000, 0, 101, 60, b"abc".to_vec()),
                (8_000_000_000, 0, 101, 0, Vec::new()),
            ];
            assert_eq!(read(&file), Ok((expected, None)));
        }
    }
}

#[test]
fn lengths_are_swapped_in_pcap_before_version_2_4() {
    // As in libpcap: before 2.3 always, in 2.3 if the captured length would exceed the original
    // one.
    for (minor, words, length) in
        [(2, [60, 3], 60), (3, [60, 3], 60), (3, [3, 60], 60), (4, [3, 60], 60), (2, [3, 3], 3)]
    {
        let order = Ordered(true);
        let mut file = pcap(order, 0xa1b2_c3d4, &[(7, 0, b"abc", 0), (8, 0, b"", 0)]);
        file[6..8].copy_from_slice(&order.short(minor));
        file[32..40].copy_from_slice(&words.map(|word| order.word(word)).concat());
        let (packets, damage) = read(&file).unwrap();
        assert_eq!(packets[0], (7_000_000_000, 0, 101, length, b"abc".to_vec()), "2.{minor}");
        assert_eq!((packets.len(), damage), (2, None));
    }
}

#[test]
fn pcapng_sections_interfaces_and_time_units_are_read() {
    for is_big in [false, true] {
        let (order, other) = (Ordered(is_big), Ordered(!is_big));
        let offset = if is_big { 10_u64.to_be_bytes() } else { 10_u64.to_le_bytes() };
        let file = [
            section(order),
            // Microseconds by default.
            interface(order, 1, &[(2, b"eth0"), (0, b"")]),
            // Nanoseconds, with an offset of ten seconds.
            interface(order, 101, &[(9, &[9]), (14, &offset)]),
            // Units of 2^-10 seconds.
            interface(order, 113, &[(9, &[0x8a])]),
            packet(order, 0, 3, b"ab", 100),
            packet(order, 1, 4, b"abcd", 4),
            packet(order, 2, 512, b"", 5),
            // A block of an unknown type, and one with a comment.
            block(order, 0x0bad, b"whatever"),
            // An obsolete packet block: interface 1, no drops.
            block(order, 2, &{
                let words = [0_u32, 9, 1, 1].map(|word| order.word(word)).concat();
                [&order.short(1)[..], &[0, 0], &words, b"x"].concat()
            }),
            // A simple packet, of which the first interface's snap length keeps 100 bytes.
            block(order, 3, &[&order.word(200)[..], &[7; 100]].concat()),
            section(other),
            interface(other, 9, &[(9, &[3])]),
            packet(other, 0, 6, b"z", 1),
        ]
        .concat();
        let expected = vec![
            (3_000, 0, 1, 100, b"ab".to_vec()),
            (10_000_000_004, 1, 101, 4, b"abcd".to_vec()),
            (500_000_000, 2, 113, 5, Vec::new()),
            (10_000_000_009, 1, 101, 1, b"x".to_vec()),
            (0, 0, 1, 200, vec![7; 100]),
            (6_000_000, 3, 9, 1, b"z".to_vec()),
        ];
        assert_eq!(read(&file), Ok((expected, None)));
        let mut reader = Reader::new(Box::new(Cursor::new(file)), "x").unwrap();
        while reader.next_packet().is_some() {}
        let names: Vec<_> = reader.interfaces().iter().map(|it| it.name.as_deref()).collect();
        assert_eq!(names, [Some("eth0"), None, None, None]);
    }
}

#[test]
fn compressed_files_are_read_like_uncompressed_ones() {
    let file = pcap(Ordered(false), 0xa1b2_c3d4, &[(1, 2, b"abc", 3)]);
    let expected = read(&file);
    let gzip = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(bytes, level)
    };
    assert_eq!(read(&gzip(&file)), expected);
    assert_eq!(read(&zstd(&file)), expected);
    // Packed in several members.
    let (first, second) = file.split_at(30);
    assert_eq!(read(&[gzip(first), gzip(second)].concat()), expected);
    assert_eq!(read(&[zstd(first), zstd(second)].concat()), expected);
    // A truncated file is read as far as possible.
    let packed = gzip(&file);
    let (packets, damage) = read(&packed[..packed.len() - 4]).unwrap();
    assert_eq!(packets.len(), 1);
    assert!(damage.unwrap().what.starts_with("the file cannot be unpacked further"));
}

#[test]
fn a_truncated_file_yields_its_packets_and_reports_damage() {
    let file = pcap(Ordered(false), 0xa1b2_c3d4, &[(1, 2, b"abc", 3), (1, 3, b"defg", 4)]);
    let (packets, damage) = read(&file[..file.len() - 1]).unwrap();
    assert_eq!(packets.len(), 1);
    let expected =
        Damage { at: 24 + 16 + 3, what: "the file ends within a packet of 4 bytes".into() };
    assert_eq!(damage, Some(expected));
    for cut in 24..file.len() {
        assert!(read(&file[..cut]).unwrap().0.len() < 2, "{cut}");
    }
    let order = Ordered(false);
    let file = [section(order), interface(order, 1, &[]), packet(order, 0, 3, b"ab", 100)].concat();
    for cut in 28..file.len() {
        let (packets, damage) = read(&file[..cut]).unwrap();
        assert!(packets.is_empty());
        assert_eq!(damage.is_none(), cut == 28 || cut == 28 + 20, "{cut}");
    }
}

#[test]
fn other_file_types_are_refused_by_name() {
    let said = |file: &[u8]| read(file).unwrap_err();
    assert_eq!(
        said(b"GET / HTTP/1.1\r\n"),
        "x: is not a capture: it begins with 47 45 54 20; pcap and pcapng are read, plain or packed with \
         gzip or zstd"
    );
    assert_eq!(said(b""), "x: ends within its first header, after 0 bytes");
    assert_eq!(
        said(&[0xd4, 0xc3, 0xb2, 0xa1, 2]),
        "x: ends within its first header, after 5 bytes"
    );
    let mut file = pcap(Ordered(false), 0xa1b2_c3d4, &[]);
    file[4] = 3;
    assert_eq!(said(&file), "x: byte 4: version 3 of pcap is not supported; version 2 is");
    let missing = Reader::open(Path::new("/nowhere/x.pcap")).err().unwrap().to_string();
    assert_eq!(missing, "/nowhere/x.pcap: no such file or directory");
    assert_eq!(Reader::open(Path::new("/")).err().unwrap().to_string(), "/: is a directory");
}

#[test]
fn inconsistent_block_lengths_end_the_capture() {
    let order = Ordered(false);
    let begin = [section(order), interface(order, 1, &[])].concat();
    let damage = |block: Vec<u8>| read(&[begin.clone(), block].concat()).unwrap().1.unwrap().what;
    assert_eq!(
        damage(packet(order, 1, 0, b"", 0)),
        "a packet of interface 1, which the section does not describe"
    );
    assert_eq!(
        damage(packet(order, u32::MAX, 0, b"", 0)),
        "a packet of interface 4294967295, which the section does not describe"
    );
    let mut large = packet(order, 0, 0, b"abcd", 4);
    large[20] = 200;
    assert_eq!(damage(large), "a packet of 200 bytes in a block of 36");
    assert_eq!(damage(vec![6, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]), "a block of 3 bytes");
    let huge = [&6_u32.to_le_bytes()[..], &0xffff_fff0_u32.to_le_bytes(), &[0; 40]].concat();
    assert!(damage(huge).starts_with("a block of 4294967280 bytes; blocks of up to"));
    let huge = pcap(order, 0xa1b2_c3d4, &[])
        .into_iter()
        .chain([0; 8])
        .chain([0xff; 8])
        .collect::<Vec<_>>();
    assert!(read(&huge).unwrap().1.unwrap().what.starts_with("a packet of 4294967295 bytes"));
}

#[test]
fn drops_reported_by_the_capturing_program_are_read() {
    let order = Ordered(false);
    let counter = |code: u16, value: u64| {
        [&code.to_le_bytes()[..], &8_u16.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    let statistics = block(order, 5, &[vec![0; 12], counter(5, 7), counter(7, 3)].concat());
    let file = [section(order), interface(order, 1, &[]), statistics].concat();
    let mut reader = Reader::new(Box::new(Cursor::new(file)), "x").unwrap();
    assert!(reader.next_packet().is_none());
    assert_eq!(reader.interfaces()[0].dropped, 10);
}
