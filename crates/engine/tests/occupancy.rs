//! Queue occupancy between two samples.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use proptest::prelude::*;
use tcplab_engine::{
    Discipline, EndpointId, Event, LaneConfig, LaneId, LaneState, Loss, Network, Packet,
    QueueLimit, RedConfig, RouteId, WireConfig,
};
use tcplab_units::{Duration, Time};

#[derive(Clone, Copy, Debug)]
struct Parcel(u32);

impl Packet for Parcel {
    fn wire_bytes(&self) -> u32 {
        self.0
    }
    fn has_payload(&self) -> bool {
        true
    }
}

const LANE: LaneId = LaneId(0);
const MILLISECOND: u128 = 1_000_000_000;

/// One lane of 12 Mbit/s, where a packet of 1500 bytes takes a millisecond.
fn world(discipline: Option<Discipline>, loss: Option<Loss>) -> (Network<Parcel>, RouteId) {
    observed(discipline, loss, false)
}

fn observed(
    discipline: Option<Discipline>,
    loss: Option<Loss>,
    observed: bool,
) -> (Network<Parcel>, RouteId) {
    let lane = LaneConfig {
        name: "a>b".into(),
        rate: "12 Mbit/s".parse().unwrap(),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Bytes(15_000),
        discipline,
        wire: WireConfig { loss, ..WireConfig::default() },
        station: None,
        observed,
        reports_tx_completion: false,
        may_change: false,
    };
    let mut network = Network::new([lane], 1);
    let route = network.add_route(&[LANE], EndpointId(0));
    (network, route)
}

/// RED that never drops by itself: a managed queue that behaves as drop-tail does.
fn idle_red() -> Discipline {
    let (min, max) = (1 << 40, 1 << 41);
    let packet_time = Duration::from_millis(1);
    let config = RedConfig {
        min,
        max,
        probability: 0.1,
        weight: 0.002,
        gentle: false,
        adaptive: false,
        packet_time,
    };
    Discipline::Red { config, ecn: false }
}

fn pass(network: &mut Network<Parcel>, until: Duration) {
    while let Some(event) = network.next(Time::ZERO + until) {
        assert!(matches!(event, Event::Delivered { .. }));
    }
}

fn sample(network: &mut Network<Parcel>, millis: u64) -> LaneState {
    pass(network, Duration::from_millis(millis));
    network.sample(LANE)
}

/// Packets are conserved: those that entered are accounted for.
fn is_conserved(state: &LaneState) -> bool {
    let counters = state.counters;
    let gone = counters.arrived_packets + counters.dropped_packets + counters.lost_packets;
    counters.entered_packets == gone + state.queue_packets + state.transit_packets
}

#[test]
fn occupancy_includes_a_burst_between_two_samples() {
    for discipline in [None, Some(idle_red())] {
        let (mut network, route) = world(discipline, None);
        for _ in 0..5 {
            network.send(route, Parcel(1500));
        }
        // The first packet leaves at once. The others wait 1, 2, 3 and 4 ms: 10 ms together.
        let state = sample(&mut network, 20);
        let seen = state.occupancy;
        assert_eq!((state.queue_packets, seen.max_packets, seen.max_bytes), (0, 4, 6000));
        assert_eq!(seen.packet_ps, 10 * MILLISECOND);
        assert_eq!(seen.byte_ps, 15_000 * MILLISECOND);
        // The queue has been empty after that.
        let later = sample(&mut network, 40).occupancy;
        assert_eq!((later.max_packets, later.packet_ps), (0, 10 * MILLISECOND));
    }
}

#[test]
fn a_wait_across_a_sample_counts_in_both_intervals() {
    for discipline in [None, Some(idle_red())] {
        let (mut network, route) = world(discipline, None);
        for _ in 0..5 {
            network.send(route, Parcel(1500));
        }
        // By 2 ms the packets have waited for 1, 2, 2 and 2 ms, and two remain.
        let state = sample(&mut network, 2);
        assert_eq!((state.queue_packets, state.transit_packets), (2, 3));
        assert_eq!(state.occupancy.packet_ps, 7 * MILLISECOND);
        let state = sample(&mut network, 20);
        assert_eq!((state.occupancy.max_packets, state.occupancy.packet_ps), (2, 10 * MILLISECOND));
        assert!(is_conserved(&state));
    }
}

#[test]
fn a_packet_is_lost_when_it_enters_the_wire() {
    let loss = Loss::Listed { packets: vec![3] };
    for discipline in [None, Some(idle_red())] {
        let (mut network, route) = world(discipline, Some(loss.clone()));
        for _ in 0..5 {
            network.send(route, Parcel(1500));
        }
        // The transmission of the third packet begins at 2 ms.
        for (millis, lost) in [(1, 0), (2, 1), (20, 1)] {
            let state = sample(&mut network, millis);
            assert_eq!(state.counters.lost_packets, lost, "at {millis} ms");
            assert!(is_conserved(&state), "{state:?}");
        }
    }
}

proptest! {
    #[test]
    fn occupancy_agrees_between_observed_managed_and_drop_tail_lanes(
        sent in prop::collection::vec((0u64..3_000, 40u32..=1500), 1..60),
        samples in prop::collection::vec(1u64..20_000, 1..8),
    ) {
        let [mut drop_tail, mut managed, looked_at] =
            [(None, false), (Some(idle_red()), false), (None, true)].map(|(discipline, looks)| {
                let loss = Loss::Independent { probability: 0.1 };
                let (mut network, route) = observed(discipline, Some(loss), looks);
                let (mut sent, mut samples) = (sent.clone(), samples.clone());
                let (mut at, mut due) = (0, samples.remove(0));
                let mut states = Vec::new();
                while !sent.is_empty() {
                    let (gap, bytes) = sent.remove(0);
                    at += gap;
                    while due < at {
                        pass(&mut network, Duration::from_micros(due));
                        states.push(network.sample(LANE));
                        due += if samples.is_empty() { 7_000 } else { samples.remove(0) };
                    }
                    pass(&mut network, Duration::from_micros(at));
                    network.send(route, Parcel(bytes));
                }
                states.push(sample(&mut network, 1_000));
                states
            });
        // Sampling changes nothing.
        prop_assert_eq!(&looked_at, &drop_tail);
        for state in drop_tail.iter().chain(&managed) {
            prop_assert!(is_conserved(state), "{:?}", state);
        }
        // A drop-tail queue counts accepted packets as sent.
        for state in drop_tail.iter_mut().chain(&mut managed) {
            state.counters.sent_packets = 0;
            state.counters.sent_bytes = 0;
            state.transit_packets = 0;
        }
        prop_assert_eq!(drop_tail, managed);
    }
}
