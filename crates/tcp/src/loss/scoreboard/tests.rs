use super::*;
use tcplab_transport::Clock;
use tcplab_units::Duration;

const MSS: u64 = 1000;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// `count` full segments, the n-th (from 0) sent n milliseconds after the start.
fn sent(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for n in 0..count {
        board.send(at(n), 1 + n * MSS, MSS as u16);
    }
    board
}

/// Reports segments `from..to` as received.
fn sack(board: &mut Scoreboard, from: u64, to: u64) -> Progress {
    let mut progress = Progress::default();
    board.sack(1 + from * MSS..1 + to * MSS, &mut progress);
    progress
}

/// Reports all offsets below `una` as received.
fn acknowledge(board: &mut Scoreboard, una: u64) -> Progress {
    let mut progress = Progress::default();
    board.acknowledge(una, &mut progress);
    progress
}

/// Numbers of the segments that `next_lost` gives, each repaired in turn.
fn repairs(board: &mut Scoreboard) -> Vec<u64> {
    repairs_of(board, MSS)
}

/// The same for segments of this size.
fn repairs_of(board: &mut Scoreboard, size: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(segment) = board.next_lost() {
        seen.push((segment.start - 1) / size);
        board.resend(at(1_000), segment.start);
    }
    seen
}

#[test]
fn cumulative_ack_removes_segments_and_gives_rtt_samples() {
    let mut board = sent(10);
    let progress = acknowledge(&mut board, 1 + 2 * MSS);
    assert_eq!((progress.acked, progress.delivered), (2, 2));
    assert_eq!((progress.oldest(), progress.newest()), (Some(at(0)), Some(at(1))));
    assert_eq!(board.in_flight(), 8);
}

#[test]
fn an_ack_within_a_segment_leaves_the_rest_of_it() {
    let mut board = sent(2);
    assert_eq!(acknowledge(&mut board, 400).acked, 0);
    assert_eq!(board.outstanding(), 2);
    assert_eq!(acknowledge(&mut board, 1 + MSS).acked, 1);
}

#[test]
fn sack_block_delivers_only_newly_sacked_segments() {
    let mut board = sent(10);
    assert_eq!(sack(&mut board, 3, 4).delivered, 1);
    assert_eq!(sack(&mut board, 3, 6).delivered, 2);
    assert_eq!(sack(&mut board, 3, 6).delivered, 0);
    assert_eq!(board.in_flight(), 7);
    // All is acknowledged; three of ten had been delivered before.
    assert_eq!(acknowledge(&mut board, 1 + 10 * MSS).delivered, 7);
    assert_eq!((board.in_flight(), board.sacked()), (0, 0));
}

#[test]
fn hole_is_lost_once_three_segments_above_it_are_sacked() {
    let mut board = sent(10);
    sack(&mut board, 1, 3);
    assert_eq!(board.detect_by_blocks(3, MSS), 0);
    sack(&mut board, 3, 4);
    assert_eq!(board.detect_by_blocks(3, MSS), 1);
    assert_eq!(repairs(&mut board), [0]);
    // 10 sent, 3 arrived, 1 lost and sent again.
    assert_eq!(board.in_flight(), 7);
}

#[test]
fn three_discontiguous_sack_blocks_mark_a_hole_lost() {
    let mut board = Scoreboard::default();
    for n in 0..8 {
        board.send(at(n), 1 + n * 100, 100);
    }
    for small in [1, 3, 5] {
        board.sack(1 + small * 100..1 + (small + 1) * 100, &mut Progress::default());
    }
    // Blocks at 1, 3 and 5: only the hole below all three is lost.
    assert_eq!(board.detect_by_blocks(3, MSS), 1);
    assert_eq!(board.next_lost().map(|segment| segment.start), Some(1));
}

#[test]
fn linux_marks_a_hole_lost_by_sacked_segments_not_bytes() {
    // tcp_mark_head_lost: what fewer than three arrived above is spared, however many bytes those
    // carry.
    let mut board = Scoreboard::default();
    for n in 0..9 {
        board.send(at(n), 1 + n * 100, 100);
    }
    for (from, to) in [(1, 2), (4, 5), (6, 8)] {
        board.sack(1 + from * 100..1 + to * 100, &mut Progress::default());
    }
    // Above 0 there are four, above 2 and 3 three, above 5 two.
    assert_eq!(board.detect_by_count(5), 0);
    assert_eq!(board.detect_by_count(4), 1);
    assert_eq!(board.detect_by_count(3), 2);
    assert_eq!(repairs_of(&mut board, 100), [0, 2, 3]);
}

#[test]
fn lost_holes_are_retransmitted_once_in_sequence_order() {
    let mut board = sent(12);
    for (from, to) in [(1, 3), (4, 5), (7, 10)] {
        sack(&mut board, from, to);
        board.detect_by_blocks(3, MSS);
    }
    assert_eq!(repairs(&mut board), [0, 3, 5, 6]);
    assert!(repairs(&mut board).is_empty());
    sack(&mut board, 11, 12);
    assert_eq!(board.detect_by_blocks(3, MSS), 0);
    assert_eq!(board.next_seg_rule3().map(|segment| segment.start), Some(1 + 10 * MSS));
}

#[test]
fn late_delivery_clears_lost_mark() {
    let mut board = sent(10);
    sack(&mut board, 1, 4);
    board.detect_by_blocks(3, MSS);
    assert_eq!(board.lost(), 1);
    let progress = acknowledge(&mut board, 1 + 4 * MSS);
    assert_eq!((progress.acked, progress.delivered, board.lost()), (4, 1, 0));
}

#[test]
fn retransmitted_segments_give_no_rtt_sample() {
    let mut board = sent(10);
    sack(&mut board, 1, 4);
    board.detect_by_blocks(3, MSS);
    repairs(&mut board);
    let progress = acknowledge(&mut board, 1 + 5 * MSS);
    assert_eq!((progress.oldest(), progress.newest()), (None, None));
}

#[test]
fn timeout_retransmits_all_segments_not_sacked() {
    let mut board = sent(6);
    sack(&mut board, 2, 4);
    assert_eq!(board.mark_all_lost(Time::NEVER, false), 4);
    assert_eq!(board.in_flight(), 0);
    assert_eq!(repairs(&mut board), [0, 1, 4, 5]);
    assert_eq!(board.in_flight(), 4);
    assert_eq!(board.mark_all_lost(Time::NEVER, false), 4);
    assert_eq!(repairs(&mut board), [0, 1, 4, 5]);
}

#[test]
fn linux_timeout_keeps_retrans_out_of_segments_not_marked_lost() {
    // tcp_mark_skb_lost gives a retransmission up for lost only if the segment was lost before;
    // else retrans_out keeps it. tcp_packets_in_flight: packets_out - lost_out + retrans_out.
    let after_a_false_alarm = || {
        let mut board = sent(6);
        board.mark_all_lost(Time::NEVER, true);
        for number in 0..2 {
            let lost = board.next_lost().unwrap();
            assert_eq!(lost.start, 1 + number * MSS);
            board.resend(at(20), lost.start);
        }
        // tcp_undo_cwnd_reduction: nothing is lost, and two were sent again.
        board.forget_losses();
        assert_eq!((board.lost(), board.retrans_out(), board.in_flight()), (0, 2, 6 + 2));
        board
    };
    let mut board = after_a_false_alarm();
    assert_eq!(board.mark_all_lost(Time::NEVER, true), 6);
    assert_eq!((board.lost(), board.retrans_out(), board.in_flight()), (6, 2, 2));
    // tcp_retransmit_timer sends the first again whatever it is, and counts it once more;
    // tcp_xmit_retransmit_queue leaves the second out.
    assert_eq!(repairs(&mut board), [0, 2, 3, 4, 5]);
    assert_eq!((board.retrans_out(), board.in_flight()), (7, 7));
    // tcp_clean_rtx_queue: with nothing under way, nothing was sent again.
    acknowledge(&mut board, 1 + 6 * MSS);
    assert_eq!((board.outstanding(), board.retrans_out(), board.in_flight()), (0, 0, 0));

    // Elsewhere all is lost, and all leaves again.
    let mut board = after_a_false_alarm();
    assert_eq!(board.mark_all_lost(Time::NEVER, false), 6);
    assert_eq!(board.in_flight(), 0);
    assert_eq!(repairs(&mut board), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn rack_marks_a_segment_lost_once_per_transmission() {
    // tcp_rack_detect_loss takes what it finds lost off its list (list_del_init),
    // tcp_undo_cwnd_reduction does not put it back, and sending it again does. A timeout takes
    // nothing off.
    let latest = (at(100), 1 + 10 * MSS);
    let overdue = |board: &mut Scoreboard| {
        board.detect_by_time(|it| (it.left_at, it.end()) >= latest, |_| Duration::ZERO).lost
    };
    let mut board = sent(4);
    assert_eq!(overdue(&mut board), 4);
    board.forget_losses();
    assert_eq!(overdue(&mut board), 0);
    board.resend(at(20), 1 + MSS);
    assert_eq!(overdue(&mut board), 1);

    let mut board = sent(4);
    board.resend(at(20), 1 + MSS);
    board.mark_all_lost(Time::NEVER, true);
    assert_eq!(overdue(&mut board), 1, "all is lost already, but not what was sent again");
    board.forget_losses();
    assert_eq!(overdue(&mut board), 3);
}

#[test]
fn rack_checks_segments_sent_at_one_time_in_transmission_order() {
    // tcp_rack_detect_loss walks its list in the order of transmission, and stops at the first
    // segment that did not leave before the latest delivered; of the same time, at the first with a
    // higher end.
    let mut board = sent(1);
    for n in 1..4 {
        board.send(at(10), 1 + n * MSS, MSS as u16);
    }
    board.resend(at(10), 1);
    board.send(at(10), 1 + 4 * MSS, MSS as u16);
    let judged = |board: &mut Scoreboard, segment: u64| {
        sack(board, segment, segment + 1);
        let latest = (at(10), 1 + (segment + 1) * MSS);
        board.detect_by_time(|it| (it.left_at, it.end()) >= latest, |_| Duration::ZERO).lost
    };
    assert_eq!(judged(&mut board, 1), 0, "segment 2 stands before the repair of segment 0");
    assert_eq!(judged(&mut board, 2), 0, "and segment 3");
    assert_eq!(judged(&mut board, 3), 1);
}

#[test]
fn linux_rack_compares_send_times_in_whole_microseconds() {
    // tcp_skb_sent_after compares tcp_skb_timestamp_us, and of equal ones the ends: a repair that
    // left 0.64 us after data with a higher end counts as sent before it, and as lost when that
    // arrives.
    let data = Time::ZERO + Duration::from_nanos(450_303_043);
    let repair = Time::ZERO + Duration::from_nanos(450_303_683);
    for (clock, lost) in [(Clock::Kernel, 1), (Clock::Exact, 0)] {
        let mut board = sent(1);
        board.send(data, 1 + MSS, MSS as u16);
        board.resend(repair, 1);
        let ack_state = AckState { clock, ..AckState::default() };
        let mut progress = Progress { ack_state, ..Progress::default() };
        board.sack(1 + MSS..1 + 2 * MSS, &mut progress);
        let departure = |left_at| ack_state.departure(left_at);
        let latest = progress.latest.unwrap();
        let is_later = |it: &Sent| (departure(it.left_at), it.end()) >= latest;
        let found = board.detect_by_time(is_later, |_| Duration::ZERO);
        assert_eq!(found.lost, lost);
    }
}

#[test]
fn timeout_marks_sacked_segments_lost_if_the_receiver_reneged() {
    let mut board = sent(4);
    sack(&mut board, 0, 2);
    board.mark_all_lost(Time::NEVER, false);
    assert_eq!(repairs(&mut board), [0, 1, 2, 3]);
}

#[test]
fn cost_of_an_ack_does_not_grow_with_the_window() {
    // Every second segment of 100,000 is lost and reported one ACK at a time. Were an ACK to walk
    // the window, this would be 10^10 steps and take minutes.
    let mut board = sent(100_000);
    let mut lost = 0;
    for n in 0..50_000 {
        sack(&mut board, 2 * n + 1, 2 * n + 2);
        lost += board.detect_by_blocks(3, MSS);
        if let Some(segment) = board.next_lost() {
            board.resend(at(1), segment.start);
        }
    }
    // The holes below the third SACKed segment from the end.
    assert_eq!(lost, 49_998);
}

#[test]
fn next_suspect_does_not_scan_the_window() {
    // One hole at the front, and everything above it arrives, one ACK each, with nothing new to
    // send: every ACK asks for a suspect. Were each to walk the window, this would take minutes.
    let mut board = sent(100_000);
    let mut suspects = 0;
    for n in 1..100_000 {
        sack(&mut board, n, n + 1);
        board.detect_by_blocks(3, MSS);
        suspects += usize::from(board.next_seg_rule3().is_some());
    }
    // Only while one or two segments above it have arrived is the hole not yet lost.
    assert_eq!(suspects, 2);
}

#[test]
fn retransmitted_suspect_counts_twice_in_flight_and_is_not_resent() {
    let mut board = sent(10);
    sack(&mut board, 1, 2);
    let suspect = board.next_seg_rule3().unwrap();
    board.resend(at(20), suspect.start);
    assert_eq!(board.in_flight(), 10);
    sack(&mut board, 2, 4);
    assert_eq!(board.detect_by_blocks(3, MSS), 1);
    assert!(!board.has_unsent_losses());
    // Ten sent, three arrived; of the hole one copy is lost and one is under way.
    assert_eq!(board.in_flight(), 7);
}
