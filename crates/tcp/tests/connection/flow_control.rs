//! Flow control: a window that closes, is probed, opens, and is never overrun.

use crate::world::*;
use tcplab_tcp::Settings;

fn small_buffer(bytes: u64) -> World {
    let settings = Settings { receive_buffer: bytes, timestamps: false, ..Settings::default() };
    let mut world = World::new(settings).established();
    world.reads[SERVER] = false;
    world
}

#[test]
fn sender_stops_when_the_receive_buffer_is_full() {
    let mut world = small_buffer(20_000);
    world.ends[CLIENT].write(100_000);
    world.run(millis(2_000));
    // 13 segments of 1460 fit; the rest of 1020 is less than half the largest window, and waits
    // (silly-window avoidance) until the persist timer overrides that.
    assert_eq!(world.ends[SERVER].readable(), 20_000);
    assert_eq!(world.payloads(CLIENT).iter().map(|&p| u64::from(p)).sum::<u64>(), 20_000);
}

#[test]
fn probes_a_closed_window_with_growing_pauses() {
    let mut world = small_buffer(14_600);
    world.ends[CLIENT].write(100_000);
    world.run(millis(20_000));
    let probes: Vec<u64> = world
        .sent_by(CLIENT)
        .iter()
        .filter(|(at, segment)| segment.payload == 0 && *at > 500)
        .map(|(at, _)| *at)
        .collect();
    let pauses: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The RTO is its minimum of 1 s; each probe doubles it.
    assert_eq!(pauses[..3], [2_000, 4_000, 8_000]);
    // The window is still closed and nothing was sent into it.
    assert_eq!(world.payloads(CLIENT).len(), 10);
}

#[test]
fn sender_resumes_when_the_application_reads() {
    let mut world = small_buffer(14_600);
    world.ends[CLIENT].write(100_000);
    world.run(millis(3_000));
    world.reads[SERVER] = true;
    world.run(millis(5_000));
    assert_eq!(world.received[SERVER], 100_000);
}

#[test]
fn window_probe_recovers_from_a_lost_window_update() {
    let mut world = small_buffer(14_600);
    world.ends[CLIENT].write(100_000);
    world.run(millis(1_000));
    let mut updates = 1;
    world = world.wire(move |sent| {
        if sent.from == SERVER && updates > 0 {
            updates -= 1;
            return Fate::Drop;
        }
        Fate::Pass
    });
    world.reads[SERVER] = true;
    world.run(millis(15_000));
    assert_eq!(world.received[SERVER], 100_000);
}

#[test]
fn a_window_smaller_than_a_segment_still_carries_data() {
    let mut world = small_buffer(600);
    world.reads[SERVER] = true;
    world.ends[CLIENT].write(6_000);
    world.run(millis(30_000));
    assert_eq!(world.received[SERVER], 6_000);
}

#[test]
fn throughput_is_a_window_per_round_trip() {
    let mut world = small_buffer(65_535);
    world.reads[SERVER] = true;
    world.ends[CLIENT].write(u64::MAX);
    world.run(millis(5_000));
    let before = world.received[SERVER];
    world.run(millis(10_000));
    // 64 kB each 100 ms: whole segments of 1460 bytes, 44 of them.
    let rate = (world.received[SERVER] - before) as f64 / 100.0;
    assert!((rate / 65_535.0 - 1.0).abs() < 0.03, "{rate} bytes a round trip");
}

#[test]
fn write_is_limited_by_the_send_buffer() {
    let settings = Settings { send_buffer: 10_000, ..Settings::default() };
    let mut world = World::new(settings).established();
    assert_eq!(world.ends[CLIENT].write(25_000), 10_000);
    assert_eq!(world.ends[CLIENT].write(1), 0);
    world.run(millis(400));
    assert_eq!(world.ends[CLIENT].write(25_000), 10_000);
}
