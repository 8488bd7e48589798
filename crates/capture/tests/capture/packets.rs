//! Packets between a client, 10.0.0.1:10001, and a server, 10.0.0.2:5001, as a pcap file.

use tcplab_capture::{Flows, Info, Reader};
use tcplab_tables::{Row, Table, Values, integer, number};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PUSH: u8 = 8;
pub const ACK: u8 = 16;

/// A segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The time in milliseconds.
    pub at: f64,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub data: u16,
    pub window: u16,
    pub options: &'a [u8],
    pub id: u16,
}

/// MSS 1000, SACK permitted, window scale 2.
pub const SYN_OPTIONS: &[u8] = &[2, 4, 3, 0xe8, 4, 2, 1, 3, 3, 2, 0, 0];

pub fn segment(at: f64, flags: u8, seq: u32, ack: u32, data: u16) -> Segment<'static> {
    Segment { at, flags, seq, ack, data, window: 50_000, options: &[], id: 0 }
}

/// A capture.
#[derive(Default)]
pub struct Written {
    pub bytes: Vec<u8>,
    id: u16,
}

impl Written {
    pub fn new() -> Self {
        let mut bytes = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0]);
        Self { bytes, id: 0 }
    }

    pub fn client(&mut self, segment: Segment<'_>) -> &mut Self {
        self.add([1, 2], [10_001, 5001], segment)
    }

    pub fn server(&mut self, segment: Segment<'_>) -> &mut Self {
        self.add([2, 1], [5001, 10_001], segment)
    }

    pub fn add(&mut self, hosts: [u8; 2], ports: [u16; 2], it: Segment<'_>) -> &mut Self {
        let id = if it.id == 0 { self.id + 1 } else { it.id };
        self.id = id;
        let header = 20 + it.options.len();
        let length = 20 + header + usize::from(it.data);
        let nanoseconds = (it.at * 1e6) as u64;
        let (seconds, part) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
        let kept = 20 + header;
        for word in [seconds as u32, part as u32, kept as u32, length as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend([0x45, 0]);
        self.bytes.extend((length as u16).to_be_bytes());
        self.bytes.extend(id.to_be_bytes());
        self.bytes.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
        self.bytes.extend(ports.map(u16::to_be_bytes).concat());
        self.bytes.extend([it.seq, it.ack].map(u32::to_be_bytes).concat());
        self.bytes.extend([(header as u8 / 4) << 4, it.flags]);
        self.bytes.extend(it.window.to_be_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend(it.options);
        self
    }

    /// A handshake of 20 ms, seen at the client: the client begins with 1000, the server with 9000.
    pub fn handshake(&mut self) -> &mut Self {
        let syn = Segment { options: SYN_OPTIONS, ..segment(0.0, SYN, 1000, 0, 0) };
        let answer = Segment { options: SYN_OPTIONS, ..segment(20.0, SYN | ACK, 9000, 1001, 0) };
        self.client(syn).server(answer).client(segment(20.0, ACK, 1001, 9001, 0))
    }

    pub fn info(&self) -> Info {
        read(&self.bytes)
    }
}

/// Analyses a capture.
pub fn read(bytes: &[u8]) -> Info {
    let source = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let mut reader = Reader::new(source, "x").expect("it is a capture");
    let flows = Flows::new(1000).with_packets_of(&[0]);
    Info::read(&mut reader, "x", flows, &mut |_| true).expect("nobody stops it")
}

/// A value of a row.
pub fn value<R: Row>(table: &Table<R>, row: usize, column: &str) -> String {
    let part = table.part(0);
    let (_, values) = part.columns().find(|(name, _)| *name == column).expect(column);
    match &*values {
        Values::Text(values) => part.text(values[row]).unwrap_or("-").into(),
        Values::Integer(values) => integer(&values[row]).map_or("-".into(), |it| it.to_string()),
        Values::Number(values) => number(&values[row]).map_or("-".into(), |it| format!("{it:.3}")),
    }
}
