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
fn two_bursts_wait_at_the_device_and_a_third_for_the_first_of_them() {
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
fn an_ack_lets_nothing_go_past_a_full_device() {
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
fn without_a_device_that_tells_nothing_is_held_back() {
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
fn a_probe_that_cannot_leave_keeps_the_rto_and_a_packet_at_the_device_is_not_retransmitted() {
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
