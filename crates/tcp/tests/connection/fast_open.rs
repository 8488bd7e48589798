//! TCP Fast Open (RFC 7413), on both sides.

use crate::peer::*;
use tcplab_tcp::{CachedCookie, Cookie, Flags, Settings, State};

const COOKIE: u64 = 0x1234_5678_9abc_def0;
/// Data that fits into a SYN: the MSS less 40 bytes of options.
const ROOM: u64 = MSS - 40;

fn both() -> [Settings; 2] {
    [rfc(), linux()]
}

/// A SYN with this much data and the cookie.
fn syn_with(bytes: u64) -> Line {
    let line = if bytes > 0 { data(0..bytes) } else { Line::default() };
    line.with(Flags::SYN).cookie(COOKIE)
}

#[test]
fn the_first_connection_asks_for_a_cookie() {
    // RFC 7413 §4.1.1: without a cookie it is an ordinary handshake.
    for settings in both() {
        let mut peer = Peer::connecting_fast(settings, None);
        peer.gets(0, syn().asking());
        assert_eq!(peer.end.take_cookie_to_cache(), None);
        peer.sends(ms(100), syn().acking(1).cookie(COOKIE));
        peer.gets(ms(100), ack(1));
        let known = CachedCookie { cookie: Cookie(COOKIE), mss: u16::MAX };
        assert_eq!(peer.end.take_cookie_to_cache(), Some(known));
        assert_eq!(peer.end.take_cookie_to_cache(), None);
    }
}

#[test]
fn cookie_request_may_remain_unanswered() {
    let mut peer = Peer::connecting_fast(rfc(), None);
    peer.gets(0, syn().asking());
    peer.sends(ms(100), syn().acking(1));
    peer.gets(ms(100), ack(1));
    assert_eq!(peer.end.take_cookie_to_cache(), None);
}

#[test]
fn syn_with_cookie_waits_for_data_and_carries_it() {
    // RFC 7413 §4.2.1
    for settings in both() {
        let mut peer = Peer::connecting_fast(settings, Some(COOKIE));
        peer.silence(ms(10));
        peer.writes(ms(10), 500);
        peer.gets(ms(10), syn_with(500));
        peer.sends(ms(110), syn().acking(501));
        peer.gets(ms(110), ack(1));
        assert_eq!(peer.end.state(), State::Established);
        // The handshake has measured the path.
        assert_eq!(peer.end.snapshot().srtt.as_millis(), 100);
        peer.writes(ms(200), MSS);
        peer.gets(ms(200), data(501..1501));
        peer.sends(ms(300), ack(1501));
        assert_eq!(peer.end.snapshot().acked_bytes, 1500);
    }
}

#[test]
fn data_beyond_the_syn_carries_the_handshake_ack() {
    for settings in both() {
        let mut peer = Peer::connecting_fast(settings, Some(COOKIE));
        peer.writes(0, 3 * MSS);
        peer.gets(0, syn_with(ROOM));
        peer.sends(ms(100), syn().acking(1 + ROOM));
        // 960 bytes have left; tcp_rcv_synsent_state_process sends no ACK while data waits.
        peer.gets(ms(100), data(1 + ROOM..1 + 3 * MSS).acking(1));
        peer.sends(ms(200), ack(1 + 3 * MSS));
    }
}

#[test]
fn fast_open_syn_is_retransmitted_without_data_and_cookie() {
    // RFC 7413 §4.1.3.1: the option or the data may be why there was no answer.
    let mut peer = Peer::connecting_fast(rfc(), Some(COOKIE));
    peer.writes(0, 500);
    peer.gets(0, syn_with(500));
    peer.gets(ms(1_000), syn());
    peer.sends(ms(1_100), syn().acking(1));
    peer.gets(ms(1_100), data(1..501).acking(1));
    peer.sends(ms(1_200), ack(501));
    assert_eq!(peer.end.snapshot().acked_bytes, 500);
}

#[test]
fn unacknowledged_syn_data_is_retransmitted_at_once() {
    // RFC 7413 §4.2.1: as after an ordinary SYN, without a congestion response.
    for settings in both() {
        let mut peer = Peer::connecting_fast(settings, Some(COOKIE));
        peer.writes(0, 3 * MSS);
        peer.gets(0, syn_with(ROOM));
        peer.sends(ms(100), syn().acking(1).cookie(COOKIE + 1));
        peer.gets(ms(100), data(1..1 + ROOM).acking(1));
        peer.gets(ms(100), data(1 + ROOM..1 + 3 * MSS));
        assert_eq!((peer.cwnd(), peer.ssthresh()), (10, None));
        // The server has a new cookie.
        let known = CachedCookie { cookie: Cookie(COOKIE + 1), mss: u16::MAX };
        assert_eq!(peer.end.take_cookie_to_cache(), Some(known));
        peer.sends(ms(200), ack(1 + 3 * MSS));
        assert_eq!(peer.end.counters().episodes, 0);
        assert_eq!(peer.end.snapshot().in_flight, 0);
    }
}

#[test]
fn fast_open_syn_with_cookie_may_carry_no_data() {
    let mut peer = Peer::connecting_fast(rfc(), Some(COOKIE));
    peer.end.close();
    peer.writes(0, 0);
    peer.gets(0, syn_with(0));
    peer.sends(ms(100), syn().acking(1));
    peer.gets(ms(100), ack(1).with(Flags::FIN));
    peer.sends(ms(200), ack(2));
}

#[test]
fn fast_open_server_answers_a_cookie_request() {
    // RFC 7413 §4.1.2
    for settings in both() {
        let mut peer = Peer::listening_fast(settings, COOKIE, syn().asking());
        peer.gets(0, syn().acking(1).cookie(COOKIE));
        peer.sends(ms(100), ack(1));
        assert_eq!(peer.end.state(), State::Established);
    }
}

#[test]
fn a_server_without_fast_open_takes_no_data_with_a_syn() {
    for settings in both() {
        let mut peer = Peer::listening(settings, syn_with(500));
        peer.gets(0, syn().acking(1));
        assert_eq!(peer.read, 0);
        peer.sends(ms(100), data(1..501));
        assert_eq!(peer.read, 500);
        peer.ignores(ms(400));
    }
}

#[test]
fn invalid_cookie_drops_syn_data_and_returns_a_valid_cookie() {
    // RFC 7413 §4.2.2: the server acknowledges the SYN alone, and grants the valid cookie.
    let mut peer = Peer::listening_fast(rfc(), COOKIE + 1, syn_with(500));
    peer.gets(0, syn().acking(1).cookie(COOKIE + 1));
    assert_eq!(peer.read, 0);
    peer.writes(ms(10), 500);
    peer.sends(ms(100), ack(1));
    peer.gets(ms(100), data(1..501));
    peer.sends(ms(200), ack(501));
}

#[test]
fn fast_open_server_reads_and_sends_data_in_syn_received() {
    // RFC 7413 §4.2.2
    for settings in both() {
        let mut peer = Peer::listening_fast(settings, COOKIE, syn_with(500));
        peer.gets(0, syn().acking(501));
        assert_eq!((peer.read, peer.end.state()), (500, State::SynReceived));
        peer.writes(ms(10), 2 * MSS);
        peer.gets(ms(10), data(1..1 + 2 * MSS).acking(501));
        peer.sends(ms(100), data(501..601));
        assert_eq!(peer.end.state(), State::Established);
        // The RTT is that of the SYN-ACK, which left at 0, not that of the data
        // (`tcp_synack_rtt_meas`).
        assert_eq!(peer.end.snapshot().srtt.as_millis(), 100);
        peer.gets(ms(100), ack(601));
        peer.sends(ms(120), ack(1 + 2 * MSS));
        assert_eq!((peer.read, peer.end.snapshot().acked_bytes), (600, 2 * MSS));
    }
}

#[test]
fn fast_open_server_retransmits_only_the_syn_ack_in_syn_received() {
    // tcp_retransmit_timer: nothing but the SYN-ACK is retransmitted until the handshake ends; then
    // the timer covers data.
    let mut peer = Peer::listening_fast(rfc(), COOKIE, syn_with(500));
    peer.gets(0, syn().acking(501));
    peer.writes(ms(10), 500);
    peer.gets(ms(10), data(1..501));
    peer.gets(ms(1_000), syn().acking(501));
    peer.sends(ms(1_100), ack(1));
    assert_eq!(peer.end.state(), State::Established);
    // RFC 6298 §5.7: the SYN-ACK was retransmitted, so 3 s.
    peer.gets(ms(4_100), data(1..501));
    peer.sends(ms(4_200), ack(501));
}

#[test]
fn fast_open_server_delays_its_fin_until_established() {
    let mut peer = Peer::listening_fast(rfc(), COOKIE, syn_with(500));
    peer.gets(0, syn().acking(501));
    peer.writes(ms(10), 500);
    peer.gets(ms(10), data(1..501));
    peer.end.close();
    peer.silence(ms(20));
    peer.sends(ms(100), ack(501));
    peer.gets(ms(100), ack(501).with(Flags::FIN).from(501));
    peer.sends(ms(200), ack(502));
}

#[test]
fn syn_ack_window_starts_after_the_syn_data() {
    // tcp_fastopen_create_child: rcv_wup is rcv_nxt, and rcv_wnd the prepared window: 131072 / 2,
    // in whole segments of 1000 bytes.
    let mut peer = Peer::listening_fast(linux(), COOKIE, syn_with(500));
    peer.gets(0, syn().acking(501).window(65_000));
    peer.sends(ms(100), ack(1));
}
