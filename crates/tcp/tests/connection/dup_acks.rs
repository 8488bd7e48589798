//! Linux's handling of duplicate ACKs without SACK.
//!
//! Round trips take 100 ms; the first window is 10 segments.

use crate::peer::*;
use tcplab_tcp::Settings;

const RTT: u64 = ms(100);

fn without_sack() -> Settings {
    Settings { sack: false, tso: false, ..linux() }
}

/// A sender with this many segments written, of which the first ten left at 0. An ACK arrived that
/// is no duplicate, because it is newer than the SYN-ACK.
fn sent(segments: u64) -> Peer {
    let mut peer = Peer::connected(without_sack(), RTT);
    peer.writes(0, segments * MSS);
    peer.gets(0, data(1..segments.min(10) * MSS + 1));
    peer.sends(ms(90), ack(1));
    peer
}

#[test]
fn ack_newer_than_the_peers_data_is_no_duplicate() {
    // tcp_may_update_window: the ACK is newer than the data, though the window is the same.
    // FLAG_WIN_UPDATE is one of FLAG_NOT_DUP.
    let mut peer = Peer::connected(without_sack(), RTT);
    peer.sends(ms(1), data(1..501));
    peer.gets(ms(1), ack(501));
    peer.writes(ms(2), 20 * MSS);
    peer.gets(ms(2), data(1..10_001));
    peer.sends(ms(102), ack(1).from(501));
    peer.silence(ms(103));
    // Each of the next two releases a segment (RFC 3042), and the third shows a loss.
    for (millis, start) in [(103, 10_001), (104, 11_001)] {
        peer.sends(ms(millis), ack(1).from(501));
        peer.gets(ms(millis), data(start..start + MSS));
    }
    peer.sends(ms(105), ack(1).from(501));
    peer.gets(ms(105), data(1..1_001));
}

#[test]
fn more_duplicate_acks_than_segments_in_flight_set_reordering() {
    // tcp_check_reno_reordering: of three segments two can have arrived. The third duplicate sets
    // `reordering` to three, and three that count are needed.
    let mut peer = sent(3);
    for millis in 100..110 {
        peer.sends(ms(millis), ack(1));
    }
    peer.silence(ms(150));
    // Of one segment none can: then `reordering` is one, and the first duplicate of later segments
    // is enough.
    let mut peer = sent(1);
    peer.sends(ms(100), ack(1));
    peer.sends(ms(101), ack(1_001));
    peer.writes(ms(102), 5 * MSS);
    peer.gets(ms(102), data(1_001..6_001));
    peer.sends(ms(202), ack(1_001));
    peer.gets(ms(202), data(1_001..2_001));
}

#[test]
fn ack_of_new_data_resets_the_duplicate_ack_count() {
    // tcp_reset_reno_sack: two duplicates release two segments. Of twelve, eleven are in the
    // network when one is acknowledged, and the window of 11 is full.
    let mut peer = sent(20);
    for (millis, start) in [(100, 10_001), (101, 11_001)] {
        peer.sends(ms(millis), ack(1));
        peer.gets(ms(millis), data(start..start + MSS));
    }
    peer.sends(ms(102), ack(1_001));
    assert_eq!(peer.cwnd(), 11);
    peer.silence(ms(110));
}

#[test]
fn timeout_while_recovery_is_kept_open_halves_cwnd_not_ssthresh() {
    // tcp_is_non_sack_preventing_reopen: when exactly the data sent before the recovery is
    // acknowledged, the recovery stays open, and tcp_cwnd_reduction sets the window to the segments
    // in flight. tcp_enter_loss halves that window, not the threshold of 5.
    let mut peer = sent(40);
    for millis in 100..120 {
        peer.sends(ms(millis), ack(1));
        peer.ignores(ms(millis));
    }
    assert_eq!(peer.ssthresh(), Some(5));
    // The third duplicate found twelve segments sent.
    peer.sends(ms(200), ack(12_001));
    let window = peer.cwnd();
    assert!(window > 5, "{window}");
    peer.ignores(ms(900));
    assert_eq!(peer.ssthresh(), Some(window / 2));
}
