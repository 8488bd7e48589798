//! Captures at both ends in one file: data counts where it is sent, and an ACK where it is
//! received.

use crate::packets::{ACK, FIN, PUSH, SYN, SYN_OPTIONS, Segment, Written, read, segment, value};
use tcplab_capture::{Info, Writer};

/// The one-way delay in nanoseconds.
const WAY: u64 = 10_000_000;

/// The interfaces at the client and at the server.
const CLIENT: u32 = 0;
const SERVER: u32 = 1;

/// A packet at an interface.
struct Seen {
    time: u64,
    interface: u32,
    length: u32,
    kept: Vec<u8>,
}

/// Packets sent at one end, seen there and, unless their number is in `lost`, at the other end.
fn at_both(sent: &Written, lost: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    // Each packet has a header of 16 bytes, behind the file header.
    let mut rest = &sent.bytes[24..];
    for number in 0.. {
        let Some((header, packets)) = rest.split_at_checked(16) else { break };
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let time = u64::from(word(0)) * 1_000_000_000 + u64::from(word(4));
        let (kept, others) = packets.split_at(word(8) as usize);
        rest = others;
        let (here, there) = if kept[15] == 1 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let length = word(12);
        seen.push(Seen { time, interface: here, length, kept: kept.to_vec() });
        if !lost.contains(&number) {
            seen.push(Seen { time: time + WAY, interface: there, length, kept: kept.to_vec() });
        }
    }
    seen.sort_by_key(|packet| packet.time);
    seen
}

fn analysed(seen: &[Seen]) -> Info {
    let mut file = Writer::new(["client", "server"]);
    for packet in seen {
        file.add(packet.interface, packet.time, packet.length, &packet.kept);
    }
    read(&file.finish())
}

/// Clears the IP identification of packets without data, as in IPv6.
fn without_numbers(mut seen: Vec<Seen>) -> Vec<Seen> {
    for packet in &mut seen {
        packet.kept[4..6].fill(0);
    }
    seen
}

#[track_caller]
fn assert_values(info: &Info, columns: &[(&str, &str)]) {
    for (column, expected) in columns {
        assert_eq!(value(&info.flows, 0, column), *expected, "{column}");
    }
}

/// A handshake, each packet at its sending time.
fn opened() -> Written {
    let mut sent = Written::new();
    let syn = Segment { options: SYN_OPTIONS, ..segment(0.0, SYN, 1000, 0, 0) };
    let answer = Segment { options: SYN_OPTIONS, ..segment(10.0, SYN | ACK, 9000, 1001, 0) };
    sent.client(syn).server(answer).client(segment(20.0, ACK, 1001, 9001, 0));
    sent
}

/// Data of the client in segments of 1000 bytes, from segment `from` on, counted from 0.
fn data(sent: &mut Written, at: f64, from: u32, number: u32) {
    for n in from..from + number {
        sent.client(segment(at, ACK, 1001 + 1000 * n, 9001, 1000));
    }
}

/// The server acknowledges so many segments.
fn acknowledge(sent: &mut Written, at: f64, segments: u32) {
    sent.server(segment(at, ACK, 9001, 1001 + 1000 * segments, 0));
}

#[test]
fn an_ack_counts_where_it_is_received() {
    let mut sent = opened();
    data(&mut sent, 20.0, 0, 4);
    // The first of these two ACKs, packet 7, does not arrive.
    acknowledge(&mut sent, 30.0, 2);
    acknowledge(&mut sent, 32.0, 4);
    data(&mut sent, 42.0, 4, 4);
    acknowledge(&mut sent, 52.0, 8);
    sent.client(segment(100.0, ACK | PUSH, 9001, 9001, 500));
    sent.server(segment(110.0, ACK, 9001, 9501, 0));
    sent.client(segment(120.0, FIN | ACK, 9501, 9001, 0));
    sent.server(segment(130.0, FIN | ACK, 9001, 9502, 0));
    sent.client(segment(140.0, ACK, 9502, 9002, 0));
    for info in [analysed(&at_both(&sent, &[7])), analysed(&without_numbers(at_both(&sent, &[7])))]
    {
        assert_values(
            &info,
            &[
                ("handshake_ms", "20.000"),
                ("duration_s", "0.140"),
                ("client_packets", "26"),
                // One packet is there only once.
                ("server_packets", "11"),
                ("duplicate_packets", "18"),
                ("client_retransmitted_segments", "0"),
                ("client_retransmitted_handshake", "0"),
                ("server_retransmitted_handshake", "0"),
                // Each end answers at once, at its own interface.
                ("client_near_rtt_ms", "0.000"),
                ("server_near_rtt_ms", "0.000"),
                // 20 to 42, 42 to 62, 100 to 120, and the FIN's.
                ("client_rtt_samples", "4"),
                ("client_rtt_min_ms", "20.000"),
                ("client_rtt_max_ms", "22.000"),
                // 4, 4 and 1.
                ("server_segments_per_ack", "3.000"),
                // Of 140: 20; 20 to 62; 62 to 120; 120 to 140.
                ("time_handshake_percent", "14.286"),
                ("time_window_percent", "30.000"),
                ("time_application_percent", "41.429"),
                ("time_close_percent", "14.286"),
            ],
        );
    }
}

#[test]
fn the_handshake_of_a_server_ends_when_it_receives_the_ack() {
    let mut sent = opened();
    for n in 0..4 {
        sent.server(segment(30.0, ACK, 9001 + 1000 * n, 1001, 1000));
    }
    sent.client(segment(40.0, ACK, 1001, 13_001, 0));
    assert_values(
        &analysed(&at_both(&sent, &[])),
        &[
            // 30 and 20 ms of 50.
            ("time_handshake_percent", "60.000"),
            ("time_window_percent", "40.000"),
            ("server_rtt_min_ms", "20.000"),
        ],
    );
}

#[test]
fn repeated_acks_without_ip_id_are_no_duplicates_at_one_interface() {
    let mut sent = opened();
    data(&mut sent, 20.0, 0, 5);
    acknowledge(&mut sent, 30.0, 1);
    for n in 0..3 {
        acknowledge(&mut sent, 30.0 + f64::from(n), 1);
    }
    assert_values(
        &analysed(&without_numbers(at_both(&sent, &[]))),
        &[("server_duplicate_acks", "3"), ("server_packets", "10"), ("duplicate_packets", "12")],
    );
}

/// Ten round trips of four segments, with the packets for whose time and interface `is_captured` is
/// true.
fn captured(is_captured: impl Fn(u64, u32) -> bool) -> Info {
    let mut sent = opened();
    for n in 0..10 {
        data(&mut sent, f64::from(20 + 20 * n), 4 * n, 4);
        acknowledge(&mut sent, f64::from(30 + 20 * n), 4 * n + 4);
    }
    let mut seen = at_both(&sent, &[]);
    seen.retain(|packet| is_captured(packet.time / 1_000_000, packet.interface));
    analysed(&seen)
}

#[test]
fn captures_at_both_ends_may_end_at_different_times() {
    // The last packets at either end: half of the round trips.
    let sender_ends = captured(|ms, interface| interface == SERVER || ms < 120);
    let columns = [
        ("client_bytes", "40000"),
        ("client_retransmitted_segments", "0"),
        ("client_missing_bytes", "0"),
        // Only after two round trips of four segments is it clear that the capture there has ended.
        ("client_rtt_samples", "8"),
        ("client_rtt_max_ms", "20.000"),
    ];
    assert_values(&sender_ends, &columns);
    let receiver_ends = captured(|ms, interface| interface == CLIENT || ms < 120);
    let columns = [
        ("client_bytes", "40000"),
        ("client_rtt_samples", "10"),
        ("client_rtt_min_ms", "20.000"),
        ("client_rtt_max_ms", "20.000"),
    ];
    assert_values(&receiver_ends, &columns);
}
