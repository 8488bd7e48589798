//! Damaged and malicious captures: no panic, and an end.

use crate::packets::{ACK, FIN, Segment, Written, segment};
use std::io::Cursor;
use tcplab_capture::{Flows, Info, Reader};

/// The number of captures; more with `TCPLAB_FUZZ=10000`.
fn number() -> u64 {
    std::env::var("TCPLAB_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(3000)
}

/// Pseudo-random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) % below.max(1) as u64) as usize
    }
}

/// A capture with all behaviours of connections.
fn whole() -> Vec<u8> {
    let mut written = Written::new();
    written.handshake();
    for n in 0..20_u32 {
        let block = [1, 1, 5, 10, 0, 0, 15, 0, 0, 0, 20, 0];
        let at = 20.0 + f64::from(n) * 10.0;
        written.client(segment(at, ACK, 1001 + 1000 * (n % 13), 9001, 1000));
        let ack = 1001 + 700 * (n / 2);
        written.server(Segment { options: &block, ..segment(at + 5.0, ACK, 9001, ack, 0) });
    }
    written.client(segment(400.0, ACK | FIN, 14_001, 9001, 0));
    written.bytes
}

/// The same packets as pcapng.
fn as_pcapng(pcap: &[u8]) -> Vec<u8> {
    let block = |kind: u32, content: &[u8]| {
        let mut content = content.to_vec();
        content.resize(content.len().next_multiple_of(4), 0);
        let length = (content.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &content, &length].concat()
    };
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
    let mut reader =
        Reader::new(Box::new(Cursor::new(pcap.to_vec())), "x").expect("it is a capture");
    while let Some(packet) = reader.next_packet() {
        let time = packet.time as u64;
        let words = [0, (time >> 32) as u32, time as u32, packet.bytes.len() as u32, packet.length];
        file.extend(block(6, &[&words.map(u32::to_le_bytes).concat(), packet.bytes].concat()));
    }
    file
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.next(6) {
        if bytes.is_empty() {
            return;
        }
        let at = random.next(bytes.len());
        match random.next(7) {
            0 => bytes[at] = random.next(256) as u8,
            1 => bytes[at] ^= 1 << random.next(8),
            2 => bytes.truncate(at),
            3 => {
                let to = (at + random.next(100)).min(bytes.len());
                bytes.drain(at..to);
            }
            4 => {
                let to = (at + random.next(300)).min(bytes.len());
                let copy = bytes[at..to].to_vec();
                let place = random.next(bytes.len());
                bytes.splice(place..place, copy);
            }
            5 => bytes[at] = [0, 255, 127, 128][random.next(4)],
            _ => {
                let to = (at + 4).min(bytes.len());
                bytes[at..to].fill([0, 255][random.next(2)]);
            }
        }
    }
}

#[test]
fn mutated_captures_are_read_without_panic() {
    let pcap = whole();
    let kinds = [as_pcapng(&pcap), pcap];
    let mut random = Random(1);
    let (mut packets, mut refused) = (0, 0);
    for turn in 0..number() {
        let mut bytes = kinds[turn as usize % 2].clone();
        mutate(&mut bytes, &mut random);
        match Reader::new(Box::new(Cursor::new(bytes)), "x") {
            Ok(mut reader) => {
                let flows = Flows::new(8).with_packets_of(&[0, 1, 2]).with_turns();
                let info =
                    Info::read(&mut reader, "x", flows, &mut |_| true).expect("nobody stops it");
                packets += info.lengths.part(0).integers("packets").iter().sum::<i64>();
            }
            Err(_) => refused += 1,
        }
    }
    // Most of the packets are still read.
    assert!(packets > 10 * number() as i64 && refused < number() / 2, "{packets} {refused}");
}

#[test]
fn reading_stops_when_it_is_told_to() {
    let mut written = Written::new();
    written.handshake();
    for n in 0..200_000_u32 {
        let id = 1 + (n % 60_000) as u16;
        let at = 20.0 + f64::from(n);
        written.client(Segment { id, ..segment(at, ACK, 1001 + 1000 * n, 9001, 1000) });
    }
    // At the first report, and at the second.
    for most in [1 << 16, 1 << 17] {
        let mut reader =
            Reader::new(Box::new(Cursor::new(written.bytes.clone())), "x").expect("a capture");
        let goes_on = &mut |packets| packets < most;
        assert!(Info::read(&mut reader, "x", Flows::new(8), goes_on).is_none());
    }
}

#[test]
fn mutated_compressed_captures_are_read_without_panic() {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&whole()[..], level);
    let mut random = Random(2);
    for _ in 0..number() / 10 {
        let mut bytes = zstd.clone();
        mutate(&mut bytes, &mut random);
        if let Ok(mut reader) = Reader::new(Box::new(Cursor::new(bytes)), "x") {
            while reader.next_packet().is_some() {}
        }
    }
}

#[test]
fn a_frame_that_declares_a_huge_length_is_refused() {
    // A window of 2^41 bytes (RFC 8878 §3.1.1.1.2).
    let bytes = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00];
    assert!(Reader::new(Box::new(Cursor::new(bytes)), "x").is_err());
}
