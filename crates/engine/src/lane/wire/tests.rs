//! Changing rates and delays, traces, contention, order and copies, checked by arithmetic.

use super::*;
use crate::observer::{Observer, Point, Reason};
use crate::packet::Packet;
use crate::queue::QueueLimit;
use crate::route::{EndpointId, LaneId};
use crate::{Event, LaneConfig, Network};

/// A numbered packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parcel(u32, u32);

impl Packet for Parcel {
    fn wire_bytes(&self) -> u32 {
        self.1
    }
    fn has_payload(&self) -> bool {
        self.1 > 52
    }
}

#[derive(Default)]
struct Drops(Vec<(u32, Reason)>);

impl Observer<Parcel> for Drops {
    fn drop(&mut self, _point: Point<'_>, packet: &Parcel, reason: Reason) {
        self.0.push((packet.0, reason));
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A lane of 12 Mbit/s, where 1500 bytes take a millisecond, with a delay of 10 ms.
fn network(wire: WireConfig) -> Network<Parcel, Drops> {
    let lane = LaneConfig {
        name: "a>b".into(),
        rate: "12 Mbit/s".parse().unwrap(),
        delay: ms(10),
        queue: QueueLimit::Packets(100_000),
        discipline: None,
        wire,
        station: None,
        observed: false,
        reports_tx_completion: false,
        may_change: false,
    };
    Network::observed([lane], 1, Drops::default())
}

/// Arrival times with packet numbers, for packets sent at these times. All times are in
/// microseconds.
fn arrivals(wire: WireConfig, sent: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let mut network = network(wire);
    let route = network.add_route(&[LaneId(0)], EndpointId(0));
    let mut seen = Vec::new();
    let mut collect = |network: &mut Network<Parcel, Drops>, until: Time| {
        while let Some(event) = network.next(until) {
            let Event::Delivered { packet, .. } = event else { panic!("{event:?}") };
            seen.push((network.now().since(Time::ZERO).as_nanos() / 1000, packet.0));
        }
    };
    for (number, (micros, bytes)) in (1..).zip(sent) {
        collect(&mut network, Time::ZERO + Duration::from_micros(*micros));
        network.send(route, Parcel(number, *bytes));
    }
    collect(&mut network, at(1_000_000));
    seen
}

fn full(count: usize) -> Vec<(u64, u32)> {
    vec![(0, 1500); count]
}

#[test]
fn a_packet_goes_on_at_the_new_rate() {
    let rates = vec![
        (at(1) + Duration::from_micros(500), "6 Mbit/s".parse().unwrap()),
        (at(10), "12 Mbit/s".parse().unwrap()),
    ];
    let wire = WireConfig { rates, ..WireConfig::default() };
    // Half of the second packet is left at 1.5 ms and then takes 1 ms; the third packet takes 2 ms.
    assert_eq!(arrivals(wire, &full(3)), [(11_000, 1), (12_500, 2), (14_500, 3)]);
}

#[test]
fn nothing_leaves_while_there_is_no_rate() {
    let none = Rate::from_bits_per_second(0);
    let rates = vec![(at(1), none), (at(5), "12 Mbit/s".parse().unwrap())];
    let wire = WireConfig { rates: rates.clone(), ..WireConfig::default() };
    assert_eq!(arrivals(wire, &full(2)), [(11_000, 1), (16_000, 2)]);
    // A packet that comes in between waits as well, and a packet in transmission pauses.
    let wire = WireConfig { rates, ..WireConfig::default() };
    assert_eq!(arrivals(wire, &[(500, 1500), (3000, 1500)]), [(15_500, 1), (16_500, 2)]);
}

fn trace(opportunities: &[(u64, u64)], period_ms: u64) -> WireConfig {
    let trace = Trace { opportunities: opportunities.to_vec(), period_ms };
    WireConfig { trace: Some(trace), ..WireConfig::default() }
}

#[test]
fn packets_leave_at_opportunities_that_come_after_them() {
    // Opportunities are at 2, 2 and 5 ms, and again at 7, 7 and 10 ms.
    let wire = trace(&[(2, 2), (5, 1)], 5);
    assert_eq!(
        arrivals(wire, &full(5)),
        [(12_000, 1), (12_000, 2), (15_000, 3), (17_000, 4), (17_000, 5)]
    );
    // A packet that comes in the millisecond of an opportunity has missed it, and an unused
    // opportunity is lost.
    let wire = trace(&[(2, 2), (5, 1)], 5);
    assert_eq!(arrivals(wire, &[(2000, 1500), (6000, 1500)]), [(15_000, 1), (17_000, 2)]);
    // The same holds after many rounds: 1003 ms are 200 rounds and 3 ms.
    let wire = trace(&[(2, 2), (5, 1)], 5);
    assert_eq!(arrivals(wire, &[(1_003_000, 1500)]), [(1_015_000, 1)]);
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_take_several() {
    let sent = [(0, 500), (0, 900), (0, 600), (0, 1500), (0, 3200)];
    // The first opportunity carries 1400 bytes and 100 of the third packet. The next carries the
    // other 500 and 1000 of the fourth, whose last 500 leave 1000 for the fifth, whose other 2200
    // bytes take two more.
    let wire = trace(&[(1, 1)], 1);
    assert_eq!(
        arrivals(wire, &sent),
        [(11_000, 1), (11_000, 2), (12_000, 3), (13_000, 4), (15_000, 5)]
    );
}

#[test]
fn a_trace_delivers_what_it_allows() {
    // 12 Mbit/s: one each millisecond. 1 Gbit/s: 250 in 3 ms.
    for (list, period, rate) in [(vec![(1, 1)], 1, 12e6), (vec![(1, 83), (2, 83), (3, 84)], 3, 1e9)]
    {
        let packets = (rate / 12_000.0) as usize;
        let seen = arrivals(trace(&list, period), &full(packets));
        let took_s = (seen[packets - 1].0 - 10_000) as f64 / 1e6;
        let delivered = packets as f64 * 12_000.0 / took_s;
        assert!((delivered / rate - 1.0).abs() < 1e-3, "{delivered} of {rate}");
    }
}

/// Under heavy load there is an opportunity each 5 ms. A train of light load has four, with a delay
/// that grows from 10 to 30 ms in a second; a packet that comes 3 ms after the last departure
/// begins a train.
fn light() -> WireConfig {
    let train = |at, delay, opportunities: &[u64]| Train {
        at: ms(at),
        delay: ms(delay),
        opportunities: opportunities.to_vec(),
    };
    let trains = vec![train(0, 10, &[0, 1, 1, 4]), train(1000, 30, &[0])];
    WireConfig { light: Some(Light { trains, after: ms(3) }), ..trace(&[(5, 1)], 5) }
}

#[test]
fn a_light_load_follows_a_train_until_that_is_used_up() {
    let sent = [vec![(100_000, 1500); 6], vec![(115_000, 1500), (122_000, 1500)]].concat();
    // The train begins at 100 ms, where the delay is 12 ms. Its opportunities are at 100, 101, 101
    // and 104 ms, with arrivals from 112 to 116 ms. The fifth and sixth packets take the heavy-load
    // opportunities that come next at the far end, at 120 and 125 ms, so the last has left at 113
    // ms. The next packet comes 2 ms later, too soon for a train, and would arrive at 127 ms: it
    // arrives with the opportunity at 130 ms, and has left at 118 ms. 4 ms later a train with a
    // delay of 12.44 ms begins.
    assert_eq!(
        arrivals(light(), &sent),
        [
            (112_000, 1),
            (113_000, 2),
            (113_000, 3),
            (116_000, 4),
            (120_000, 5),
            (125_000, 6),
            (130_000, 7),
            (134_440, 8),
        ]
    );
    // The recording repeats after a second, with the delay of 10 ms.
    assert_eq!(arrivals(light(), &[(3_000_000, 1500)]), [(3_010_000, 1)]);
}

#[test]
fn opportunities_of_a_train_are_shared_and_pass() {
    let sent = [(0, 500), (0, 900), (0, 600), (2000, 1500), (4000, 1500)];
    // The first opportunity has 1400 bytes used and no room for the third packet, which takes the
    // one at 1 ms. The other opportunity at 1 ms has passed at 2 ms, so the fourth packet takes the
    // last, at 4 ms. The fifth would arrive at 14 ms, and takes the heavy-load opportunity at 15
    // ms.
    assert_eq!(
        arrivals(light(), &sent),
        [(10_000, 1), (10_000, 2), (11_000, 3), (14_000, 4), (15_000, 5)]
    );
}

#[test]
fn a_train_with_a_shorter_delay_overtakes_no_packet() {
    let sent = [(999_000, 1500), (1_010_000, 1500)];
    // The delay is 29.98 ms at 999 ms, and 10.2 ms at 1010 ms: the second would arrive at 1020.2
    // ms.
    assert_eq!(arrivals(light(), &sent), [(1_028_980, 1), (1_028_980, 2)]);
}

#[test]
fn the_channel_is_won_for_so_many_packets() {
    let access = Spread(vec![(ms(3), ms(3))]);
    let contention = Some(Contention { access, aggregate: 2 });
    let wire = WireConfig { contention, ..WireConfig::default() };
    // 3 ms of access, two packets, 3 ms, two packets. After a pause the channel must be won again,
    // although only one packet was sent since.
    let mut sent = full(5);
    sent.push((30_000, 1500));
    assert_eq!(
        arrivals(wire, &sent),
        [(14_000, 1), (15_000, 2), (19_000, 3), (20_000, 4), (24_000, 5), (44_000, 6)]
    );
}

#[test]
fn a_packet_has_the_delay_of_the_time_at_which_it_has_left() {
    let delays = vec![(at(2), ms(5))];
    let wire = WireConfig { delays: delays.clone(), ..WireConfig::default() };
    // The first leaves at 1 ms. The second leaves at 2 ms and arrives with the first, not before
    // it.
    assert_eq!(arrivals(wire, &full(6))[..3], [(11_000, 1), (11_000, 2), (11_000, 3)]);
    let wire = WireConfig { delays, may_overtake: true, ..WireConfig::default() };
    assert_eq!(
        arrivals(wire, &full(6)),
        [(7_000, 2), (8_000, 3), (9_000, 4), (10_000, 5), (11_000, 1), (11_000, 6)]
    );
}

#[test]
fn held_back_packets_are_overtaken() {
    let wire = WireConfig { reordering: Some((0.1, ms(20))), ..WireConfig::default() };
    let seen = arrivals(wire, &full(10_000));
    let late = seen.iter().filter(|(micros, number)| *micros == 30_000 + 1000 * u64::from(*number));
    let late = late.count();
    let on_time =
        seen.iter().filter(|(micros, number)| *micros == 10_000 + 1000 * u64::from(*number));
    assert_eq!(on_time.count() + late, 10_000);
    // Binomial: mean 1000, standard deviation sqrt(10,000 x 0.1 x 0.9) = 30. The bound is four
    // standard deviations.
    assert!((880..=1120).contains(&late), "{late}");
    assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn jitter_keeps_the_order_unless_it_may_not() {
    let jitter = Some(Spread::up_to(ms(7)));
    let wire = WireConfig { jitter: jitter.clone(), ..WireConfig::default() };
    let numbers = |seen: Vec<(u64, u32)>| seen.into_iter().map(|it| it.1).collect::<Vec<_>>();
    assert!(numbers(arrivals(wire, &full(2_000))).is_sorted());
    let wire = WireConfig { jitter, may_overtake: true, ..WireConfig::default() };
    let seen = arrivals(wire, &full(2_000));
    // Each packet has its own jitter: added delays are uniform between 0 and 7 ms.
    let added =
        seen.iter().map(|(micros, number)| (micros - 10_000 - 1000 * u64::from(*number)) as f64);
    let mean = added.sum::<f64>() / 2_000.0;
    // Standard deviation of the mean: 7000/sqrt(12)/sqrt(2000) = 45 us. The bound is four of them.
    assert!((mean - 3_500.0).abs() < 4.0 * 45.2, "{mean}");
    assert!(!numbers(seen).is_sorted());
}

#[test]
fn a_copy_follows_its_packet() {
    let wire = WireConfig { duplication: 1.0, ..WireConfig::default() };
    assert_eq!(arrivals(wire, &full(2)), [(11_000, 1), (11_000, 1), (12_000, 2), (12_000, 2)]);
    let wire = WireConfig { duplication: 0.2, ..WireConfig::default() };
    let copies = arrivals(wire, &full(10_000)).len() - 10_000;
    // Binomial: mean 2000, standard deviation 40. The bound is four standard deviations.
    assert!((1840..=2160).contains(&copies), "{copies}");
}

#[test]
fn a_copy_is_counted_where_it_is() {
    let mut network = network(WireConfig { duplication: 1.0, ..WireConfig::default() });
    let route = network.add_route(&[LaneId(0)], EndpointId(0));
    network.send(route, Parcel(1, 1500));
    let state = network.state(LaneId(0));
    assert_eq!((state.counters.entered_packets, state.transit_packets), (2, 2));
    assert_eq!(state.counters.sent_packets, 1);
    while network.next(at(100)).is_some() {}
    assert_eq!(network.counters(LaneId(0)).arrived_packets, 2);
}

#[test]
fn corrupted_packets_are_reported_as_corrupted() {
    let mut network = network(WireConfig { corruption: 1.0, ..WireConfig::default() });
    let route = network.add_route(&[LaneId(0)], EndpointId(0));
    network.send(route, Parcel(1, 1500));
    assert!(network.next(at(100)).is_none());
    assert_eq!(network.observer().0, [(1, Reason::Corrupted)]);
    assert_eq!(network.counters(LaneId(0)).lost_packets, 1);
}

#[test]
fn losses_look_at_the_packets_that_they_are_for() {
    for (loss_on, expected) in
        [(Carried::Data, vec![2]), (Carried::Acks, vec![1]), (Carried::Both, vec![])]
    {
        let loss = Some(Loss::Independent { probability: 1.0 });
        let wire = WireConfig { loss, loss_on, ..WireConfig::default() };
        let seen = arrivals(wire, &[(0, 1500), (0, 52)]);
        assert_eq!(seen.into_iter().map(|it| it.1).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn numbers_from_cells_are_evenly_spread_over_them_and_within_them() {
    let spread = Spread(vec![(ms(0), ms(1)), (ms(5), ms(5)), (ms(10), ms(20))]);
    let mut random = Random::new(1, "cells");
    let drawn: Vec<_> = (0..30_000).map(|_| spread.draw(&mut random)).collect();
    let between = |least: u64, most: u64| {
        let within = drawn.iter().filter(|it| (ms(least)..=ms(most)).contains(it));
        within.count() as i64
    };
    // Binomial: mean 10,000, standard deviation 82; the bound is four of them. The last cell covers
    // half: mean 5000, standard deviation 65.
    for (least, most) in [(0, 1), (5, 5), (10, 20)] {
        assert!((between(least, most) - 10_000).abs() < 4 * 82, "{least}");
    }
    assert!((between(10, 15) - 5_000).abs() < 4 * 65);
    assert_eq!(between(0, 1) + between(5, 5) + between(10, 20), 30_000);
}
