//! Reads the stream of records described in `kernel/net/record.h`.

use std::net::Ipv4Addr;
use tcplab_guest::Report;
use thiserror::Error;

/// A record of the kernel with its time, in nanoseconds since boot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub time: u64,
    /// The number of the connection or lane; `u32::MAX` for packets on no lane.
    pub id: u32,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Report(Report),
    Tick(Tick),
    Socket(Socket),
    Sample(Sample),
    Summary(Summary),
    Lane(LaneState),
    Drop(Drop),
    Packet(Packet),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    Passing,
    Begin,
    End,
    /// The counters of all connections have been reported.
    Mark,
}

/// A connection appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub address: Ipv4Addr,
    pub peer_address: Ipv4Addr,
    pub port: u16,
    pub peer_port: u16,
    pub is_client: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub srtt_us: u32,
    pub rto_us: u32,
    pub in_flight: u32,
    /// The last sample; 0 before the first one.
    pub rtt_us: u32,
    pub acked_bytes: u64,
    /// Bytes a second; 0 without pacing.
    pub pacing: u64,
    /// Bytes a second, 0 before the first measurement.
    pub delivery_rate: u64,
    pub internals: Internals,
}

/// Internal state of algorithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Internals {
    None,
    Vegas { rtt_us: u32, min_rtt_us: u32 },
    Dctcp { alpha: u32, ce_state: u16 },
    Bbr { bandwidth: u64, min_rtt_us: u32, pacing_gain: u32, cwnd_gain: u32 },
}

/// The occasion of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The session or the experiment ended.
    Ended,
    /// The connection ended.
    Closed,
    /// A mark.
    Marked,
}

/// Counters of a connection or session. RTTs are those since the last summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub acked_bytes: u64,
    pub received_bytes: u64,
    /// Bytes that the application wrote.
    pub written_bytes: u64,
    /// Bytes that were sent for the first time.
    pub sent_bytes: u64,
    pub sent_segments: u64,
    pub retransmitted_segments: u64,
    pub timeouts: u64,
    pub episodes: u64,
    pub rtt_count: u64,
    pub rtt_sum_us: u64,
    pub rtt_min_us: u64,
    pub rtt_max_us: u64,
    pub last_arrival: u64,
    pub algorithm: String,
    /// The error number that ended the connection, 0 for none.
    pub error: u32,
    pub occasion: Occasion,
    /// Whether the connection was established.
    pub is_open: bool,
}

impl Summary {
    /// Adds the RTTs of the previous summary.
    pub fn add_rtts(&mut self, before: &Self) {
        self.rtt_count = self.rtt_count.saturating_add(before.rtt_count);
        self.rtt_sum_us = self.rtt_sum_us.saturating_add(before.rtt_sum_us);
        self.rtt_min_us = self.rtt_min_us.min(before.rtt_min_us);
        self.rtt_max_us = self.rtt_max_us.max(before.rtt_max_us);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneState {
    pub queue_packets: u64,
    pub queue_bytes: u64,
    pub dropped_packets: u64,
    pub lost_packets: u64,
    pub marked_packets: u64,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub busy_ps: u64,
    pub entered_packets: u64,
    pub arrived_packets: u64,
    /// Packets in transit: transmission begun, not arrived.
    pub transit_packets: u64,
    /// The most packets in the queue since the last interval began.
    pub queue_max_packets: u64,
    pub queue_max_bytes: u64,
    /// Integrals of packets and bytes in the queue over time, in picoseconds.
    pub queue_packet_ps: u128,
    pub queue_byte_ps: u128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drop {
    pub from: (Ipv4Addr, u16),
    pub to: (Ipv4Addr, u16),
    pub bytes: u32,
    pub reason: String,
}

/// A packet on an observed lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub length: u32,
    pub point: Point,
    /// The packet's headers.
    pub bytes: Vec<u8>,
}

/// The point of a packet on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Leave,
    Enter,
    Arrive,
    Drop,
}

impl Point {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Enter => "enter",
            Self::Arrive => "arrive",
            Self::Drop => "drop",
        }
    }
}

/// The stream is invalid: kernel and backend do not match.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("this version of tcplab cannot read a record of the kernel: {0}")]
pub(crate) struct Unreadable(String);

impl Unreadable {
    /// A reference to something that is not in the job.
    pub fn forged(what: String) -> Self {
        Self(what)
    }
}

const HEADER: usize = 16;

/// Bytes received and not read yet.
#[derive(Default)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
    read: usize,
}

impl Stream {
    /// Adds received bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend(bytes);
    }

    /// The next record, if it is complete.
    pub fn next(&mut self) -> Result<Option<Record>, Unreadable> {
        let rest = &self.bytes[self.read..];
        if rest.len() < HEADER {
            return Ok(None);
        }
        let mut header = Fields(&rest[..HEADER]);
        let (kind, length) = (header.u16(), usize::from(header.u16()));
        let (id, time) = (header.u32(), header.u64());
        let Some(content) = rest.get(HEADER..HEADER + length) else { return Ok(None) };
        let content = content_of(kind, id, content)?;
        self.read += HEADER + length;
        Ok(Some(Record { time, id, content }))
    }
}

fn content_of(kind: u16, id: u32, bytes: &[u8]) -> Result<Content, Unreadable> {
    let mut fields = Fields(bytes);
    // There is no kind 0.
    let needed = [usize::MAX, 0, 0, 16, 80, 128, 136, 48, 8];
    if needed.get(usize::from(kind)).is_none_or(|&needed| bytes.len() < needed) {
        return Err(Unreadable(format!("a record of kind {kind} with {} bytes", bytes.len())));
    }
    Ok(match kind {
        1 => {
            let text = String::from_utf8_lossy(bytes);
            let report = serde_json::from_str(&text);
            Content::Report(report.map_err(|error| Unreadable(format!("{text}: {error}")))?)
        }
        2 => Content::Tick([Tick::Passing, Tick::Begin, Tick::End, Tick::Mark][id.min(3) as usize]),
        3 => Content::Socket(Socket {
            address: fields.address(),
            peer_address: fields.address(),
            port: fields.u16(),
            peer_port: fields.u16(),
            is_client: fields.u32() != 0,
        }),
        4 => Content::Sample(sample(fields)),
        5 => Content::Summary(Summary {
            acked_bytes: fields.u64(),
            received_bytes: fields.u64(),
            written_bytes: fields.u64(),
            sent_bytes: fields.u64(),
            sent_segments: fields.u64(),
            retransmitted_segments: fields.u64(),
            timeouts: fields.u64(),
            episodes: fields.u64(),
            rtt_count: fields.u64(),
            rtt_sum_us: fields.u64(),
            rtt_min_us: fields.u64(),
            rtt_max_us: fields.u64(),
            last_arrival: fields.u64(),
            algorithm: fields.text(16),
            error: fields.u32(),
            occasion: [Occasion::Ended, Occasion::Closed, Occasion::Marked]
                [fields.u16().min(2) as usize],
            is_open: fields.u16() != 0,
        }),
        6 => Content::Lane(LaneState {
            queue_packets: fields.u64(),
            queue_bytes: fields.u64(),
            dropped_packets: fields.u64(),
            lost_packets: fields.u64(),
            marked_packets: fields.u64(),
            sent_packets: fields.u64(),
            sent_bytes: fields.u64(),
            busy_ps: fields.u64(),
            entered_packets: fields.u64(),
            arrived_packets: fields.u64(),
            transit_packets: fields.u64(),
            queue_max_packets: fields.u64(),
            queue_max_bytes: fields.u64(),
            queue_packet_ps: fields.u128(),
            queue_byte_ps: fields.u128(),
        }),
        7 => {
            let (from, to) = (fields.address(), fields.address());
            let (port, peer_port) = (fields.u16(), fields.u16());
            let (bytes, reason) = (fields.u32(), fields.text(32));
            Content::Drop(Drop { from: (from, port), to: (to, peer_port), bytes, reason })
        }
        _ => {
            let (length, point) = (fields.u32(), fields.u32());
            let points = [Point::Leave, Point::Enter, Point::Arrive, Point::Drop];
            let Some(&point) = points.get(point as usize) else {
                return Err(Unreadable(format!("a packet at the point {point}")));
            };
            Content::Packet(Packet { length, point, bytes: fields.0.to_vec() })
        }
    })
}

fn sample(mut fields: Fields<'_>) -> Sample {
    let (cwnd, ssthresh) = (fields.u32(), fields.u32());
    let (srtt_us, rto_us) = (fields.u32(), fields.u32());
    let (in_flight, last_rtt_us) = (fields.u32(), fields.u32());
    let (acked_bytes, pacing, delivery_rate) = (fields.u64(), fields.u64(), fields.u64());
    let (_state, attribute) = (fields.u32(), fields.u32());
    // INET_DIAG_VEGASINFO, INET_DIAG_DCTCPINFO, INET_DIAG_BBRINFO.
    let internals = match attribute {
        3 => {
            let (_enabled, _count) = (fields.u32(), fields.u32());
            Internals::Vegas { rtt_us: fields.u32(), min_rtt_us: fields.u32() }
        }
        9 => {
            let (_enabled, ce_state) = (fields.u16(), fields.u16());
            Internals::Dctcp { alpha: fields.u32(), ce_state }
        }
        16 => {
            let bandwidth = fields.u64();
            let (min_rtt_us, pacing_gain) = (fields.u32(), fields.u32());
            Internals::Bbr { bandwidth, min_rtt_us, pacing_gain, cwnd_gain: fields.u32() }
        }
        _ => Internals::None,
    };
    Sample {
        cwnd,
        ssthresh,
        srtt_us,
        rto_us,
        in_flight,
        rtt_us: last_rtt_us,
        acked_bytes,
        pacing,
        delivery_rate,
        internals,
    }
}

/// Consecutive numbers.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("the length was checked");
        self.0 = rest;
        *first
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.take())
    }

    fn address(&mut self) -> Ipv4Addr {
        Ipv4Addr::from(self.take::<4>())
    }

    /// Text up to the first zero.
    fn text(&mut self, length: usize) -> String {
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(length);
        String::from_utf8_lossy(&text[..end]).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u16, id: u32, time: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend((content.len() as u16).to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(content);
        bytes
    }

    #[test]
    fn records_are_read_wherever_the_stream_is_cut() {
        let mut content = vec![10, 0, 0, 1, 10, 0, 0, 2];
        content.extend(10_001_u16.to_le_bytes());
        content.extend(5001_u16.to_le_bytes());
        content.extend(1_u32.to_le_bytes());
        let bytes = [record(3, 7, 99, &content), record(2, 1, 100, &[])].concat();
        for cut in 0..bytes.len() {
            let mut stream = Stream::default();
            let mut read = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                stream.extend(part);
                while let Some(record) = stream.next().unwrap() {
                    read.push(record);
                }
            }
            let socket = Socket {
                address: Ipv4Addr::new(10, 0, 0, 1),
                peer_address: Ipv4Addr::new(10, 0, 0, 2),
                port: 10_001,
                peer_port: 5001,
                is_client: true,
            };
            let expected = [
                Record { time: 99, id: 7, content: Content::Socket(socket) },
                Record { time: 100, id: 1, content: Content::Tick(Tick::Begin) },
            ];
            assert_eq!(read, expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_a_record_is_said() {
        for bytes in [
            record(99, 0, 0, &[]),
            record(0, 0, 0, &[]),
            record(4, 0, 0, &[1, 2]),
            record(1, 0, 0, b"{}"),
        ] {
            let mut stream = Stream::default();
            stream.extend(&bytes);
            assert!(stream.next().is_err());
        }
    }
}
