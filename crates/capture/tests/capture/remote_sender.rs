//! A capture at the receiver: the causes of the sender's waits are found although it receives ACKs
//! half a round trip after their capture, and its data is captured another half later.
//!
//! The round trip is 20 ms: data is captured 10 ms after it is sent, and an ACK is received 10 ms
//! after it is captured.

use crate::packets::{ACK, SYN, SYN_OPTIONS, Segment, Written, segment, value};

/// The handshake as seen at the client; the server's first data may come at 40 ms.
fn opened() -> Written {
    let mut written = Written::new();
    let syn = Segment { options: SYN_OPTIONS, ..segment(0.0, SYN, 1000, 0, 0) };
    let answer = Segment { options: SYN_OPTIONS, ..segment(20.0, SYN | ACK, 9000, 1001, 0) };
    written.client(syn).server(answer);
    written
}

/// Timestamps: the sender's own, and the echo of the other side's.
fn timestamps(clock: u32, echo: u32) -> [u8; 12] {
    let mut option = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    option[4..8].copy_from_slice(&clock.to_be_bytes());
    option[8..].copy_from_slice(&echo.to_be_bytes());
    option
}

/// A segment of 1000 bytes of the server, by its number, sent at `clock` after an ACK of `echo`.
fn data(written: &mut Written, at: f64, number: u32, (clock, echo): (u32, u32)) {
    let options = timestamps(clock, echo);
    let it = segment(at, ACK, 9001 + 1000 * number, 1001, 1000);
    written.server(Segment { options: &options, ..it });
}

/// The client acknowledges so many segments, with the time in milliseconds as its timestamp.
fn acknowledge(written: &mut Written, at: f64, segments: u32, window: u16) {
    let options = timestamps(at as u32, 0);
    let it = segment(at, ACK, 1001, 9001 + 1000 * segments, 0);
    written.client(Segment { options: &options, window, ..it });
}

/// The milliseconds spent on each cause, out of `whole`, without causes of zero.
fn spent(written: &Written, whole: f64) -> Vec<(&'static str, f64)> {
    let flows = written.info().flows;
    ["handshake", "close", "timeout", "recovery", "peer_window", "application", "window"]
        .into_iter()
        .map(|reason| {
            let percent = value(&flows, 0, &format!("time_{reason}_percent"));
            let percent: f64 = percent.parse().expect("there is time");
            (reason, (percent * whole / 10.0).round() / 10.0)
        })
        .filter(|&(_, time)| time > 0.0)
        .collect()
}

#[test]
fn transit_time_counts_as_window_and_a_pause_as_application() {
    let mut written = opened();
    acknowledge(&mut written, 20.0, 0, 50_000);
    data(&mut written, 40.0, 0, (30, 20));
    acknowledge(&mut written, 40.0, 1, 50_000);
    // With a growing queue, these arrive 24 and 30 ms after the ACKs that released them.
    data(&mut written, 64.0, 1, (50, 40));
    acknowledge(&mut written, 64.0, 2, 50_000);
    data(&mut written, 94.0, 2, (74, 64));
    acknowledge(&mut written, 94.0, 3, 50_000);
    // Without data, the last ACK counts as received after one and a quarter of the last round trip.
    data(&mut written, 200.0, 3, (180, 94));
    let expected =
        [("handshake", 40.0), ("application", 200.0 - 94.0 - 37.5), ("window", 54.0 + 37.5)];
    assert_eq!(spent(&written, 200.0), expected);
}

#[test]
fn recovery_lasts_until_the_sender_receives_the_final_ack() {
    let mut written = opened();
    acknowledge(&mut written, 20.0, 0, 50_000);
    // The second of five segments is lost.
    for (number, acknowledged) in [(0, 1), (2, 1), (3, 1), (4, 1)] {
        data(&mut written, 40.0, number, (30, 20));
        acknowledge(&mut written, 40.0, acknowledged, 50_000);
    }
    // The sender detects the loss at 50 ms, and the recovery ends for it at 70 ms.
    data(&mut written, 60.0, 1, (50, 40));
    acknowledge(&mut written, 60.0, 5, 50_000);
    data(&mut written, 80.0, 5, (70, 60));
    data(&mut written, 100.0, 6, (90, 60));
    let expected = [("handshake", 40.0), ("recovery", 20.0), ("window", 40.0)];
    assert_eq!(spent(&written, 100.0), expected);
}

#[test]
fn a_burst_fills_the_window_at_its_sending_time() {
    let mut written = opened();
    // Windows are in units of four bytes: four segments.
    acknowledge(&mut written, 20.0, 0, 1000);
    // All four are sent at 30 ms; a slow link spreads them.
    for number in 0..4 {
        data(&mut written, 40.0 + 4.0 * f64::from(number), number, (30, 20));
    }
    // The sender receives the ACK at 62 ms.
    acknowledge(&mut written, 52.0, 4, 50_000);
    data(&mut written, 72.0, 4, (62, 52));
    assert_eq!(spent(&written, 72.0), [("handshake", 40.0), ("peer_window", 32.0)]);
}

#[test]
fn a_retransmitted_syn_ack_extends_the_handshake() {
    let mut written = opened();
    // The sender does not receive this ACK.
    written.client(segment(20.0, ACK, 1001, 9001, 0));
    let answer = Segment { options: SYN_OPTIONS, ..segment(1020.0, SYN | ACK, 9000, 1001, 0) };
    written.server(answer);
    written.client(segment(1020.0, ACK, 1001, 9001, 0));
    written.server(segment(1040.0, ACK, 9001, 1001, 1000));
    written.client(segment(1040.0, ACK, 1001, 10_001, 0));
    assert_eq!(spent(&written, 1040.0), [("handshake", 1040.0)]);
    assert_eq!(value(&written.info().flows, 0, "server_near_rtt_ms"), "20.000");
}
