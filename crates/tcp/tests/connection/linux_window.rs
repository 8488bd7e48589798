//! The windows of modern Linux: restart after idle, cwnd validation, bursts, and receive buffers.

use crate::peer::*;
use tcplab_tcp::{Flags, MemoryPressure, Settings};

const RTT: u64 = ms(100);

/// A window of 40: ten, twenty and forty segments were sent. The last of them left at 200 ms, and
/// 40,000 bytes are acknowledged at 300 ms.
fn grown(mut settings: Settings) -> Peer {
    settings.tso = false;
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, 30 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(10_001));
    peer.gets(ms(100), data(10_001..30_001));
    peer.sends(ms(200), ack(30_001));
    assert_eq!(peer.cwnd(), 40);
    peer
}

#[test]
fn cwnd_restarts_at_initial_window_after_idling_for_an_rto() {
    // RFC 5681 §4.1: nothing sent for more than the RTO of a second.
    let mut peer = grown(rfc());
    peer.writes(ms(1_101), 40 * MSS);
    peer.gets(ms(1_101), data(30_001..40_001));
    assert_eq!(peer.cwnd(), 10);
    peer.ignores(ms(1_102));

    let mut peer = grown(rfc());
    peer.writes(ms(1_099), 40 * MSS);
    peer.gets(ms(1_099), data(30_001..70_001));
    peer.ignores(ms(1_100));

    let mut peer = grown(Settings { restart_after_idle: false, ..rfc() });
    peer.writes(ms(1_101), 40 * MSS);
    peer.gets(ms(1_101), data(30_001..70_001));
}

#[test]
fn linux_halves_the_window_for_each_idle_timeout() {
    // tcp_cwnd_restart: the RTO is 100 + 200 ms, and the idle time counts from the last departure
    // at 100 ms; not below the initial window.
    for (at, cwnd) in [(ms(399), 40), (ms(402), 20), (ms(702), 10), (ms(1_002), 10)] {
        let mut peer = grown(linux());
        peer.writes(at, 60 * MSS);
        peer.gets(at, data(30_001..30_001 + cwnd * MSS));
        assert_eq!(peer.cwnd(), cwnd);
    }
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    // RFC 7661 §4.1: a window that is not used does not grow.
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 9 * MSS);
    peer.gets(0, data(1..9_001));
    peer.sends(ms(100), ack(9_001));
    assert_eq!(peer.cwnd(), 10);
}

#[test]
fn linux_slow_start_grows_cwnd_if_more_than_half_is_used() {
    // tcp_is_cwnd_limited: cwnd < 2 * max_packets_out.
    for (segments, cwnd) in [(5, 10), (6, 16)] {
        let mut peer = Peer::connected(linux(), RTT);
        peer.writes(0, segments * MSS);
        peer.gets(0, data(1..segments * MSS + 1));
        peer.sends(ms(100), ack(segments * MSS + 1));
        assert_eq!(peer.cwnd(), cwnd);
    }
}

#[test]
fn linux_reduces_cwnd_that_was_not_filled_for_an_rto() {
    // tcp_cwnd_application_limited (RFC 2861): to the mean of the window and the most that was
    // used, at least the first window; an RTO of 300 ms after the last growth at 200 ms.
    let mut peer = grown(linux());
    for (at, from) in [(ms(250), 30_001), (ms(380), 32_001)] {
        peer.writes(at, 2 * MSS);
        peer.gets(at, data(from..from + 2 * MSS));
    }
    assert_eq!(peer.cwnd(), 40);
    peer.writes(ms(510), 2 * MSS);
    peer.gets(ms(510), data(34_001..36_001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (25, None));
}

#[test]
fn linux_tso_bursts_are_two_segments_with_psh_on_slow_paths() {
    // tcp_tso_autosize: 200 % of 10 segments in 100 ms are 200 bytes in 2^-10 s:
    // tcp_min_tso_segs = 2. __tcp_transmit_skb: PSH on the last of several segments.
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, 30 * MSS);
    for burst in 0..5 {
        peer.gets(0, data(burst * 2_000 + 1..burst * 2_000 + 2_001).pushed());
    }
}

#[test]
fn linux_client_sizes_first_bursts_by_default_initial_window() {
    // tcp_update_pacing_rate is first asked with the SYN-ACK, when the window is TCP_INIT_CWND and
    // not yet the one of the route (tcp_init_transfer): 200 % of 10 segments in 10 ms are 1953
    // bytes in 2^-10 s, less than the two segments that a burst has at least. For 50 it would be
    // nine.
    let mut peer = Peer::connected(Settings { initial_window: 50, ..linux() }, ms(10));
    peer.writes(0, 60 * MSS);
    for burst in 0..25 {
        peer.gets(0, data(burst * 2_000 + 1..burst * 2_000 + 2_001).pushed());
    }
}

#[test]
fn linux_server_sizes_first_bursts_by_configured_initial_window() {
    // tcp_rcv_state_process: tcp_update_pacing_rate comes after tcp_init_transfer. 200 % of 50
    // segments in 10 ms are 9765 bytes in 2^-10 s: nine segments.
    let mut peer = Peer::listening(Settings { initial_window: 50, ..linux() }, syn());
    peer.gets(0, syn().acking(1));
    peer.sends(10_000, ack(1));
    peer.writes(10_000, 60 * MSS);
    for burst in 0..5 {
        peer.gets(10_000, data(burst * 9_000 + 1..burst * 9_000 + 9_001).pushed());
    }
    peer.ignores(10_000);
}

#[test]
fn linux_tso_bursts_on_short_paths_are_at_most_half_of_cwnd() {
    // sk_gso_max_size >> (1000 >> tcp_tso_rtt_log), 32 kB more; tcp_cwnd_test: cwnd / 2.
    let mut peer = Peer::connected(linux(), ms(1));
    peer.writes(0, 30 * MSS);
    peer.gets(0, data(1..5_001).pushed());
    peer.gets(0, data(5_001..10_001).pushed());
}

#[test]
fn linux_defers_small_tso_bursts_while_acks_come_fast() {
    let mut peer = Peer::connected(Settings { initial_window: 50, ..linux() }, ms(10));
    peer.writes(0, 200 * MSS);
    peer.ignores(0);
    // tcp_tso_should_defer: the last departure is more than a millisecond ago, so everything
    // allowed leaves: two segments acknowledged and two of slow start.
    peer.sends(10_000, ack(2001));
    peer.gets(10_000, data(50_001..54_001).pushed());
    // Now the last departure is recent, and the next ACK is due: four and eight are deferred,
    // twelve make a burst of 11: 200 % of 58 segments in SRTT = 10.07 ms are 11.2 kB in 2^-10 s.
    // The twelfth waits again.
    peer.sends(10_100, ack(4001));
    peer.sends(10_200, ack(6001));
    peer.sends(10_300, ack(8001));
    peer.gets(10_300, data(54_001..65_001).pushed());
    peer.sends(10_400, ack(10_001));
}

#[test]
fn linux_unacceptable_segment_does_not_end_tso_deferral() {
    let mut peer = Peer::connected(Settings { initial_window: 50, ..linux() }, ms(10));
    peer.writes(0, 200 * MSS);
    peer.ignores(0);
    peer.sends(10_000, ack(2001));
    peer.gets(10_000, data(50_001..54_001).pushed());
    peer.sends(10_100, ack(4001));
    // Four wait, and the last departure is more than a millisecond ago. But tcp_validate_incoming
    // drops a segment that begins before the window, and answers it without sending data.
    peer.sends(11_500, ack(4001).from(0));
    peer.gets(11_500, ack(1));
    // tcp_wstamp_ns: the answer counts as a departure, so eight are still deferred.
    peer.sends(12_000, ack(6001));
    peer.silence(12_400);
    peer.sends(12_600, ack(6001).window(1 << 20));
    peer.gets(12_600, data(54_001..62_001).pushed());
}

/// A receiver with Linux's defaults, on Ethernet.
fn ethernet() -> Settings {
    Settings { mss: 1460, timestamps: true, ..linux() }
}

#[test]
fn linux_offers_whole_segments_of_half_its_buffer_at_first() {
    // tcp_select_initial_window: tcp_rmem[1] / 2 = 65,536, rounded down to whole segments.
    // Timestamps count in their size once both sides have said so (tcp_openreq_init_rwin).
    let mut peer = Peer::connecting(ethernet());
    peer.gets(0, syn().window(44 * 1460));
    let mut peer = Peer::listening(ethernet(), syn());
    peer.gets(0, syn().with(Flags::ACK).window(45 * 1448));
}

#[test]
fn linux_grows_the_receive_window_by_two_segments_per_full_segment() {
    // tcp_init_buffer_space leaves a segment to the application: 65,536 - 1448. tcp_grow_window:
    // two more for each full segment; __tcp_select_window: in units of the scale, 128.
    let mut peer = Peer::connected(ethernet(), RTT);
    for number in 1..=4 {
        peer.sends(ms(number), data((number - 1) * 1448 + 1..number * 1448 + 1));
        let earned: u64 = 64_088 + number * 2 * 1448;
        let line = ack(number * 1448 + 1).window(earned.next_multiple_of(128));
        peer.gets(ms(number), line);
    }
}

#[test]
fn linux_sizes_the_receive_buffer_by_data_read_per_round_trip() {
    // tcp_rcv_space_adjust: it begins with ten segments a round trip. The application reads 1, 20
    // and 40 of 1448 bytes in the round trips that begin at 100, 200 and 300 ms.
    let mut peer = Peer::connected(ethernet(), RTT);
    let mut next = 1;
    for (at, segments) in [(ms(100), 10), (ms(200), 20), (ms(300), 40)] {
        peer.sends(at, data(next..next + segments * 1448).echoing(at - RTT));
        next += segments * 1448;
        // The ACK of the last one may be delayed by 40 ms.
        peer.ignores(at + ms(60));
    }
    // A segment takes 2408 bytes of memory, of which 153 / 256 are data. 131,072 bytes less one
    // segment are a window of 76,896. At 300 ms 28,960 bytes have been read in a round trip: twice
    // that and 16 segments, and as it doubled twice as much more: 243,264, so that each of the 39
    // segments from then on, and one more, opens the window by two.
    let earned: u64 = 76_896 + 40 * 2 * 1448;
    assert!(earned < 243_264);
    peer.sends(ms(361), data(next..next + 1448));
    peer.gets(ms(361), ack(next + 1448).window(earned.next_multiple_of(128)));
}

#[test]
fn linux_sends_a_small_segment_at_the_window_edge_if_nagle_allows() {
    // tcp_mss_split_point: data cut off by the peer's window leaves with its last small segment if
    // Nagle's algorithm allows it. In Minshall's variant tcp_nagle_check allows one small segment.
    let settings = Settings { nagle: true, initial_window: 20, ..linux() };
    let mut peer = Peer::answering(settings, RTT, syn().acking(1).window(13_500));
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..13_501));
    // To 4,001 + 84 * 128 = 14,753: 252 bytes more would be the second small segment outstanding.
    peer.sends(ms(101), ack(4_001).window(84 * 128));
    peer.gets(ms(101), data(13_501..14_501));
    // The first has arrived; to 13,501 + 20 * 128 = 16,061.
    peer.sends(ms(103), ack(13_501).window(20 * 128));
    peer.gets(ms(103), data(14_501..15_501));
    peer.gets(ms(103), data(15_501..16_061).pushed());
}

#[test]
fn linux_appends_to_a_packet_blocked_by_the_peers_window() {
    // tcp_write_xmit: tcp_grow_skb comes before tcp_snd_wnd_test. Half of the peer's 6000 bytes
    // make packets of 3000. Two leave, and with the third the window is full. Each time that the
    // program has written on it takes in the one behind it, up to the nine segments of a burst:
    // after the first ACK, 2 * 50 * 1000 bytes in 10 ms are 9765 in 1/1024 s.
    let settings = Settings { initial_window: 50, ..linux() };
    let mut peer = Peer::answering(settings, ms(10), syn().acking(1).window(6_000));
    peer.writes(0, 2 * MSS);
    peer.ignores(0);
    peer.sends(ms(10), ack(2_001).window(47 * 128));
    peer.writes(ms(10), 24 * MSS);
    peer.gets(ms(10), data(2_001..5_001).pushed());
    peer.gets(ms(10), data(5_001..8_001).pushed());
    peer.sends(ms(20), ack(8_001).window(18_000));
    peer.gets(ms(20), data(8_001..17_001).pushed());
    peer.ignores(ms(20));
}

#[test]
fn linux_tso_deferral_compares_srtt_in_eighths_of_a_microsecond() {
    // tcp_tso_should_defer: 1 ms and 1/8 us until the next ACK are too long to wait for it. The
    // RTTs are 100,000 and 100,001 us, and the mean of that is 100,000 1/8.
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..2_001));
    peer.writes(1_001, 30 * MSS);
    peer.gets(1_001, data(2_001..10_001));
    // To 2,001 + 86 * 128 = 13,009, behind the burst of two no more than half of one.
    peer.sends(100_001, ack(2_001).window(86 * 128));
    peer.gets(100_001, data(10_001..12_001).pushed());
    peer.gets(100_001, data(12_001..13_009).pushed());
}

#[test]
fn linux_updates_rcv_mss_from_out_of_order_segments() {
    // tcp_data_queue_ofo: 1000 bytes take 1960 of memory, so 130/256 of the buffer may be window
    // (tcp_measure_rcv_mss), and of the 131,072 bytes 1960 are taken: 129,112 * 130 / 256 = 65,564.
    let mut peer = Peer::connected(Settings { receive_buffer: 131_072, ..linux() }, RTT);
    peer.sends(ms(1), data(1_001..2_001));
    peer.gets(ms(1), ack(1).sack(1_001..2_001).window(65_564));
}

/// Eleven segments outstanding of `segments`, the last of them a tail loss probe. One is
/// acknowledged at 208.5 ms. The window is eleven then, and the one segment that fits is deferred.
fn deferring(segments: u64) -> Peer {
    let mut peer = Peer::connected(linux(), RTT);
    peer.writes(0, segments * MSS);
    peer.gets(0, data(1..10_001));
    // tcp_schedule_loss_probe: 2 * 100 + 2 ms, in eights of ticks.
    peer.gets(ms(208), data(10_001..11_001));
    // tcp_tso_should_defer: a segment left less than 1 ms ago, and two make a burst.
    peer.sends(208_500, ack(1_001));
    assert_eq!((peer.cwnd(), peer.end.snapshot().in_flight), (11, 10));
    peer
}

#[test]
fn linux_tso_deferral_outlasts_a_tail_loss_probe_timer() {
    // tcp_send_loss_probe: with a probe outstanding only tcp_rearm_rto happens, and no
    // tcp_write_xmit. SRTT is 100 + 108.5 / 8 = 113.6 ms, so from tick 208 on 230 ticks, in
    // eights: 440. With 200 segments the program waits for write space, and its next call writes
    // nothing (sk_stream_wait_memory): two packets of 32,000 bytes fill a buffer of 2 * 11 * 2,304.
    for segments in [30, 200] {
        let mut peer = deferring(segments);
        peer.silence(ms(440));
        peer.writes(ms(441), 0);
        // The RTO of the segment that left at 0 is over: one tick, and one so as not to be early.
        peer.gets(ms(442), data(1_001..2_001));
        assert_eq!(peer.end.counters().timeouts, 1);
    }
}

#[test]
fn linux_write_ends_tso_deferral() {
    // tcp_push: tcp_write_xmit, and tcp_tso_should_defer has no reason left.
    let mut peer = deferring(30);
    peer.writes(ms(300), MSS);
    peer.gets(ms(300), data(11_001..12_001));
}

#[test]
fn linux_nagle_ignores_small_ends_of_packets_before_the_last() {
    // tcp_mss_split_point asks tcp_nagle_check only for the last packet, or where the window of the
    // peer cuts. The window of 12,000 bytes makes packets of half of that, of which two leave.
    let settings = Settings { nagle: true, initial_window: 12, ..linux() };
    let mut peer = Peer::answering(settings, ms(1), syn().acking(1).window(12_000));
    peer.writes(0, 36 * MSS);
    peer.gets(0, data(1..12_001));
    // To 6,001 + 92 * 128 = 17,777. The window is 18 with 6 under way: tcp_cwnd_test allows 9, and
    // tcp_grow_skb makes the third packet 9,000 bytes, of which 5,776 leave. Then it allows 6, and
    // of the fourth packet 224 bytes are left behind 6,000.
    peer.sends(1_100, ack(6_001).window(92 * 128));
    peer.gets(1_100, data(12_001..17_777));
    // The window is 24 with 6 under way: 12 are allowed, and 6,000 bytes grow by all of those 224.
    // 6,224 bytes are not whole segments, and the small one at 17,777 is under way, but more data
    // follows.
    peer.sends(2_300, ack(12_001));
    peer.gets(2_300, data(17_777..24_001).pushed());
    // The window has room for 11 more: the fifth packet, and 5,000 bytes of the sixth.
    peer.gets(2_300, data(24_001..35_001).pushed());
}

#[test]
fn linux_cwnd_validation_starts_at_the_handshake() {
    // tcp_init_transfer sets snd_cwnd_stamp; tcp_cwnd_application_limited compares that with the
    // RTO of 500 + 200 ms. hybla_init: the window is 500 / 25 = 20 segments, more than the first
    // one of ten and so to be narrowed.
    let mut peer = Peer::steered(linux(), ms(500), linux_control("hybla"));
    peer.writes(0, 4 * MSS);
    peer.gets(0, data(1..4_001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (20, None));
}

/// The window of forty, after the peer's window has allowed no more than four segments for more
/// than an RTO and the program has written `segments`.
fn cwnd_behind_a_small_window(segments: u64, is_above_low: bool) -> u64 {
    let settings = Settings { tlp: false, initial_window: 20, ..linux() };
    let mut peer = Peer::connected(settings, RTT);
    peer.end.set_memory_pressure(MemoryPressure {
        is_above_low,
        is_under_pressure: false,
        limit: u64::MAX,
    });
    peer.writes(0, 20 * MSS);
    peer.gets(0, data(1..20_001));
    peer.sends(ms(100), ack(20_001).window(16 * 128));
    peer.writes(ms(150), segments * MSS);
    peer.gets(ms(150), data(20_001..22_001));
    assert_eq!(peer.cwnd(), 40);
    // The window was set at 100 ms, and RTO = 100 + 200 ms.
    peer.sends(ms(410), ack(20_001).window(32 * 128));
    peer.gets(ms(410), data(22_001..24_001));
    peer.cwnd()
}

#[test]
fn linux_reduces_cwnd_left_unfilled_due_to_the_peers_window() {
    // tcp_cwnd_application_limited: "application or receiver window", however much data waits: to
    // the mean of 40 and the initial window.
    assert_eq!(cwnd_behind_a_small_window(30, false), 30);
}

#[test]
fn linux_keeps_unfilled_cwnd_while_the_send_buffer_is_full() {
    // SOCK_NOSPACE: the buffer of 2 * 20 segments, each 2,304 bytes, is full with three packets of
    // 32,000. Either tcp_new_space doubles it and sets snd_cwnd_stamp, or memory is short
    // (tcp_should_expand_sndbuf) and the program keeps waiting.
    for is_above_low in [false, true] {
        assert_eq!(cwnd_behind_a_small_window(200, is_above_low), 40, "tight: {is_above_low}");
    }
}

#[test]
fn linux_sizes_the_send_buffer_by_cwnd_after_congestion_control_init() {
    // tcp_init_transfer: tcp_init_congestion_control comes before tcp_init_buffer_space. hybla_init
    // makes the window 25 / 25 = 1 segment, of which tcp_sndbuf_expand makes ten: 2 * 10 * 2,304 =
    // 46,080 bytes, whatever the first window was meant to be.
    let settings = Settings { initial_window: 20, ..linux() };
    let mut peer = Peer::steered(settings, ms(25), linux_control("hybla"));
    peer.writes(0, 200 * MSS);
    peer.gets(0, data(1..1_001));
    // Half of the peer's 65,535 bytes make packets of 32,000. With the segment that left, 1,960
    // bytes, and one packet, 32,960, there is room; with another there is none.
    assert_eq!(peer.end.unsent(), 64_000);
}

#[test]
fn fin_without_data_does_not_grow_the_receive_window() {
    // tcp_data_queue: `if (skb->len) tcp_event_data_recv`. The first segment leaves less of the
    // buffer free than it earns: 131,072 bytes less its own 1960 of memory, of which 1000 are data.
    // When it is read, the next segment with data could open the window further.
    let mut peer = Peer::connected(linux(), RTT);
    peer.sends(ms(1), data(1..1_001));
    let window = (131_072 - 1_960) * (1_000 * 256 / 1_960) / 256;
    let window = u64::next_multiple_of(window, 128);
    peer.gets(ms(1), ack(1_001).window(window));
    peer.sends(ms(2), ack(1).with(Flags::FIN));
    peer.end.close();
    peer.writes(ms(3), 0);
    peer.gets(ms(3), ack(1_002).with(Flags::FIN).window(window));
}

#[test]
fn cwnd_validation_counts_ten_segments_as_used_after_a_lost_syn_ack() {
    // tcp_cwnd_application_limited: the used window is at least tcp_init_cwnd, ten segments, not
    // the one segment with which tcp_init_transfer begins after two lost SYN-ACKs. HYBLA makes a
    // larger window of that, by its RTT over 25 ms (hybla_init).
    let settings = Settings { timestamps: true, ..linux() };
    let mut peer = Peer::steered_listener(settings, linux_control("hybla"), syn());
    peer.ignores(ms(3_500));
    peer.sends(ms(3_500), ack(1));
    peer.writes(ms(30_000), 500);
    peer.gets(ms(30_000), data(1..501));
    let rho = peer.end.snapshot().srtt.as_millis() / 25;
    assert!(rho > 10, "{rho}");
    assert_eq!(peer.cwnd(), u64::midpoint(rho, 10));
    peer.ignores(ms(30_001));
}
