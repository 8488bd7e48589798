//! The table of packets, and the capture.

use super::{Recorder, in_time, seconds};
use crate::headers::{self, Headers, Side};
use crate::records::{Packet, Point};
use std::collections::BTreeMap;
use tcplab_tables::{PacketRow, Part, ecn, tcp_flags};

/// The bit of the ACK flag in a TCP header.
const ACK: u16 = 1 << 4;

impl Recorder<'_> {
    /// A packet is at a point of a lane.
    pub(super) fn packet(&mut self, lane: usize, time: u64, packet: Packet) {
        let record = &self.plan.record;
        let Packet { length, point, bytes } = packet;
        if record.packets.contains(&lane)
            && time <= self.job.duration
            && let Some(headers) = headers::read(&bytes, length)
        {
            self.add_packet((lane, point), time, length, &headers);
        }
        if point == Point::Leave
            && let Ok(interface) = self.captured.binary_search(&lane)
        {
            self.capture.add(interface as u32, time, length, &bytes);
        }
    }

    fn flow_of(&self, (from, to): (Side, Side)) -> Option<(usize, usize)> {
        self.clients.get(&from).or_else(|| self.clients.get(&to)).copied()
    }

    fn add_packet(
        &mut self,
        (lane, point): (usize, Point),
        time: u64,
        length: u32,
        headers: &Headers,
    ) {
        let sides = (headers.from, headers.to);
        let flow = self.flow_of(sides).map(|(flow, _)| &self.plan.flows[flow].name);
        let table = &mut self.tables.packets;
        let flow = match flow {
            Some(name) => table.label(name),
            // Names have no line breaks, so this label is unique.
            None => {
                *self.strangers.entry(sides).or_insert_with(|| table.label(&format!("\n{sides:?}")))
            }
        };
        let flags = headers.tcp.map(|tcp| tcp.flags);
        let row = PacketRow {
            run: table.label(&self.plan.id),
            time_s: seconds(time),
            link: table.label(&self.plan.lanes[lane].name),
            point: table.label(point.name()),
            flow: Some(flow),
            transport: table.label(headers.transport),
            seq: headers.tcp.map(|tcp| tcp.seq.into()),
            ack: headers.tcp.filter(|tcp| tcp.flags & ACK != 0).map(|tcp| tcp.ack.into()),
            window: headers.tcp.map(|tcp| tcp.window.into()),
            flags: flags.map(|flags| table.label(&tcp_flags(flags))),
            ecn: ecn(headers.ecn).map(|ecn| table.label(ecn)),
            payload_bytes: headers.payload_bytes.into(),
            bytes: length.into(),
        };
        table.push(row);
    }

    /// Sorts the rows, and finds flows that were unknown: the first packets of a program's
    /// connection leave before the kernel reports it.
    pub(super) fn order_packets(&mut self) {
        let mut flows = BTreeMap::new();
        for (sides, stranger) in std::mem::take(&mut self.strangers) {
            let name = self.flow_of(sides).map(|(flow, _)| &self.plan.flows[flow].name);
            flows.insert(stranger, name.map(|name| self.tables.packets.label(name)));
        }
        let times = |part: &Part<'_, PacketRow>| in_time(part.numbers("time_s"));
        let packets = &self.tables.packets;
        self.tables.packets = packets.in_order(|part| part.relabel("flow", &flows), times);
    }
}
