//! The table of packets of chosen connections.

use super::connection::{Connection, Side};
use super::direction::PacketKind;
use super::recovery::Cause;
use super::segment::Segment;
use crate::decode::Flags;
use tcplab_tables::{Label, Table, ecn, rows, tcp_flags};

rows! {
    /// One packet of a captured connection, in the order of the capture.
    ///
    /// Sequence numbers are relative, as in Wireshark: the SYN has 0 and the first byte of data 1.
    /// Without the SYN, the first byte seen has 1.
    "capture_packets" CapturePacketRow CapturePacketColumns {
        /// The number of the connection, as in `capture_flows`.
        connection: u64,
        /// The capture time, in seconds after the first packet of the capture.
        time_s: f64,
        /// The sender: `client` or `server`.
        sender: Label,
        /// The kind of packet: `data`; retransmitted data by cause: `fast`, `probe`, `timeout` or
        /// `after timeout`; `out of order`, reordered data; `ack`, without data; `control`, a SYN
        /// or a FIN, and `control again`; `keepalive`; `window probe`, sent to a closed window;
        /// `reset`; `copy`, a duplicate in the capture; `strange`, with an impossible sequence
        /// number.
        kind: Label,
        /// The TCP flags.
        flags: Label,
        /// The sequence number of the first byte.
        seq: Option<u64>,
        /// Bytes of data.
        payload_bytes: u64,
        /// The acknowledgment number: the next byte expected from the other side.
        ack: Option<u64>,
        /// The advertised window, scaled.
        window_bytes: u64,
        /// The SACK blocks, each from the first byte to the one behind the last:
        /// `3001-4001 5001-6001`. A block that `ack` covers is a DSACK.
        sack: Option<Label>,
        /// The ECN field of IP, unless it is zero: `ECT(0)`, `ECT(1)` or `CE`.
        ecn: Option<Label>,
    }
}

/// Adds a packet. `begin`: when the first packet was captured.
pub(super) fn push(
    table: &mut Table<CapturePacketRow>,
    connection: &Connection,
    begin: i64,
    segment: &Segment,
    kind: PacketKind,
) {
    let tcp = &segment.tcp;
    let side = connection.side(segment);
    let [client, server] = &connection.halves;
    let (name, me, other) = match side {
        Side::Client => ("client", client, server),
        Side::Server => ("server", server, client),
    };
    let blocks = tcp.options.sack().iter().filter_map(|&(from, to)| {
        Some(format!("{}-{}", other.relative(from)?, other.relative(to)?))
    });
    let sack = blocks.collect::<Vec<_>>().join(" ");
    let has_ack = tcp.flags.has(Flags::ACK);
    let row = CapturePacketRow {
        connection: connection.number,
        time_s: (segment.time - begin) as f64 / 1e9,
        sender: table.label(name),
        kind: table.label(kind.name()),
        flags: table.label(&tcp_flags(tcp.flags.0)),
        seq: me.relative(tcp.seq),
        payload_bytes: tcp.payload.into(),
        ack: if has_ack { other.relative(tcp.ack) } else { None },
        window_bytes: connection.window(side, tcp),
        sack: (!sack.is_empty()).then(|| table.label(&sack)),
        ecn: ecn(segment.ecn).map(|ecn| table.label(ecn)),
    };
    table.push(row);
}

impl PacketKind {
    /// The name in the table.
    fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Control => "control",
            Self::Data => "data",
            Self::OutOfOrder => "out of order",
            Self::Keepalive => "keepalive",
            Self::WindowProbe => "window probe",
            Self::RetransmittedControl => "control again",
            Self::Retransmitted(Cause::Fast) => "fast",
            Self::Retransmitted(Cause::Probe) => "probe",
            Self::Retransmitted(Cause::Timeout) => "timeout",
            Self::Retransmitted(Cause::AfterTimeout) => "after timeout",
            Self::Reset => "reset",
            Self::Copy => "copy",
            Self::Impossible => "strange",
        }
    }
}
