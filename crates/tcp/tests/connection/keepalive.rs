//! Peers that stop answering: keepalives (RFC 9293 §3.8.4) and the user timeout (RFC 5482).

use crate::peer::*;
use tcplab_tcp::{Ended, Flags, Keepalive, Settings};
use tcplab_units::Duration;

const RTT: u64 = ms(100);

fn seconds(value: u64) -> Duration {
    Duration::from_secs(value)
}

/// Probes after 10 s, every 3 s; three unanswered probes are enough.
fn keepalive(mut settings: Settings) -> Settings {
    let (idle, interval) = (seconds(10), seconds(3));
    settings.keepalive = Some(Keepalive { idle, interval, probes: 3 });
    settings
}

/// A probe: no data, below the window that the peer expects.
fn probe() -> Line {
    ack(1).from(0)
}

#[test]
fn keepalive_probes_a_silent_peer_then_resets() {
    let mut peer = Peer::connected(keepalive(rfc()), RTT);
    for at in [10, 13, 16] {
        peer.gets(ms(at * 1_000), probe());
    }
    peer.silence(ms(18_999));
    assert_eq!(peer.end.ended(), None);
    peer.gets(ms(19_000), ack(1).with(Flags::RST));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn answer_postpones_the_next_keepalive_probe() {
    let mut peer = Peer::connected(keepalive(rfc()), RTT);
    peer.gets(ms(10_000), probe());
    peer.gets(ms(13_000), probe());
    peer.sends(ms(13_100), ack(1));
    // The timer expires at 16 s, and again at 23.1 s, when 10 s without an answer are over.
    peer.gets(ms(23_100), probe());
    peer.sends(ms(23_200), ack(1));
    assert_eq!(peer.end.ended(), None);
}

#[test]
fn no_keepalive_probe_while_data_is_outstanding() {
    let mut peer = Peer::connected(keepalive(rfc()), RTT);
    peer.writes(ms(9_900), MSS);
    peer.gets(ms(9_900), data(1..1001));
    peer.gets(ms(10_300), data(1..1001));
    peer.sends(ms(10_400), ack(1001));
    peer.silence(ms(20_399));
    // tcp_keepalive_timer: data was outstanding at 10 s, so the timer expires again at 20 s.
    peer.gets(ms(20_400), ack(1).from(1000));
}

#[test]
fn keepalive_probe_is_acknowledged() {
    // RFC 9293 §3.8.4: a segment from before the window brings an ACK.
    let mut peer = Peer::connected(rfc(), RTT);
    peer.sends(ms(1_000), ack(1).from(0));
    peer.gets(ms(1_000), ack(1));
}

#[test]
fn linux_ends_keepalive_by_user_timeout_instead_of_probe_count() {
    let settings = Settings { user_timeout: Some(seconds(12)), ..keepalive(linux()) };
    let mut peer = Peer::connected(settings, RTT);
    // 10,000 and 3,000 ticks: in 512ths and 64ths. After 12 s one probe is enough.
    peer.gets(ms(10_240), probe());
    peer.gets(ms(13_248), ack(1).with(Flags::RST));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn data_without_an_answer_is_given_up_after_the_user_timeout() {
    // RFC 5482 §3: from the departure on, whatever the number of retransmissions. The last wait is
    // cut short.
    let settings = Settings { tlp: false, user_timeout: Some(seconds(5)), retries: 0, ..rfc() };
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(ms(1_000), MSS);
    peer.gets(ms(1_000), data(1..1001));
    peer.gets(ms(2_000), data(1..1001));
    peer.gets(ms(4_000), data(1..1001));
    peer.silence(ms(5_999));
    assert_eq!(peer.end.ended(), None);
    peer.silence(ms(6_000));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn linux_counts_the_user_timeout_from_the_first_repetition() {
    // retransmits_timed_out, tcp_clamp_rto_to_user_timeout: from 304 ms on, after an RTO of 300
    // ticks in eights. The next are 600 and 1,200, in 64ths: 960 and 2,176 ms. Then 128 ticks are
    // left.
    let settings = Settings { tlp: false, user_timeout: Some(seconds(2)), ..linux() };
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, MSS);
    for at in [0, 304, 960, 2_176] {
        peer.gets(ms(at), data(1..1001));
    }
    peer.silence(ms(2_311));
    assert_eq!(peer.end.ended(), None);
    peer.silence(ms(2_312));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn linux_counts_the_user_timeout_of_a_syn_from_the_first_one() {
    // tcp_connect sets retrans_stamp. Waits of 1,000 and 2,000 ticks in 64ths: 1,024 and 3,072 ms;
    // then 928 ticks are left, and run out at 4,032 ms.
    let settings = Settings { user_timeout: Some(seconds(4)), ..linux() };
    let mut peer = Peer::connecting(settings);
    for at in [0, 1_024, 3_072] {
        peer.gets(ms(at), syn());
    }
    peer.silence(ms(4_031));
    assert_eq!(peer.end.ended(), None);
    peer.silence(ms(4_032));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn linux_has_no_user_timeout_for_a_syn_ack() {
    // reqsk_timer_handler counts retransmissions alone: after 1, 2 and 4 s, in 64ths and 512ths.
    let settings = Settings { user_timeout: Some(seconds(1)), syn_ack_retries: 2, ..linux() };
    let answer = || syn().with(Flags::ACK).acking(1);
    let mut peer = Peer::listening(settings, syn());
    for at in [0, 1_024, 3_072] {
        peer.gets(ms(at), answer());
    }
    peer.silence(ms(7_000));
    assert_eq!(peer.end.ended(), None);
    peer.silence(ms(7_680));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn ack_of_data_restarts_the_user_timeout() {
    let settings = Settings { tlp: false, user_timeout: Some(seconds(5)), ..rfc() };
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, MSS);
    peer.gets(0, data(1..1001));
    peer.gets(ms(1_000), data(1..1001));
    peer.sends(ms(2_500), ack(1001));
    peer.writes(ms(3_000), MSS);
    peer.gets(ms(3_000), data(1001..2001));
    // The backoff stays until there is a sample of an RTT (RFC 6298 §5.7): two seconds.
    peer.gets(ms(5_000), data(1001..2001));
    peer.silence(ms(7_999));
    assert_eq!(peer.end.ended(), None);
    peer.silence(ms(8_000));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}

#[test]
fn user_timeout_ends_probing_of_a_closed_window() {
    let settings = Settings { user_timeout: Some(seconds(4)), ..rfc() };
    let mut peer = Peer::connected(settings, RTT);
    peer.sends(ms(10), ack(1).window(0));
    peer.writes(ms(100), MSS);
    // RFC 9293 §3.8.6.1: after an RTO, and then two and four times that; each is answered.
    for at in [1_100, 3_100] {
        peer.gets(ms(at), probe());
        peer.sends(ms(at + 100), ack(1).window(0));
    }
    peer.silence(ms(5_099));
    assert_eq!(peer.end.ended(), None);
    peer.silence(ms(5_100));
    assert_eq!(peer.end.ended(), Some(Ended::TimedOut));
}
