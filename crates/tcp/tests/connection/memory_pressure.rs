//! A host short of memory (`tcp_mem` of Linux).

use crate::peer::*;
use tcplab_tcp::MemoryPressure;

const RTT: u64 = ms(100);
const PLENTY: MemoryPressure =
    MemoryPressure { is_above_low: false, is_under_pressure: false, limit: u64::MAX };

#[test]
fn write_is_limited_by_the_memory_limit() {
    let mut peer = Peer::connected(rfc(), RTT);
    peer.end.set_memory_pressure(MemoryPressure { limit: 3 * MSS, ..PLENTY });
    peer.writes(0, 5 * MSS);
    peer.gets(0, data(1..1 + 3 * MSS));
    assert_eq!(peer.end.memory(), 3 * MSS);
    assert!(peer.end.take_write_refused() && !peer.end.take_write_refused());
    // Acknowledged data frees its memory.
    peer.sends(ms(100), ack(1 + MSS));
    peer.gets(ms(100), data(1 + 3 * MSS..1 + 4 * MSS));
    peer.end.set_memory_pressure(PLENTY);
    peer.sends(ms(200), ack(1 + 4 * MSS));
    peer.gets(ms(200), data(1 + 4 * MSS..1 + 5 * MSS));
    peer.sends(ms(300), ack(1 + 5 * MSS));
    assert_eq!(peer.end.memory(), 0);
}

#[test]
fn linux_send_memory_includes_960_bytes_of_overhead_per_packet() {
    // tcp_stream_alloc_skb: 960 bytes each. Ten segments written at once are one packet.
    let mut peer = Peer::connected(linux(), RTT);
    peer.end.set_memory_pressure(PLENTY);
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..1 + 2 * MSS));
    assert_eq!(peer.end.memory(), 2 * MSS + 960);
    peer.sends(ms(100), ack(1 + 2 * MSS));
}

#[test]
fn data_out_of_order_is_dropped_without_memory_for_it() {
    // tcp_data_queue_ofo
    let mut peer = Peer::connected(rfc(), RTT);
    peer.end.set_memory_pressure(MemoryPressure { limit: MSS + MSS / 2, ..PLENTY });
    peer.sends(0, data(1 + MSS..1 + 2 * MSS));
    peer.gets(0, ack(1).sack(1 + MSS..1 + 2 * MSS));
    peer.sends(ms(1), data(1 + 2 * MSS..1 + 3 * MSS));
    peer.silence(ms(2));
    // Data in order is read at once.
    peer.sends(ms(3), data(1..1 + MSS));
    peer.gets(ms(3), ack(1 + 2 * MSS));
    assert_eq!((peer.read, peer.end.memory()), (2 * MSS, 0));
}

/// The window after some full segments, for which it would grow.
fn window_after_data(is_under_pressure: bool) -> u64 {
    let mut peer = Peer::connected(linux(), RTT);
    for number in 0..20 {
        peer.end.set_memory_pressure(MemoryPressure { is_under_pressure, ..PLENTY });
        peer.sends(ms(number), data(1 + number * MSS..1 + (number + 1) * MSS));
        peer.ignores(ms(number));
    }
    peer.window()
}

#[test]
fn windows_do_not_grow_under_pressure() {
    // tcp_grow_window. The first window is half of 131072 bytes, less a segment of 1000 that is
    // kept (tcp_init_buffer_space), and here in whole units of the scale. Then data shows its
    // worth, 1000 of 1960 bytes: 130 of 256, and the last segment still takes its room when it is
    // acknowledged.
    let grown: u64 = (131_072 - 1_960) * 130 / 256;
    assert_eq!(window_after_data(false), grown.next_multiple_of(128));
    assert_eq!(window_after_data(true), (131_072_u64 / 2 - 1_000).next_multiple_of(128));
}

/// Ten segments have left in five packets of two. Returns the number of packets after the peer, 100
/// ms later, has sent these SACK blocks, each with an ACK of its own.
fn packets_after(blocks: &[std::ops::Range<u64>]) -> u64 {
    let mut peer = Peer::connected(linux(), RTT);
    peer.end.set_memory_pressure(PLENTY);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..1 + 10 * MSS));
    for block in blocks {
        peer.sends(ms(100), ack(1).sack(block.clone()));
        peer.ignores(ms(100));
    }
    (peer.end.memory() - 10 * MSS) / 960
}

#[test]
fn linux_merges_sacked_packets_with_sacked_neighbours() {
    // tcp_shift_skb_data. Segments 2 and 3 are one packet, and 5 to 10; 1 and 4 are two more.
    let (before, behind) = (1_001..3_001, 4_001..10_001);
    assert_eq!(packets_after(&[before.clone(), behind.clone()]), 4);
    // Segment 4 joins the packet before it, and both join the one after it, whatever the block
    // contains.
    assert_eq!(packets_after(&[before, behind, 3_001..4_001]), 2);
}

#[test]
fn linux_does_not_merge_ranges_sacked_by_the_previous_ack() {
    // The packet before segment 4 is not SACKed, so segment 4 joins nothing; and the part after it
    // was processed before: 1 and 2, 3, 4, 5 and 6, 7 and 8, 9 and 10.
    assert_eq!(packets_after(&[4_001..6_001, 3_001..6_001]), 6);
    // After an ACK that SACKs segment 10 alone, which is cut off, the whole block is new.
    assert_eq!(packets_after(&[4_001..6_001, 3_001..6_001, 9_001..10_001]), 7);
    assert_eq!(packets_after(&[4_001..6_001, 3_001..6_001, 9_001..10_001, 3_001..6_001]), 6);
}
