//! Opening: the handshake, its options and its retransmissions.

use crate::world::*;
use tcplab_tcp::{Ended, Flags, Settings, State};

#[test]
fn three_segments_establish() {
    let mut world = World::new(Settings::default());
    world.run(millis(200));
    let flags: Vec<_> = world.log.iter().map(|sent| (sent.from, sent.segment.flags)).collect();
    assert!(flags[0].1.has(Flags::SYN) && !flags[0].1.has(Flags::ACK));
    assert!(flags[1].0 == SERVER && flags[1].1.has(Flags::SYN.with(Flags::ACK)));
    assert!(flags[2].0 == CLIENT && is_ack(&world.log[2].segment));
    assert_eq!(flags.len(), 3);
    assert_eq!(world.states(), [State::Established; 2]);
    // The handshake gives the first RTT.
    assert_eq!(world.ends[CLIENT].snapshot().srtt, millis(100));
}

#[test]
fn options_hold_only_if_both_offer_them() {
    let plain =
        Settings { sack: false, timestamps: false, window_scaling: false, ..Settings::default() };
    for pair in [[Settings::default(), plain.clone()], [plain, Settings::default()]] {
        let mut world = World::of(pair).wire(drop_data(CLIENT, &[2])).established();
        world.ends[CLIENT].write(100_000);
        world.run(millis(3_000));
        assert_eq!(world.received[SERVER], 100_000);
        for sent in &world.log {
            assert!(sent.segment.timestamps().is_none() && sent.segment.sack().is_empty());
        }
        // Without timestamps a full segment carries 1460 bytes; without scaling 64 kB are the
        // limit.
        assert_eq!(world.payloads(CLIENT)[0], 1460);
    }
}

#[test]
fn segment_size_is_the_smaller_mss_minus_timestamp_option() {
    let small = Settings { mss: 1000, ..Settings::default() };
    let mut world = World::of([Settings::default(), small]).established();
    world.ends[CLIENT].write(10_000);
    world.ends[SERVER].write(10_000);
    world.run(millis(1_000));
    assert_eq!((world.payloads(CLIENT)[0], world.payloads(SERVER)[0]), (988, 988));
}

#[test]
fn a_lost_syn_is_repeated_after_one_then_two_seconds() {
    let mut lost = 2;
    let mut world = World::new(Settings::default()).wire(move |sent| {
        if sent.from == CLIENT && lost > 0 {
            lost -= 1;
            return Fate::Drop;
        }
        Fate::Pass
    });
    world.run(millis(10_000));
    let syns: Vec<u64> = world
        .sent_by(CLIENT)
        .iter()
        .filter(|(_, segment)| segment.flags.has(Flags::SYN))
        .map(|(at, _)| *at)
        .collect();
    // RFC 6298 §2.1 and §5.5: 1 s, then twice as long.
    assert_eq!(syns, [0, 1_000, 3_000]);
    // RFC 5681 §3.1: one segment first. RFC 6298 §5.7: RTO of three seconds for data.
    let snapshot = world.ends[CLIENT].snapshot();
    assert_eq!((snapshot.cwnd, snapshot.rto), (1, millis(3_000)));
}

#[test]
fn a_lost_syn_ack_is_repeated_when_the_syn_comes_again() {
    let mut first = true;
    let mut world = World::new(Settings::default()).wire(move |sent| {
        if sent.from == SERVER && std::mem::take(&mut first) { Fate::Drop } else { Fate::Pass }
    });
    world.run(millis(1_500));
    assert_eq!(world.states(), [State::Established; 2]);
}

#[test]
fn unanswered_syn_times_out_after_syn_retries() {
    let mut world = World::new(Settings::default()).wire(|_| Fate::Drop);
    assert!(world.settle(millis(600_000)));
    assert_eq!(world.ends[CLIENT].ended(), Some(Ended::TimedOut));
    // The first SYN, and as many retransmissions as are allowed.
    assert_eq!(world.log.len(), 7);
}

#[test]
fn a_closed_port_resets() {
    let mut world = World::new(Settings::default());
    world.ends[SERVER].close();
    assert!(world.settle(millis(1_000)));
    assert_eq!(world.ends[CLIENT].ended(), Some(Ended::Reset));
}

#[test]
fn both_may_open_at_once() {
    let mut world = World::new(Settings::default());
    world.ends[SERVER].connect();
    world.run(millis(3_000));
    assert_eq!(world.states(), [State::Established; 2]);
    world.ends[CLIENT].write(50_000);
    world.run(millis(3_000));
    assert_eq!(world.received[SERVER], 50_000);
}
