//! Tests of CAKE against its paper, RFC 8290 and arithmetic.

use super::*;
use crate::queue::tests::{Parcel, leave, of_flow, queued};

const BY_FLOWS: Isolation = Isolation { flows: true, sources: false, targets: false };
const BY_SOURCES: Isolation = Isolation { sources: true, ..BY_FLOWS };

fn config(isolation: Isolation) -> CakeConfig {
    CakeConfig {
        shaper: None,
        framing: Framing { overhead: 0, least: 0, cells: Cells::None },
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        isolation,
        tins: Tins::BestEffort,
        ack_filter: AckFilter::Off,
        ingress: false,
        wash: false,
        frame: 1514,
        memory: 1_000_000,
    }
}

fn cake(config: &CakeConfig) -> Cake<Parcel> {
    Cake::new(config, HashKey(0), Random::new(1, "cake"))
}

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// Enqueues so many packets of a flow from a host at the beginning. Returns the flows of the
/// packets dropped for them.
fn enter(queue: &mut Cake<Parcel>, from: u32, key: u64, number: usize) -> Vec<u64> {
    let mut drops = Vec::new();
    for _ in 0..number {
        let packet = of_flow(Flow { key, from, to: 0 }, Time::ZERO, Parcel::default());
        queue.enqueue(Time::ZERO, packet, &mut drops).unwrap();
    }
    drops.iter().map(|(dropped, _)| dropped.flow.key).collect()
}

#[test]
fn new_flows_go_first_and_old_flows_by_round_robin() {
    // RFC 8290 §4.2, with a quantum of 1514 bytes: one packet, and a second one for the remaining
    // deficit.
    let mut queue = cake(&config(BY_FLOWS));
    enter(&mut queue, 0, 1, 6);
    assert_eq!([leave(&mut queue), leave(&mut queue), leave(&mut queue)], [Some(1); 3]);
    enter(&mut queue, 0, 2, 1);
    assert_eq!(leave(&mut queue), Some(2), "a flow that sends little overtakes");
    assert_eq!(std::iter::from_fn(|| leave(&mut queue)).collect::<Vec<_>>(), [1; 3]);
    assert_eq!(queue.waiting(), (0, 0));
}

#[test]
fn hosts_share_equally_whatever_their_number_of_flows() {
    for (isolation, most) in [(BY_SOURCES, 110..=130), (BY_FLOWS, 55..=65)] {
        let mut queue = cake(&config(isolation));
        for flow in 1..=3 {
            enter(&mut queue, 7, flow, 150);
        }
        enter(&mut queue, 8, 4, 150);
        // 120 of 240 packets, or 60 for one of four flows.
        let served = (0..240).filter(|_| leave(&mut queue) == Some(4)).count();
        assert!(most.contains(&served), "{isolation:?}: {served}");
    }
}

#[test]
fn eight_way_set_associative_hash_separates_eight_flows() {
    // Høiland-Jørgensen et al. 2018, section 3.1: flows collide only when all eight ways are taken.
    let same = |key: &u64| HashKey(0).of(*key) as usize % QUEUES / 8 == 5;
    let keys: Vec<u64> = (0..).filter(same).take(9).collect();
    for number in [8, 9] {
        let mut queue = cake(&config(BY_FLOWS));
        for &key in &keys[..number] {
            enter(&mut queue, 0, key, 1);
        }
        let used = (0..QUEUES as u16).filter(|&flow| !queue.tins[0].0.is_empty(flow)).count();
        assert_eq!(used, 8, "{number} flows");
    }
}

#[test]
fn framing_overhead_counts_in_packet_size() {
    let bytes = |overhead, least, cells, packet| Framing { overhead, least, cells }.bytes(packet);
    assert_eq!(bytes(38, 84, Cells::None, 40), 84);
    assert_eq!(bytes(38, 84, Cells::None, 1500), 1538);
    // 1518 bytes are in 32 cells of 48 bytes, which take 53 bytes each; 1522 bytes need 24 more in
    // PTM.
    assert_eq!(bytes(18, 0, Cells::Atm, 1500), 32 * 53);
    assert_eq!(bytes(22, 0, Cells::Ptm, 1500), 1522 + 24);
}

#[test]
fn a_shaper_spaces_packets_by_its_rate() {
    // 1500 bytes at 12 Mbit/s take a millisecond.
    let shaper = Some("12 Mbit/s".parse().unwrap());
    let mut queue = cake(&CakeConfig { shaper, ..config(BY_FLOWS) });
    enter(&mut queue, 0, 1, 3);
    for millis in 0..3 {
        assert!(matches!(queue.dequeue(at(1000 * millis), &mut Vec::new()), Next::Packet(_)));
        // The factor is rounded down: a nanosecond for each packet.
        if millis < 2 {
            let next = queue.dequeue(at(1000 * millis), &mut Vec::new());
            let Next::NotBefore(then) = next else { panic!("{next:?}") };
            assert!(at(1000 * (millis + 1)).since(then) <= Duration::from_nanos(millis + 1));
        }
    }
}

#[test]
fn a_slow_rate_raises_target_and_interval() {
    // 1514 bytes at 1 Mbit/s take 12.112 ms. The target is one and a half of that, and the interval
    // is longer by as much as the target has grown.
    let shaper = Some("1 Mbit/s".parse().unwrap());
    let queue = cake(&CakeConfig { shaper, ..config(BY_FLOWS) });
    let Params { target, interval, .. } = queue.tins[0].0.params;
    assert_eq!([target, interval].map(|nanos| nanos / 1000), [18_168, 113_168]);
}

#[test]
fn overflow_drops_the_head_of_the_flow_with_the_most_bytes() {
    let memory = 6 * 1500;
    let mut queue = cake(&CakeConfig { memory, ..config(BY_FLOWS) });
    assert_eq!(enter(&mut queue, 0, 1, 4), []);
    assert_eq!(enter(&mut queue, 0, 2, 4), [1, 2]);
    assert_eq!(enter(&mut queue, 0, 3, 1).len(), 1);
    assert_eq!(queue.waiting(), (6, 9000));
}

#[test]
fn icmp_is_in_the_tin_of_class_cs6() {
    // RFC 4594 §3.1: CS6. In diffserv3 that is the latency-sensitive tin, with a quarter of the
    // rate; best effort is the first tin.
    assert_eq!([Tins::Diffserv3.of(true), Tins::Diffserv3.of(false)], [2, 0]);
    assert_eq!(Tins::Diffserv3.all(1600), [(1600, 1024), (100, 64), (400, 256)]);
    assert_eq!(Tins::Precedence.all(64)[..3], [(64, 256), (56, 224), (49, 196)]);
    for tins in [Tins::BestEffort, Tins::Precedence, Tins::Diffserv4, Tins::Diffserv8] {
        assert!(tins.of(true).max(tins.of(false)) < tins.all(0).len());
    }
}

/// Dequeues a packet every millisecond, each after the same sojourn time. Returns the milliseconds
/// of signals.
fn signals(ect: bool, wait: u64, millis: u64) -> Vec<u64> {
    let params = Params { target: 5_000_000, interval: 100_000_000, packet_time: 0 };
    let mut cobalt = cobalt::Cobalt::default();
    let mut random = Random::new(1, "cake");
    let mut seen = Vec::new();
    for now in wait..wait + millis {
        let mut packet = queued(at(1000 * (now - wait)), Parcel { ect, ..Parcel::default() });
        let now_ns = 1_000_000 * now.cast_signed();
        let is_dropped = cobalt.drops(&params, now_ns, &mut packet, 0, &mut random);
        assert!(!is_dropped || !packet.packet.ce);
        if is_dropped || packet.packet.ce {
            seen.push(now - wait);
        }
    }
    seen
}

#[test]
fn cobalt_signal_intervals_shrink_with_the_square_root_of_the_count() {
    // RFC 8289 §5.3: after an interval, and then after 100 / sqrt(n) ms: 70.7, 57.7, 50, 44.7. In
    // Linux the first signal of a new flow is due at once.
    for ect in [false, true] {
        let seen = signals(ect, 10, 400);
        let gaps: Vec<_> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (gap, expected) in gaps.iter().zip([70.7, 57.7, 50.0, 44.7_f64]) {
            assert!((*gap as f64 - expected).abs() <= 1.0, "{seen:?}");
        }
    }
    assert!(signals(false, 5, 400).is_empty(), "in time");
}

#[test]
fn blue_probability_rises_on_overflow_and_falls_on_idle() {
    // 1/256 more at an overflow, at most once in a target; 1/4096 less at a turn with an empty
    // queue.
    let params = Params { target: 5_000_000, interval: 100_000_000, packet_time: 0 };
    let mut cobalt = cobalt::Cobalt::default();
    for millis in 0..601 {
        cobalt.on_overflow(&params, 1_000_000 * millis);
    }
    // Every sixth millisecond, 101 times: 39 %.
    let mut random = Random::new(1, "cake");
    let mut dropped = 0;
    for _ in 0..2000 {
        let mut packet = queued(at(601_000), Parcel { ect: true, ..Parcel::default() });
        dropped += u32::from(cobalt.drops(&params, 601_000_000, &mut packet, 0, &mut random));
    }
    assert!((700..880).contains(&dropped), "{dropped}");
    let turns = (602..20_000).filter(|&millis| {
        cobalt.on_empty(&params, 1_000_000 * millis);
        cobalt.is_awake(1_000_000 * millis)
    });
    // 101 * 16 turns, 6 ms apart.
    assert!((9_600..9_800).contains(&turns.count()));
}

#[test]
fn the_heap_finds_the_flow_with_the_most_bytes() {
    let mut longest = Longest::new();
    let mut bytes = vec![0_u32; QUEUES * MOST_TINS];
    let mut random = Random::new(1, "heap");
    for entry in &mut bytes {
        *entry = random.up_to(1_000_000) as u32;
    }
    for _ in 0..3 {
        longest.discard_heap();
        let most = *bytes.iter().max().unwrap();
        let (tin, flow) = longest.first(|entry| bytes[usize::from(entry)]);
        let first = entry(tin, flow);
        assert_eq!(bytes[usize::from(first)], most);
        bytes[usize::from(first)] = 0;
        longest.shrunk(first, |entry| bytes[usize::from(entry)]);
    }
    bytes[4711] = 2_000_000;
    longest.grown(4711, |entry| bytes[usize::from(entry)]);
    assert_eq!(longest.first(|entry| bytes[usize::from(entry)]), (4711 % 8, 4711 / 8));
}
