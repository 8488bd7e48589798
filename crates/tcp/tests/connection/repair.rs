//! Loss recovery: fast retransmit, recovery with and without SACK, timeouts.

use crate::world::*;
use tcplab_tcp::{Segment, Settings};

pub const MSS: u64 = 1448;

fn settings(sack: bool) -> Settings {
    Settings { sack, delayed_ack: None, nagle: false, ..Settings::default() }
}

/// A client sends `segments`, of which `lost` are lost.
pub fn transfer(settings: Settings, segments: u64, lost: &'static [usize]) -> World {
    let mut world = World::new(settings).established().wire(drop_data(CLIENT, lost));
    world.ends[CLIENT].write(segments * MSS);
    world
}

/// All retransmissions: milliseconds after establishment, and the number of the segment, counted
/// from 1.
pub fn repeats(world: &World) -> Vec<(u64, u64)> {
    let sent = world.sent_by(CLIENT);
    let first = sent[0].1.seq.0;
    let number = |segment: &Segment| u64::from(segment.seq.0.wrapping_sub(first)) / MSS + 1;
    let mut highest = 0;
    let mut seen = Vec::new();
    for (at, segment) in sent.iter().filter(|(_, segment)| segment.payload > 0) {
        if number(segment) <= highest {
            seen.push((at - 200, number(segment)));
        }
        highest = highest.max(number(segment));
    }
    seen
}

#[test]
fn third_duplicate_ack_triggers_fast_retransmit() {
    for sack in [true, false] {
        let mut world = transfer(settings(sack), 100, &[1]);
        world.run(millis(101));
        // Sent at 0; the ACKs of segments 2, 3, 4 are duplicates and all come at 100 ms.
        assert_eq!(repeats(&world), [(100, 1)], "sack {sack}");
        world.run(millis(2_000));
        assert_eq!(world.received[SERVER], 100 * MSS);
        let counters = world.ends[CLIENT].counters();
        assert_eq!((counters.retransmitted_segments, counters.timeouts), (1, 0));
    }
}

#[test]
fn two_duplicate_acks_do_not_trigger_fast_retransmit() {
    for sack in [true, false] {
        let settings = Settings { limited_transmit: false, ..settings(sack) };
        let mut world = transfer(settings, 3, &[1]);
        world.run(millis(5_000));
        // The RTO is its minimum of a second, from the departure on.
        assert_eq!(repeats(&world)[0], (1_000, 1), "sack {sack}");
        assert_eq!(world.ends[CLIENT].counters().timeouts, 1);
        assert_eq!(world.received[SERVER], 3 * MSS);
    }
}

#[test]
fn limited_transmit_yields_a_third_duplicate_ack_in_a_small_window() {
    for (limited_transmit, timeouts) in [(true, 0), (false, 1)] {
        for sack in [true, false] {
            let settings = Settings { limited_transmit, initial_window: 3, ..settings(sack) };
            let mut world = transfer(settings, 6, &[1]);
            world.run(millis(5_000));
            // RFC 3042: the first two duplicates release segments 4 and 5, whose ACKs are the third
            // and the fourth.
            assert_eq!(world.ends[CLIENT].counters().timeouts, timeouts, "sack {sack}");
            assert_eq!(world.received[SERVER], 6 * MSS);
        }
    }
}

#[test]
fn sack_repairs_many_holes_in_one_round_trip() {
    let mut world = transfer(settings(true), 400, &[12, 14, 16, 18]);
    world.run(millis(3_000));
    let repeats = repeats(&world);
    assert_eq!(repeats.iter().map(|repeat| repeat.1).collect::<Vec<_>>(), [12, 14, 16, 18]);
    // All within one round trip after the first loss is detected.
    assert!(repeats[3].0 - repeats[0].0 < 100, "{repeats:?}");
    assert_eq!(world.ends[CLIENT].counters().episodes, 1);
}

#[test]
fn newreno_repairs_one_hole_a_round_trip() {
    let mut world = transfer(settings(false), 40, &[12, 14, 16]);
    world.run(millis(3_000));
    let repeats = repeats(&world);
    assert_eq!(repeats.iter().map(|repeat| repeat.1).collect::<Vec<_>>(), [12, 14, 16]);
    assert_eq!(
        repeats.windows(2).map(|pair| pair[1].0 - pair[0].0).collect::<Vec<_>>(),
        [100, 100]
    );
    assert_eq!(world.ends[CLIENT].counters().episodes, 1);
}

#[test]
fn impatient_newreno_times_out_with_many_holes() {
    // RFC 6582 §4, the impatient variant: only the first partial ACK moves the timer. Segments 12
    // to 34 are every second lost: at a hole each 100 ms they would take 1.2 s, and the RTO is 1 s.
    const LOST: [usize; 12] = [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34];
    let mut world = transfer(settings(false), 1_000, &LOST);
    world.run(millis(2_000));
    assert_eq!(world.ends[CLIENT].counters().timeouts, 1);
    let repeats: Vec<u64> = repeats(&world).iter().map(|repeat| repeat.0).collect();
    // The first retransmission, one with the first partial ACK 100 ms later, and none until the
    // timeout.
    let timeout = repeats[1] + 1_000;
    assert!(repeats.contains(&timeout), "{repeats:?}");
    world.run(millis(30_000));
    assert_eq!(world.received[SERVER], 1_000 * MSS);
}

#[test]
fn ssthresh_is_half_of_flight_size_without_limited_transmit() {
    for sack in [true, false] {
        // 10 + 20 segments in two round trips; of the 40 in the third, the first is lost.
        let mut world = transfer(settings(sack), 1_000, &[31]);
        world.run(millis(500));
        // FlightSize is 40: the two segments of limited transmit do not count (RFC 5681 §3.2).
        let ssthresh = world.ends[CLIENT].snapshot().ssthresh;
        assert_eq!(ssthresh, Some(20), "sack {sack}");
    }
}

#[test]
fn recovery_pauses_until_pipe_is_half_the_window_then_sends_per_ack() {
    let mut world = transfer(settings(true), 1_000, &[31]);
    world.run(millis(301));
    let during: Vec<_> =
        world.sent_by(CLIENT).iter().filter(|(at, _)| *at == 500).copied().collect();
    // At 300 ms come the 39 duplicate ACKs of the flight of 40: two release new segments (limited
    // transmit), the third the repair; the pipe is then 42 - 3 - 1 + 1 = 39 and falls by one for
    // each of the 36 others: to 20 after 19 of them, and the last 17 release one each.
    assert_eq!(during.len(), 2 + 1 + 17);
}

#[test]
fn timeout_retransmits_unsacked_segments_in_slow_start() {
    let mut world = transfer(settings(true), 10, &[7, 8, 9, 10]);
    world.run(millis(10_000));
    assert_eq!(world.received[SERVER], 10 * MSS);
    assert_eq!(world.ends[CLIENT].counters().timeouts, 1);
    let repeats = repeats(&world);
    assert_eq!(repeats.iter().map(|repeat| repeat.1).collect::<Vec<_>>(), [7, 8, 9, 10]);
    // One segment first, then slow start: 1, 2, 1 of the four, a round trip apart.
    let pauses: Vec<u64> = repeats.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(pauses, [100, 0, 100]);
}

#[test]
fn ssthresh_at_timeout_in_recovery_excludes_sacked_segments() {
    // Segment 31 is lost twice, so its recovery ends in a timeout a second later. Until then new
    // segments arrive and are SACKed, 20 each round trip.
    let mut seen = 0;
    let mut first = None;
    let mut world = World::new(settings(true)).established().wire(move |sent| {
        if sent.from == CLIENT && sent.segment.payload > 0 {
            let start = *first.get_or_insert(sent.segment.seq.0);
            let number = sent.segment.seq.0.wrapping_sub(start) / 1448 + 1;
            if number == 31 && seen < 2 {
                seen += 1;
                return Fate::Drop;
            }
        }
        Fate::Pass
    });
    world.ends[CLIENT].write(2_000 * MSS);
    world.run(millis(1_500));
    assert_eq!(world.ends[CLIENT].counters().timeouts, 1);
    // The window was 40 and is halved twice: 20, and of the 20 and the one lost in the network 10.
    let ssthresh = world.ends[CLIENT].snapshot().ssthresh.unwrap();
    assert!((9..=11).contains(&ssthresh), "{ssthresh}");
}

#[test]
fn rto_doubles_with_each_unanswered_retransmission() {
    let mut sent = 0;
    let mut world = World::new(settings(true)).established().wire(move |segment| {
        sent += usize::from(segment.from == CLIENT);
        if sent <= 4 { Fate::Drop } else { Fate::Pass }
    });
    world.ends[CLIENT].write(MSS);
    world.run(millis(20_000));
    let repeats: Vec<u64> = repeats(&world).iter().map(|repeat| repeat.0).collect();
    assert_eq!(repeats, [1_000, 3_000, 7_000, 15_000]);
    // Repeated timeouts of the same data are one episode (RFC 5681 §3.1).
    assert_eq!(world.ends[CLIENT].counters().episodes, 1);
    assert_eq!(world.received[SERVER], MSS);
}

#[test]
fn rescue_retransmission_repairs_a_lost_tail_without_timeout() {
    // RFC 6675 §4 rule 4: SACK shows the loss of segment 4; the rescue retransmission repairs the
    // last one.
    let mut world = transfer(settings(true), 10, &[4, 10]);
    world.run(millis(5_000));
    assert_eq!(world.ends[CLIENT].counters().timeouts, 0);
    assert_eq!(world.received[SERVER], 10 * MSS);
}

#[test]
fn duplicate_acks_after_a_timeout_without_sack_start_no_recovery() {
    // RFC 6582 §4.1: retransmissions in slow start may be duplicates, and their duplicate ACKs show
    // no loss.
    let mut world = transfer(settings(false), 10, &[1, 8, 9, 10]);
    world.run(millis(20_000));
    assert_eq!(world.received[SERVER], 10 * MSS);
    assert!(world.ends[CLIENT].counters().episodes <= 2);
}
