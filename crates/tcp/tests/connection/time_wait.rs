//! Linux's answers after a connection: in TIME-WAIT, and in FIN-WAIT-2 of an orphaned connection
//! (`tcp_timewait_state_process`).
//!
//! Round trips take 100 ms.

use crate::peer::*;
use tcplab_tcp::{Endpoint, Flags, Settings, State};
use tcplab_units::Time;

const RTT: u64 = ms(100);

/// An end that received a segment and closed first, by one of two calls. The peer acknowledges its
/// FIN at 101 ms.
fn closed_by(settings: Settings, call: impl FnOnce(&mut Endpoint)) -> Peer {
    let mut peer = Peer::connected(settings, RTT);
    peer.sends(ms(1), data(1..501));
    peer.gets(ms(1), ack(501));
    call(&mut peer.end);
    peer.writes(ms(2), 0);
    peer.gets(ms(2), ack(501).with(Flags::FIN));
    peer.sends(ms(101), ack(2));
    peer
}

/// An end in TIME-WAIT from 102 ms on, when the peer's FIN arrives.
fn waiting(settings: Settings) -> Peer {
    let mut peer = closed_by(settings, Endpoint::close);
    peer.sends(ms(102), ack(2).with(Flags::FIN));
    peer.gets(ms(102), ack(502));
    assert_eq!(peer.end.state(), State::TimeWait);
    peer
}

/// The peer's FIN in `waiting` and `left`.
fn fin() -> Line {
    ack(2).from(501).with(Flags::FIN)
}

#[test]
fn time_wait_acknowledges_a_fin_as_often_as_it_comes() {
    // tcp_oow_rate_limited: only segments without data are rate-limited.
    let mut peer = waiting(linux());
    for millis in [103, 104, 105] {
        peer.sends(ms(millis), fin());
        peer.gets(ms(millis), ack(502));
    }
}

#[test]
fn time_wait_answers_empty_segments_twice_a_second() {
    // tcp_invalid_ratelimit: 500 ms. The expected segment needs no answer.
    let mut peer = waiting(linux());
    peer.sends(ms(110), ack(2).from(502));
    for (millis, is_answered) in [(120, true), (619, false), (620, true), (621, false)] {
        peer.sends(ms(millis), ack(2).from(501));
        if is_answered {
            peer.gets(ms(millis), ack(502));
        }
    }
    peer.silence(ms(2_000));
}

#[test]
fn time_wait_acks_carry_no_dsack() {
    // tcp_v4_timewait_ack has timestamps and no SACK blocks. It echoes the last accepted timestamp,
    // not that of the repeated segment.
    let mut peer = waiting(Settings { timestamps: true, ..linux() });
    peer.sends(ms(103), data(1..501).acking(2));
    peer.gets(ms(103), ack(502).echoing(ms(102)));
}

#[test]
fn rst_ends_time_wait_and_later_segments_are_reset() {
    // tcp_v4_send_reset: the sequence number is the segment's acknowledgment number, and there is
    // no acknowledgment.
    let mut peer = waiting(linux());
    peer.sends(ms(103), ack(2).from(502).with(Flags::RST));
    assert_eq!(peer.end.state(), State::Closed);
    peer.sends(ms(104), fin());
    peer.gets(ms(104), reset().from(2));
}

#[test]
fn time_wait_restarts_with_a_retransmitted_fin() {
    // TCP_TIMEWAIT_LEN: 60 s, at the level of 4096 ms. From 102 ms on it would end at 61,440 ms.
    let mut peer = waiting(linux());
    peer.sends(ms(50_000), fin());
    peer.gets(ms(50_000), ack(502));
    // 110,000 ms: 27 slots of 4096 ms are 110,592 ms.
    peer.silence(ms(110_591));
    assert_eq!(peer.end.state(), State::TimeWait);
    peer.silence(ms(110_592));
    assert_eq!(peer.end.state(), State::Closed);
}

/// An orphaned end.
fn left(settings: Settings) -> Peer {
    closed_by(settings, Endpoint::orphan)
}

#[test]
fn orphaned_fin_wait_2_keeps_its_receive_window() {
    // tcp_time_wait keeps tcp_receive_window, which never changes again.
    let mut peer = left(linux());
    let before = peer.window();
    peer.sends(ms(102), fin());
    peer.gets(ms(102), ack(502).window(before));
    // Then it is TIME-WAIT.
    peer.sends(ms(103), fin());
    peer.gets(ms(103), ack(502).window(before));
}

#[test]
fn orphaned_fin_wait_2_sends_no_dsack_for_old_data() {
    // tcp_in_window rejects all old data, and tcp_v4_timewait_ack has no SACK blocks.
    let mut peer = left(linux());
    peer.sends(ms(102), data(1..501).acking(2));
    peer.gets(ms(102), ack(501));
    peer.sends(ms(103), fin());
    peer.gets(ms(103), ack(502));
}

#[test]
fn new_data_in_orphaned_fin_wait_2_is_reset() {
    // TCP_TW_RST: "New data or FIN. If new data arrive after half-duplex close, reset." (RFC 1122
    // §4.2.2.13)
    let mut peer = left(linux());
    peer.sends(ms(102), data(501..1_001).acking(2));
    peer.gets(ms(102), reset().from(2));
    assert_eq!(peer.end.state(), State::Closed);
}

#[test]
fn fin_wait_2_after_shutdown_still_sends_dsack() {
    // After shutdown there is no mini-socket in FIN-WAIT-2, and a duplicate is reported
    // (tcp_send_dupack).
    let mut peer = Peer::connected(linux(), RTT);
    peer.sends(ms(1), data(1..501));
    peer.gets(ms(1), ack(501));
    peer.end.close();
    peer.writes(ms(2), 0);
    peer.gets(ms(2), ack(501).with(Flags::FIN));
    peer.sends(ms(101), ack(2));
    assert_eq!(peer.end.state(), State::FinWait2);
    peer.sends(ms(102), data(1..501).acking(2));
    peer.gets(ms(102), ack(501).sack(1..501));
}

#[test]
fn rst_clears_all_pending_timers() {
    // tcp_clear_xmit_timers, sk_stop_timer: the timer of acknowledged data stays in the wheel until
    // it expires, but no longer than the connection. If it expires, timers set in that tick get
    // another level (`__run_timers`).
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, MSS);
    peer.gets(0, data(1..1_001));
    peer.sends(ms(100), ack(1_001));
    assert_ne!(peer.end.next_timer(), Time::NEVER);
    peer.sends(ms(101), ack(1_001).with(Flags::RST));
    assert_eq!(peer.end.next_timer(), Time::NEVER);
}
