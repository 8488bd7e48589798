//! The events that an observer receives for packets.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use tcplab_engine::{
    CoDelConfig, Discipline, EndpointId, LaneConfig, LaneId, Loss, Network, Observer, Packet,
    Point, QueueLimit, Reason, RedConfig, WireConfig,
};
use tcplab_units::{Duration, Time};

/// A packet of 1500 bytes, which takes 1 ms at 12 Mbit/s.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    number: u64,
    is_marked: bool,
}

impl Packet for Parcel {
    fn wire_bytes(&self) -> u32 {
        1500
    }
    fn has_payload(&self) -> bool {
        true
    }
    fn is_marked(&self) -> bool {
        self.is_marked
    }
    fn mark(&mut self) -> bool {
        self.is_marked = true;
        true
    }
}

/// Everything seen, as (microseconds, packet, event, lane).
#[derive(Default)]
struct Seen(Vec<(u64, u64, String, u32)>);

impl Seen {
    fn add(&mut self, point: Point<'_>, packet: &Parcel, what: &str) {
        assert_eq!(point.end(), EndpointId(7));
        let micros = point.at.since(Time::ZERO).as_nanos() / 1000;
        self.0.push((micros, packet.number, what.into(), point.lane().0));
    }
}

impl Observer<Parcel> for Seen {
    fn enter(&mut self, point: Point<'_>, packet: &Parcel) {
        self.add(point, packet, "enters");
    }
    fn leave(&mut self, point: Point<'_>, packet: &Parcel) {
        self.add(point, packet, "leaves");
    }
    fn mark(&mut self, point: Point<'_>, packet: &Parcel) {
        self.add(point, packet, "is marked");
    }
    fn drop(&mut self, point: Point<'_>, packet: &Parcel, reason: Reason) {
        self.add(point, packet, &format!("{reason:?}"));
    }
    fn arrive(&mut self, point: Point<'_>, packet: &Parcel) {
        self.add(point, packet, "arrives");
    }
}

fn lane(name: &str, discipline: Option<Discipline>, loss: Option<Loss>) -> LaneConfig {
    LaneConfig {
        name: name.into(),
        rate: "12 Mbit/s".parse().unwrap(),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(2),
        discipline,
        wire: WireConfig { loss, ..WireConfig::default() },
        station: None,
        observed: true,
        reports_tx_completion: false,
        may_change: false,
    }
}

/// Everything seen of so many packets sent at once over these lanes, in order of time.
fn seen(lanes: Vec<LaneConfig>, packets: u64) -> Vec<(u64, u64, String, u32)> {
    let route: Vec<_> = (0..lanes.len() as u32).map(LaneId).collect();
    let mut network = Network::observed(lanes, 1, Seen::default());
    let route = network.add_route(&route, EndpointId(7));
    for number in 1..=packets {
        network.send(route, Parcel { number, is_marked: false });
    }
    while network.next(Time::ZERO + Duration::from_secs(1)).is_some() {}
    network.settle();
    let mut seen = std::mem::take(&mut network.observer().0);
    seen.sort_by_key(|seen| seen.0);
    seen
}

/// Never signals here: sojourn times stay short.
fn codel() -> Discipline {
    let (target, interval) = (Duration::from_secs(1), Duration::from_secs(1));
    Discipline::CoDel(CoDelConfig { target, interval, mtu: 1500, ecn: false })
}

#[test]
fn all_queues_report_the_same_events_at_the_same_times() {
    let expected = [
        (0, 1, "enters", 0),
        (0, 1, "leaves", 0),
        (0, 2, "enters", 0),
        (0, 3, "enters", 0),
        // One packet is transmitted, and two wait.
        (0, 4, "enters", 0),
        (0, 4, "Full", 0),
        (1_000, 2, "leaves", 0),
        (1_000, 2, "Lost", 0),
        (2_000, 3, "leaves", 0),
        // A millisecond of transmission and ten of propagation.
        (11_000, 1, "arrives", 0),
        (11_000, 1, "enters", 1),
        (11_000, 1, "leaves", 1),
        (13_000, 3, "arrives", 0),
        (13_000, 3, "enters", 1),
        (13_000, 3, "leaves", 1),
        (22_000, 1, "arrives", 1),
        (24_000, 3, "arrives", 1),
    ];
    for discipline in [None, Some(codel())] {
        let first = lane("a>b", discipline.clone(), Some(Loss::Listed { packets: vec![2] }));
        let mut seen = seen(vec![first, lane("b>c", discipline, None)], 4);
        let mut expected = expected.map(|(at, packet, what, lane)| (at, packet, what.into(), lane));
        // Events of the same nanosecond are reported in an order of the lane's own.
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected);
    }
}

#[test]
fn a_mark_is_reported_when_the_packet_leaves() {
    // A step at one packet: the third packet finds one waiting.
    let (min, packet_time) = (1500, Duration::from_millis(1));
    let config = RedConfig {
        min,
        max: min,
        probability: 1.0,
        weight: 1.0,
        gentle: false,
        adaptive: false,
        packet_time,
    };
    let mut lane = lane("a>b", Some(Discipline::Red { config, ecn: true }), None);
    lane.queue = QueueLimit::Packets(2);
    let seen = seen(vec![lane], 3);
    let of_third: Vec<_> = seen.iter().filter(|seen| seen.1 == 3).collect();
    let told: Vec<_> = of_third.iter().map(|seen| (seen.0, &*seen.2)).collect();
    assert_eq!(told, [(0, "enters"), (2_000, "is marked"), (2_000, "leaves"), (13_000, "arrives")]);
    assert_eq!(seen.iter().filter(|seen| seen.2 == "is marked").count(), 1);
}
