//! Packets over lanes: arrivals, drops, and the order of events.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use tcplab_engine::{
    CoDelConfig, Discipline, EndpointId, Event, LaneConfig, LaneId, Loss, Network, Observer, Order,
    Packet, Point, QueueLimit, Reason, RedConfig, RouteId, Spread, WireConfig,
};
use tcplab_units::{Duration, Time};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Parcel {
    number: u32,
    bytes: u32,
}

impl Packet for Parcel {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }
    fn has_payload(&self) -> bool {
        true
    }
}

fn lane(name: &str, rate: &str, delay: &str, queue: QueueLimit) -> LaneConfig {
    LaneConfig {
        name: name.into(),
        rate: rate.parse().unwrap(),
        delay: delay.parse().unwrap(),
        queue,
        discipline: None,
        wire: WireConfig::default(),
        station: None,
        observed: false,
        reports_tx_completion: false,
        may_change: false,
    }
}

fn world(lanes: Vec<LaneConfig>) -> (Network<Parcel>, RouteId) {
    let route: Vec<LaneId> = (0..lanes.len() as u32).map(LaneId).collect();
    let mut network = Network::new(lanes, 1);
    let route = network.add_route(&route, EndpointId(7));
    (network, route)
}

/// Arrivals until `until`, as (microseconds, number).
fn arrivals(network: &mut Network<Parcel>, until: &str) -> Vec<(u64, u32)> {
    let until = Time::ZERO + until.parse().unwrap();
    let mut seen = Vec::new();
    while let Some(event) = network.next(until) {
        let Event::Delivered { to: EndpointId(7), packet } = event else { panic!("{event:?}") };
        seen.push((network.now().since(Time::ZERO).as_nanos() / 1000, packet.number));
    }
    seen
}

#[test]
fn no_event_is_delivered_after_the_end() {
    let (mut network, _) = world(vec![lane("a", "8 Mbit/s", "1 ms", QueueLimit::Packets(1))]);
    let timer = network.add_timer();
    // Due in the nanosecond that is not over at the end: timers wait for its end.
    network.set_timer(timer, Time::from_picos(61_500), Order::BeforePackets);
    let end = Time::from_picos(61_999);
    assert!(network.next(end).is_none());
    assert_eq!(network.now(), end);
    assert!(matches!(network.next(Time::from_picos(62_000)), Some(Event::Timer(_))));
}

/// Packets and bytes in the queue of the first lane.
fn queued(network: &mut Network<Parcel>) -> (u64, u64) {
    let state = network.state(LaneId(0));
    (state.queue_packets, state.queue_bytes)
}

#[test]
fn each_lane_adds_transmission_and_propagation_delay() {
    let (mut network, route) = world(vec![
        lane("a>r", "10 Mbit/s", "5 ms", QueueLimit::Packets(10)),
        lane("r>b", "1 Mbit/s", "20 ms", QueueLimit::Packets(10)),
    ]);
    network.send(route, Parcel { number: 1, bytes: 1500 });
    network.send(route, Parcel { number: 2, bytes: 1500 });
    // 1500 bytes: 1.2 ms at 10 Mbit/s, 12 ms at 1 Mbit/s. The second waits for the first's 12 ms.
    assert_eq!(arrivals(&mut network, "1 s"), [(38_200, 1), (50_200, 2)]);
    assert_eq!(network.packet_hops(), 4);
}

#[test]
fn a_queue_limit_excludes_the_packet_in_transmission() {
    let (mut network, route) =
        world(vec![lane("a>b", "12 Mbit/s", "0 ms", QueueLimit::Packets(3))]);
    for number in 1..=6 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    assert_eq!(queued(&mut network), (3, 4500));
    assert_eq!(network.counters(LaneId(0)).dropped_packets, 2);
    // A packet takes 1 ms: the last one accepted has waited for the three before it.
    assert_eq!(arrivals(&mut network, "1 s"), [(1_000, 1), (2_000, 2), (3_000, 3), (4_000, 4)]);
}

#[test]
fn a_byte_limit_admits_packets_that_fit() {
    let (mut network, route) =
        world(vec![lane("a>b", "12 Mbit/s", "0 ms", QueueLimit::Bytes(2_000))]);
    for (number, bytes) in [(1, 1500), (2, 1500), (3, 600), (4, 500)] {
        network.send(route, Parcel { number, bytes });
    }
    let order: Vec<u32> = arrivals(&mut network, "1 s").iter().map(|seen| seen.1).collect();
    assert_eq!(order, [1, 2, 4]);
}

#[test]
fn the_queue_empties_as_time_passes() {
    let (mut network, route) =
        world(vec![lane("a>b", "12 Mbit/s", "10 ms", QueueLimit::Packets(10))]);
    for number in 1..=5 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    for (after, waiting) in [("0.5 ms", 4), ("1 ms", 3), ("3.999 ms", 1), ("4 ms", 0)] {
        let now = Time::ZERO + after.parse().unwrap();
        assert!(network.next(now).is_none());
        assert_eq!(queued(&mut network).0, waiting, "after {after}");
        assert_eq!(network.state(LaneId(0)).busy, now.since(Time::ZERO));
    }
}

#[test]
fn a_lost_packet_takes_transmission_time() {
    let mut config = lane("a>b", "12 Mbit/s", "0 ms", QueueLimit::Packets(10));
    config.wire.loss = Some(Loss::Listed { packets: vec![2] });
    let (mut network, route) = world(vec![config]);
    for number in 1..=3 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    assert_eq!(arrivals(&mut network, "1 s"), [(1_000, 1), (3_000, 3)]);
}

#[test]
fn jitter_delays_and_keeps_the_order() {
    let mut config = lane("a>b", "1 Gbit/s", "1 ms", QueueLimit::Packets(1000));
    config.wire.jitter = Some(Spread::up_to(Duration::from_millis(5)));
    let (mut network, route) = world(vec![config]);
    for number in 0..500 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    let seen = arrivals(&mut network, "1 s");
    assert!(seen.iter().map(|seen| seen.1).eq(0..500));
    // 500 packets of 12 us leave within 6 ms; then at most 1 ms + 5 ms of delay.
    assert!(seen[0].0 >= 1_012 && seen[499].0 <= 12_000);
    assert!(seen[499].0 > 7_000, "the slowest of 500 was delayed: {:?}", seen[499]);
}

#[test]
fn packets_and_timers_are_delivered_in_order_of_time() {
    let (mut network, route) =
        world(vec![lane("a>b", "12 Mbit/s", "0 ms", QueueLimit::Packets(10))]);
    let timer = network.add_timer();
    network.set_timer(
        timer,
        Time::ZERO + Duration::from_micros(1_500),
        tcplab_engine::Order::BeforePackets,
    );
    for number in 1..=2 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    let mut seen = Vec::new();
    while let Some(event) = network.next(Time::ZERO + Duration::from_secs(1)) {
        seen.push(match event {
            Event::Delivered { packet, .. } => packet.number,
            Event::Timer(id) => 100 + id.index() as u32,
            Event::Left { .. } => panic!("nobody asked for it"),
            Event::Connection(id) => 200 + id.index() as u32,
        });
    }
    assert_eq!(seen, [1, 100, 2]);
    assert_eq!(network.now(), Time::ZERO + Duration::from_secs(1));
}

#[test]
fn connection_timers_precede_other_timers_of_the_same_time() {
    let (mut network, route) =
        world(vec![lane("a>b", "12 Mbit/s", "0 ms", QueueLimit::Packets(10))]);
    // A packet of 1500 bytes takes 1 ms, and all timers expire meanwhile.
    network.send(route, Parcel { number: 1, bytes: 1500 });
    let due = Time::ZERO + Duration::from_millis(1);
    let (application, recorder) = (network.add_timer(), network.add_timer());
    network.set_timer(application, due, Order::Last);
    network.set_timer(recorder, due, Order::BeforePackets);
    let connections: Vec<_> = (0..3).map(|_| network.add_connection_timer()).collect();
    for &timer in connections.iter().rev() {
        network.set_connection_timer(timer, due);
    }
    let mut seen = Vec::new();
    while let Some(event) = network.next(due) {
        match event {
            Event::Connection(first) => {
                seen.push(format!("connection {}", first.index()));
                while let Some(timer) = network.also_due() {
                    seen.push(format!("and {}", timer.index()));
                }
            }
            Event::Delivered { packet, .. } => seen.push(format!("packet {}", packet.number)),
            Event::Timer(timer) => seen.push(format!("other {}", timer.index())),
            Event::Left { .. } => panic!("nobody asked for it"),
        }
    }
    assert_eq!(seen, ["connection 0", "and 1", "and 2", "other 1", "packet 1", "other 0"]);
}

#[test]
fn redirecting_a_route_affects_packets_in_transit() {
    let lanes = ["a>b", "b>c"].map(|name| lane(name, "12 Mbit/s", "5 ms", QueueLimit::Packets(9)));
    let mut network = Network::new(lanes, 1);
    let ids = [LaneId(0), LaneId(1)];
    let (route, other) =
        (network.add_route(&ids, EndpointId(1)), network.add_route(&ids, EndpointId(2)));
    for route in [route, other] {
        network.send(route, Parcel { number: 1, bytes: 1500 });
    }
    // Both packets are on the first lane.
    assert!(network.next(Time::ZERO + Duration::from_millis(3)).is_none());
    network.redirect(route, EndpointId(3));
    let mut ends = Vec::new();
    while let Some(Event::Delivered { to, .. }) = network.next(Time::ZERO + Duration::from_secs(1))
    {
        ends.push(to.0);
    }
    assert_eq!(ends, [3, 2]);
}

/// Why packets were dropped.
#[derive(Default)]
struct Reasons(Vec<Reason>);

impl<P> Observer<P> for Reasons {
    fn drop(&mut self, _: Point<'_>, _: &P, reason: Reason) {
        self.0.push(reason);
    }
}

/// Arrivals of a burst every 10 ms over a lane with this discipline, and the number of drops.
fn bursts(
    discipline: Option<Discipline>,
    loss: Option<Loss>,
    observed: bool,
) -> (Vec<(u64, u32)>, u64) {
    let mut config = lane("a>b", "12 Mbit/s", "3 ms", QueueLimit::Packets(8));
    (config.discipline, config.wire.loss, config.observed) = (discipline, loss, observed);
    config.wire.jitter = Some(Spread::up_to(Duration::from_millis(2)));
    let other = lane("b>c", "1 Gbit/s", "0 ms", QueueLimit::Packets(9));
    let mut network = Network::<Parcel, _>::observed([config, other], 1, Reasons::default());
    let route = network.add_route(&[LaneId(0), LaneId(1)], EndpointId(7));
    let mut seen = Vec::new();
    for burst in 0..50 {
        let until = Time::ZERO + Duration::from_millis(10 * burst);
        while let Some(Event::Delivered { packet, .. }) = network.next(until) {
            seen.push((network.now().since(Time::ZERO).as_nanos(), packet.number));
        }
        // Between 0 and 12 packets, of different sizes.
        for number in 0..burst * 7 % 13 {
            network.send(
                route,
                Parcel {
                    number: (burst * 100 + number) as u32,
                    bytes: 700 + 100 * (number as u32 % 9),
                },
            );
        }
    }
    while let Some(Event::Delivered { packet, .. }) =
        network.next(Time::ZERO + Duration::from_secs(1))
    {
        seen.push((network.now().since(Time::ZERO).as_nanos(), packet.number));
    }
    let counters = network.counters(LaneId(0));
    let gone = network.observer().0.len() as u64;
    assert_eq!(gone, counters.dropped_packets + counters.lost_packets);
    (seen, counters.dropped_packets)
}

#[test]
fn a_discipline_that_never_signals_is_drop_tail() {
    let never = || {
        let (target, interval) = (Duration::from_secs(100), Duration::from_secs(100));
        Some(Discipline::CoDel(CoDelConfig { target, interval, mtu: 1500, ecn: false }))
    };
    let losses = [
        None,
        Some(Loss::Independent { probability: 0.3 }),
        Some(Loss::Independent { probability: 1.0 }),
    ];
    for loss in losses {
        let plain = bursts(None, loss.clone(), false);
        assert!(plain.1 > 20, "the queue is too long for this test");
        assert_eq!(bursts(never(), loss.clone(), false), plain);
        assert_eq!(bursts(None, loss, true), plain);
    }
}

/// A packet that may be ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Letter {
    can_be: bool,
    is: bool,
}

impl Packet for Letter {
    fn wire_bytes(&self) -> u32 {
        1500
    }
    fn has_payload(&self) -> bool {
        true
    }
    fn is_marked(&self) -> bool {
        self.is
    }
    fn mark(&mut self) -> bool {
        self.is |= self.can_be;
        self.is
    }
}

#[test]
fn a_red_step_marks_above_the_threshold_and_drops_not_ect() {
    let mut config = lane("a>b", "12 Mbit/s", "0 ms", QueueLimit::Packets(6));
    let (min, packet_time) = (4_500, Duration::from_millis(1));
    let red = RedConfig {
        min,
        max: min,
        probability: 1.0,
        weight: 1.0,
        gentle: false,
        adaptive: false,
        packet_time,
    };
    config.discipline = Some(Discipline::Red { config: red, ecn: true });
    let mut network = Network::observed([config], 1, Reasons::default());
    let route = network.add_route(&[LaneId(0)], EndpointId(0));
    // One packet is transmitted and three find less than 4500 bytes. The next three find at least
    // that; the queue is full for the eighth.
    for can_be in [true, true, true, true, true, false, true, true, true] {
        network.send(route, Letter { can_be, is: false });
    }
    let mut marked = Vec::new();
    while let Some(Event::Delivered { packet, .. }) =
        network.next(Time::ZERO + Duration::from_secs(1))
    {
        marked.push(packet.is);
    }
    assert_eq!(marked, [false, false, false, false, true, true, true]);
    assert_eq!(network.observer().0, [Reason::Discipline, Reason::Full]);
    let counters = network.counters(LaneId(0));
    assert_eq!(
        (counters.marked_packets, counters.dropped_packets, counters.sent_packets),
        (3, 2, 7)
    );
}

#[test]
fn tx_completions_are_reported_for_each_packet() {
    // A millisecond each: two packets fit, the third is dropped at once, and one that is lost
    // leaves as well.
    let mut config = lane("a>b", "12 Mbit/s", "5 ms", QueueLimit::Packets(1));
    config.reports_tx_completion = true;
    config.wire.loss = Some(Loss::Listed { packets: vec![2] });
    let mut network = Network::new([config], 1);
    let route = network.add_route(&[LaneId(0)], EndpointId(7));
    for number in 1..=3 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    let mut seen = Vec::new();
    while let Some(event) = network.next(Time::ZERO + Duration::from_secs(1)) {
        let millis = network.now().since(Time::ZERO).as_millis();
        match event {
            Event::Left { to: EndpointId(7), packet } => seen.push((millis, "left", packet.number)),
            Event::Delivered { packet, .. } => seen.push((millis, "arrived", packet.number)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [(0, "left", 3), (1, "left", 1), (2, "left", 2), (6, "arrived", 1)]);
}

#[test]
fn a_sender_hears_of_packets_dropped_at_one_time_in_their_order() {
    // 1500 bytes take 1714.2857 us, so the packets leave the queue at fractions of a nanosecond. At
    // an interval of 10 us CoDel then drops several at once.
    let (target, interval) = (Duration::from_micros(5), Duration::from_micros(10));
    let codel = Discipline::CoDel(CoDelConfig { target, interval, mtu: 1500, ecn: false });
    let mut config = lane("a>b", "7 Mbit/s", "5 ms", QueueLimit::Packets(1000));
    (config.reports_tx_completion, config.discipline) = (true, Some(codel));
    let mut network = Network::new([config], 1);
    let route = network.add_route(&[LaneId(0)], EndpointId(7));
    for number in 0..100 {
        network.send(route, Parcel { number, bytes: 1500 });
    }
    let (mut left, mut arrived) = (Vec::new(), 0);
    while let Some(event) = network.next(Time::ZERO + Duration::from_secs(1)) {
        match event {
            Event::Left { packet, .. } => left.push(packet.number),
            _ => arrived += 1,
        }
    }
    assert!(arrived < 50, "{arrived} packets arrive, so few are dropped together");
    assert_eq!(left, (0..100).collect::<Vec<_>>());
}
