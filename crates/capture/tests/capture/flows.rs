//! Analyses of connections.

use crate::packets::{
    ACK, FIN, PUSH, RST, SYN, SYN_OPTIONS, Segment, Written, read, segment, value,
};
use tcplab_capture::Writer;

/// Values of the first connection, by column.
fn values(written: &Written, columns: &[&str]) -> Vec<String> {
    let flows = written.info().flows;
    columns.iter().map(|column| value(&flows, 0, column)).collect()
}

/// One SACK block, padded.
fn sack(from: u32, to: u32) -> [u8; 12] {
    let mut option = [1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    option[4..8].copy_from_slice(&from.to_be_bytes());
    option[8..].copy_from_slice(&to.to_be_bytes());
    option
}

/// Data of the client in segments of 1000 bytes, from segment `from` on, counted from 0.
fn data(written: &mut Written, at: f64, from: u32, number: u32) {
    for n in from..from + number {
        written.client(segment(at, ACK, 1001 + 1000 * n, 9001, 1000));
    }
}

/// The server acknowledges so many segments.
fn acknowledge(written: &mut Written, at: f64, segments: u32) {
    written.server(segment(at, ACK, 9001, 1001 + 1000 * segments, 0));
}

#[test]
fn handshake_data_and_close_of_a_connection_are_analysed() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 4);
    acknowledge(&mut written, 40.0, 2);
    acknowledge(&mut written, 42.0, 4);
    written.client(segment(100.0, ACK | PUSH, 5001, 9001, 500));
    written.server(segment(120.0, ACK | PUSH, 9001, 5501, 300));
    written.client(segment(120.0, FIN | ACK, 5501, 9301, 0));
    written.server(segment(140.0, FIN | ACK, 9301, 5502, 0));
    written.client(segment(140.0, ACK, 5502, 9302, 0));
    let columns = [
        ("client", "10.0.0.1"),
        ("client_port", "10001"),
        ("server", "10.0.0.2"),
        ("server_port", "5001"),
        ("duration_s", "0.140"),
        ("handshake_ms", "20.000"),
        ("options", "sack, window scale"),
        ("closed", "closed by client"),
        ("sender", "client"),
        ("client_packets", "9"),
        ("server_packets", "5"),
        // 40 bytes of headers, and 12 more of options in a SYN.
        ("client_wire_bytes", "4872"),
        ("client_bytes", "4500"),
        ("client_segments", "5"),
        ("client_initial_window_bytes", "4000"),
        ("client_largest_segment_bytes", "1000"),
        ("server_bytes", "300"),
        ("client_mss_bytes", "1000"),
        ("client_window_scale", "2"),
        ("server_window_max_bytes", "200000"),
        ("server_segments_per_ack", "1.667"),
        ("server_rtt_min_ms", "0.000"),
        ("client_rtt_samples", "4"),
        ("client_rtt_min_ms", "20.000"),
        ("client_rtt_max_ms", "22.000"),
        ("client_near_rtt_ms", "0.000"),
        // 20 ms of 140. From 42 to 100 ms there is nothing to send, as the last 500 bytes are no
        // full segment.
        ("time_handshake_percent", "14.286"),
        ("time_window_percent", "15.714"),
        ("time_application_percent", "55.714"),
        ("time_close_percent", "14.286"),
        ("idle_s", "0.058"),
        ("longest_gap_s", "0.058"),
    ];
    for (column, expected) in columns {
        assert_eq!(values(&written, &[column]), [expected], "{column}");
    }
}

const CAUSES: [&str; 6] = [
    "client_retransmitted_segments",
    "client_retransmitted_fast",
    "client_retransmitted_probe",
    "client_retransmitted_timeout",
    "client_retransmitted_after_timeout",
    "client_retransmitted_spurious",
];

#[test]
fn an_ack_with_sack_causes_a_fast_retransmission() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 5);
    for n in 1..5 {
        let block = sack(2001, 2001 + 1000 * n);
        written.server(Segment { options: &block, ..segment(40.0, ACK, 9001, 1001, 0) });
    }
    data(&mut written, 40.1, 0, 1);
    acknowledge(&mut written, 60.0, 5);
    assert_eq!(values(&written, &CAUSES), ["1", "1", "0", "0", "0", "0"]);
    assert_eq!(values(&written, &["server_duplicate_acks", "server_sack_blocks"]), ["4", "4"]);
    // From the retransmission to its ACK.
    assert_eq!(values(&written, &["time_recovery_percent"]), ["33.167"]);
}

#[test]
fn the_last_segment_after_a_silence_is_a_probe_and_the_first_a_timeout() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 3);
    // After twice the round trip without an ACK.
    data(&mut written, 64.0, 2, 1);
    // The timeout: 20 ms and 200 ms.
    data(&mut written, 300.0, 0, 1);
    acknowledge(&mut written, 320.0, 1);
    // ACKs trigger the rest.
    data(&mut written, 320.0, 1, 2);
    acknowledge(&mut written, 340.0, 3);
    assert_eq!(values(&written, &CAUSES), ["4", "0", "1", "1", "2", "0"]);
    let spent = values(&written, &["time_timeout_percent", "time_window_percent"]);
    // 280 ms of silence and 40 of recovery, of 340.
    assert_eq!(spent, ["94.118", "0.000"]);
}

#[test]
fn a_dsack_marks_a_retransmission_as_spurious() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 2);
    data(&mut written, 300.0, 0, 1);
    acknowledge(&mut written, 301.0, 2);
    let block = sack(1001, 2001);
    written.server(Segment { options: &block, ..segment(320.0, ACK, 9001, 3001, 0) });
    assert_eq!(values(&written, &CAUSES), ["1", "0", "0", "1", "0", "1"]);
    assert_eq!(values(&written, &["server_dsacks", "server_duplicate_acks"]), ["1", "0"]);
}

#[test]
fn a_connection_without_its_handshake_is_analysed() {
    let mut written = Written::new();
    data(&mut written, 0.0, 0, 2);
    acknowledge(&mut written, 10.0, 2);
    let columns =
        ["client_port", "options", "handshake_ms", "client_initial_window_bytes", "closed"];
    assert_eq!(values(&written, &columns), ["10001", "", "-", "-", "open"]);
    assert_eq!(values(&written, &["client_bytes", "client_rtt_mean_ms"]), ["2000", "10.000"]);
}

#[test]
fn reordering_is_not_a_retransmission_unless_it_is_late() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 1, 1);
    data(&mut written, 22.0, 0, 1);
    assert_eq!(
        values(&written, &["client_out_of_order_segments", "client_retransmitted_segments"]),
        ["1", "0"]
    );
    // A segment a round trip later was lost before the capture, and retransmitted.
    data(&mut written, 30.0, 3, 1);
    data(&mut written, 60.0, 2, 1);
    let columns =
        ["client_out_of_order_segments", "client_retransmitted_segments", "client_missing_bytes"];
    assert_eq!(values(&written, &columns), ["1", "1", "0"]);
    assert_eq!(values(&written, &["client_bytes"]), ["4000"]);
}

#[test]
fn waiting_for_a_closed_window_counts_as_peer_window() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 2);
    written.server(Segment { window: 0, ..segment(40.0, ACK, 9001, 3001, 0) });
    // A window probe (Linux: a byte that is acknowledged), and its response.
    written.client(segment(240.0, ACK, 3000, 9001, 0));
    written.server(Segment { window: 0, ..segment(260.0, ACK, 9001, 3001, 0) });
    written.server(segment(520.0, ACK, 9001, 3001, 0));
    data(&mut written, 520.0, 2, 1);
    acknowledge(&mut written, 540.0, 3);
    let columns = ["server_zero_windows", "server_window_min_bytes", "time_peer_window_percent"];
    // 480 ms of 540.
    assert_eq!(values(&written, &columns), ["2", "0", "88.889"]);
}

#[test]
fn shares_of_time_sum_to_100_percent() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 9);
    acknowledge(&mut written, 45.0, 3);
    data(&mut written, 300.0, 3, 1);
    acknowledge(&mut written, 340.0, 9);
    written.client(segment(500.0, FIN | ACK, 10_001, 9001, 0));
    written.server(segment(520.0, RST, 9001, 0, 0));
    let parts =
        ["handshake", "close", "timeout", "recovery", "peer_window", "window", "application"];
    let columns = parts.map(|part| format!("time_{part}_percent"));
    let shares = values(&written, &columns.each_ref().map(|column| &**column));
    let sum: f64 = shares.iter().map(|share| share.parse::<f64>().unwrap()).sum();
    assert!((sum - 100.0).abs() < 0.01, "{shares:?}");
    assert_eq!(values(&written, &["closed"]), ["half closed"]);
}

#[test]
fn a_reused_port_begins_another_connection() {
    let mut written = Written::new();
    written.handshake();
    written.client(segment(30.0, RST, 1001, 0, 0));
    let syn = Segment { options: SYN_OPTIONS, ..segment(50.0, SYN, 5000, 0, 0) };
    written.client(syn);
    // The same SYN once more is not a new connection.
    written.client(Segment { at: 1050.0, ..syn });
    written.server(segment(1060.0, RST | ACK, 0, 5001, 0));
    let flows = written.info().flows;
    assert_eq!(flows.len(), 2);
    let mut closed = [0, 1].map(|row| value(&flows, row, "closed"));
    closed.sort();
    assert_eq!(closed, ["refused", "reset by client"]);
    let repeated = [0, 1].map(|row| value(&flows, row, "client_retransmitted_handshake"));
    assert!(repeated.contains(&"1".into()));
}

#[test]
fn duplicate_packets_count_only_as_packets() {
    let mut written = Written::new();
    written.handshake();
    let first = Segment { id: 77, ..segment(20.0, ACK, 1001, 9001, 1000) };
    written.client(first).client(Segment { at: 20.01, ..first });
    acknowledge(&mut written, 40.0, 1);
    let columns = ["client_packets", "client_retransmitted_segments", "duplicate_packets"];
    assert_eq!(values(&written, &columns), ["4", "0", "1"]);
}

#[test]
fn duplicates_at_two_interfaces_are_found_across_a_long_queue() {
    let mut written = Written::new();
    let packets = 20_000;
    data(&mut written, 20.0, 0, packets);
    let mut file = Writer::new(["near", "far"]);
    // Each packet has a header of 16 bytes before the 40 of IP and TCP, behind the file header.
    let kept: Vec<_> = written.bytes[24..].chunks(56).map(|packet| &packet[16..]).collect();
    for (number, packet) in kept.iter().enumerate() {
        file.add(0, number as u64, 1040, packet);
    }
    for (number, packet) in kept.iter().enumerate() {
        file.add(1, 100_000_000 + number as u64, 1040, packet);
    }
    let flows = read(&file.finish()).flows;
    let columns = ["client_segments", "client_retransmitted_segments", "duplicate_packets"];
    let found = columns.map(|column| value(&flows, 0, column));
    assert_eq!(found, [packets.to_string(), "0".into(), packets.to_string()]);
}

#[test]
fn an_offloaded_packet_counts_as_several_segments() {
    let mut written = Written::new();
    written.handshake();
    written.client(segment(20.0, ACK, 1001, 9001, 3500));
    acknowledge(&mut written, 40.0, 3);
    written.client(segment(400.0, ACK, 4001, 9001, 500));
    let columns = ["client_segments", "client_bytes", "client_retransmitted_segments"];
    // 4 segments, of which the second half of the last is retransmitted.
    assert_eq!(values(&written, &columns), ["5", "3500", "1"]);
}

#[test]
fn packets_of_a_chosen_connection_are_listed() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 4);
    acknowledge(&mut written, 40.0, 1);
    let options = sack(3001, 4001);
    written.server(Segment { options: &options, ..segment(41.0, ACK, 9001, 2001, 0) });
    written.client(segment(41.5, ACK, 2001, 9001, 1000));
    let packets = written.info().packets;
    let rows: Vec<_> = (0..10)
        .map(|row| {
            let columns = ["sender", "kind", "seq", "payload_bytes", "ack", "sack"];
            columns.map(|column| value(&packets, row, column)).join(" ")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "client control 0 0 - -",
            "server control 0 0 1 -",
            "client ack 1 0 1 -",
            "client data 1 1000 1 -",
            "client data 1001 1000 1 -",
            "client data 2001 1000 1 -",
            "client data 3001 1000 1 -",
            "server ack 1 0 1001 -",
            "server ack 1 0 1001 2001-3001",
            "client fast 1001 1000 1 -",
        ]
    );
    assert_eq!(value(&packets, 0, "flags"), "SYN");
    // The window is scaled by two bits after the handshake.
    assert_eq!(value(&packets, 1, "window_bytes"), "50000");
    assert_eq!(value(&packets, 2, "window_bytes"), "200000");
    assert_eq!(value(&packets, 7, "time_s"), "0.040");
}

#[test]
fn keepalives_with_and_without_data_differ_from_window_probes() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 1);
    acknowledge(&mut written, 40.0, 1);
    // One below the next sequence number, with one garbage octet or none (RFC 9293 §3.8.4).
    for (at, octets) in [(60_000.0, 0), (120_000.0, 1), (180_000.0, 0)] {
        written.client(segment(at, ACK, 2000, 9001, octets));
        acknowledge(&mut written, at + 20.0, 1);
    }
    // The same to a closed window is a window probe.
    written.server(Segment { window: 0, ..segment(180_100.0, ACK, 9001, 2001, 0) });
    written.client(segment(240_000.0, ACK, 2000, 9001, 0));
    let columns = ["client_keepalives", "client_retransmitted_segments", "server_keepalives"];
    assert_eq!(values(&written, &columns), ["3", "0", "0"]);
    let kinds = written.info().packets;
    let kinds: Vec<_> = (5..12).step_by(2).map(|row| value(&kinds, row, "kind")).collect();
    assert_eq!(kinds, ["keepalive", "keepalive", "keepalive", "ack"]);
}

#[test]
fn window_probes_are_not_retransmissions() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 1);
    written.server(Segment { window: 0, ..segment(40.0, ACK, 9001, 2001, 0) });
    // The byte beyond the window (RFC 9293 §3.8.6.1), repeated until it is accepted.
    for at in [400.0, 1000.0, 2200.0] {
        written.client(segment(at, ACK, 2001, 9001, 1));
        written.server(Segment { window: 0, ..segment(at + 20.0, ACK, 9001, 2001, 0) });
    }
    acknowledge(&mut written, 3000.0, 1);
    written.client(segment(3000.0, ACK, 2001, 9001, 1000));
    acknowledge(&mut written, 3020.0, 2);
    let columns = ["client_retransmitted_segments", "client_bytes", "client_keepalives"];
    assert_eq!(values(&written, &columns), ["0", "2000", "0"]);
    let packets = written.info().packets;
    let kinds: Vec<_> = (5..11).step_by(2).map(|row| value(&packets, row, "kind")).collect();
    assert_eq!(kinds, ["window probe", "window probe", "window probe"]);
}

#[test]
fn a_syn_after_a_connection_without_handshake_begins_another_one() {
    let mut written = Written::new();
    data(&mut written, 0.0, 500, 1);
    acknowledge(&mut written, 10.0, 501);
    written.client(segment(20.0, RST, 502_001, 0, 0));
    written.handshake();
    assert_eq!(written.info().flows.len(), 2);
    // The SYN of the same connection, reordered.
    let mut written = Written::new();
    written.server(segment(0.0, SYN | ACK, 9000, 1001, 0));
    written.client(segment(0.1, SYN, 1000, 0, 0));
    assert_eq!(written.info().flows.len(), 1);
}

#[test]
fn a_retransmission_may_carry_bytes_missing_from_the_capture() {
    let mut written = Written::new();
    written.handshake();
    // The first 100 of 151 bytes are lost; all are retransmitted as one segment.
    written.client(segment(20.0, ACK, 1101, 9001, 51));
    written.server(segment(40.0, ACK, 9001, 1001, 0));
    written.client(segment(2000.0, ACK, 1001, 9001, 151));
    written.server(segment(2020.0, ACK, 9001, 1152, 0));
    let columns = ["client_bytes", "client_missing_bytes", "client_retransmitted_segments"];
    assert_eq!(values(&written, &columns), ["151", "0", "1"]);
}

#[test]
fn a_segment_captured_after_its_ack_is_not_a_retransmission() {
    let mut written = Written::new();
    written.handshake();
    data(&mut written, 20.0, 0, 1);
    acknowledge(&mut written, 40.0, 3);
    data(&mut written, 40.1, 1, 2);
    // The same segments again: now they are retransmissions.
    data(&mut written, 240.0, 1, 1);
    let columns = [
        "client_out_of_order_segments",
        "client_bytes",
        "client_missing_bytes",
        "client_retransmitted_segments",
    ];
    assert_eq!(values(&written, &columns), ["2", "3000", "0", "1"]);
    // Merged by a network card, with a part that is acknowledged already.
    let mut written = Written::new();
    written.handshake();
    acknowledge(&mut written, 40.0, 1);
    written.client(segment(40.1, ACK, 1001, 9001, 3000));
    assert_eq!(values(&written, &columns), ["0", "3000", "0", "0"]);
}

#[test]
fn a_challenge_ack_is_not_part_of_the_new_connection() {
    let mut written = Written::new();
    // The server answers the SYN with a challenge ACK for the previous connection (RFC 5961 §4.2).
    let syn = Segment { options: SYN_OPTIONS, ..segment(0.0, SYN, 1000, 0, 0) };
    written.client(syn);
    written.server(segment(20.0, ACK, 77_000, 860_000_000, 0));
    written.client(segment(20.0, RST, 860_000_000, 0, 0));
    written.client(Segment { at: 1000.0, ..syn });
    written.server(Segment { options: SYN_OPTIONS, ..segment(1020.0, SYN | ACK, 9000, 1001, 0) });
    written.client(segment(1020.0, ACK, 1001, 9001, 0));
    data(&mut written, 1030.0, 0, 2);
    acknowledge(&mut written, 1050.0, 2);
    let columns = [
        "client_retransmitted_segments",
        "client_retransmitted_handshake",
        "client_bytes",
        "client_missing_bytes",
    ];
    assert_eq!(values(&written, &columns), ["0", "1", "2000", "0"]);
}
