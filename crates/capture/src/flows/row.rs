//! The table of connections.

use super::connection::{Connection, Side};
use super::direction::Half;
use super::recovery::Cause;
use super::sender_limits::Wait;
use tcplab_tables::{Label, Part, Table, rows};

rows! {
    /// One TCP connection of a capture.
    ///
    /// Columns that begin with `client_` are about packets that the client sent, those with
    /// `server_` about packets that the server sent.
    "capture_flows" CaptureFlowRow CaptureFlowColumns {
        /// The number of the connection, in the order of first packets, from 0.
        connection: u64,
        /// The address of the side that opened the connection. Without the handshake, the side with
        /// the larger port.
        client: Label,
        /// The port of the client.
        client_port: u64,
        /// The address of the server.
        server: Label,
        /// The port of the server.
        server_port: u64,
        /// When the first packet was captured, in seconds after the first packet of the capture.
        start_s: f64,
        /// Seconds from the first packet to the last.
        duration_s: f64,
        /// Milliseconds from the first SYN to the ACK that ends the handshake.
        handshake_ms: Option<f64>,
        /// The options agreed on in the handshake: `sack`, `timestamps`, `window scale`.
        options: Label,
        /// How the connection ended: `closed by client` (whose FIN came first), `closed by server`,
        /// `half closed`, `reset by client`, `reset by server`, `refused`, `unanswered`, or `open`
        /// at the end of the capture.
        closed: Label,
        /// The side that sent more data: `client` or `server`. The columns that begin with `time_`
        /// say what this side's time was spent on.
        sender: Label,
        /// Data of that side over the duration, in Mbit/s, without retransmissions.
        goodput_mbit_s: Option<f64>,
        /// Time of the sender in the handshake, in percent of the duration. If several reasons
        /// apply, the first of these columns counts; all seven sum to 100.
        time_handshake_percent: Option<f64>,
        /// Time after the first FIN in which nothing was in flight.
        time_close_percent: Option<f64>,
        /// Time in which the sender waited for the retransmission timer, or retransmitted the data
        /// in flight at the timeout.
        time_timeout_percent: Option<f64>,
        /// Time in which the sender repaired losses indicated by ACKs.
        time_recovery_percent: Option<f64>,
        /// Time in which the other side's window had no room for a segment.
        time_peer_window_percent: Option<f64>,
        /// Time in which data was in flight and no other reason is visible: the limit is the
        /// congestion window, or pacing.
        time_window_percent: Option<f64>,
        /// Time in which there was nothing to send: nothing was in flight, or the last segment was
        /// less than full.
        time_application_percent: Option<f64>,
        /// Seconds in which nothing was in flight in either direction, between handshake and close.
        idle_s: f64,
        /// The longest time without a packet, in seconds.
        longest_gap_s: f64,
        /// Packets that the capture has twice, as from mirror ports. They count as packets and as
        /// bytes on the wire, and nowhere else.
        duplicate_packets: u64,
        /// Packets that the client sent.
        client_packets: u64,
        /// Bytes of these packets, with link headers, as counted by `tshark -z conv,tcp`.
        client_wire_bytes: u64,
        /// Bytes of data that the client sent, without retransmissions.
        client_bytes: u64,
        /// Segments with data that the client sent. A packet with several segments, which a network
        /// card segments later or has merged, counts as the number that it needs by the MSS.
        client_segments: u64,
        /// Segments with data that the client retransmitted.
        client_retransmitted_segments: u64,
        /// Bytes of the retransmitted segments.
        client_retransmitted_bytes: u64,
        /// Retransmitted segments due to ACKs: duplicate ACKs, SACK, or RACK.
        client_retransmitted_fast: u64,
        /// Retransmitted segments that were tail loss probes.
        client_retransmitted_probe: u64,
        /// Retransmitted segments due to the retransmission timer.
        client_retransmitted_timeout: u64,
        /// Retransmitted segments due to ACKs after a timeout, until the data then in flight is
        /// acknowledged.
        client_retransmitted_after_timeout: u64,
        /// Spurious retransmissions of all causes, by DSACK or timestamps.
        client_retransmitted_spurious: u64,
        /// SYNs or SYN-ACKs that the client retransmitted.
        client_retransmitted_handshake: u64,
        /// FINs without data that the client retransmitted.
        client_retransmitted_fins: u64,
        /// Segments of the client that were reordered before the capture point.
        client_out_of_order_segments: u64,
        /// Bytes that the client sent and that are not in the capture: lost before the capture
        /// point, or by the capturing program.
        client_missing_bytes: u64,
        /// Keepalive probes of the client.
        client_keepalives: u64,
        /// Duplicate ACKs of the client while data was missing: nothing new acknowledged, with the
        /// same window or new SACK blocks.
        client_duplicate_acks: u64,
        /// SACK blocks that the client sent, DSACKs included.
        client_sack_blocks: u64,
        /// ACKs with a DSACK that the client sent.
        client_dsacks: u64,
        /// The mean number of segments acknowledged by an ACK of the client that acknowledged data:
        /// 1 for an ACK per segment, 2 with delayed ACKs.
        client_segments_per_ack: Option<f64>,
        /// The largest window that the client advertised.
        client_window_max_bytes: u64,
        /// The smallest window that the client advertised after the handshake.
        client_window_min_bytes: Option<u64>,
        /// Packets with a closed window of the client.
        client_zero_windows: u64,
        /// The MSS that the client announced.
        client_mss_bytes: Option<u64>,
        /// The window scale that the client announced.
        client_window_scale: Option<u64>,
        /// The largest segment that the client sent.
        client_largest_segment_bytes: u64,
        /// Bytes of data that the client sent before the first of them were acknowledged: its
        /// initial window, if it had enough data; empty without the handshake.
        client_initial_window_bytes: Option<u64>,
        /// RTT samples of the client's data: from the capture point to the other side and back. An
        /// ACK gives a sample if it acknowledges a segment that was sent once.
        client_rtt_samples: u64,
        /// The minimum of these RTTs in milliseconds.
        client_rtt_min_ms: Option<f64>,
        /// Their mean in milliseconds.
        client_rtt_mean_ms: Option<f64>,
        /// Their median in milliseconds. Percentiles are within 0.4 %.
        client_rtt_p50_ms: Option<f64>,
        /// The 95th percentile in milliseconds.
        client_rtt_p95_ms: Option<f64>,
        /// The 99th percentile in milliseconds.
        client_rtt_p99_ms: Option<f64>,
        /// The maximum in milliseconds.
        client_rtt_max_ms: Option<f64>,
        /// The RTT between the capture point and the client in milliseconds, from the handshake:
        /// about 0 if captured at the client; 0 without a handshake.
        client_near_rtt_ms: f64,
        /// Packets of the client that carried a CE mark at the capture point.
        client_ce_packets: u64,
        /// Packets after the handshake in which the client echoed marks (ECE).
        client_ece_packets: u64,
        /// Packets after the handshake in which the client reported a reduced window (CWR).
        client_cwr_packets: u64,
        /// Packets that the server sent.
        server_packets: u64,
        /// Bytes of these packets, with link headers, as counted by `tshark -z conv,tcp`.
        server_wire_bytes: u64,
        /// Bytes of data that the server sent, without retransmissions.
        server_bytes: u64,
        /// Segments with data that the server sent. A packet with several segments, which a network
        /// card segments later or has merged, counts as the number that it needs by the MSS.
        server_segments: u64,
        /// Segments with data that the server retransmitted.
        server_retransmitted_segments: u64,
        /// Bytes of the retransmitted segments.
        server_retransmitted_bytes: u64,
        /// Retransmitted segments due to ACKs: duplicate ACKs, SACK, or RACK.
        server_retransmitted_fast: u64,
        /// Retransmitted segments that were tail loss probes.
        server_retransmitted_probe: u64,
        /// Retransmitted segments due to the retransmission timer.
        server_retransmitted_timeout: u64,
        /// Retransmitted segments due to ACKs after a timeout, until the data then in flight is
        /// acknowledged.
        server_retransmitted_after_timeout: u64,
        /// Spurious retransmissions of all causes, by DSACK or timestamps.
        server_retransmitted_spurious: u64,
        /// SYNs or SYN-ACKs that the server retransmitted.
        server_retransmitted_handshake: u64,
        /// FINs without data that the server retransmitted.
        server_retransmitted_fins: u64,
        /// Segments of the server that were reordered before the capture point.
        server_out_of_order_segments: u64,
        /// Bytes that the server sent and that are not in the capture: lost before the capture
        /// point, or by the capturing program.
        server_missing_bytes: u64,
        /// Keepalive probes of the server.
        server_keepalives: u64,
        /// Duplicate ACKs of the server while data was missing: nothing new acknowledged, with the
        /// same window or new SACK blocks.
        server_duplicate_acks: u64,
        /// SACK blocks that the server sent, DSACKs included.
        server_sack_blocks: u64,
        /// ACKs with a DSACK that the server sent.
        server_dsacks: u64,
        /// The mean number of segments acknowledged by an ACK of the server that acknowledged data:
        /// 1 for an ACK per segment, 2 with delayed ACKs.
        server_segments_per_ack: Option<f64>,
        /// The largest window that the server advertised.
        server_window_max_bytes: u64,
        /// The smallest window that the server advertised after the handshake.
        server_window_min_bytes: Option<u64>,
        /// Packets with a closed window of the server.
        server_zero_windows: u64,
        /// The MSS that the server announced.
        server_mss_bytes: Option<u64>,
        /// The window scale that the server announced.
        server_window_scale: Option<u64>,
        /// The largest segment that the server sent.
        server_largest_segment_bytes: u64,
        /// Bytes of data that the server sent before the first of them were acknowledged: its
        /// initial window, if it had enough data; empty without the handshake.
        server_initial_window_bytes: Option<u64>,
        /// RTT samples of the server's data: from the capture point to the other side and back. An
        /// ACK gives a sample if it acknowledges a segment that was sent once.
        server_rtt_samples: u64,
        /// The minimum of these RTTs in milliseconds.
        server_rtt_min_ms: Option<f64>,
        /// Their mean in milliseconds.
        server_rtt_mean_ms: Option<f64>,
        /// Their median in milliseconds. Percentiles are within 0.4 %.
        server_rtt_p50_ms: Option<f64>,
        /// The 95th percentile in milliseconds.
        server_rtt_p95_ms: Option<f64>,
        /// The 99th percentile in milliseconds.
        server_rtt_p99_ms: Option<f64>,
        /// The maximum in milliseconds.
        server_rtt_max_ms: Option<f64>,
        /// The RTT between the capture point and the server in milliseconds, from the handshake:
        /// about 0 if captured at the server; 0 without a handshake.
        server_near_rtt_ms: f64,
        /// Packets of the server that carried a CE mark at the capture point.
        server_ce_packets: u64,
        /// Packets after the handshake in which the server echoed marks (ECE).
        server_ece_packets: u64,
        /// Packets after the handshake in which the server reported a reduced window (CWR).
        server_cwr_packets: u64,
    }
}

/// Adds a row for a connection. `begin`: the time of the first packet.
#[expect(clippy::too_many_lines, reason = "a line for each column")]
pub(super) fn push(table: &mut Table<CaptureFlowRow>, connection: &Connection, begin: i64) {
    let duration = connection.last - connection.start;
    let [c, s] = &connection.halves;
    let (most, sender) = match connection.sender() {
        Side::Client => (c, "client"),
        Side::Server => (s, "server"),
    };
    let [rtt_c, rtt_s] = [c, s].map(|half| half.round_trips.range());
    let time = most.time.percent();
    let goodput = (duration > 0).then(|| most.count.bytes as f64 * 8e3 / duration as f64);
    let client = table.label(&connection.client.0.to_string());
    let server = table.label(&connection.server.0.to_string());
    let options = table.label(&agreed([c, s]));
    let closed = table.label(connection.closed());
    let sender = table.label(sender);
    table.push(CaptureFlowRow {
        connection: connection.number,
        client,
        client_port: connection.client.1.into(),
        server,
        server_port: connection.server.1.into(),
        start_s: seconds(connection.start - begin),
        duration_s: seconds(duration),
        handshake_ms: connection.handshake.map(|time| time as f64 / 1e6),
        options,
        closed,
        sender,
        goodput_mbit_s: goodput,
        time_handshake_percent: time[Wait::Handshake as usize],
        time_close_percent: time[Wait::Close as usize],
        time_timeout_percent: time[Wait::Timeout as usize],
        time_recovery_percent: time[Wait::Recovery as usize],
        time_peer_window_percent: time[Wait::PeerWindow as usize],
        time_window_percent: time[Wait::CongestionWindow as usize],
        time_application_percent: time[Wait::Application as usize],
        idle_s: seconds(connection.idle),
        longest_gap_s: seconds(connection.longest_gap),
        duplicate_packets: connection.duplicates,
        client_packets: c.count.packets,
        client_wire_bytes: c.count.wire_bytes,
        client_bytes: c.count.bytes,
        client_segments: c.count.segments,
        client_retransmitted_segments: c.count.retransmitted_segments,
        client_retransmitted_bytes: c.count.retransmitted_bytes,
        client_retransmitted_fast: c.count.causes[Cause::Fast as usize],
        client_retransmitted_probe: c.count.causes[Cause::Probe as usize],
        client_retransmitted_timeout: c.count.causes[Cause::Timeout as usize],
        client_retransmitted_after_timeout: c.count.causes[Cause::AfterTimeout as usize],
        client_retransmitted_spurious: c.count.spurious,
        client_retransmitted_handshake: c.count.retransmitted_handshakes,
        client_retransmitted_fins: c.count.retransmitted_fins,
        client_out_of_order_segments: c.count.out_of_order,
        client_missing_bytes: c.count.missing_bytes,
        client_keepalives: c.count.keepalives,
        client_duplicate_acks: c.count.duplicate_acks,
        client_sack_blocks: c.count.sack_blocks,
        client_dsacks: c.count.dsacks,
        client_segments_per_ack: ratio(c.count.acked_segments, c.count.advancing_acks),
        client_window_max_bytes: c.count.window_max,
        client_window_min_bytes: c.count.window_min,
        client_zero_windows: c.count.zero_windows,
        client_mss_bytes: c.mss.map(u64::from),
        client_window_scale: c.scale.map(u64::from),
        client_largest_segment_bytes: c.count.largest_segment,
        client_initial_window_bytes: c.has_syn.then_some(c.count.initial_window),
        client_rtt_samples: c.round_trips.count(),
        client_rtt_min_ms: rtt_c.map(|[least, ..]| least),
        client_rtt_mean_ms: rtt_c.map(|[_, mean, _]| mean),
        client_rtt_p50_ms: c.round_trips.percentile(50),
        client_rtt_p95_ms: c.round_trips.percentile(95),
        client_rtt_p99_ms: c.round_trips.percentile(99),
        client_rtt_max_ms: rtt_c.map(|[.., greatest]| greatest),
        client_near_rtt_ms: c.recovery.sender_rtt as f64 / 1e6,
        client_ce_packets: c.count.ce,
        client_ece_packets: c.count.ece,
        client_cwr_packets: c.count.cwr,
        server_packets: s.count.packets,
        server_wire_bytes: s.count.wire_bytes,
        server_bytes: s.count.bytes,
        server_segments: s.count.segments,
        server_retransmitted_segments: s.count.retransmitted_segments,
        server_retransmitted_bytes: s.count.retransmitted_bytes,
        server_retransmitted_fast: s.count.causes[Cause::Fast as usize],
        server_retransmitted_probe: s.count.causes[Cause::Probe as usize],
        server_retransmitted_timeout: s.count.causes[Cause::Timeout as usize],
        server_retransmitted_after_timeout: s.count.causes[Cause::AfterTimeout as usize],
        server_retransmitted_spurious: s.count.spurious,
        server_retransmitted_handshake: s.count.retransmitted_handshakes,
        server_retransmitted_fins: s.count.retransmitted_fins,
        server_out_of_order_segments: s.count.out_of_order,
        server_missing_bytes: s.count.missing_bytes,
        server_keepalives: s.count.keepalives,
        server_duplicate_acks: s.count.duplicate_acks,
        server_sack_blocks: s.count.sack_blocks,
        server_dsacks: s.count.dsacks,
        server_segments_per_ack: ratio(s.count.acked_segments, s.count.advancing_acks),
        server_window_max_bytes: s.count.window_max,
        server_window_min_bytes: s.count.window_min,
        server_zero_windows: s.count.zero_windows,
        server_mss_bytes: s.mss.map(u64::from),
        server_window_scale: s.scale.map(u64::from),
        server_largest_segment_bytes: s.count.largest_segment,
        server_initial_window_bytes: s.has_syn.then_some(s.count.initial_window),
        server_rtt_samples: s.round_trips.count(),
        server_rtt_min_ms: rtt_s.map(|[least, ..]| least),
        server_rtt_mean_ms: rtt_s.map(|[_, mean, _]| mean),
        server_rtt_p50_ms: s.round_trips.percentile(50),
        server_rtt_p95_ms: s.round_trips.percentile(95),
        server_rtt_p99_ms: s.round_trips.percentile(99),
        server_rtt_max_ms: rtt_s.map(|[.., greatest]| greatest),
        server_near_rtt_ms: s.recovery.sender_rtt as f64 / 1e6,
        server_ce_packets: s.count.ce,
        server_ece_packets: s.count.ece,
        server_cwr_packets: s.count.cwr,
    });
}

/// The rows in the order of their connections' first packets.
pub(super) fn in_order(table: &Table<CaptureFlowRow>) -> Table<CaptureFlowRow> {
    let numbers = |part: &Part<'_, CaptureFlowRow>| {
        part.integers("connection").iter().copied().map(Some).collect()
    };
    table.in_order(|_| {}, numbers)
}

fn agreed(halves: [&Half; 2]) -> String {
    type Has = fn(&Half) -> bool;
    let options: [(&str, Has); 3] = [
        ("sack", |half| half.sack_permitted),
        ("timestamps", |half| half.timestamps),
        ("window scale", |half| half.scale.is_some()),
    ];
    let agreed = options.into_iter().filter(|(_, has)| halves.iter().all(|half| has(half)));
    agreed.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}
