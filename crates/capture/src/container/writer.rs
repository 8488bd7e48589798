//! Captures written by backends: pcapng (draft-ietf-opsawg-pcapng) of IP packets, with times in
//! nanoseconds after the start of the experiment.

use super::pcapng::{INTERFACE, PACKET, SECTION};

/// The name of the capture file of a run.
pub const FILE: &str = "capture.pcapng";

/// The snap length in bytes, the same as the kernel's `TCPLAB_SNAP`: all headers with the longest
/// options.
pub const SNAP: usize = 128;

/// Packets begin with their IP header (`LINKTYPE_IPV4`). Programs with libpcap (tcpdump, tcptrace)
/// refuse a second interface of `LINKTYPE_RAW`, which has another number inside libpcap.
const LINK: u16 = 228;

/// Options of an interface description block: the name, and the unit of times.
const NAME: u16 = 2;
const UNIT: u16 = 9;

/// The position of the time in a packet block, upper half first.
const TIME: usize = 12;

/// A capture to which packets are added: the finished file, as long as packets come in order of
/// time.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The position of the first packet.
    first: usize,
    packets: usize,
    last: u64,
    is_in_order: bool,
}

impl Writer {
    /// A capture of interfaces with these names.
    pub fn new<'a>(interfaces: impl IntoIterator<Item = &'a str>) -> Self {
        let mut bytes = Vec::new();
        // Byte order, version 1.0, unspecified section length.
        let header = [0x1a2b_3c4d_u32.to_le_bytes(), [1, 0, 0, 0], [0xff; 4], [0xff; 4]].concat();
        block(&mut bytes, u32::from_le_bytes(SECTION), &[&header]);
        for name in interfaces {
            let mut content = [LINK.to_le_bytes(), [0, 0]].concat();
            content.extend((SNAP as u32).to_le_bytes());
            option(&mut content, NAME, name.as_bytes());
            // Nanoseconds.
            option(&mut content, UNIT, &[9]);
            content.extend([0; 4]);
            block(&mut bytes, INTERFACE, &[&content]);
        }
        let first = bytes.len();
        Self { bytes, first, packets: 0, last: 0, is_in_order: true }
    }

    /// Adds a packet of `length` bytes, of which `kept` were captured.
    pub fn add(&mut self, interface: u32, time: u64, length: u32, kept: &[u8]) {
        let words = [interface, (time >> 32) as u32, time as u32, kept.len() as u32, length]
            .map(u32::to_le_bytes);
        block(&mut self.bytes, PACKET, &[words.as_flattened(), kept]);
        self.packets += 1;
        self.is_in_order &= self.last <= time;
        self.last = time;
    }

    /// The number of packets.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// The file with its packets in order of time; packets of equal times stay in the order in
    /// which they were added.
    pub fn finish(self) -> Vec<u8> {
        if self.is_in_order {
            return self.bytes;
        }
        let (head, mut rest) = self.bytes.split_at(self.first);
        let mut packets = Vec::with_capacity(self.packets);
        while !rest.is_empty() {
            let word = |at: usize| {
                u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]])
            };
            let time = u64::from(word(TIME)) << 32 | u64::from(word(TIME + 4));
            let (packet, behind) = rest.split_at(word(4) as usize);
            packets.push((time, packet));
            rest = behind;
        }
        packets.sort_by_key(|(time, _)| *time);
        let mut file = Vec::with_capacity(self.bytes.len());
        file.extend(head);
        for (_, packet) in packets {
            file.extend(packet);
        }
        file
    }
}

/// Appends a block with this content, padded.
fn block(file: &mut Vec<u8>, kind: u32, content: &[&[u8]]) {
    let bytes: usize = content.iter().map(|part| part.len()).sum();
    let length = (bytes.next_multiple_of(4) as u32 + 12).to_le_bytes();
    file.extend(kind.to_le_bytes());
    file.extend(length);
    for part in content {
        file.extend(*part);
    }
    pad(file);
    file.extend(length);
}

fn option(content: &mut Vec<u8>, code: u16, value: &[u8]) {
    content.extend(code.to_le_bytes());
    content.extend((value.len() as u16).to_le_bytes());
    content.extend(value);
    pad(content);
}

/// All blocks and options begin at a multiple of four bytes.
fn pad(content: &mut Vec<u8>) {
    content.resize(content.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Source};
    use std::io::Cursor;

    /// The time, interface, length and bytes of each packet found by the reader.
    fn read(file: Vec<u8>) -> Vec<(i64, u32, u32, Vec<u8>)> {
        let source: Source = Box::new(Cursor::new(file));
        let mut reader = Reader::new(source, "it").unwrap();
        let mut packets = Vec::new();
        while let Some(it) = reader.next_packet() {
            packets.push((it.time, it.interface, it.length, it.bytes.to_vec()));
        }
        assert_eq!(reader.damage(), None);
        let names =
            reader.interfaces().iter().map(|it| (it.name.as_deref().unwrap(), it.link, it.snap));
        assert_eq!(names.collect::<Vec<_>>(), [("a>b", 228, 128), ("b>a", 228, 128)]);
        packets
    }

    #[test]
    fn written_captures_are_read_back() {
        let mut capture = Writer::new(["a>b", "b>a"]);
        // More nanoseconds than 32 bits hold, and lengths with and without padding.
        let times = [0, 4_294_967_296, 5_000_000_001];
        for (time, bytes) in times.into_iter().zip([5_u32, 4, 7]) {
            capture.add(bytes % 2, time, 1500, &vec![0x45; bytes as usize]);
        }
        assert_eq!(capture.packets(), 3);
        let expected = [(0, 1, 5), (4_294_967_296, 0, 4), (5_000_000_001, 1, 7)];
        let expected = expected.map(|(time, interface, n)| (time, interface, 1500, vec![0x45; n]));
        assert_eq!(read(capture.finish()), expected);
    }

    #[test]
    fn packets_are_written_in_order_of_time() {
        let mut capture = Writer::new(["a>b", "b>a"]);
        for (time, byte) in [(2, 1), (1, 2), (2, 3), (1, 4)] {
            capture.add(0, time, 1, &[byte]);
        }
        let bytes: Vec<_> = read(capture.finish()).iter().map(|packet| packet.3[0]).collect();
        assert_eq!(bytes, [2, 4, 1, 3]);
    }
}
