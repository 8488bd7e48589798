//! The tables about a capture as a whole.

use tcplab_tables::{Label, rows};

rows! {
    /// One capture.
    "capture_totals" CaptureTotalRow CaptureTotalColumns {
        /// The file.
        file: Label,
        /// Packets.
        packets: u64,
        /// Bytes of the packets as they were on the wire, with the headers of the link.
        bytes: u64,
        /// Bytes of them that were kept.
        captured_bytes: u64,
        /// When the first packet was captured, in seconds after the epoch of the capture (1970, or the start
        /// of the experiment).
        start_s: f64,
        /// Seconds from the earliest packet to the latest.
        duration_s: f64,
        /// Packets in a second, on average.
        packets_per_s: Option<f64>,
        /// Bytes of a packet, on average.
        packet_mean_bytes: Option<f64>,
        /// The average rate in Mbit/s.
        rate_mbit_s: Option<f64>,
        /// TCP connections.
        connections: u64,
        /// Interfaces of which there are packets.
        interfaces: u64,
    }

    /// Packets of a class of lengths, those of Wireshark and tshark.
    "capture_lengths" CaptureLengthRow CaptureLengthColumns {
        /// The file.
        file: Label,
        /// The class: `40-79` bytes on the wire.
        length: Label,
        /// Packets of this class.
        packets: u64,
        /// Their share of all packets.
        percent: f64,
        /// Their bytes.
        bytes: u64,
    }

    /// Packets of a protocol.
    "capture_protocols" CaptureProtocolRow CaptureProtocolColumns {
        /// The file.
        file: Label,
        /// What the link carries: `ipv4`, `ipv6`, `arp`, `other`, or `unreadable`.
        network: Label,
        /// What IP carries: `tcp`, `udp`, `icmp`, `sctp`, `fragment` (without the header of its transport),
        /// or the number of the protocol; nothing if it is not IP.
        transport: Option<Label>,
        /// Packets.
        packets: u64,
        /// Their share of all packets.
        percent: f64,
        /// Their bytes.
        bytes: u64,
    }

    /// What is wrong with a capture.
    "capture_faults" CaptureFaultRow CaptureFaultColumns {
        /// The file.
        file: Label,
        /// Its name: `one direction`, `snap length`, `headers`, `missing packets`, `dropped packets`,
        /// `offload`, `clock`, `duplicates`, `damage`, `unreadable packets`, `fragments`, `handshakes`,
        /// `connections`.
        fault: Label,
        /// How often: packets, bytes or connections, as the next column says.
        count: u64,
        /// What was seen.
        seen: Label,
        /// What cannot be known because of it.
        unknown: Label,
    }
}
