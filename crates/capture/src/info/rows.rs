//! The tables about a capture as a whole.

use tcplab_tables::{Label, rows};

rows! {
    /// One capture.
    "capture_totals" CaptureTotalRow CaptureTotalColumns {
        /// The file.
        file: Label,
        /// The number of packets.
        packets: u64,
        /// Bytes of the packets on the wire, with link headers.
        bytes: u64,
        /// Bytes that were captured.
        captured_bytes: u64,
        /// When the first packet was captured, in seconds after the epoch of the capture (1970, or
        /// the start of the experiment).
        start_s: f64,
        /// Seconds from the earliest packet to the latest.
        duration_s: f64,
        /// The mean number of packets in a second.
        packets_per_s: Option<f64>,
        /// The mean packet size in bytes.
        packet_mean_bytes: Option<f64>,
        /// The mean rate in Mbit/s.
        rate_mbit_s: Option<f64>,
        /// The number of TCP connections.
        connections: u64,
        /// The number of interfaces with packets.
        interfaces: u64,
    }

    /// Packets of a length class, as in Wireshark and tshark.
    "capture_lengths" CaptureLengthRow CaptureLengthColumns {
        /// The file.
        file: Label,
        /// The class: `40-79` bytes on the wire.
        length: Label,
        /// The number of packets in this class.
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
        /// The network protocol: `ipv4`, `ipv6`, `arp`, `other`, or `unreadable`.
        network: Label,
        /// The transport protocol: `tcp`, `udp`, `icmp`, `sctp`, `fragment` (without a transport
        /// header), or the number of the protocol; empty if not IP.
        transport: Option<Label>,
        /// The number of packets.
        packets: u64,
        /// Their share of all packets.
        percent: f64,
        /// Their bytes.
        bytes: u64,
    }

    /// A fault of a capture.
    "capture_faults" CaptureFaultRow CaptureFaultColumns {
        /// The file.
        file: Label,
        /// The name of the fault: `one direction`, `snap length`, `headers`, `missing packets`,
        /// `dropped packets`, `offload`, `clock`, `duplicates`, `damage`, `unreadable packets`,
        /// `fragments`, `handshakes`, `connections`.
        fault: Label,
        /// The number of packets, bytes or connections, as the next column says.
        count: u64,
        /// The observation.
        seen: Label,
        /// The facts that cannot be known because of the fault.
        unknown: Label,
    }
}
