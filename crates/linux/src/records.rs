//! Reads the stream of records described in `kernel/net/record.h`. `build.rs` generates the readers
//! of its structs from that file.

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

/// The layout of records, which `build.rs` reads from `kernel/net/record.h`: a field that is
/// renamed or removed there is a compile error here.
#[expect(dead_code, reason = "not all fields are read, and not all lengths")]
mod layout {
    include!(concat!(env!("OUT_DIR"), "/records.rs"));

    /// Some bytes of a record whose length was checked.
    fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        std::array::from_fn(|place| bytes[at + place])
    }
}

const HEADER: usize = layout::Header::BYTES;

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
        let Some(layout::Header { kind, length, id, time }) = layout::Header::read(rest) else {
            return Ok(None);
        };
        let length = usize::from(length);
        let Some(content) = rest.get(HEADER..HEADER + length) else { return Ok(None) };
        let content = content_of(kind, id, content)?;
        self.read += HEADER + length;
        Ok(Some(Record { time, id, content }))
    }
}

fn content_of(kind: u16, id: u32, bytes: &[u8]) -> Result<Content, Unreadable> {
    let short = || Unreadable(format!("a record of kind {kind} with {} bytes", bytes.len()));
    Ok(match u32::from(kind) {
        layout::kind::TEXT => {
            let text = String::from_utf8_lossy(bytes);
            let report = serde_json::from_str(&text);
            Content::Report(report.map_err(|error| Unreadable(format!("{text}: {error}")))?)
        }
        layout::kind::TICK => {
            Content::Tick([Tick::Passing, Tick::Begin, Tick::End, Tick::Mark][id.min(3) as usize])
        }
        layout::kind::SOCKET => {
            Content::Socket(layout::Socket::read(bytes).ok_or_else(short)?.into())
        }
        layout::kind::SAMPLE => {
            Content::Sample(layout::Sample::read(bytes).ok_or_else(short)?.into())
        }
        layout::kind::SUMMARY => {
            Content::Summary(layout::Summary::read(bytes).ok_or_else(short)?.into())
        }
        layout::kind::LANE => {
            Content::Lane(layout::LaneState::read(bytes).ok_or_else(short)?.into())
        }
        layout::kind::DROP => Content::Drop(layout::Drop::read(bytes).ok_or_else(short)?.into()),
        layout::kind::PACKET => {
            let packet = layout::Packet::read(bytes).ok_or_else(short)?;
            let point = match packet.point {
                layout::point::LEAVES => Point::Leave,
                layout::point::ENTERS => Point::Enter,
                layout::point::ARRIVES => Point::Arrive,
                layout::point::DROPPED => Point::Drop,
                point => return Err(Unreadable(format!("a packet at the point {point}"))),
            };
            Content::Packet(Packet { length: packet.length, point, bytes: packet.bytes })
        }
        _ => return Err(short()),
    })
}

impl From<layout::Socket> for Socket {
    fn from(read: layout::Socket) -> Self {
        Self {
            address: read.address.into(),
            peer_address: read.peer_address.into(),
            port: read.port,
            peer_port: read.peer_port,
            is_client: read.is_client != 0,
        }
    }
}

impl From<layout::Sample> for Sample {
    fn from(read: layout::Sample) -> Self {
        Self {
            cwnd: read.cwnd,
            ssthresh: read.ssthresh,
            srtt_us: read.srtt_us,
            rto_us: read.rto_us,
            in_flight: read.in_flight,
            rtt_us: read.rtt_us,
            acked_bytes: read.acked_bytes,
            pacing: read.pacing,
            delivery_rate: read.delivery_rate,
            internals: internals(read.attribute, Fields(&read.internals)),
        }
    }
}

/// An algorithm's `inet_diag` info. Its layout, which depends on the attribute, is that of the
/// kernel's structs (`linux/inet_diag.h`).
fn internals(attribute: u32, mut fields: Fields<'_>) -> Internals {
    // INET_DIAG_VEGASINFO, INET_DIAG_DCTCPINFO, INET_DIAG_BBRINFO.
    match attribute {
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
    }
}

impl From<layout::Summary> for Summary {
    fn from(read: layout::Summary) -> Self {
        Self {
            acked_bytes: read.acked_bytes,
            received_bytes: read.received_bytes,
            written_bytes: read.written_bytes,
            sent_bytes: read.sent_bytes,
            sent_segments: read.sent_segments,
            retransmitted_segments: read.retransmitted_segments,
            timeouts: read.timeouts,
            episodes: read.episodes,
            rtt_count: read.rtt_count,
            rtt_sum_us: read.rtt_sum_us,
            rtt_min_us: read.rtt_min_us,
            rtt_max_us: read.rtt_max_us,
            last_arrival: read.last_arrival,
            algorithm: text(&read.algorithm),
            error: read.error,
            occasion: match u32::from(read.occasion) {
                layout::occasion::ENDED => Occasion::Ended,
                layout::occasion::CLOSED => Occasion::Closed,
                _ => Occasion::Marked,
            },
            is_open: read.is_open != 0,
        }
    }
}

impl From<layout::LaneState> for LaneState {
    fn from(read: layout::LaneState) -> Self {
        let whole = |[low, high]: [u64; 2]| u128::from(low) | u128::from(high) << 64;
        Self {
            queue_packets: read.queue_packets,
            queue_bytes: read.queue_bytes,
            dropped_packets: read.dropped_packets,
            lost_packets: read.lost_packets,
            marked_packets: read.marked_packets,
            sent_packets: read.sent_packets,
            sent_bytes: read.sent_bytes,
            busy_ps: read.busy_ps,
            entered_packets: read.entered_packets,
            arrived_packets: read.arrived_packets,
            transit_packets: read.transit_packets,
            queue_max_packets: read.queue_max_packets,
            queue_max_bytes: read.queue_max_bytes,
            queue_packet_ps: whole(read.queue_packet_ps),
            queue_byte_ps: whole(read.queue_byte_ps),
        }
    }
}

impl From<layout::Drop> for Drop {
    fn from(read: layout::Drop) -> Self {
        Self {
            from: (read.address.into(), read.port),
            to: (read.peer_address.into(), read.peer_port),
            bytes: read.bytes,
            reason: text(&read.reason),
        }
    }
}

/// Text up to the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into()
}

/// Consecutive numbers.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) =
            self.0.split_first_chunk().expect("the info of an algorithm has all fields");
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
    fn invalid_records_are_errors() {
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
