//! Linux's ACKs: delayed, quick and compressed ACKs, and DSACK (RFC 2883).
//!
//! Round trips take 100 ms.

use crate::peer::*;
use tcplab_tcp::{Flags, Settings};

const RTT: u64 = ms(100);

/// A receiver whose window is constant after the first segment: its buffer of 131,072 bytes does
/// not grow, and half of it is offered at first.
fn small_buffer() -> Settings {
    Settings { receive_buffer: 131_072, ..linux() }
}

fn segment(number: u64) -> std::ops::Range<u64> {
    (number - 1) * MSS + 1..number * MSS + 1
}

/// A receiver after 17 segments, one a millisecond from 1 ms on.
fn after_quick_acks() -> Peer {
    let mut peer = Peer::connected(small_buffer(), RTT);
    for number in 1..=17 {
        peer.sends(ms(number), data(segment(number)));
        peer.gets(ms(number), ack(number * MSS + 1));
    }
    peer
}

#[test]
fn linux_acknowledges_the_first_seventeen_at_once_and_then_every_second() {
    // tcp_incr_quickack: a window of 64 segments would be 32, but TCP_MAX_QUICKACKS is 16. The
    // window grows with the first segment, for which tcp_grow_window makes that number odd.
    let mut peer = after_quick_acks();
    for number in [18, 20, 22] {
        peer.sends(ms(number), data(segment(number)));
        peer.sends(ms(number + 1), data(segment(number + 1)));
        peer.gets(ms(number + 1), ack((number + 1) * MSS + 1));
    }
}

#[test]
fn linux_first_data_interval_starts_at_the_handshake() {
    // tcp_create_openreq_child sets lrcvtime. The ACK of a segment out of order is quick, because
    // the window grows, and leaves an ATO of 40 ms. So the first segment in order does not start
    // quick ACKs (tcp_event_data_recv), and 10 ms are no pause.
    let mut peer = Peer::connected(small_buffer(), RTT);
    peer.sends(ms(1), data(segment(2)));
    peer.gets(ms(1), ack(1).sack(1_001..2_001));
    peer.sends(ms(10), data(segment(1)));
    peer.gets(ms(10), ack(2_001));
    peer.sends(ms(11), data(segment(3)));
    peer.sends(ms(12), data(segment(4)));
    peer.gets(ms(12), ack(4_001));
}

#[test]
fn linux_acknowledges_a_lone_segment_after_forty_ticks() {
    // tcp_send_delayed_ack: ato is TCP_ATO_MIN after quick ACKs. From tick 20 on, and one more so
    // as not to be early.
    let mut peer = after_quick_acks();
    peer.sends(20_300, data(segment(18)));
    peer.gets(ms(61), ack(18_001));
}

#[test]
fn linux_ato_grows_with_the_interval_between_segments() {
    let mut peer = after_quick_acks();
    peer.sends(20_300, data(segment(18)));
    peer.gets(ms(61), ack(18_001));
    // tcp_delack_timer_handler: no data came to carry the ACK, so ato = 80 ms. Then
    // tcp_event_data_recv: 70 ms since the last segment are less than ato: 80 / 2 + 70 = 110; and
    // tcp_send_delayed_ack: at most the RTT of 100 ms. That is more than 63 ticks: from tick 90 to
    // 190, in eights 192.
    peer.sends(90_300, data(segment(19)));
    peer.gets(ms(192), ack(19_001));
}

/// A receiver after a window's worth of data, one segment every half millisecond: for the receiver
/// that is a round trip (`tcp_rcv_rtt_measure`) of the 65 segments after the first.
fn after_a_window(rtt: u64) -> Peer {
    let mut peer = Peer::connected(small_buffer(), rtt);
    for number in 1..=67 {
        peer.sends(500 * number, data(segment(number)));
        peer.ignores(500 * number);
    }
    peer
}

#[test]
fn linux_limits_delayed_ack_to_the_senders_srtt() {
    // tcp_send_delayed_ack: at most the sender's smoothed RTT, 100 ms of the handshake, and not the
    // receiver's RTT of 32.5 ms.
    let mut peer = after_a_window(RTT);
    peer.sends(40_300, data(segment(68)));
    peer.gets(ms(81), ack(68_001));
    // 80 / 2 + 70 = 110 ms; from tick 110 to 210, in eights 216.
    peer.sends(110_300, data(segment(69)));
    peer.gets(ms(216), ack(69_001));
}

#[test]
fn delayed_ack_timer_of_the_same_tick_keeps_its_wheel_slot() {
    let mut peer = Peer::connected(small_buffer(), ms(77));
    for number in 1..=17 {
        peer.sends(ms(number), data(segment(number)));
        peer.gets(ms(number), ack(number * MSS + 1));
    }
    peer.sends(20_300, data(segment(18)));
    peer.gets(ms(61), ack(18_001));
    // 80 / 2 + 71 = 111 ms, at most the RTT of 77: from tick 91 to 168, in eights 176.
    peer.sends(91_300, data(segment(19)));
    // The second is acknowledged at once, which leaves the timer where it is: 111 / 2 + 20 = 75 ms.
    peer.sends(101_300, data(segment(20)));
    peer.gets(101_300, ack(20_001));
    // 75 / 2 + 20 = 57 ms: from tick 111 to 168 again, for which __mod_timer does nothing.
    peer.sends(111_300, data(segment(21)));
    peer.gets(ms(176), ack(21_001));
}

#[test]
fn linux_compresses_sacks_of_a_hole_after_three_immediate_ones() {
    let mut peer = after_quick_acks();
    // Segment 18 is missing. The one behind it takes no memory of the buffer yet, so
    // tcp_grow_window opens the window a last time, and has a quick ACK for that.
    peer.sends(19_900, data(segment(19)));
    peer.gets(19_900, ack(17_001).sack(18_001..19_001));
    // __tcp_ack_snd_check: TCP_FASTRETRANS_THRESH duplicates at once.
    for (number, at) in [(20, 20_000), (21, 20_100), (22, 20_200)] {
        peer.sends(at, data(segment(number)));
        peer.gets(at, ack(17_001).sack(18_001..number * MSS + 1));
    }
    // The others wait for 5 % of the receiver's RTT, which is not known yet, and up to 100 µs of
    // slack.
    peer.sends(20_300, data(segment(23)));
    peer.sends(20_350, data(segment(24)));
    peer.gets(20_400, ack(17_001).sack(18_001..24_001));
    peer.sends(22_000, data(segment(25)));
    peer.gets(22_100, ack(17_001).sack(18_001..25_001));
    // RFC 5681 §4.2: a segment that fills a gap is acknowledged at once.
    peer.sends(24_000, data(segment(18)));
    peer.gets(24_000, ack(25_001));
}

#[test]
fn third_hole_flushes_the_compressed_ack_without_its_own_block() {
    let mut peer = after_quick_acks();
    for (number, at) in [(19, 19_900), (20, 20_000), (21, 20_100), (22, 20_200)] {
        peer.sends(at, data(segment(number)));
        peer.gets(at, ack(17_001).sack(18_001..number * MSS + 1));
    }
    peer.sends(20_300, data(segment(24)));
    // tcp_sack_new_ofo_skb: before a third block begins, tcp_sack_compress_send_ack reports the
    // two. tcp_data_queue_ofo has scheduled the ACK of this segment before, and tcp_send_ack clears
    // that.
    peer.sends(20_350, data(segment(26)));
    peer.gets(20_350, ack(17_001).sack(23_001..24_001).sack(18_001..22_001));
    // The slack counts from the next segment on.
    peer.sends(23_000, data(segment(27)));
    peer.gets(23_100, ack(17_001).sack(25_001..27_001).sack(23_001..24_001).sack(18_001..22_001));
}

#[test]
fn pending_dsack_is_dropped_when_data_arrives() {
    let holding = || {
        let mut peer = after_quick_acks();
        for (number, at) in [(19, 19_900), (20, 20_000), (21, 20_100), (22, 20_200)] {
            peer.sends(at, data(segment(number)));
            peer.gets(at, ack(17_001).sack(18_001..number * MSS + 1));
        }
        peer
    };
    // Segment 20 arrives twice, and nothing else before the ACK leaves.
    let mut peer = holding();
    peer.sends(20_300, data(segment(20)));
    peer.gets(20_400, ack(17_001).sack(19_001..20_001).sack(18_001..22_001));
    // tcp_data_queue begins with `rx_opt.dsack = 0`.
    let mut peer = holding();
    peer.sends(20_300, data(segment(20)));
    peer.sends(20_350, data(segment(23)));
    peer.gets(20_400, ack(17_001).sack(18_001..23_001));
}

#[test]
fn receiver_rtt_is_updated_by_the_timestamp_of_an_old_segment() {
    // tcp_rcv_rtt_measure_ts comes before tcp_data_queue finds the segment old: 121 - 117 ms, of
    // which duplicates wait for 5 %, and 100 us. Of the 50 ms that others took, it would be a whole
    // millisecond.
    let settings = Settings { timestamps: true, mss: MSS as u16 + 12, ..small_buffer() };
    let mut peer = Peer::connected(settings, RTT);
    peer.sends(ms(50), data(segment(1)));
    peer.gets(ms(50), ack(1_001));
    for number in 2..=17 {
        peer.sends(ms(100 + number), data(segment(number)).echoing(ms(50)));
        peer.gets(ms(100 + number), ack(number * MSS + 1));
    }
    peer.sends(ms(121), data(segment(17)).echoing(ms(117)));
    peer.gets(ms(121), ack(17_001).sack(16_001..17_001));
    for number in 18..=32 {
        peer.sends(ms(110 + number), data(segment(number)).echoing(ms(117)));
        peer.gets(ms(110 + number), ack(number * MSS + 1));
    }
    for (number, at) in [(34, 150_000), (35, 150_100), (36, 150_200), (37, 150_300)] {
        peer.sends(at, data(segment(number)).echoing(ms(117)));
        peer.gets(at, ack(32_001).sack(33_001..number * MSS + 1));
    }
    peer.sends(150_400, data(segment(38)).echoing(ms(117)));
    peer.gets(150_700, ack(32_001).sack(33_001..38_001));
}

#[test]
fn duplicate_out_of_order_data_does_not_grow_the_window() {
    // tcp_data_queue_ofo: tcp_grow_window applies to data that is kept. A window that grows causes
    // a quick ACK, for which duplicates would otherwise wait.
    let mut peer = Peer::connected(linux(), RTT);
    peer.sends(ms(1), data(segment(1)));
    peer.gets(ms(1), ack(1_001));
    // Nineteen more: the remaining quick ACKs, and the three duplicates that are sent at once.
    peer.sends(ms(2), data(segment(3)));
    peer.gets(ms(2), ack(1_001).sack(2_001..3_001));
    for again in 3..21 {
        peer.sends(ms(again), data(segment(3)));
        peer.gets(ms(again), ack(1_001).sack(2_001..3_001).sack(2_001..3_001));
    }
    peer.sends(ms(21), data(segment(3)));
    peer.ignores(ms(21));
}

#[test]
fn receiver_rtt_spans_one_window_beyond_its_first_segment() {
    // tcp_rcv_rtt_measure: rcv_nxt + rcv_wnd, where rcv_nxt has moved over the segment and rcv_wnd
    // is what was offered before it. The window is 65 segments, so that is the end of the 66th.
    let mut peer = Peer::connected(small_buffer(), ms(10));
    for number in 1..=65 {
        peer.sends(100 * number, data(segment(number)));
        peer.ignores(100 * number);
    }
    peer.sends(8_100, data(segment(66)));
    for number in 68..=71 {
        peer.sends(8_200, data(segment(number)));
        peer.ignores(8_200);
    }
    // 8 ms: duplicates wait for 5 % of that, and 100 us.
    peer.sends(8_300, data(segment(72)));
    peer.gets(8_800, ack(66_001).sack(67_001..72_001));
}

#[test]
fn old_segment_restarts_quick_acks() {
    // tcp_data_queue: tcp_enter_quickack_mode, because the sender did not receive our ACKs.
    let mut peer = after_quick_acks();
    peer.sends(ms(20), data(segment(17)));
    peer.gets(ms(20), ack(17_001).sack(16_001..17_001));
    for number in 18..=32 {
        peer.sends(ms(number + 3), data(segment(number)));
        peer.gets(ms(number + 3), ack(number * MSS + 1));
    }
    // The DSACK was one of the sixteen.
    peer.sends(ms(40), data(segment(33)));
    peer.sends(ms(41), data(segment(34)));
    peer.gets(ms(41), ack(34_001));
}

fn both() -> [Settings; 2] {
    [Settings { mss: 500, ..rfc() }, Settings { mss: 500, ..linux() }]
}

#[test]
fn duplicate_segment_is_reported_by_dsack() {
    // RFC 2883 §4.1.1.
    for settings in both() {
        let mut peer = Peer::connected(settings, RTT);
        peer.sends(ms(1), data(1..501));
        peer.gets(ms(1), ack(501));
        peer.sends(ms(2), data(501..1001));
        peer.gets(ms(2), ack(1001));
        peer.sends(ms(3), data(1..501));
        peer.gets(ms(3), ack(1001).sack(1..501));
        // §4: each duplicate is reported once.
        peer.sends(ms(4), data(1001..1501));
        peer.gets(ms(4), ack(1501));
    }
}

#[test]
fn dsack_of_old_data_precedes_sack_of_out_of_order_data() {
    // RFC 2883 §4.1.2.
    for settings in both() {
        let mut peer = Peer::connected(settings, RTT);
        peer.sends(ms(1), data(1..501));
        peer.gets(ms(1), ack(501));
        peer.sends(ms(2), data(1001..1501));
        peer.gets(ms(2), ack(501).sack(1001..1501));
        peer.sends(ms(3), data(1..501));
        peer.gets(ms(3), ack(501).sack(1..501).sack(1001..1501));
    }
}

#[test]
fn dsack_of_out_of_order_data_precedes_its_enclosing_block() {
    // RFC 2883 §4.1.3.
    for settings in both() {
        let mut peer = Peer::connected(settings, RTT);
        peer.sends(ms(1), data(1..501));
        peer.gets(ms(1), ack(501));
        peer.sends(ms(2), data(1001..1501));
        peer.gets(ms(2), ack(501).sack(1001..1501));
        peer.sends(ms(3), data(1501..2001));
        peer.gets(ms(3), ack(501).sack(1001..2001));
        peer.sends(ms(4), data(1001..1501));
        peer.gets(ms(4), ack(501).sack(1001..1501).sack(1001..2001));
    }
}

#[test]
fn linux_sends_no_dsack_if_a_duplicate_coalesces() {
    // tcp_data_queue_ofo: of the fifth, fourth and third segment, in this order, the fourth is at
    // the root of the tree, and the fifth becomes part of it when it comes again: no DSACK.
    let mut peer = Peer::connected(Settings { mss: 500, ..linux() }, RTT);
    peer.sends(ms(1), data(2001..2501));
    peer.gets(ms(1), ack(1).sack(2001..2501));
    peer.sends(ms(2), data(1501..2001));
    peer.gets(ms(2), ack(1).sack(1501..2501));
    peer.sends(ms(3), data(1001..1501));
    peer.gets(ms(3), ack(1).sack(1001..2501));
    peer.sends(ms(4), data(2001..2501));
    // From the fourth on they wait for 5 % of the RTT, which is not known yet, and 100 us.
    peer.gets(4_100, ack(1).sack(1001..2501));
    // The third is to the left of it.
    peer.sends(ms(6), data(1001..1501));
    peer.gets(6_100, ack(1).sack(1001..1501).sack(1001..2501));
}

#[test]
fn partial_duplicate_is_reported_by_dsack() {
    // RFC 2883 §4.2.1: the second half of a segment is new.
    for settings in both() {
        let settings = Settings { mss: 1000, ..settings };
        let mut peer = Peer::connected(settings, RTT);
        peer.sends(ms(1), data(1..501));
        peer.gets(ms(1), ack(501));
        peer.sends(ms(2), data(1..1001));
        peer.gets(ms(2), ack(1001).sack(1..501));
    }
}

#[test]
fn dsack_reports_the_first_of_two_duplicate_parts() {
    // RFC 2883 §4.2.3, with §4.2.2 for the blocks above: a large segment that covers two early
    // ones.
    for settings in both() {
        let settings = Settings { mss: 2000, ..settings };
        let mut peer = Peer::connected(settings, RTT);
        peer.sends(ms(1), data(501..1001));
        peer.gets(ms(1), ack(1).sack(501..1001));
        peer.sends(ms(2), data(1501..2001));
        peer.gets(ms(2), ack(1).sack(1501..2001).sack(501..1001));
        peer.sends(ms(3), data(501..2501));
        peer.gets(ms(3), ack(1).sack(501..1001).sack(501..2501));
    }
}

#[test]
fn duplicates_are_not_reported_with_dsack_off() {
    let mut peer = Peer::connected(Settings { dsack: false, ..rfc() }, RTT);
    peer.sends(ms(1), data(1..1001));
    peer.gets(ms(1), ack(1001));
    peer.sends(ms(2), data(1..1001));
    peer.gets(ms(2), ack(1001));
}

#[test]
fn duplicate_fin_is_reported_by_dsack() {
    // tcp_rcv_state_process accepts the segment in LAST-ACK, and tcp_data_queue reports the
    // sequence number of the FIN.
    let mut peer = Peer::connected(linux(), RTT);
    peer.sends(ms(1), ack(1).with(Flags::FIN));
    peer.end.close();
    peer.writes(ms(1), 0);
    peer.gets(ms(1), ack(2).with(Flags::FIN));
    peer.sends(ms(2), ack(1).from(1).with(Flags::FIN));
    peer.gets(ms(2), ack(2).sack(1..2));
}

#[test]
fn linux_acknowledges_a_fin_in_fin_wait_2_at_once() {
    // tcp_fin: tcp_send_ack in FIN-WAIT-2, without the delay that applies while this end could
    // still send.
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, MSS);
    peer.gets(0, data(1..1_001));
    peer.end.close();
    peer.writes(ms(1), 0);
    peer.gets(ms(1), ack(1).with(Flags::FIN));
    peer.sends(ms(101), ack(1_002));
    peer.sends(ms(102), ack(1_002).with(Flags::FIN));
    peer.gets(ms(102), ack(2));
}

#[test]
fn linux_processes_ack_of_an_old_segment_ending_at_rcv_wup() {
    // tcp_sequence rejects segments that end before rcv_wup, and no other old ones. An accepted
    // segment updates TS.Recent (tcp_replace_ts_recent), and its acknowledgment is processed
    // (tcp_ack).
    let settings = Settings { timestamps: true, mss: MSS as u16 + 12, ..linux() };
    let mut peer = Peer::connected(settings, RTT);
    peer.sends(ms(1), data(1..1_001));
    peer.gets(ms(1), ack(1_001).echoing(ms(1)));
    peer.sends(ms(5), data(1..1_001));
    peer.gets(ms(5), ack(1_001).sack(1..1_001).echoing(ms(5)));
    peer.writes(ms(6), MSS);
    peer.gets(ms(6), data(1..1_001).echoing(ms(5)));
    peer.sends(ms(7), data(1..1_001).acking(1_001));
    peer.gets(ms(7), ack(1_001).sack(1..1_001).echoing(ms(7)));
    assert_eq!(peer.end.snapshot().in_flight, 0);
    // After one more segment is acknowledged, the first ends before rcv_wup.
    peer.sends(ms(8), data(1_001..2_001).acking(1_001));
    peer.gets(ms(8), ack(2_001).echoing(ms(8)));
    peer.writes(ms(9), MSS);
    peer.gets(ms(9), data(1_001..2_001));
    peer.sends(ms(10), data(1..1_001).acking(2_001));
    peer.gets(ms(10), ack(2_001).sack(1..1_001).echoing(ms(8)));
    assert_eq!(peer.end.snapshot().in_flight, 1);
}

#[test]
fn duplicate_out_of_order_fin_is_reported_by_dsack() {
    // tcp_data_queue_ofo: the FIN's number is there already. It does not follow what ends behind
    // it.
    for settings in both() {
        let mut peer = Peer::connected(settings, RTT);
        let fin = || ack(1).from(1001).with(Flags::FIN);
        peer.sends(ms(1), fin());
        peer.gets(ms(1), ack(1).sack(1001..1002));
        peer.sends(ms(2), fin());
        peer.gets(ms(2), ack(1).sack(1001..1002).sack(1001..1002));
    }
}

#[test]
fn out_of_order_fin_received_again_in_order_causes_no_dsack() {
    // tcp_fin: tcp_sack_reset, where the FIN is in order at last; and what was out of order is
    // dropped before it could be a gap that is filled, so that the ACK waits for an answer: 40
    // ticks and one more.
    let mut peer = Peer::connected(Settings { mss: 1000, ..linux() }, RTT);
    peer.sends(ms(1), ack(1).from(401).with(Flags::FIN));
    peer.gets(ms(1), ack(1).sack(401..402));
    peer.sends(ms(2), data(1..401).with(Flags::FIN));
    peer.gets(ms(43), ack(402));
}

#[test]
fn linux_restarts_quick_acks_if_the_ack_lowers_rto_below_the_idle_time() {
    // tcp_rcv_established: tcp_event_data_recv before tcp_ack where the header is as predicted and
    // sk_forward_alloc has room for the segment, which takes 1,960 bytes; a request of n bytes
    // leaves of its pages what n + 960 do not take: 2,736 of 4,096, or 1,636. The pause is 298 ms;
    // the timeout, 300 ms from the handshake on, is 295 ms with the answer to the request, which
    // takes 60 ms: 95 + 200. Only where the acknowledgment comes first quick ACKs follow.
    for (request, is_quick) in [(400, false), (1_500, true)] {
        let mut peer = after_quick_acks();
        peer.writes(ms(255), request);
        peer.gets(ms(255), data(1..request + 1));
        peer.sends(ms(315), data(segment(18)).acking(request + 1));
        if is_quick {
            peer.gets(ms(315), ack(18 * MSS + 1));
        }
        peer.sends(ms(316), data(segment(19)).acking(request + 1));
        peer.gets(ms(316), ack(19 * MSS + 1));
    }
}

#[test]
fn unacceptable_empty_segments_are_acked_at_most_twice_a_second() {
    // tcp_oow_rate_limited: net.ipv4.tcp_invalid_ratelimit is 500 ms. Data is always answered.
    let mut peer = Peer::connected(linux(), ms(100));
    peer.sends(1_000, ack(1).from(0));
    peer.gets(1_000, ack(1));
    peer.sends(2_000, ack(1).from(0));
    peer.sends(500_000, ack(1).from(0));
    peer.silence(500_999);
    peer.sends(501_000, ack(1).from(0));
    peer.gets(501_000, ack(1));
}

#[test]
fn repeated_syn_is_answered_at_most_twice_a_second() {
    // tcp_check_req: tcp_oow_rate_limited counts from the first repeated SYN.
    let again = || syn().from(0);
    let mut peer = Peer::listening(linux(), syn());
    peer.gets(0, syn().acking(1));
    peer.sends(ms(1), again());
    peer.gets(ms(1), syn().acking(1));
    peer.sends(ms(2), again());
    peer.silence(ms(500));
    peer.sends(ms(501), again());
    peer.gets(ms(501), syn().acking(1));
}

#[test]
fn an_older_timestamp_is_not_echoed() {
    // RFC 7323 §4.3: only a timestamp that is not older than TS.Recent is stored. tcp_paws_check
    // accepts one that is a tick older (TCP_PAWS_WINDOW), which tcp_replace_ts_recent does not
    // store.
    let mut peer = Peer::connected(Settings { timestamps: true, ..linux() }, RTT);
    peer.sends(ms(10), data(1..989));
    peer.gets(ms(10), ack(989).echoing(ms(10)));
    peer.sends(ms(12), data(989..1977).stamped(ms(9)));
    peer.gets(ms(12), ack(1977).echoing(ms(10)));
    peer.sends(ms(13), data(1977..2965));
    peer.gets(ms(13), ack(2965).echoing(ms(13)));
}
