//! TCP small queues (`tcp_small_queue_check`): the limit on a sender's data at its own host's
//! device.

use crate::peer::*;
use tcplab_tcp::Settings;
use tcplab_units::Rate;

const RTT: u64 = ms(100);

/// A sender whose device reports packets that have left it.
fn behind_device(settings: Settings) -> Peer {
    let mut peer = Peer::connected(settings, RTT);
    peer.end.enable_small_queue(false);
    peer
}

#[test]
fn small_queue_limit_holds_back_a_third_burst() {
    // 200 % of 10 segments in 100 ms are 195 bytes in 2^-10 s, so the limit is two bursts of two
    // segments: 2 (2 * 1000 + 960) bytes of memory. Two bursts reach it.
    let mut peer = behind_device(linux());
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..4_001));
    peer.silence(ms(1));
    // Half a burst does not count as left.
    assert!(!peer.leaves(ms(1)) && peer.leaves(ms(1)));
    peer.gets(ms(1), data(4_001..6_001));
    peer.silence(ms(2));
    assert!(!peer.leaves(ms(2)) && peer.leaves(ms(2)));
    peer.gets(ms(2), data(6_001..8_001));
    assert!(!peer.leaves(ms(3)) && peer.leaves(ms(3)));
    peer.gets(ms(3), data(8_001..10_001));
    // The window is full, and no burst is throttled any more.
    assert!((0..4).all(|_| !peer.leaves(ms(4))));
    peer.silence(ms(99));
}

#[test]
fn ack_does_not_send_beyond_the_small_queue_limit() {
    let mut peer = behind_device(linux());
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..4_001));
    // Only the second burst is outstanding, so one more may follow, whatever is queued
    // (tcp_rtx_queue_empty_or_single_skb), and then none.
    peer.sends(ms(100), ack(2_001));
    peer.gets(ms(100), data(4_001..6_001));
    peer.silence(ms(101));
}

#[test]
fn small_queue_limit_is_off_without_device_completions() {
    let mut peer = Peer::connected(linux(), RTT);
    assert!(!peer.leaves(0));
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..10_001));
}

#[test]
fn a_burst_has_the_timestamp_of_its_departure() {
    // tcp_established_options: the timestamp is that of skb_mstamp_ns, which __tcp_transmit_skb
    // sets to the earliest departure time. A round trip measured by it therefore excludes the wait
    // in fq.
    let rate = Some(Rate::from_bits_per_second(8 * 98_800));
    let stack = Settings { timestamps: true, pacing: true, max_pacing_rate: rate, ..linux() };
    let mut peer = Peer::connected(stack, RTT);
    peer.end.enable_small_queue(true);
    peer.writes(0, 60 * MSS);
    // The initial window of ten segments: at most two bursts of two are at the device.
    while peer.leaves(0) || peer.leaves(0) {}
    peer.ignores(0);
    let first = peer.stamps().len();
    peer.sends(ms(100), ack(9_881));
    // At 98.8 kB/s a burst of two segments of 988 bytes takes 20 ms. The second burst after the ACK
    // leaves 10 ms after the first, because the pause is credited with half of that time
    // (tcp_update_skb_after_send).
    let stamps = &peer.stamps()[first..];
    let begun = peer.stamps()[0];
    let after: Vec<_> = stamps.iter().map(|stamp| stamp - begun).collect();
    assert_eq!(after, [100, 100, 110, 110]);
    peer.ignores(ms(100));
}

#[test]
fn blocked_probe_rearms_rto_and_queued_packet_is_not_retransmitted() {
    // After two round trips tcp_send_loss_probe finds too much data at the device, and
    // tcp_rearm_rto counts from the departure of the oldest segment: 300 ms. The packet to be
    // retransmitted then is still at the device (__tcp_retransmit_skb returns -EBUSY). The
    // retransmission leaves when the device has sent that packet (tcp_tsq_write): one segment, the
    // window after a timeout.
    let mut peer = behind_device(linux());
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..4_001));
    peer.silence(ms(299));
    assert_eq!(peer.end.counters().timeouts, 0);
    peer.silence(ms(310));
    assert_eq!(peer.end.counters().timeouts, 1);
    assert!(!peer.leaves(ms(320)) && peer.leaves(ms(320)));
    peer.gets(ms(320), data(1..1_001));
    peer.silence(ms(321));
}

#[test]
fn data_dropped_by_the_host_queue_stays_unsent_and_reduces_cwnd() {
    // NET_XMIT_DROP: tcp_write_xmit stops, and tcp_enter_cwr halves the window of ten segments. The
    // call goes on, and its next push sends the refused data.
    let mut peer = behind_device(linux());
    peer.refusals = 1;
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..4_001));
    assert_eq!(peer.end.snapshot().ssthresh, Some(5));
    assert_eq!(peer.end.counters().retransmitted_segments, 0);
    peer.silence(ms(1));
}

#[test]
fn refused_first_data_is_retried_after_rto_then_every_500_ms() {
    // tcp_check_probe_timer: an RTO of 300 ms, on a level of the wheel with steps of 8 ms. Then
    // TCP_RESOURCE_PROBE_INTERVAL: 500 ms more, on the same level. tcp_write_wakeup sends one
    // segment, whatever the window.
    let mut peer = behind_device(linux());
    peer.refusals = 2;
    peer.writes(0, 2 * MSS);
    peer.silence(ms(807));
    peer.gets(ms(808), data(1..1_001));
    peer.silence(ms(809));
}

#[test]
fn refused_rto_retransmission_is_retried_after_500_ms_without_backoff() {
    // tcp_retransmit_timer: an RTO of 300 ms, on a level of the wheel with steps of 8 ms. The queue
    // refuses the retransmission, which waits TCP_RESOURCE_PROBE_INTERVAL on the same level.
    let mut peer = behind_device(Settings { tlp: false, ..linux() });
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..2_001));
    assert!(!peer.leaves(ms(1)) && !peer.leaves(ms(1)), "no data waits for the device");
    peer.refusals = 1;
    peer.silence(ms(807));
    peer.gets(ms(808), data(1..1_001));
    // The RTO doubles only now: 600 ms, on a level with steps of 64 ms.
    assert!(!peer.leaves(ms(809)));
    peer.silence(ms(1_471));
    peer.gets(ms(1_472), data(1..1_001));
}

#[test]
fn refused_handshake_ack_reduces_cwnd() {
    // tcp_enter_cwr needs no data in flight: half of ten segments.
    let mut peer = Peer::connecting(linux());
    peer.gets(0, syn());
    peer.end.enable_small_queue(false);
    peer.refusals = 1;
    peer.sends(ms(100), syn().acking(1));
    peer.silence(ms(100));
    peer.writes(ms(100), 60 * MSS);
    peer.gets(ms(100), data(1..4_001));
    assert_eq!(peer.end.snapshot().ssthresh, Some(5));
}

#[test]
fn data_pending_after_a_refusal_causes_no_idle_restart() {
    // tcp_slow_start_after_idle_check is made for a write and for a new window of the peer, and not
    // for tcp_write_wakeup: CUBIC keeps 717/1024 of 20 segments, and does not return to 10.
    let mut peer = Peer::steered(linux(), RTT, linux_control("cubic"));
    peer.end.enable_small_queue(false);
    peer.writes(0, 10 * MSS);
    while peer.leaves(0) || peer.leaves(0) {}
    peer.ignores(0);
    peer.sends(ms(100), ack(10_001));
    assert_eq!(peer.end.snapshot().cwnd, 20);
    peer.refusals = 1;
    peer.writes(ms(100), 2 * MSS);
    // tcp_check_probe_timer: an RTO of 300 ms, on a level of the wheel with steps of 8 ms.
    peer.silence(ms(407));
    peer.gets(ms(408), data(10_001..11_001));
    peer.sends(ms(508), ack(11_001));
    peer.gets(ms(508), data(11_001..12_001));
    assert_eq!(peer.end.snapshot().cwnd, 14);
}
