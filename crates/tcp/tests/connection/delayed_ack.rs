//! Delayed ACKs (RFC 5681 §4.2).

use crate::world::*;
use tcplab_tcp::Settings;

/// Times of the server's ACKs, in milliseconds after establishment.
fn ack_times(world: &World) -> Vec<u64> {
    world.sent_by(SERVER).iter().map(|(at, _)| at - 200).collect()
}

#[test]
fn delayed_ack_covers_two_segments_or_expires() {
    let mut world = World::new(Settings { nagle: false, ..Settings::default() }).established();
    world.ends[CLIENT].write(5 * 1448);
    world.run(millis(400));
    // Five arrive at 50 ms: two and two are acknowledged then, the fifth 200 ms later.
    assert_eq!(ack_times(&world), [50, 50, 250]);
}

#[test]
fn every_segment_is_acknowledged_at_once_without_delayed_ack() {
    let mut world = World::new(Settings { delayed_ack: None, ..Settings::default() }).established();
    world.ends[CLIENT].write(5 * 1448);
    world.run(millis(400));
    assert_eq!(ack_times(&world), [50; 5]);
}

#[test]
fn first_segments_are_acknowledged_at_once_by_quick_acks() {
    let settings = Settings { quick_ack: 3, ..Settings::default() };
    let mut world = World::new(settings).established();
    world.ends[CLIENT].write(5 * 1448);
    world.run(millis(400));
    // Three alone, then two together.
    assert_eq!(ack_times(&world), [50; 4]);
}

#[test]
fn data_out_of_order_is_acknowledged_at_once_and_reported() {
    let mut world = World::new(Settings::default()).wire(drop_data(CLIENT, &[2])).established();
    world.ends[CLIENT].write(4 * 1448);
    world.run(millis(100));
    // The first waits for a second; the third and fourth come out of order.
    let acks = world.sent_by(SERVER);
    assert_eq!(acks.iter().map(|(at, _)| at - 200).collect::<Vec<_>>(), [50, 50]);
    assert!(acks.iter().all(|(_, segment)| segment.sack().len() == 1));
}

#[test]
fn ack_is_piggybacked_on_data() {
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].write(500);
    world.run(millis(60));
    world.ends[SERVER].write(700);
    world.run(millis(300));
    let answers = world.sent_by(SERVER);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].1.payload, 700);
}
