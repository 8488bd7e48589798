//! Classic senders: the response of each to one loss, to two in a window, and to partial ACKs.
//!
//! - Tahoe and Reno: Fall and Floyd, Simulation-based comparisons of Tahoe, Reno, and SACK TCP,
//!   1996, which has the same losses; RFC 2581 §3.2.
//! - NewReno: RFC 6582; its two timers: RFC 3782 §4.
//! - FACK: Mathis and Mahdavi, Forward acknowledgement, 1996.
//! - Rate halving: Mathis, Semke, Mahdavi and Lahey, 1999; `tcp_cwnd_down` of Linux until 3.1.
//! - Appropriate byte counting: RFC 3465; `tcp_abc` of Linux 2.6.

use crate::repair::{MSS, repeats, transfer};
use crate::world::*;
use tcplab_tcp::{AckCounting, LossRecovery, Settings, WindowReduction};

/// Without SACK, and with a window that grows by one segment per ACK.
fn settings(recovery: LossRecovery) -> Settings {
    Settings {
        sack: false,
        recovery,
        counting: AckCounting::PerAck,
        delayed_ack: None,
        nagle: false,
        ..Settings::default()
    }
}

/// The data segments sent from this time on: milliseconds after establishment, and the number of
/// the segment, counted from 1.
fn sent_from(world: &World, from: u64) -> Vec<(u64, u64)> {
    let sent = world.sent_by(CLIENT);
    let first = sent[0].1.seq.0;
    let line = |(at, segment): &(u64, tcplab_tcp::Segment)| {
        (at - 200, u64::from(segment.seq.0.wrapping_sub(first)) / MSS + 1)
    };
    let data = sent.iter().filter(|(_, segment)| segment.payload > 0);
    data.map(line).filter(|(at, _)| *at >= from).collect()
}

/// Retransmissions, episodes and timeouts.
fn counts(world: &World) -> (u64, u64, u64) {
    let counters = world.ends[CLIENT].counters();
    (counters.retransmitted_segments, counters.episodes, counters.timeouts)
}

const FAST_RECOVERIES: [LossRecovery; 3] =
    [LossRecovery::Reno, LossRecovery::NewReno, LossRecovery::NewRenoSteady];

#[test]
fn tahoe_starts_over_with_the_third_duplicate_ack() {
    let mut world = transfer(settings(LossRecovery::Tahoe), 100, &[4]);
    world.run(millis(301));
    // 0 ms: 1 to 10. 100 ms: the ACKs of 1, 2 and 3 release 11 to 16, the first two duplicates 17
    // and 18, and the third 4. The 11 other duplicates release nothing. 200 ms: everything up to 18
    // is acknowledged, and slow start continues with two segments, then four.
    assert_eq!(
        sent_from(&world, 100)[8..],
        [(100, 4), (200, 19), (200, 20), (300, 21), (300, 22), (300, 23), (300, 24)]
    );
    // FlightSize was 13 at the first duplicate ACK.
    assert_eq!(world.ends[CLIENT].snapshot().ssthresh, Some(6));
    assert_eq!(counts(&world), (1, 1, 0));
}

#[test]
fn tahoe_retransmits_from_the_lost_segment_on() {
    let mut world = transfer(settings(LossRecovery::Tahoe), 100, &[4, 6]);
    world.run(millis(5_000));
    // The ACK of 4 asks for 6. The window is two segments, and nothing shows that 7 has arrived.
    assert_eq!(repeats(&world), [(100, 4), (200, 6), (200, 7)]);
    assert_eq!(counts(&world), (3, 1, 0));
    assert_eq!(world.received[SERVER], 100 * MSS);
}

#[test]
fn tahoe_ignores_duplicate_acks_caused_by_its_retransmissions() {
    // 6 is the only other loss, but 7 is retransmitted, too, and so are others as the window opens
    // (the `bugFix_` of ns-2, RFC 6582 §4.1).
    let mut world = transfer(settings(LossRecovery::Tahoe), 100, &[4, 6, 8, 10]);
    world.run(millis(5_000));
    let (_, episodes, timeouts) = counts(&world);
    assert_eq!((episodes, timeouts), (1, 0));
    assert_eq!(world.received[SERVER], 100 * MSS);
}

#[test]
fn tahoe_times_out_if_the_retransmission_is_lost() {
    let mut sent = 0;
    let mut world = World::new(settings(LossRecovery::Tahoe)).established().wire(move |segment| {
        let is_data = segment.from == CLIENT && segment.segment.payload > 0;
        sent += u64::from(is_data);
        // The fourth, and its retransmission: after 10 + 6 + 2 others.
        if is_data && (sent == 4 || sent == 19) { Fate::Drop } else { Fate::Pass }
    });
    world.ends[CLIENT].write(100 * MSS);
    world.run(millis(1_100));
    assert_eq!(repeats(&world), [(100, 4), (1_100, 4)]);
    assert_eq!(counts(&world), (2, 1, 1));
}

#[test]
fn fast_recovery_repairs_one_loss_without_a_pause() {
    for recovery in FAST_RECOVERIES {
        let mut world = transfer(settings(recovery), 100, &[4]);
        world.run(millis(201));
        // After the retransmission 12 are in flight and 6 may be (RFC 5681 §3.2). Of the remaining
        // 3 duplicates at 100 ms and the 8 at 200 ms, the last 5 release 19 to 23; the ACK of all
        // releases 24.
        assert_eq!(
            sent_from(&world, 100)[8..],
            [(100, 4), (200, 19), (200, 20), (200, 21), (200, 22), (200, 23), (200, 24)],
            "{recovery:?}"
        );
        assert_eq!(counts(&world), (1, 1, 0));
    }
}

#[test]
fn reno_leaves_recovery_with_the_first_ack_of_new_data() {
    let mut world = transfer(settings(LossRecovery::Reno), 100, &[4, 6]);
    world.run(millis(250));
    // RFC 2581 §3.2 step 5: recovery is over before 6 is retransmitted. 17 segments are
    // outstanding, and 6 may be.
    assert_eq!(repeats(&world), [(100, 4)]);
    world.run(millis(5_000));
    // Three more duplicate ACKs, of the new segments that left at 200 ms, ask for 6: a second
    // episode.
    assert_eq!(repeats(&world), [(100, 4), (300, 6)]);
    assert_eq!(counts(&world), (2, 2, 0));
    assert_eq!(world.received[SERVER], 100 * MSS);
}

#[test]
fn reno_with_three_losses_in_a_window_waits_for_the_timer() {
    // Fall and Floyd, figure 4.
    let mut world = transfer(settings(LossRecovery::Reno), 100, &[4, 6, 8]);
    world.run(millis(10_000));
    assert_eq!(counts(&world).2, 1);
    for recovery in [LossRecovery::Tahoe, LossRecovery::NewReno] {
        let mut world = transfer(settings(recovery), 100, &[4, 6, 8]);
        world.run(millis(10_000));
        assert_eq!(counts(&world).2, 0, "{recovery:?}");
    }
}

#[test]
fn newreno_repairs_the_next_hole_with_each_partial_ack() {
    for recovery in [LossRecovery::NewReno, LossRecovery::NewRenoSteady] {
        let mut world = transfer(settings(recovery), 100, &[4, 6]);
        world.run(millis(5_000));
        assert_eq!(repeats(&world), [(100, 4), (200, 6)], "{recovery:?}");
        assert_eq!(counts(&world), (2, 1, 0));
    }
}

#[test]
fn impatient_newreno_times_out_with_many_holes_slow_but_steady_does_not() {
    // Twelve holes, one per round trip, take 1.2 s; the RTO is 1 s.
    const LOST: [usize; 12] = [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34];
    for (recovery, timeouts) in [(LossRecovery::NewReno, 1), (LossRecovery::NewRenoSteady, 0)] {
        let counting = AckCounting::PerSegment;
        let mut world = transfer(Settings { counting, ..settings(recovery) }, 1_000, &LOST);
        world.run(millis(30_000));
        assert_eq!(counts(&world).2, timeouts, "{recovery:?}");
        assert_eq!(world.received[SERVER], 1_000 * MSS);
        let repairs: Vec<u64> = repeats(&world).iter().map(|repeat| repeat.0).collect();
        if timeouts == 0 {
            assert!(repairs.windows(2).all(|pair| pair[1] == pair[0] + 100), "{repairs:?}");
        }
    }
}

fn with_sack(fack: bool) -> Settings {
    Settings { sack: true, fack, ..settings(LossRecovery::NewReno) }
}

#[test]
fn fack_marks_a_hole_lost_by_distance_to_the_highest_sack() {
    // Three in a row are lost, and only 7 shows the loss.
    let mut world = transfer(with_sack(true), 7, &[4, 5, 6]);
    world.run(millis(5_000));
    // 7 is three above 4, which is retransmitted at once; 5 and 6 are too near.
    assert_eq!(repeats(&world)[0], (100, 4));
    assert_eq!(world.received[SERVER], 7 * MSS);
    // RFC 6675 needs three SACKed segments, so all is left to the timer.
    let mut world = transfer(with_sack(false), 7, &[4, 5, 6]);
    world.run(millis(5_000));
    assert_eq!(repeats(&world)[0], (1_100, 4));
    assert_eq!(counts(&world).2, 1);
}

#[test]
fn fack_repairs_a_single_loss_like_rfc_6675() {
    for fack in [true, false] {
        let mut world = transfer(with_sack(fack), 100, &[4]);
        world.run(millis(5_000));
        assert_eq!(repeats(&world), [(100, 4)], "{fack}");
        assert_eq!(counts(&world), (1, 1, 0));
    }
}

#[test]
fn segments_marked_lost_by_fack_are_not_in_flight() {
    // 10 is the first to arrive after six losses.
    let mut world = transfer(with_sack(true), 100, &[4, 5, 6, 7, 8, 9]);
    world.run(millis(101));
    // 11 to 16 left with the ACKs of 1 to 3. Of 13 outstanding, 10 has arrived, and 4 to 7 are
    // three segments or more below it: 8 are in flight, and the retransmission. FlightSize 13 makes
    // the window 6.
    assert_eq!(sent_from(&world, 100)[6..], [(100, 4)]);
    let snapshot = world.ends[CLIENT].snapshot();
    assert_eq!((snapshot.in_flight, snapshot.ssthresh), (9, Some(6)));
    world.run(millis(100));
    // 200 ms: 11 shows the loss of 8, and 12 that of 9. In flight: 9 - 4 = 5 after these two, so
    // the next retransmission leaves, and then one with each of 13 to 16 and with the ACK of 4.
    assert_eq!(
        sent_from(&world, 200),
        [(200, 5), (200, 6), (200, 7), (200, 8), (200, 9), (200, 17)]
    );
    // RFC 6675 waits for three SACKed segments: for 12.
    let mut world = transfer(with_sack(false), 100, &[4, 5, 6, 7, 8, 9]);
    world.run(millis(250));
    assert_eq!(repeats(&world)[0], (200, 4));
}

#[test]
fn fack_retransmits_on_reordering_by_three_and_rfc_6675_does_not() {
    for (fack, repeated) in [(true, 2), (false, 0)] {
        let mut seen = 0;
        // 4 and 5 arrive after 6 and 7, and 7 is three above 4. With 4 marked lost, 5 is
        // retransmitted, too: it is missing, and there is nothing else to send (rule 3 of NextSeg).
        let mut world = World::new(with_sack(fack)).established().wire(move |sent| {
            seen += u64::from(sent.from == CLIENT && sent.segment.payload > 0);
            match seen {
                4 | 5 if sent.from == CLIENT => Fate::Late(millis(1)),
                _ => Fate::Pass,
            }
        });
        world.ends[CLIENT].write(7 * MSS);
        world.run(millis(5_000));
        assert_eq!(counts(&world).0, repeated, "{fack}");
    }
}

/// A flight of 40, from 31 on. 31 is lost, and the others arrive two milliseconds apart, from 502
/// ms on.
fn spread(reduction: WindowReduction) -> World {
    let mut sent_so_far = 0;
    let settings = Settings { reduction, ..with_sack(false) };
    let mut world = World::new(settings).established().wire(move |sent| {
        sent_so_far += u64::from(sent.from == CLIENT && sent.segment.payload > 0);
        match sent_so_far {
            31 if sent.from == CLIENT => Fate::Drop,
            32..=70 if sent.from == CLIENT => Fate::Late(millis(2 * (sent_so_far - 31))),
            _ => Fate::Pass,
        }
    });
    world.ends[CLIENT].write(1_000 * MSS);
    world
}

#[test]
fn rate_halving_sends_a_segment_for_every_second_ack() {
    let mut world = spread(WindowReduction::Halving);
    world.run(millis(380));
    let times: Vec<u64> = sent_from(&world, 300).iter().map(|line| line.0).collect();
    // Limited transmit at 302 and 304 ms, the retransmission at 306. From then on, of the ACKs 2 ms
    // apart, every second one releases a segment.
    let mut expected = vec![302, 304];
    expected.extend((306..=378).step_by(4));
    assert_eq!(times, expected);
    world.run(millis(30));
    // The retransmission is acknowledged at 406 ms. The window has reached half of 40 and continues
    // from there.
    assert_eq!(world.ends[CLIENT].snapshot().cwnd, 20);
    assert_eq!(counts(&world), (1, 1, 0));
}

#[test]
fn rfc_6675_sends_only_after_half_the_acks() {
    let mut world = spread(WindowReduction::AtOnce);
    world.run(millis(380));
    let times: Vec<u64> = sent_from(&world, 300).iter().map(|line| line.0).collect();
    // RFC 6675: after the retransmission 39 are in flight; the 20th ACK from there makes room.
    let mut expected = vec![302, 304, 306];
    expected.extend((346..=378).step_by(2));
    assert_eq!(times, expected);
}

#[test]
fn rate_halving_partial_ack_sends_only_the_retransmission() {
    let settings =
        Settings { reduction: WindowReduction::Halving, ..settings(LossRecovery::NewRenoSteady) };
    let mut world = transfer(settings, 100, &[4, 6]);
    world.run(millis(301));
    assert_eq!(repeats(&world), [(100, 4), (200, 6)]);
    // Of the two duplicate ACKs after the first retransmission one releases a segment, 19, and of
    // the eight at 200 ms every second. The partial ACK releases the second retransmission alone,
    // and the duplicate for 19 another segment.
    let at = |from, to| sent_from(&world, from).iter().filter(|line| line.0 < to).count();
    assert_eq!(at(200, 300), 4 + 1 + 1);
    // 300 ms: the duplicates for 20 to 23, the ACK of 6 and that of 24 release one each.
    assert_eq!(world.ends[CLIENT].snapshot().cwnd, 6);
    assert_eq!(at(300, 301), 4 + 1 + 1);
    world.run(millis(5_000));
    assert_eq!(counts(&world), (2, 1, 0));
    assert_eq!(world.received[SERVER], 100 * MSS);
}

#[test]
fn rate_halving_ends_recovery_with_the_reached_cwnd() {
    // 30 of 40 are lost, which FACK detects at once: 11 are in flight when the first retransmission
    // is due.
    const LOST: [usize; 30] = {
        let mut lost = [0; 30];
        let mut index = 0;
        while index < lost.len() {
            lost[index] = 31 + index;
            index += 1;
        }
        lost
    };
    for (reduction, cwnd) in [(WindowReduction::Halving, 3), (WindowReduction::AtOnce, 20)] {
        let mut world = transfer(Settings { reduction, ..with_sack(true) }, 70, &LOST);
        world.run(millis(5_000));
        assert_eq!(world.received[SERVER], 70 * MSS);
        assert_eq!((counts(&world).1, counts(&world).2), (1, 0));
        // Nothing is in flight in the end: three segments may leave at once (`tcp_moderate_cwnd`),
        // or without halving all 20.
        assert_eq!(world.ends[CLIENT].snapshot().cwnd, cwnd, "{reduction:?}");
    }
}

const OFF: AckCounting = AckCounting::PerAck;
const BYTES_1: AckCounting = AckCounting::PerByte { limit: 1 };
const BYTES_2: AckCounting = AckCounting::PerByte { limit: 2 };

/// A receiver that acknowledges every second segment.
fn counting(counting: AckCounting) -> Settings {
    Settings { counting, delayed_ack: Some(millis(200)), ..with_sack(false) }
}

#[test]
fn abc_limit_is_one_segment_per_ack_after_a_timeout() {
    // RFC 3465 §2.3. 1 is retransmitted after 1 s, and its ACK is delayed; 2 and 3 have one ACK,
    // 1.4 s after.
    for (way, cwnd) in [(BYTES_1, 3), (BYTES_2, 3), (AckCounting::PerSegment, 4)] {
        let mut world = transfer(counting(way), 1_000, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        world.run(millis(1_401));
        assert_eq!(repeats(&world)[..3], [(1_000, 1), (1_300, 2), (1_300, 3)]);
        assert_eq!(world.ends[CLIENT].snapshot().cwnd, cwnd, "{way:?}");
    }
}

#[test]
fn abc_adds_one_segment_per_rtt_and_ack_counting_half_of_one() {
    // RFC 3465 §2.1, where no limit holds.
    for (way, least) in [(OFF, 9), (BYTES_1, 19), (BYTES_2, 19)] {
        let mut world = transfer(counting(way), 10_000, &[4]);
        world.run(millis(1_000));
        let before = world.ends[CLIENT].snapshot().cwnd;
        world.run(millis(2_000));
        let grown = world.ends[CLIENT].snapshot().cwnd - before;
        assert!((least..=least + 2).contains(&grown), "{way:?}: {grown}");
    }
}
