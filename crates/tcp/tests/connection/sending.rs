//! When data leaves: Nagle, the initial window, idle restart, growth.

use crate::world::*;
use tcplab_tcp::{AckCounting, Settings};

fn no_delay() -> Settings {
    Settings { delayed_ack: None, ..Settings::default() }
}

#[test]
fn nagle_holds_a_small_segment_while_data_is_outstanding() {
    for (nagle, expected) in [(true, vec![100, 200]), (false, vec![100, 100, 100])] {
        let mut world = World::new(Settings { nagle, ..no_delay() }).established();
        for _ in 0..3 {
            world.ends[CLIENT].write(100);
            world.flush();
        }
        world.run(millis(500));
        assert_eq!(world.payloads(CLIENT), expected);
    }
}

#[test]
fn slow_start_doubles_from_the_initial_window() {
    let mut world = World::new(no_delay()).established();
    world.ends[CLIENT].write(1 << 20);
    let mut flights = Vec::new();
    for round in 0..5 {
        world.run(millis(if round == 0 { 50 } else { 100 }));
        flights.push(world.payloads(CLIENT).len());
        world.log.clear();
    }
    // RFC 6928: ten segments; then each segment acknowledged releases two.
    assert_eq!(flights, [10, 20, 40, 80, 160]);
}

#[test]
fn cwnd_growth_follows_the_ack_counting_setting() {
    // With an ACK for every second segment, ten segments bring five ACKs in the first round trip.
    for (counting, flight) in [
        (AckCounting::PerSegment, 20),
        (AckCounting::PerAck, 15),
        (AckCounting::PerByte { limit: 1 }, 15),
        (AckCounting::PerByte { limit: 2 }, 20),
    ] {
        let mut world = World::new(Settings { counting, ..Settings::default() }).established();
        world.ends[CLIENT].write(1 << 20);
        world.run(millis(50));
        world.log.clear();
        world.run(millis(100));
        assert_eq!(world.payloads(CLIENT).len(), flight, "{counting:?}");
    }
}

#[test]
fn an_idle_connection_starts_again_from_the_initial_window() {
    for (restart_after_idle, flight) in [(true, 10), (false, 80)] {
        let mut world = World::new(Settings { restart_after_idle, ..no_delay() }).established();
        // After 10 + 20 + 40 segments the window is 80.
        world.ends[CLIENT].write(70 * 1448);
        world.run(millis(3_000));
        world.log.clear();
        world.ends[CLIENT].write(200 * 1448);
        world.run(millis(50));
        assert_eq!(world.payloads(CLIENT).len(), flight);
    }
}

#[test]
fn data_flows_both_ways_on_one_connection() {
    let mut world = World::new(Settings::default()).established();
    world.ends[CLIENT].write(300_000);
    world.ends[SERVER].write(400_000);
    for end in [CLIENT, SERVER] {
        world.ends[end].close();
    }
    assert!(world.settle(millis(70_000)));
    assert_eq!(world.received, [400_000, 300_000]);
}
