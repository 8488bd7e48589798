//! Loss recovery of the modern sender: RACK, TLP (RFC 8985), PRR (RFC 9937).
//!
//! Round trips take 100 ms: the handshake makes that SRTT and `min_RTT`.

use crate::peer::*;
use std::ops::Range;
use tcplab_tcp::{Flags, Settings, WindowReduction};
use tcplab_units::Duration;

const RTT: u64 = ms(100);

/// A sender with ten segments outstanding since 0.
fn ten(settings: Settings) -> Peer {
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer
}

/// An immediate reduction, so that transmissions show only which segments are marked lost.
fn without_prr() -> Settings {
    Settings { reduction: WindowReduction::AtOnce, ..rfc() }
}

#[test]
fn rack_waits_no_reo_wnd_once_three_later_segments_are_sacked() {
    // RFC 8985 §6.2 step 4: without reordering, RACK.reo_wnd is 0 once DupThresh were SACKed.
    let mut peer = ten(without_prr());
    peer.sends(100_000, ack(1).sack(1001..2001));
    peer.sends(100_100, ack(1).sack(1001..3001));
    peer.sends(100_200, ack(1).sack(1001..4001));
    peer.gets(100_200, data(1..1001));
    assert_eq!(peer.ssthresh(), Some(5));
}

#[test]
fn rack_waits_a_quarter_of_min_rtt_with_fewer_than_three_sacked() {
    // RFC 8985 §6.2 step 5: lost RACK.rtt + reo_wnd after it left, 100.1 + 100 / 4 ms.
    let mut peer = ten(without_prr());
    peer.sends(100_000, ack(1).sack(1001..2001));
    peer.sends(100_100, ack(1).sack(1001..3001));
    peer.gets(125_100, data(1..1001));
}

#[test]
fn linux_rack_timer_adds_two_milliseconds_and_counts_ticks() {
    // tcp_rack_mark_lost: 25 ms remain at 100.1 ms, and 2 ms more make 27 ticks, from tick 100 on
    // and one later so as not to be early.
    let mut peer = ten(linux());
    peer.sends(100_000, ack(1).sack(1001..2001));
    peer.sends(100_100, ack(1).sack(1001..3001));
    peer.gets(128_000, data(1..1001));
}

#[test]
fn segment_delivered_within_reo_wnd_is_not_lost() {
    let mut peer = ten(without_prr());
    peer.sends(100_000, ack(1).sack(1001..2001));
    peer.sends(120_000, ack(2001));
    peer.sends(121_000, ack(10_001));
    peer.silence(ms(2_000));
    assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (None, 0));
}

/// Segment 1 of ten is overtaken; all arrive.
fn reorder(peer: &mut Peer) {
    peer.sends(100_000, ack(1).sack(1001..2001));
    peer.sends(101_000, ack(2001));
    peer.sends(102_000, ack(10_001));
}

#[test]
fn rack_waits_reo_wnd_after_three_sacks_once_reordering_was_seen() {
    let mut peer = ten(without_prr());
    reorder(&mut peer);
    peer.writes(ms(200), 10 * MSS);
    peer.gets(ms(200), data(10_001..20_001));
    peer.sends(ms(300), ack(10_001).sack(11_001..14_001));
    // RFC 8985 §6.2 step 4: RACK.reordering_seen: min_RTT / 4, however many were SACKed.
    peer.gets(ms(325), data(10_001..11_001));
}

#[test]
fn dsack_widens_reo_wnd_by_a_quarter_of_min_rtt() {
    let mut peer = ten(without_prr());
    reorder(&mut peer);
    peer.writes(ms(200), 10 * MSS);
    peer.gets(ms(200), data(10_001..20_001));
    peer.sends(ms(300), ack(10_001).sack(11_001..14_001));
    peer.gets(ms(325), data(10_001..11_001));
    // The segment was late, and its retransmission is a duplicate.
    peer.sends(ms(330), ack(14_001));
    peer.sends(ms(331), ack(20_001));
    peer.sends(ms(425), ack(20_001).sack(10_001..11_001));
    peer.writes(ms(500), 10 * MSS);
    peer.gets(ms(500), data(20_001..30_001));
    peer.sends(ms(600), ack(20_001).sack(21_001..24_001));
    // RFC 8985 §6.2 step 4: RACK.reo_wnd_mult is 2: 100 + 2 * 25 ms.
    peer.gets(ms(650), data(20_001..21_001));
}

#[test]
fn rack_detects_a_lost_retransmission_by_later_segments() {
    let mut peer = Peer::connected(without_prr(), RTT);
    peer.writes(0, 14 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(100_000, ack(1).sack(1001..4001));
    peer.gets(100_000, data(1..1001));
    // ssthresh is 5. In flight: 10 - 9 SACKed - 1 lost + 1 retransmission.
    peer.sends(100_200, ack(1).sack(1001..10_001));
    peer.gets(100_200, data(10_001..14_001));
    // RFC 8985 §6.2 step 5: RACK.xmit_ts is 100.2 ms, after the retransmission, whose RTT has
    // passed.
    peer.sends(200_200, ack(1).sack(1001..11_001));
    peer.gets(200_200, data(1..1001));
    assert_eq!(peer.end.counters().timeouts, 0);
}

#[test]
fn a_probe_repeats_the_last_segment_after_two_round_trips() {
    // RFC 8985 §7.2: PTO = 2 * SRTT; §7.3: nothing new to send.
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..2001));
    peer.gets(ms(200), data(1001..2001));
    // RFC 8985 §7.3: the retransmission timer starts again with the probe.
    peer.silence(ms(1_199));
    peer.gets(ms(1_200), data(1..1001));
}

#[test]
fn tail_loss_probe_prefers_new_data_even_beyond_cwnd() {
    // RFC 8985 §7.3: one segment more than the congestion window.
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 20 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(200), data(10_001..11_001));
    // No second probe before the first is answered.
    peer.silence(ms(1_199));
    peer.gets(ms(1_200), data(1..1001));
}

#[test]
fn tail_loss_probe_of_new_data_respects_the_peers_window() {
    let answer = syn().acking(1).window(10 * MSS);
    let mut peer = Peer::answering(rfc(), RTT, answer);
    peer.writes(0, 20 * MSS);
    peer.gets(0, data(1..10_001));
    peer.gets(ms(200), data(9_001..10_001));
    peer.ignores(ms(500));
}

#[test]
fn tail_loss_probe_of_a_lone_segment_allows_for_delayed_ack() {
    // RFC 8985 §7.2: PTO = 2 * SRTT + TLP.max_ack_delay (200 ms).
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, MSS);
    peer.gets(0, data(1..1001));
    peer.gets(ms(400), data(1..1001));
    peer.sends(ms(500), ack(1001));
}

#[test]
fn linux_grows_cwnd_on_sack_once_reordering_exceeds_three() {
    let mut peer = Peer::connected(Settings { tso: false, ..linux() }, RTT);
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..10_001));
    // tcp_may_raise_cwnd: nothing is acknowledged, so the window stays.
    peer.sends(ms(100), ack(1).sack(8_001..10_001));
    peer.gets(ms(100), data(10_001..12_001));
    assert_eq!(peer.cwnd(), 10);
    // tcp_check_sack_reordering: the first arrived ten segments late. The other eight raise the
    // degree.
    peer.sends(ms(101), ack(10_001));
    peer.gets(ms(101), data(12_001..28_001));
    assert_eq!(peer.cwnd(), 18);
    // With `reordering` above `tcp_reordering`, FLAG_FORWARD_PROGRESS is enough.
    peer.sends(ms(200), ack(10_001).sack(11_001..12_001));
    peer.gets(ms(200), data(28_001..30_001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (19, None));
    peer.sends(ms(201), ack(12_001));
    peer.gets(ms(201), data(30_001..32_001));
    assert_eq!(peer.cwnd(), 20);
}

#[test]
fn linux_tail_loss_probe_is_sent_no_later_than_the_rto() {
    // tcp_schedule_loss_probe: 2 * 20 + 200 ms for a lone segment, but RTO = 20 + 200 ms is less.
    // 220 ticks are counted in eights: 224.
    let mut peer = Peer::connected(linux(), ms(20));
    peer.writes(0, MSS);
    peer.gets(0, data(1..1001));
    peer.gets(ms(224), data(1..1001));
    peer.sends(ms(244), ack(1001));
}

#[test]
fn linux_tail_loss_probe_of_several_waits_two_srtt_and_two_ticks() {
    // 2 * 20 + TCP_TIMEOUT_MIN_US: 42 ticks, and one so as not to be early.
    let mut peer = Peer::connected(linux(), ms(20));
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..2001));
    peer.gets(ms(43), data(1001..2001));
    peer.sends(ms(63), ack(2001));
}

#[test]
fn linux_tail_loss_probe_sends_data_held_by_nagle() {
    // tcp_send_loss_probe: new data comes before the last segment, and leaves with TCP_NAGLE_OFF.
    // Of two small segments one waits; the other has set the timer anew.
    let mut peer = Peer::connected(Settings { nagle: true, ..linux() }, ms(20));
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..2001));
    peer.writes(ms(1), 100);
    peer.gets(ms(1), data(2001..2101));
    peer.writes(ms(2), 100);
    peer.silence(ms(43));
    peer.gets(ms(44), data(2101..2201));
    peer.sends(ms(64), ack(2201));
}

#[test]
fn linux_sets_psh_on_a_probe_that_ends_the_written_data() {
    // tcp_send_loss_probe: an ordinary packet. tcp_fragment leaves PSH at the end of the data that
    // tcp_push has marked.
    for (segments, pushed) in [(11, true), (12, false)] {
        let mut peer = Peer::connected(linux(), ms(20));
        peer.writes(0, segments * MSS);
        peer.gets(0, data(1..10_001));
        let probe = data(10_001..11_001);
        peer.gets(ms(43), if pushed { probe.pushed() } else { probe.without(Flags::PUSH) });
        peer.ignores(ms(43));
    }
}

#[test]
fn ack_restarts_the_tail_loss_probe_timer() {
    let mut peer = ten(rfc());
    peer.sends(ms(100), ack(5_001));
    // 2 * SRTT after the ACK, and not after the sending.
    peer.gets(ms(300), data(9_001..10_001));
    peer.ignores(ms(400));
}

/// Two segments, of which a probe retransmits the last.
fn probed(settings: Settings) -> Peer {
    let mut peer = Peer::connected(settings, RTT);
    peer.writes(0, 2 * MSS);
    peer.gets(0, data(1..2001));
    peer.gets(ms(200), data(1001..2001));
    peer
}

#[test]
fn duplicate_report_of_a_tail_loss_probe_keeps_cwnd() {
    // RFC 8985 §7.4.1 case 1: a DSACK of the probe; case 2: a plain duplicate ACK.
    for twice in [ack(2001).sack(1001..2001), ack(2001)] {
        let mut peer = probed(rfc());
        peer.sends(ms(250), ack(2001));
        peer.sends(ms(300), twice);
        peer.writes(ms(310), MSS);
        peer.gets(ms(310), data(2001..3001));
        peer.sends(ms(410), ack(3001));
        assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (None, 0));
    }
}

#[test]
fn dsack_of_a_tail_loss_probe_beyond_end_seq_keeps_cwnd() {
    // RFC 8985 §7.4.2: the DSACK counts, though the ACK is beyond TLP.end_seq.
    let mut peer = probed(rfc());
    peer.writes(ms(210), MSS);
    peer.gets(ms(210), data(2001..3001));
    peer.sends(ms(310), ack(3001).sack(1001..2001));
    assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (None, 0));
}

#[test]
fn tail_loss_probe_that_repaired_a_loss_reduces_cwnd() {
    // RFC 8985 §7.4.2: data beyond TLP.end_seq is acknowledged, without a sign of a duplicate.
    for (settings, ssthresh) in [(rfc(), 3), (linux(), 8)] {
        let mut peer = Peer::connected(settings, RTT);
        peer.writes(0, 6 * MSS);
        peer.ignores(ms(299));
        peer.sends(ms(300), ack(6001));
        peer.writes(ms(310), MSS);
        peer.gets(ms(310), data(6001..7001));
        peer.sends(ms(410), ack(7001));
        // Half of FlightSize when the probe left; in Linux half of the window, which the six
        // deliveries had raised to 16.
        assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (Some(ssthresh), 1));
    }
}

#[test]
fn sack_of_a_tail_loss_probe_lets_rack_detect_a_lost_tail() {
    // RFC 8985 §7.1: of ten the last three are lost. The probe retransmits the tenth, whose SACK
    // lets RACK detect the two before it.
    let mut peer = ten(rfc());
    peer.sends(ms(100), ack(7_001));
    peer.gets(ms(300), data(9_001..10_001));
    peer.sends(ms(400), ack(7_001).sack(9_001..10_001));
    peer.gets(ms(400), data(7_001..8_001));
    peer.sends(ms(500), ack(8_001).sack(9_001..10_001));
    peer.gets(ms(500), data(8_001..9_001));
    peer.sends(ms(600), ack(10_001));
    assert_eq!((peer.end.counters().timeouts, peer.end.counters().episodes), (0, 1));
}

#[test]
fn no_probe_in_recovery() {
    // RFC 8985 §7.2: the timer is the retransmission timer, an RTO after the retransmission.
    let mut peer = ten(without_prr());
    peer.sends(ms(100), ack(1).sack(1001..4001));
    peer.gets(ms(100), data(1..1001));
    peer.gets(ms(1_100), data(1..1001));
    peer.ignores(ms(1_101));
}

/// Twenty segments outstanding; ssthresh will be ten. `j` of those after the first `lost` have
/// arrived.
fn twenty(lost: u64) -> (Peer, impl Fn(&mut Peer, u64)) {
    let mut peer = Peer::connected(Settings { initial_window: 20, ..rfc() }, RTT);
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..20_001));
    let arrive = move |peer: &mut Peer, j: u64| {
        let block = lost * MSS + 1..(lost + j) * MSS + 1;
        peer.sends(ms(100 + j), ack(1).sack(block));
    };
    (peer, arrive)
}

#[test]
fn prr_with_one_loss_of_twenty_sends_on_every_second_ack() {
    // RFC 6937 §4, first example: two by limited transmit, the retransmission, and then one for
    // every two.
    let (mut peer, arrive) = twenty(1);
    let mut next = 20_001;
    for j in 1..=19 {
        arrive(&mut peer, j);
        if j == 3 {
            peer.gets(ms(103), data(1..1001));
        } else if j < 3 || (j % 2 == 1 && j < 19) {
            peer.gets(ms(100 + j), data(next..next + MSS));
            next += MSS;
        }
    }
    // ssthresh is reached: each delivery releases one, by the reduction bound.
    assert_eq!(peer.end.snapshot().in_flight, 10);
    for j in 20..=21 {
        peer.sends(ms(181 + j), ack(1).sack(1001..(j + 1) * MSS + 1));
        peer.gets(ms(181 + j), data(next..next + MSS));
        next += MSS;
    }
    peer.sends(ms(203), ack(22_001));
    peer.gets(ms(203), data(next..next + MSS));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (10, Some(10)));
}

#[test]
fn prr_with_many_losses_sends_one_for_one_then_slow_start() {
    // RFC 6937 §4, second example: the first 15 of twenty are lost.
    let (mut peer, arrive) = twenty(15);
    for (j, sent) in [20_001, 21_001, 1, 1001, 2001].into_iter().enumerate() {
        arrive(&mut peer, j as u64 + 1);
        peer.gets(ms(101 + j as u64), data(sent..sent + MSS));
    }
    // The segments of limited transmit arrive.
    for (j, sent) in [(6, 3001), (7, 4001)] {
        peer.sends(ms(195 + j), ack(1).sack(15_001..(15 + j) * MSS + 1));
        peer.gets(ms(195 + j), data(sent..sent + MSS));
    }
    // RFC 9937 §6.2: an ACK that advances and shows no further loss releases one more than it
    // delivers.
    peer.sends(ms(203), ack(1001).sack(15_001..22_001));
    peer.gets(ms(203), data(5_001..7_001));
    peer.sends(ms(204), ack(2001).sack(15_001..22_001));
    peer.gets(ms(204), data(7_001..9_001));
}

#[test]
fn linux_sets_psh_on_a_retransmission_of_several_segments() {
    // __tcp_transmit_skb: PSH on the last of several segments; not on a single one, even the last
    // of a packet.
    for (lost, pushed) in [(1..2_001, true), (1_001..2_001, false)] {
        let mut peer = Peer::connected(linux(), RTT);
        peer.writes(0, 10 * MSS);
        peer.gets(0, data(1..10_001));
        peer.sends(ms(100), ack(lost.start).sack(2_001..10_001));
        let again = data(lost);
        peer.gets(ms(100), if pushed { again.pushed() } else { again.without(Flags::PUSH) });
        peer.ignores(ms(100));
    }
}

#[test]
fn linux_takes_no_rtt_sample_of_retransmitted_segments() {
    // tcp_clean_rtx_queue (Karn's algorithm). The nine after the loss took 100 ms. The
    // retransmitted segment gives no sample, however late its ACK is.
    for answered in [220, 150] {
        let mut peer = Peer::connected(linux(), RTT);
        peer.writes(0, 10 * MSS);
        peer.gets(0, data(1..10_001));
        peer.sends(ms(100), ack(1).sack(1_001..10_001));
        peer.gets(ms(100), data(1..1_001));
        peer.sends(ms(answered), ack(10_001));
        let rtt = peer.end.rtt().unwrap();
        let hundred = Duration::from_millis(100);
        assert_eq!((rtt.min, rtt.mean, rtt.max), (hundred, hundred, hundred));
    }
}

#[test]
fn linux_retransmits_only_while_retrans_out_is_below_lost_out() {
    // tcp_xmit_retransmit_queue ends where retrans_out >= lost_out. After the timeout of 100 + 200
    // ms segment 1 is retransmitted. Three originals are delivered: tcp_try_undo_loss clears all
    // loss marks, but segment 1 still counts in retrans_out. By the same ACK RACK marks segment 2
    // lost: one lost, one retransmitted. tcp_cwnd_reduction: 10 - 3 - 1 + 1 are outstanding, and
    // 5 * 3 / 10, rounded up, may be sent.
    let mut peer = ten(Settings { tlp: false, ..linux() });
    peer.gets(ms(304), data(1..1_001));
    peer.sends(ms(350), ack(1).sack(2_001..5_001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (9, Some(5)));
    peer.silence(ms(399));
    // Once segment 1 is acknowledged, retrans_out is 0.
    peer.sends(ms(400), ack(1_001).sack(2_001..5_001));
    peer.gets(ms(400), data(1_001..2_001));
}

/// Twenty segments of 300 bytes outstanding since 0, and the range of a number of them.
fn twenty_small_without_rack() -> (Peer, impl Fn(u64, u64) -> Range<u64>) {
    let settings = Settings { rack: false, tlp: false, initial_window: 20, ..linux() };
    let mut peer = Peer::connected(settings, RTT);
    let segments = |from: u64, to: u64| (from - 1) * 300 + 1..to * 300 + 1;
    for number in 1..=20 {
        peer.writes(0, 300);
        peer.gets(0, data(segments(number, number)));
    }
    (peer, segments)
}

#[test]
fn linux_without_rack_needs_three_sacked_segments_above_a_hole() {
    // tcp_time_to_recover: three SACKed segments start a recovery, even by one ACK and with few
    // bytes. tcp_mark_head_lost: segments with three SACKed above them are lost, and no others are
    // retransmitted, not on suspicion either. tcp_cwnd_reduction leads the window from twenty to
    // ten.
    let (mut peer, segments) = twenty_small_without_rack();
    peer.sends(ms(100), ack(1).sack(segments(2, 3)));
    peer.silence(ms(100));
    // 10 * 3 / 20, rounded up, are 2 to be sent. Segment 1 is lost.
    peer.sends(ms(101), ack(1).sack(segments(2, 4)));
    peer.gets(ms(101), data(segments(1, 1)));
    // 3 less the one that was sent. Above segment 5 there are two.
    peer.sends(ms(102), ack(1).sack(segments(6, 7)).sack(segments(2, 4)));
    peer.silence(ms(102));
    // Now there are three.
    peer.sends(ms(103), ack(1).sack(segments(6, 8)).sack(segments(2, 4)));
    peer.gets(ms(103), data(segments(5, 5)));
    assert_eq!(peer.ssthresh(), Some(10));
}

#[test]
fn linux_without_rack_advancing_ack_marks_loss_by_sacked_distance() {
    // tcp_fastretrans_alert: such an ACK is no duplicate, so tcp_force_fast_retransmit decides:
    // more than three segments of 1000 bytes lie between SND.UNA and the highest SACKed byte.
    let mut peer = ten(Settings { rack: false, tlp: false, ..linux() });
    peer.sends(ms(100), ack(1_001).sack(2_001..5_001));
    peer.gets(ms(100), data(1_001..2_001));
    // Four of 300 bytes are less; the duplicate that follows shows the loss.
    let (mut peer, segments) = twenty_small_without_rack();
    peer.sends(ms(100), ack(segments(1, 1).end).sack(segments(3, 5)));
    peer.silence(ms(100));
    peer.sends(ms(101), ack(segments(1, 1).end).sack(segments(3, 6)));
    peer.gets(ms(101), data(segments(2, 2)));
}

#[test]
fn linux_rack_uses_the_end_of_a_partly_acknowledged_packet() {
    // `tcp_clean_rtx_queue` gives RACK the end of the packet of three segments, of which one has
    // arrived. The probe cuts off the last (`tcp_send_loss_probe`), so the middle one ends before
    // that, and is lost. The ACK of the probe arrives before the minimum RTT, and RACK ignores it
    // (`tcp_rack_advance`).
    let rtt = ms(1);
    let mut peer = Peer::connected(linux(), rtt);
    peer.writes(0, 3 * MSS);
    peer.gets(0, data(1..1 + 3 * MSS));
    peer.sends(rtt, ack(1 + MSS));
    // Two RTTs and two ticks, and one that has begun (`calc_index`).
    peer.gets(ms(6), data(1 + 2 * MSS..1 + 3 * MSS));
    peer.sends(ms(6) + rtt / 2, ack(1 + MSS).sack(1 + 2 * MSS..1 + 3 * MSS));
    peer.gets(ms(6) + rtt / 2, data(1 + MSS..1 + 2 * MSS));
    peer.sends(ms(7) + rtt / 2, ack(1 + 3 * MSS));
}

#[test]
fn without_rack_recovery_starts_with_three_sacks_before_any_lost_mark() {
    // tcp_time_to_recover: sacked_out + 1 > reordering. With an ACK that advances,
    // tcp_update_scoreboard marks nothing unless something is reported more than three full
    // segments ahead (tcp_force_fast_retransmit); here segments have half a segment each.
    let mut peer = Peer::connected(Settings { rack: false, tlp: false, ..linux() }, RTT);
    for start in (1..4_501).step_by(500) {
        peer.writes(0, 500);
        peer.gets(0, data(start..start + 500));
    }
    peer.sends(ms(100), ack(501).sack(1_001..2_501));
    assert_eq!(peer.ssthresh(), Some(5));
    peer.silence(ms(101));
    peer.sends(ms(101), ack(501).sack(1_001..3_001));
    peer.gets(ms(101), data(501..1_001));
    peer.ignores(ms(200));
}
