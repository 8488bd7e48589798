//! The contents and faults of a capture: read in one pass, together with its connections.

mod faults;
mod rows;

pub use rows::{
    CaptureFaultColumns, CaptureFaultRow, CaptureLengthColumns, CaptureLengthRow,
    CaptureProtocolColumns, CaptureProtocolRow, CaptureTotalColumns, CaptureTotalRow,
};

use crate::container::{Reader, Record};
use crate::decode::{Fragments, Inner, Ip, inner, protocol};
use crate::flows::{
    CaptureFlowRow, CapturePacketRow, CaptureTurnRow, Feed, FlowTables, Flows, follow,
};
use faults::Faults;
use std::collections::BTreeMap;
use tcplab_tables::{Column, Row, Table};

/// The upper bounds of length classes, as in Wireshark.
const CLASSES: [u32; 10] = [20, 40, 80, 160, 320, 640, 1280, 2560, 5120, u32::MAX];

/// The class of a length. The bounds double.
#[inline]
fn class(length: u32) -> usize {
    let doubled = (length / CLASSES[0]).checked_ilog2().map_or(0, |doubled| doubled + 1);
    (doubled as usize).min(CLASSES.len() - 1)
}

/// The number of packets between two calls of `goes_on`.
const ASKED: u64 = 1 << 16;

/// The contents of a capture.
pub struct Info {
    /// A row for the capture.
    pub totals: Table<CaptureTotalRow>,
    /// Packets by their lengths.
    pub lengths: Table<CaptureLengthRow>,
    /// Packets by their protocols.
    pub protocols: Table<CaptureProtocolRow>,
    /// The capture's faults.
    pub faults: Table<CaptureFaultRow>,
    /// The connections.
    pub flows: Table<CaptureFlowRow>,
    /// The packets of chosen connections.
    pub packets: Table<CapturePacketRow>,
    /// The turns of connections, if requested.
    pub turns: Table<CaptureTurnRow>,
}

/// The tables of a capture, and their columns.
pub const DECLARED: &[(&str, &[Column])] = &[
    (CaptureTotalRow::TABLE, CaptureTotalRow::COLUMNS),
    (CaptureLengthRow::TABLE, CaptureLengthRow::COLUMNS),
    (CaptureProtocolRow::TABLE, CaptureProtocolRow::COLUMNS),
    (CaptureFaultRow::TABLE, CaptureFaultRow::COLUMNS),
    (CaptureFlowRow::TABLE, CaptureFlowRow::COLUMNS),
    (CapturePacketRow::TABLE, CapturePacketRow::COLUMNS),
    (CaptureTurnRow::TABLE, CaptureTurnRow::COLUMNS),
];

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    packets: u64,
    bytes: u64,
}

impl Sum {
    #[inline]
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// The kind of a packet in the table of protocols.
type Kind = (&'static str, Option<u8>);

/// The protocol number of fragments, which is reserved.
const FRAGMENT: u8 = 255;

/// The sums of a capture so far.
#[derive(Default)]
struct Sums {
    all: Sum,
    captured_bytes: u64,
    first: Option<i64>,
    earliest: i64,
    latest: i64,
    lengths: [Sum; CLASSES.len()],
    /// By IP version and protocol.
    ip: BTreeMap<Kind, Sum>,
    /// TCP over IPv4 and over IPv6: nearly all packets.
    tcp: [Sum; 2],
    faults: Faults,
    fragments: Fragments,
    interfaces: Vec<bool>,
}

impl Info {
    /// Reads a whole capture and follows its connections. `goes_on` is called now and then with the
    /// number of packets, and decides whether to continue; if not, the result is `None`.
    pub fn read(
        reader: &mut Reader,
        file: &str,
        flows: Flows,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Option<Self> {
        let (mut sums, followed) = follow(flows, goes_on, |feed| {
            let mut sums = Sums::default();
            while let Some(record) = reader.next_packet() {
                sums.add(&record, feed);
                if sums.all.packets.is_multiple_of(ASKED) && !feed.report(sums.all.packets) {
                    break;
                }
            }
            sums
        })?;
        let FlowTables { flows, packets, turns, found } = followed;
        let mut faults = Table::default();
        sums.faults.incomplete = sums.fragments.incomplete();
        sums.faults.tell(file, reader, &found, sums.all.packets, &mut faults);
        let (totals, lengths) = (sums.totals(file, found.connections), sums.lengths(file));
        Some(Self {
            totals,
            lengths,
            protocols: sums.protocols(file),
            faults,
            flows,
            packets,
            turns,
        })
    }
}

impl Sums {
    fn add(&mut self, record: &Record<'_>, feed: &mut Feed) {
        let &Record { time, interface, interfaces, link, length, bytes } = record;
        feed.at_interfaces(interfaces);
        self.all.add(length);
        self.captured_bytes += bytes.len() as u64;
        self.lengths[class(length)].add(length);
        if self.first.is_none() {
            feed.begin(time);
        }
        self.clock(time);
        let interface_number = interface as usize;
        if self.interfaces.len() <= interface_number {
            self.interfaces.resize(interface_number + 1, false);
        }
        self.interfaces[interface_number] = true;
        if (bytes.len() as u32) < length {
            self.faults.cut += 1;
        }
        match inner(link, bytes) {
            Inner::Ip(packet) => {
                // The link headers precede the packet.
                let before = (bytes.len() - packet.len()) as u32;
                match Ip::read(packet, length.saturating_sub(before)) {
                    Some(ip) => self.ip((time, interface, length), &ip, feed),
                    None => self.other(("unreadable", None), length),
                }
            }
            Inner::Arp => self.other(("arp", None), length),
            Inner::Other(_) => self.other(("other", None), length),
            Inner::Cut => self.other(("unreadable", None), length),
            Inner::Unknown => {
                self.faults.link.get_or_insert(link);
                self.other(("unreadable", None), length);
            }
        }
    }

    fn clock(&mut self, time: i64) {
        if self.first.is_none() {
            self.first = Some(time);
            (self.earliest, self.latest, self.faults.before) = (time, time, time);
        }
        if time < self.faults.before {
            self.faults.steps_back += 1;
            self.faults.furthest_back =
                self.faults.furthest_back.max(self.faults.before.saturating_sub(time));
        }
        self.faults.before = time;
        (self.earliest, self.latest) = (self.earliest.min(time), self.latest.max(time));
    }

    fn other(&mut self, kind: Kind, length: u32) {
        if kind.0 == "unreadable" {
            self.faults.unreadable += 1;
        }
        self.ip.entry(kind).or_default().add(length);
    }

    #[inline]
    fn ip(&mut self, packet: (i64, u32, u32), ip: &Ip<'_>, feed: &mut Feed) {
        let reassembled;
        let content = match ip.place.map(|place| self.fragments.add(ip, place)) {
            None => (ip.content, ip.length),
            Some(Some((headers, whole))) => {
                reassembled = headers;
                (&reassembled[..], whole)
            }
            Some(None) => return self.other((network(ip), Some(FRAGMENT)), packet.2),
        };
        self.transport(packet, ip, content, feed);
    }

    #[inline]
    fn transport(
        &mut self,
        packet: (i64, u32, u32),
        ip: &Ip<'_>,
        content: (&[u8], u32),
        feed: &mut Feed,
    ) {
        if ip.protocol != protocol::TCP {
            self.other((network(ip), Some(ip.protocol)), packet.2);
            return;
        }
        self.tcp[usize::from(ip.version == 6)].add(packet.2);
        match feed.add(packet, ip, content) {
            Some(segment) => {
                self.faults.cut_options += u64::from(segment.tcp.options.is_cut);
            }
            None => self.faults.cut_headers += 1,
        }
    }

    fn totals(&self, file: &str, connections: u64) -> Table<CaptureTotalRow> {
        let mut table = Table::default();
        let Sum { packets, bytes } = self.all;
        let duration = self.latest.saturating_sub(self.earliest) as f64 / 1e9;
        let rate = |count: f64| (duration > 0.0).then(|| count / duration);
        let row = CaptureTotalRow {
            file: table.label(file),
            packets,
            bytes,
            captured_bytes: self.captured_bytes,
            start_s: self.first.unwrap_or(0) as f64 / 1e9,
            duration_s: duration,
            packets_per_s: rate(packets as f64),
            packet_mean_bytes: (packets > 0).then(|| bytes as f64 / packets as f64),
            rate_mbit_s: rate(bytes as f64 * 8e-6),
            connections,
            interfaces: self.interfaces.iter().filter(|&&has| has).count() as u64,
        };
        table.push(row);
        table
    }

    fn lengths(&self, file: &str) -> Table<CaptureLengthRow> {
        let mut table = Table::default();
        let mut from = 0;
        for (end, sum) in CLASSES.into_iter().zip(self.lengths) {
            let class =
                if end == u32::MAX { format!("{from}-") } else { format!("{from}-{}", end - 1) };
            let row = CaptureLengthRow {
                file: table.label(file),
                length: table.label(&class),
                packets: sum.packets,
                percent: self.percent(sum),
                bytes: sum.bytes,
            };
            table.push(row);
            from = end;
        }
        table
    }

    fn percent(&self, sum: Sum) -> f64 {
        sum.packets as f64 * 100.0 / self.all.packets.max(1) as f64
    }

    fn protocols(&self, file: &str) -> Table<CaptureProtocolRow> {
        let tcp = ["ipv4", "ipv6"].into_iter().zip(self.tcp);
        let tcp = tcp.map(|(network, sum)| ((network, Some(protocol::TCP)), sum));
        let mut found: Vec<_> =
            self.ip.iter().map(|(kind, sum)| (*kind, *sum)).chain(tcp).collect();
        found.retain(|(_, sum)| sum.packets > 0);
        found.sort_by_key(|(kind, sum)| (std::cmp::Reverse(sum.packets), *kind));
        let mut table = Table::default();
        for ((network, transport), sum) in found {
            let row = CaptureProtocolRow {
                file: table.label(file),
                network: table.label(network),
                transport: transport.map(|number| table.label(&name(number))),
                packets: sum.packets,
                percent: self.percent(sum),
                bytes: sum.bytes,
            };
            table.push(row);
        }
        table
    }
}

fn network(ip: &Ip<'_>) -> &'static str {
    if ip.version == 4 { "ipv4" } else { "ipv6" }
}

/// The name of an IP protocol.
fn name(number: u8) -> String {
    match number {
        protocol::TCP => "tcp".into(),
        protocol::UDP => "udp".into(),
        protocol::ICMP | protocol::ICMPV6 => "icmp".into(),
        protocol::SCTP => "sctp".into(),
        FRAGMENT => "fragment".into(),
        other => other.to_string(),
    }
}
