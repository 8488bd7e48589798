//! Captured packets as pcapng (draft-ietf-opsawg-pcapng): one interface for each lane, times in
//! nanoseconds after the start of the experiment.

use std::collections::BTreeMap;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Packets begin with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// As much of each packet as the kernel keeps (`TCPLAB_SNAP`).
const SNAP: u32 = 128;

/// Packets in the order in which they came.
#[derive(Default)]
pub(crate) struct Capture {
    packets: Vec<Packet>,
}

struct Packet {
    lane: u32,
    time: u64,
    length: u32,
    bytes: Vec<u8>,
}

impl Capture {
    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    pub fn add(&mut self, lane: u32, time: u64, length: u32, bytes: Vec<u8>) {
        self.packets.push(Packet { lane, time, length, bytes });
    }

    /// The file. `lanes` are the numbers and names of what was captured.
    pub fn file(mut self, lanes: &BTreeMap<u32, &str>) -> Vec<u8> {
        self.packets.sort_by_key(|packet| packet.time);
        let mut file = Vec::new();
        // The order of bytes, version 1.0, a length that is not given.
        let header = [0x1a2b_3c4d_u32.to_le_bytes(), [1, 0, 0, 0], [0xff; 4], [0xff; 4]].concat();
        block(&mut file, SECTION, &header);
        for name in lanes.values() {
            let mut content = [LINKTYPE_RAW.to_le_bytes(), [0, 0]].concat();
            content.extend(SNAP.to_le_bytes());
            option(&mut content, 2, name.as_bytes());
            // if_tsresol: ten to the minus ninth.
            option(&mut content, 9, &[9]);
            content.extend([0; 4]);
            block(&mut file, INTERFACE, &content);
        }
        for packet in &self.packets {
            let Some(interface) = lanes.keys().position(|&lane| lane == packet.lane) else {
                continue;
            };
            let mut content = Vec::new();
            let words = [
                interface as u32,
                (packet.time >> 32) as u32,
                packet.time as u32,
                packet.bytes.len() as u32,
                packet.length,
            ];
            content.extend(words.into_iter().flat_map(u32::to_le_bytes));
            content.extend(&packet.bytes);
            pad(&mut content);
            block(&mut file, PACKET, &content);
        }
        file
    }
}

fn block(file: &mut Vec<u8>, kind: u32, content: &[u8]) {
    let length = (content.len() as u32 + 12).to_le_bytes();
    file.extend(kind.to_le_bytes());
    file.extend(length);
    file.extend(content);
    file.extend(length);
}

fn option(content: &mut Vec<u8>, code: u16, value: &[u8]) {
    content.extend(code.to_le_bytes());
    content.extend((value.len() as u16).to_le_bytes());
    content.extend(value);
    pad(content);
}

fn pad(content: &mut Vec<u8>) {
    content.resize(content.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_and_in_order() {
        let mut capture = Capture::default();
        capture.add(3, 2_000_000_000, 60, vec![0x45; 5]);
        capture.add(3, 1_000_000_000, 40, vec![0x45; 4]);
        let file = capture.file(&BTreeMap::from([(3, "a>b")]));
        let mut kinds = Vec::new();
        let mut at = 0;
        while at < file.len() {
            let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push((word(at), word(at + 16)));
            at += length;
        }
        // The third word of a packet's block is the lower half of its time.
        let packets: Vec<_> = kinds.iter().filter(|(kind, _)| *kind == PACKET).collect();
        assert_eq!(packets, [&(PACKET, 1_000_000_000), &(PACKET, 2_000_000_000)]);
        assert_eq!(kinds.len(), 4);
    }
}
