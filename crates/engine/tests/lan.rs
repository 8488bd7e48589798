//! Stations of a shared medium: when they send, how long they back off, and how they resolve
//! addresses.

use std::collections::BTreeSet;
use tcplab_engine::{
    ArpConfig, EndpointId, Event, LaneConfig, LaneId, Network, Observer, Packet, Point, QueueLimit,
    Reason, RouteId, Spread, StationConfig, WireConfig,
};
use tcplab_units::{Duration, Rate, Time};

/// A packet of 1500 bytes, or 1518 with header and checksum: 12.144 us at 1 Gbit/s.
#[derive(Clone, Copy, Debug)]
struct Parcel(u32);

impl Packet for Parcel {
    fn wire_bytes(&self) -> u32 {
        1500
    }
    fn has_payload(&self) -> bool {
        true
    }
}

/// Departures in nanoseconds with packet numbers, and drops.
#[derive(Default)]
struct Seen {
    left: Vec<(u64, u32)>,
    dropped: Vec<(u32, Reason)>,
}

impl Observer<Parcel> for Seen {
    fn leave(&mut self, point: Point<'_>, packet: &Parcel) {
        // Stations have even numbers.
        if point.lane().0.is_multiple_of(2) {
            self.left.push((point.at.since(Time::ZERO).as_nanos(), packet.0));
        }
    }
    fn drop(&mut self, _point: Point<'_>, packet: &Parcel, reason: Reason) {
        self.dropped.push((packet.0, reason));
    }
}

/// Both directions of each station's link, to the medium and from it.
fn lan(stations: u32, arp: Option<&ArpConfig>) -> Vec<LaneConfig> {
    let lane = |name: String, bits_per_second, station| LaneConfig {
        name,
        rate: Rate::from_bits_per_second(bits_per_second),
        delay: Duration::ZERO,
        queue: QueueLimit::Packets(1000),
        discipline: None,
        wire: WireConfig::default(),
        station,
        observed: true,
        reports_tx_completion: false,
        may_change: false,
    };
    let both = |number: u32| {
        let station = StationConfig {
            medium: 0,
            receives: LaneId(2 * number + 1),
            framing: 18,
            gap: Duration::from_nanos(96),
            slot: Duration::from_micros(1),
            arp: arp.cloned(),
        };
        let to = lane(format!("{number}>lan"), 1_000_000_000, Some(station));
        let from = lane(format!("lan>{number}"), u64::MAX, None);
        [LaneConfig { delay: Duration::from_micros(2), ..to }, from]
    };
    (0..stations).flat_map(both).collect()
}

/// A route from one station to another.
fn way(network: &mut Network<Parcel, Seen>, from: u32, to: u32) -> RouteId {
    network.add_route(&[LaneId(2 * from), LaneId(2 * to + 1)], EndpointId(to))
}

/// Arrivals in nanoseconds, within so many milliseconds.
fn arrivals(network: &mut Network<Parcel, Seen>, millis: u64) -> Vec<(u64, u32)> {
    let mut seen = Vec::new();
    while let Some(event) = network.next(Time::ZERO + Duration::from_millis(millis)) {
        let Event::Delivered { packet, .. } = event else { continue };
        seen.push((network.now().since(Time::ZERO).as_nanos(), packet.0));
    }
    seen
}

#[test]
fn a_station_waits_for_its_frame_and_back_off() {
    let mut gaps = BTreeSet::new();
    for seed in 0..20 {
        let mut network = Network::observed(lan(2, None), seed, Seen::default());
        let route = way(&mut network, 0, 1);
        (0..3).for_each(|number| network.send(route, Parcel(number)));
        let times: Vec<_> = arrivals(&mut network, 1).into_iter().map(|seen| seen.0).collect();
        // The frame time, and 2 us of propagation.
        assert_eq!(times[0], 12_144 + 2_000);
        gaps.extend(times.windows(2).map(|pair| pair[1] - pair[0]));
    }
    // The station senses the medium 0.096 us after its own frame, which is in transit for 2 us;
    // then after one slot, which is too early as well; and then after one or two more.
    assert_eq!(gaps.into_iter().collect::<Vec<_>>(), [14_240, 15_240]);
}

#[test]
fn the_medium_carries_one_frame_at_a_time() {
    let mut network = Network::observed(lan(3, None), 1, Seen::default());
    for from in 0..3 {
        let route = way(&mut network, from, (from + 1) % 3);
        (0..200).for_each(|number| network.send(route, Parcel(1000 * from + number)));
    }
    let arrived = arrivals(&mut network, 100);
    network.settle();
    let left = &network.observer().left;
    assert_eq!((arrived.len(), left.len()), (600, 600));
    // Each frame begins after the one before has arrived, 14.144 us after its beginning.
    assert!(left.windows(2).all(|pair| pair[1].0 > pair[0].0 + 14_144));
    assert!(left.iter().zip(&arrived).all(|(left, arrived)| arrived.0 == left.0 + 14_144));
}

#[test]
fn back_off_grows_to_ten_doublings() {
    // One station sends all the time. The other's attempts find the medium busy except between two
    // frames, where an attempt may succeed.
    let mut waits = Vec::new();
    for seed in 0..200 {
        let mut network = Network::observed(lan(2, None), seed, Seen::default());
        let (busy, other) = (way(&mut network, 0, 1), way(&mut network, 1, 0));
        (0..900).for_each(|number| network.send(busy, Parcel(number)));
        network.send(other, Parcel(1000));
        arrivals(&mut network, 30);
        network.settle();
        let left = network.observer().left.iter().find(|left| left.1 == 1000);
        waits.push(left.unwrap().0);
    }
    waits.sort_unstable();
    // Ten attempts take 2^11 / 2 slots on average, and each succeeds with a chance of a few
    // percent.
    assert!(waits[0] < 20_000 && *waits.last().unwrap() > 1_000_000, "{waits:?}");
}

fn asks_after(millis: u64, learns: bool) -> ArpConfig {
    let wait = Duration::from_millis(millis);
    ArpConfig { wait: Spread(vec![(wait, wait)]), pending: 3, learns_from_requests: learns }
}

#[test]
fn few_packets_wait_for_arp_resolution() {
    let arp = asks_after(7, true);
    let mut network = Network::observed(lan(2, Some(&arp)), 1, Seen::default());
    let route = way(&mut network, 0, 1);
    (0..10).for_each(|number| network.send(route, Parcel(number)));
    assert_eq!(network.packets(), 3);
    let state = network.state(LaneId(0));
    assert_eq!((state.counters.dropped_packets, state.queue_packets), (7, 0));
    let arrived = arrivals(&mut network, 8);
    // A message of 28 bytes is 46 with header and checksum: 0.368 us, and 2 us of propagation. The
    // answering station finds the medium busy and waits for a slot first: twice.
    let known = 7_000_000 + 2 * (368 + 2_000) + 1_000;
    assert_eq!(arrived[0], (known + 1_000 + 12_144 + 2_000, 0));
    assert_eq!(arrived.iter().map(|seen| seen.1).collect::<Vec<_>>(), [0, 1, 2]);
    let dropped: Vec<_> = (3..10).map(|number| (number, Reason::Unresolved)).collect();
    assert_eq!(network.observer().dropped, dropped);
    let counters = network.counters(LaneId(0));
    assert_eq!((counters.entered_packets, counters.arrived_packets), (10, 3));
    // From then on the address is known.
    let sent_at = network.now().since(Time::ZERO).as_nanos();
    network.send(route, Parcel(10));
    assert_eq!(arrivals(&mut network, 9), [(sent_at + 14_144, 10)]);
}

#[test]
fn an_arp_responder_learns_or_sends_its_own_request() {
    for (learns, waits) in [(true, 0), (false, 2_000_000)] {
        let arp = asks_after(2, learns);
        let mut network = Network::observed(lan(2, Some(&arp)), 1, Seen::default());
        let (there, back) = (way(&mut network, 0, 1), way(&mut network, 1, 0));
        network.send(there, Parcel(0));
        let [(asked, 0)] = arrivals(&mut network, 3)[..] else { panic!() };
        let sent_at = network.now().since(Time::ZERO).as_nanos();
        assert!((2_000_000..2_030_000).contains(&asked), "{asked}");
        network.send(back, Parcel(1));
        let [(answered, 1)] = arrivals(&mut network, 10)[..] else { panic!() };
        // The messages before it: both of them, and a back-off after each.
        let frames = if learns { 14_144 } else { 14_144 + 2 * 2_368 + 2 * 1_000 };
        assert_eq!(answered, sent_at + waits + frames);
    }
}
