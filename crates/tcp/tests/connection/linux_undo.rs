//! Undo of spurious recoveries: F-RTO (RFC 5682), Eifel by timestamps (RFC 3522, RFC 4015), DSACK
//! (RFC 3708).
//!
//! Round trips take 100 ms. The RTO is a second, except with Linux's estimator.

use crate::peer::*;
use tcplab_tcp::Settings;

const RTT: u64 = ms(100);

/// Ten segments outstanding, of `segments`; their timer has expired and the first was
/// retransmitted.
fn timed_out(mut settings: Settings, segments: u64) -> Peer {
    settings.tlp = false;
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, segments * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(1_000), data(1..1001));
    peer
}

fn with_and_without_sack() -> [Settings; 2] {
    [rfc(), Settings { sack: false, ..rfc() }]
}

#[test]
fn frto_undoes_a_spurious_timeout_after_two_advancing_acks() {
    for settings in with_and_without_sack() {
        let mut peer = timed_out(settings, 30);
        // RFC 5682 §2.1 step 2b: two new segments instead of retransmissions.
        peer.sends(ms(1_050), ack(1001));
        peer.gets(ms(1_050), data(10_001..12_001));
        // Step 3b: the next ACK advances, too, by segments that were sent once. The window is ten
        // again, and slow start adds one (RFC 4015 §3.2, with nothing else changed).
        peer.sends(ms(1_060), ack(2001));
        peer.gets(ms(1_060), data(12_001..13_001));
        assert_eq!((peer.cwnd(), peer.ssthresh()), (11, None));
        assert_eq!(peer.end.counters().retransmitted_segments, 1);
    }
}

#[test]
fn frto_retransmits_if_the_second_ack_is_a_duplicate() {
    // RFC 5682 §2.1 step 3a: the new data arrived, the old did not: repairs go on, from where they
    // were.
    for (settings, sign) in
        [(rfc(), ack(1001).sack(10_001..11_001)), (Settings { sack: false, ..rfc() }, ack(1001))]
    {
        let mut peer = timed_out(settings, 12);
        peer.sends(ms(1_100), ack(1001));
        peer.gets(ms(1_100), data(10_001..12_001));
        peer.sends(ms(1_200), sign);
        peer.gets(ms(1_200), data(1001..2001));
        assert_eq!(peer.ssthresh(), Some(5));
        peer.ignores(ms(1_201));
    }
}

#[test]
fn frto_ends_with_duplicate_first_ack_unless_it_sacks_an_original() {
    // RFC 5682 §2.1 step 2a: the first ACK after the timeout acknowledges nothing.
    for (settings, sign) in
        [(rfc(), ack(1).sack(1001..2001)), (Settings { sack: false, ..rfc() }, ack(1))]
    {
        let settings = Settings { frto: true, undo: false, ..settings };
        let is_sack = settings.sack;
        let mut peer = timed_out(settings, 30);
        peer.sends(ms(1_100), sign);
        // With SACK, that ACK reports a segment that was sent once (RFC 5682 §3.1 step 3b): the
        // timeout was spurious.
        assert_eq!(peer.ssthresh(), if is_sack { None } else { Some(5) });
        peer.ignores(ms(1_101));
    }
}

#[test]
fn frto_retransmits_without_new_data_to_send() {
    // RFC 5682 §2.1 step 2b: without new data, as after any timeout; two, for slow start.
    for settings in with_and_without_sack() {
        let mut peer = timed_out(settings, 10);
        peer.sends(ms(1_100), ack(1001));
        peer.gets(ms(1_100), data(1001..3001));
        peer.ignores(ms(1_101));
    }
}

#[test]
fn linux_frto_undoes_a_spurious_timeout() {
    // The RTO is 100 + 200 ms: 300 ticks, counted in eights.
    let mut peer = Peer::connected(Settings { tlp: false, tso: false, ..linux() }, RTT);
    peer.writes(0, 30 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(304), data(1..1001));
    peer.sends(ms(350), ack(1001));
    peer.gets(ms(350), data(10_001..12_001));
    peer.sends(ms(360), ack(2001));
    peer.gets(ms(360), data(12_001..13_001));
    assert_eq!(peer.cwnd(), 11);
    // tcp_undo_cwnd_reduction takes the larger of the two thresholds; the old one was not set.
    assert_eq!(peer.ssthresh(), None);
}

fn timestamps() -> Settings {
    Settings { timestamps: true, mss: MSS as u16 + 12, ..rfc() }
}

/// Ten segments of `segments`; three overtook the first, which was retransmitted at 100 ms.
fn overtaken(settings: Settings, segments: u64) -> Peer {
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, segments * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(1).sack(1001..4001));
    peer.gets(ms(100), data(1..1001));
    peer
}

#[test]
fn eifel_undoes_recovery_if_tsecr_precedes_the_retransmission() {
    for settings in [timestamps(), Settings { timestamps: true, mss: 1012, ..linux() }] {
        let mut peer = overtaken(settings, 10);
        // RFC 3522 §3.2 step 5: the timestamp echoed is older than the retransmission's. The window
        // is ten again, and the seven that this ACK delivers widen it in slow start.
        peer.sends(ms(110), ack(10_001).echoing(0));
        assert_eq!((peer.cwnd(), peer.ssthresh()), (17, None));
    }
}

#[test]
fn eifel_keeps_reduction_if_tsecr_is_that_of_the_retransmission() {
    let mut peer = overtaken(timestamps(), 10);
    peer.sends(ms(200), ack(10_001).echoing(ms(100)));
    // Five, and one more for the seven that were delivered with the end of recovery.
    assert_eq!((peer.cwnd(), peer.ssthresh()), (6, Some(5)));
}

#[test]
fn eifel_undoes_recovery_with_a_partial_ack_of_late_data() {
    // tcp_try_undo_partial: no retransmission is outstanding.
    let mut peer = overtaken(timestamps(), 12);
    // PRR: 5 of 10 for each 3 delivered make two: the retransmission, and a new segment.
    peer.gets(ms(100), data(10_001..11_001));
    peer.sends(ms(110), ack(5001).echoing(0));
    peer.gets(ms(110), data(11_001..12_001));
    assert_eq!(peer.ssthresh(), None);
    assert!(peer.cwnd() >= 10);
}

#[test]
fn eifel_undoes_a_timeout_if_tsecr_precedes_the_retransmission() {
    // RFC 4015 §3.2, with F-RTO off.
    let settings = Settings { frto: false, ..timestamps() };
    let mut peer = timed_out(settings, 10);
    peer.sends(ms(1_050), ack(1001).echoing(0));
    assert_eq!(peer.ssthresh(), None);
    peer.sends(ms(1_060), ack(10_001).echoing(0));
    peer.silence(ms(3_000));
    assert_eq!(peer.end.counters().retransmitted_segments, 1);
}

#[test]
fn late_data_keeps_the_reduction_with_undo_off() {
    let mut peer = overtaken(Settings { undo: false, ..timestamps() }, 10);
    peer.sends(ms(110), ack(10_001).echoing(0));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (6, Some(5)));
}

#[test]
fn dsack_of_the_retransmission_undoes_recovery() {
    // RFC 3708 §3, tcp_try_undo_dsack.
    for settings in [rfc(), linux()] {
        let mut peer = overtaken(settings, 10);
        peer.sends(ms(110), ack(10_001));
        assert_eq!((peer.cwnd(), peer.ssthresh()), (6, Some(5)));
        peer.sends(ms(200), ack(10_001).sack(1..1001));
        assert_eq!((peer.cwnd(), peer.ssthresh()), (10, None));
    }
}

#[test]
fn dsack_undo_needs_dsacks_of_all_retransmissions() {
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    // Six SACKed and two lost leave two; ssthresh is five.
    peer.sends(ms(100), ack(1).sack(2001..8001));
    peer.gets(ms(100), data(1..2001));
    peer.sends(ms(110), ack(10_001));
    peer.sends(ms(200), ack(10_001).sack(1..1001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (5, Some(5)));
    peer.sends(ms(201), ack(10_001).sack(1001..2001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (10, None));
}

#[test]
fn dsacks_of_network_duplicates_undo_nothing() {
    // RFC 3708 §3: more duplicates than retransmissions.
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(1001));
    peer.sends(ms(101), ack(1001).sack(1..1001));
    peer.sends(ms(102), ack(1001).sack(2001..5001));
    peer.gets(ms(102), data(1001..2001));
    peer.sends(ms(200), ack(10_001));
    assert_eq!(peer.ssthresh(), Some(4));
}
