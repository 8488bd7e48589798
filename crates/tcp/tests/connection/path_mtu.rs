//! Path MTU discovery, by ICMP notices (RFC 1191) and by probes (RFC 4821).

use crate::peer::*;
use tcplab_tcp::{Flags, MtuProbing, Settings};

const RTT: u64 = ms(100);
/// Bytes of headers.
const HEADERS: u16 = 40;

fn both() -> [Settings; 2] {
    [rfc(), linux()]
}

/// Full segments of Ethernet, with this kind of MTU probing.
fn probing(mtu_probing: MtuProbing) -> Settings {
    Settings { mss: 1460, mtu_probing, initial_window: 12, tlp: false, frto: false, ..rfc() }
}

#[test]
fn frag_needed_retransmits_in_smaller_segments_without_reduction() {
    // RFC 1191 §6.4: at once, and without a window reduction.
    for settings in both() {
        let packet = if settings.behaviour == linux().behaviour { 2 } else { 5 };
        let mut peer = Peer::connected(settings, RTT);
        peer.writes(0, 5 * MSS);
        peer.gets(0, data(1..1 + 5 * MSS));
        assert_eq!(peer.tells(ms(20), 1, 600 + HEADERS), Some(600 + HEADERS));
        peer.mss = 600;
        // Linux cuts each packet of the send buffer by itself: two of 2000 bytes and one of 1000.
        for start in (0..5).step_by(packet) {
            let end = (start + packet as u64).min(5);
            peer.gets(ms(20), data(1 + start * MSS..1 + end * MSS));
        }
        // The others were too large as well, and their notices bring nothing new.
        peer.tells(ms(20), 1 + MSS, 600 + HEADERS);
        peer.silence(ms(21));
        assert_eq!((peer.cwnd(), peer.ssthresh()), (10, None));
        assert_eq!(peer.end.counters().episodes, 0);
        peer.sends(ms(120), ack(1 + 5 * MSS));
        peer.writes(ms(200), 1_200);
        peer.gets(ms(200), data(1 + 5 * MSS..1 + 5 * MSS + 1_200));
        peer.sends(ms(300), ack(1 + 5 * MSS + 1_200));
    }
}

#[test]
fn frag_needed_after_syn_timeout_sends_new_data_by_frto() {
    // tcp_enter_loss sets `frto` when the SYN's timer runs out, and nothing clears it.
    // tcp_simple_retransmit begins CA_Loss, in which tcp_process_loss takes step 2b of F-RTO for
    // the first ACK.
    for syns in [1, 2] {
        let mut peer = Peer::connecting(Settings { frto: true, initial_window: 10, ..linux() });
        peer.gets(0, syn());
        let mut at = RTT;
        if syns == 2 {
            at += ms(1000);
            peer.gets_near(ms(1024), syn());
        }
        peer.sends(at, syn().acking(1));
        peer.gets(at, ack(1));
        peer.writes(at, 14 * MSS);
        peer.gets(at, data(1..1 + 10 * MSS));
        peer.tells(at + ms(20), 1, 600 + HEADERS);
        peer.mss = 600;
        // The window is ten segments. Packets of the send buffer are cut by themselves: the first
        // two into 600, 600, 600 and 200 bytes. Without an RTT from the handshake there is no pace:
        // a packet is half of the window (`tcp_cwnd_test`).
        let ends: &[u64] = if syns == 2 { &[5_001, 5_601] } else { &[2_001, 4_001, 5_201] };
        let mut start = 1;
        for &end in ends {
            peer.gets(at + ms(20), data(start..end));
            start = end;
        }
        peer.sends(at + ms(120), ack(601));
        // One has arrived, and the window has grown by one.
        let next = if syns == 2 { 10_001..11_201 } else { 5_201..6_001 };
        peer.gets(at + ms(120), data(next));
    }
}

#[test]
fn frag_needed_retransmits_only_segments_above_the_mtu() {
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 400);
    peer.gets(0, data(1..401));
    peer.writes(ms(1), MSS);
    peer.gets(ms(1), data(401..1_401));
    peer.tells(ms(20), 401, 600 + HEADERS);
    peer.mss = 600;
    peer.gets(ms(20), data(401..1_401));
    peer.sends(ms(120), ack(1_401));
}

#[test]
fn frag_needed_for_a_segment_not_outstanding_is_ignored() {
    // RFC 5927 §4.1
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, MSS);
    peer.gets(0, data(1..1_001));
    assert_eq!(peer.tells(ms(20), 5_000, 600 + HEADERS), None);
    peer.silence(ms(21));
    peer.sends(ms(100), ack(1_001));
    peer.writes(ms(100), MSS);
    peer.gets(ms(100), data(1_001..2_001));
    peer.sends(ms(200), ack(2_001));
}

#[test]
fn packet_above_the_route_mtu_is_dropped_and_resent_by_probe_timer() {
    // `ip_queue_xmit` looks the route up for the first packet after another connection learned the
    // MTU, and `ip_fragment` drops that packet: two segments, as all packets here. Nothing is
    // outstanding, so `tcp_check_probe_timer` sets the RTO: 300 ticks in eights, 304 ms.
    // `tcp_write_wakeup` sends one segment.
    let mut peer = Peer::connected(linux(), RTT);
    peer.end.on_route_mtu(600 + HEADERS);
    peer.writes(0, 5 * MSS);
    peer.mss = 600;
    peer.gets_near(ms(304), data(1..601).pushed());
    peer.ignores(ms(310));
    assert_eq!(peer.end.counters().timeouts, 0);
    peer.sends(ms(404), ack(601));
    peer.gets(ms(404), data(601..5_001));
    peer.sends(ms(504), ack(5_001));
}

#[test]
fn ack_or_small_segment_updates_the_mtu_before_full_segments() {
    // `tcp_current_mss` uses the route that the last packet has looked up.
    for has_small in [false, true] {
        let mut peer = Peer::connected(linux(), RTT);
        peer.end.on_route_mtu(600 + HEADERS);
        let start = if has_small {
            peer.writes(0, 500);
            peer.gets(0, data(1..501));
            peer.sends(ms(100), ack(501));
            501
        } else {
            peer.sends(ms(50), data(1..1_001));
            peer.gets(ms(50), ack(1_001));
            1
        };
        peer.mss = 600;
        peer.writes(ms(200), 1_200);
        peer.gets(ms(200), data(start..start + 1_200));
        peer.sends(ms(300), ack(start + 1_200));
    }
}

#[test]
fn packets_above_the_mtu_are_split_only_when_retransmitted() {
    // `tcp_simple_retransmit` marks packets, and `__tcp_retransmit_skb` cuts each as it leaves,
    // because the receiver may still SACK an original segment. Three packets of two segments; six
    // segments of the new size leave.
    let mut peer = Peer::connected(Settings { initial_window: 6, ..linux() }, RTT);
    peer.writes(0, 6 * MSS);
    peer.gets(0, data(1..1 + 6 * MSS));
    peer.tells(ms(20), 1, 600 + HEADERS);
    peer.mss = 600;
    peer.gets(ms(20), data(1..2_001));
    peer.gets(ms(20), data(2_001..3_201));
    peer.sends(ms(120), ack(3_201).sack(5_001..6_001));
    peer.gets(ms(120), data(3_201..4_001));
    peer.gets(ms(120), data(4_001..5_001));
    peer.sends(ms(220), ack(6_001));
}

#[test]
fn fin_stays_on_the_last_part_of_a_split_packet() {
    // tcp_fragment: the last part of a packet has its FIN.
    for settings in both() {
        let mut peer = Peer::connected(Settings { initial_window: 1, ..settings }, RTT);
        peer.writes(0, 2 * MSS);
        peer.gets(0, data(1..1 + MSS));
        peer.end.close();
        peer.sends(ms(100), ack(1 + MSS));
        peer.gets(ms(100), data(1 + MSS..1 + 2 * MSS).with(Flags::FIN));
        peer.tells(ms(120), 1 + MSS, 600 + HEADERS);
        peer.gets(ms(120), data(1_001..1_601));
        peer.gets(ms(120), data(1_601..2_001).with(Flags::FIN));
        peer.sends(ms(200), ack(2_002));
    }
}

#[test]
fn echo_after_frag_needed_retransmission_undoes_nothing() {
    // After a notice Linux does not read the clock: retransmissions have the timestamp of the
    // original, and so has `retrans_stamp`. An echo is never earlier (`tcp_packet_delayed`), so
    // nothing is undone.
    let mut peer = Peer::connected(Settings { timestamps: true, ..linux() }, RTT);
    let full = MSS - 12;
    peer.writes(0, full + 400);
    peer.gets(0, data(1..1 + full + 400));
    let end = 1 + full + 400;
    peer.tells(ms(20), 1, 600 + HEADERS);
    peer.mss = 588;
    peer.gets(ms(20), data(1..end));
    // The original of the second segment has arrived, so the first retransmission seems lost.
    peer.sends(ms(100), ack(1).sack(1 + full..end).echoing(0));
    peer.gets(ms(100), data(1..589));
    // The retransmission was not lost. The next two follow (PRR, RFC 6937 §3.1).
    peer.sends(ms(120), ack(589).sack(1 + full..end).echoing(0));
    peer.gets(ms(120), data(589..1_177));
    peer.sends(ms(220), ack(end).echoing(ms(120)));
}

#[test]
fn offered_mss_is_from_the_device_mtu_not_the_path_mtu() {
    // RFC 9293 §3.7.1, `ipv4_default_advmss`: what the device can take.
    for settings in both() {
        let mss = settings.mss;
        let mut peer = Peer::connecting_over(settings, 600 + HEADERS);
        peer.gets(0, syn().offering(mss));
        peer.sends(ms(100), syn().acking(1));
        peer.gets(ms(100), ack(1));
    }
}

#[test]
fn cached_path_mtu_limits_the_first_segments() {
    let mut peer = Peer::connecting_over(rfc(), 600 + HEADERS);
    peer.gets(0, syn());
    peer.sends(ms(100), syn().acking(1));
    peer.gets(ms(100), ack(1));
    peer.mss = 600;
    peer.writes(ms(100), 1_200);
    peer.gets(ms(100), data(1..1_201));
    peer.sends(ms(200), ack(1_201));
}

#[test]
fn fast_open_syn_above_the_mtu_is_resent_without_data() {
    // tcp_simple_retransmit: all of it is lost.
    for settings in both() {
        let mut peer = Peer::connecting_fast(settings, Some(7));
        peer.writes(0, 960);
        peer.gets(0, data(0..960).with(Flags::SYN).cookie(7));
        peer.tells(ms(10), 0, 600 + HEADERS);
        peer.gets(ms(10), syn());
        peer.sends(ms(110), syn().acking(1));
        peer.mss = 600;
        peer.gets(ms(110), data(1..961).acking(1));
        peer.sends(ms(210), ack(961));
    }
}

#[test]
fn third_timeout_reduces_the_segment_size_to_1024_on_a_black_hole() {
    // RFC 4821 §7.7, after R1 of RFC 9293 §3.8.3; then 1024 bytes. An RTO of 1 s, doubled.
    let mut peer = Peer::connected(probing(MtuProbing::OnBlackHole), RTT);
    peer.writes(0, 3 * 1_460);
    peer.gets(0, data(1..4_381));
    peer.gets(ms(1_000), data(1..1_461));
    peer.gets(ms(3_000), data(1..1_461));
    peer.gets(ms(7_000), data(1..1_025));
    peer.sends(ms(7_100), ack(1_025));
    peer.mss = 1_024;
    peer.gets(ms(7_100), data(1_025..1_025 + 2 * 1_024));
    peer.sends(ms(7_200), ack(1_025 + 2 * 1_024));
    peer.gets(ms(7_200), data(3_073..4_381));
    peer.sends(ms(7_300), ack(4_381));
}

#[test]
fn black_hole_probing_halves_the_segment_size_with_each_timeout() {
    // tcp_mtu_probing: 1024 bytes do not arrive either, so half of that.
    let mut peer = Peer::connected(probing(MtuProbing::OnBlackHole), RTT);
    peer.writes(0, 1_460);
    peer.gets(0, data(1..1_461));
    peer.gets(ms(1_000), data(1..1_461));
    peer.gets(ms(3_000), data(1..1_461));
    peer.gets(ms(7_000), data(1..1_025));
    peer.gets(ms(15_000), data(1..513));
    peer.gets(ms(31_000), data(1..257));
    peer.sends(ms(31_100), ack(257));
    peer.mss = 256;
    peer.gets(ms(31_100), data(257..769));
    peer.sends(ms(31_200), ack(769));
    peer.ignores(ms(31_200));
}

#[test]
fn linux_probes_for_a_black_hole_after_three_seconds_of_timeouts() {
    // retransmits_timed_out: 200 ms * (2 << 3 - 1). The RTO is 300 ticks in eights: 304 ms; then
    // 600, 1,200 and 2,400 ticks in 64ths: 960, 2,176 and 4,608 ms. That is 4,304 ms after the
    // first.
    let settings = Settings {
        mss: 1460,
        mtu_probing: MtuProbing::OnBlackHole,
        tlp: false,
        frto: false,
        ..linux()
    };
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, 1_460);
    for at in [0, 304, 960, 2_176] {
        peer.gets(ms(at), data(1..1_461));
    }
    peer.gets(ms(4_608), data(1..1_025));
    peer.sends(ms(4_708), ack(1_025));
    peer.gets(ms(4_708), data(1_025..1_461));
    peer.sends(ms(4_808), ack(1_461));
}

#[test]
fn segment_size_is_kept_on_a_black_hole_with_mtu_probing_off() {
    let mut peer = Peer::connected(probing(MtuProbing::Off), RTT);
    peer.writes(0, 1_460);
    for at in [0, 1_000, 3_000, 7_000, 15_000] {
        peer.gets(ms(at), data(1..1_461));
    }
}

/// A sender that begins with 1024 bytes, after the first flight: a probe in the middle between 1064
/// and 1500, 1282 with headers, and eleven segments.
fn with_probe() -> Peer {
    let mut peer = Peer::connected(probing(MtuProbing::Always), RTT);
    peer.writes(0, 60_000);
    peer.mss = 1_242;
    peer.gets(0, data(1..1_243));
    peer.mss = 1_024;
    peer.gets(0, data(1_243..1_243 + 11 * 1_024));
    peer
}

#[test]
fn successful_mtu_probe_raises_mss_and_rescales_cwnd() {
    // tcp_mtup_probe_success: 12 * 1064 / 1282 = 9; the ACK makes it 10.
    let mut peer = with_probe();
    peer.sends(ms(100), ack(1_243));
    assert_eq!(peer.cwnd(), 10);
    // Eleven acknowledged: 21 segments, and the next probe in the middle between 1282 and 1500.
    let next = 1_243 + 11 * 1_024;
    peer.sends(ms(110), ack(next));
    peer.mss = 1_391 - 40;
    peer.gets(ms(110), data(next..next + 1_351));
    peer.mss = 1_242;
    peer.gets(ms(110), data(next + 1_351..next + 1_351 + 20 * 1_242));
    peer.ignores(ms(110));
}

#[test]
fn lost_mtu_probe_causes_no_congestion_response() {
    // RFC 4821 §7.4
    let mut peer = with_probe();
    peer.sends(ms(100), ack(1).sack(1_243..1_243 + 1_024));
    peer.ignores(ms(101));
    peer.sends(ms(101), ack(1).sack(1_243..1_243 + 2 * 1_024));
    peer.ignores(ms(102));
    peer.sends(ms(102), ack(1).sack(1_243..1_243 + 3 * 1_024));
    peer.gets(ms(102), data(1..1_025));
    peer.gets(ms(102), data(1_025..1_243));
    peer.ignores(ms(102));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (12, None));
    assert_eq!(peer.end.counters().episodes, 0);
}
