//! The table of packets, and those that are captured.

use super::{Recorder, seconds};
use crate::headers::{self, Headers};
use tcplab_tables::{PacketRow, ecn, tcp_flags};

/// The bit of the ACK flag in a TCP header.
const ACK: u16 = 1 << 4;

/// A packet that left a queue.
pub(super) struct Seen {
    time: u64,
    lane: usize,
    flow: Option<String>,
    length: u32,
    headers: Headers,
}

impl Recorder<'_> {
    /// The transmission of a packet begins.
    pub(super) fn packet(&mut self, lane: usize, time: u64, length: u32, bytes: Vec<u8>) {
        let record = &self.plan.record;
        if record.packets.contains(&lane)
            && time <= self.job.duration
            && let Some(headers) = headers::read(&bytes, length)
        {
            let key = self.flow_of(&headers);
            let flow = key.map(|key| self.name(key));
            self.packets.push(Seen { time, lane, flow, length, headers });
        }
        if record.captures.contains(&lane) {
            self.capture.add(lane as u32, time, length, bytes);
        }
    }

    fn flow_of(&self, headers: &Headers) -> Option<(usize, usize)> {
        let client = self.clients.get(&headers.from).or_else(|| self.clients.get(&headers.to));
        client.copied()
    }

    pub(super) fn add_packets(&mut self) {
        let mut packets = std::mem::take(&mut self.packets);
        packets.sort_by_key(|seen| seen.time);
        for Seen { time, lane, flow, length, headers } in packets {
            // The first packets of a program's connection leave before the kernel tells of it.
            let flow = flow.or_else(|| self.flow_of(&headers).map(|key| self.name(key)));
            let table = &mut self.tables.packets;
            let flags = headers.tcp.map(|tcp| tcp.flags);
            let row = PacketRow {
                run: table.label(&self.plan.id),
                time_s: seconds(time),
                link: table.label(&self.plan.lanes[lane].name),
                point: table.label("leave"),
                flow: flow.map(|flow| table.label(&flow)),
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
    }
}
