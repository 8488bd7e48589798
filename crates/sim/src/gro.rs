//! Generic receive offload of hosts. A device raises an interrupt some time after a packet has
//! arrived, one poll receives everything that has arrived by then, and consecutive segments of a
//! flow are merged (`napi_gro_receive`, `napi_complete_done`).

use crate::connections::left_end;
use crate::observer::Network;
use crate::packet::Packet;
use std::collections::{BTreeSet, VecDeque};
use tcplab_engine::random::mix;
use tcplab_engine::{EndpointId, Order, TimerId};
use tcplab_model::Plan;
use tcplab_tcp::{Merged, Segment};
use tcplab_units::{Duration, Time};

/// Hash buckets of flows whose segments wait to be merged (`GRO_HASH_BUCKETS`).
const BUCKETS: usize = 8;
/// Flows in one bucket (`MAX_GRO_SKBS`).
const MOST_FLOWS: usize = 8;

/// A packet, and its route endpoint.
type Arrived = (EndpointId, Packet);

/// The device at the end of a lane.
#[derive(Clone, Debug)]
struct Device {
    wait: Duration,
    interrupt: TimerId,
    /// The time of the next interrupt, if one is due.
    at: Time,
    arrived: Vec<Arrived>,
    /// Packets that the current poll has still to deliver.
    polled: VecDeque<Arrived>,
}

/// The devices of all hosts with receive offload.
#[derive(Clone, Debug)]
pub(crate) struct Devices {
    by_lane: Vec<Option<Box<Device>>>,
    /// Pending interrupts, with the numbers of the lanes.
    interrupts: BTreeSet<(Time, usize)>,
}

impl Devices {
    /// The devices of a plan, if it has any; `add_timer` makes the timer of the device at the end
    /// of a lane.
    pub fn new(plan: &Plan, mut add_timer: impl FnMut(usize) -> TimerId) -> Option<Self> {
        if plan.hosts.iter().all(|host| host.gro.is_none()) {
            return None;
        }
        let devices = plan.lanes.iter().enumerate().map(|(number, lane)| {
            let wait = plan.gro(lane.to)?;
            let interrupt = add_timer(number);
            let (arrived, polled) = (Vec::new(), VecDeque::new());
            Some(Box::new(Device { wait, interrupt, at: Time::NEVER, arrived, polled }))
        });
        Some(Self { by_lane: devices.collect(), interrupts: BTreeSet::new() })
    }

    /// Takes a packet that has come over a lane, if the device there has receive offload. A packet
    /// that arrives in the nanosecond of an interrupt waits for the next one.
    pub fn take(&mut self, network: &mut Network, lane: usize, arrived: Arrived) -> bool {
        let Some(device) = &mut self.by_lane[lane] else { return false };
        if device.at == Time::NEVER {
            device.at = network.now() + device.wait;
            network.set_timer(device.interrupt, device.at, Order::BeforePackets);
            self.interrupts.insert((device.at, lane));
        }
        device.arrived.push(arrived);
        true
    }

    /// The lane of a device whose interrupt is due.
    pub fn next_due(&self, now: Time) -> Option<usize> {
        self.interrupts.first().filter(|(at, _)| *at <= now).map(|(_, lane)| *lane)
    }

    /// Handles the interrupt of the device at the end of a lane: the poll will receive the packets
    /// there. `key` identifies flows.
    pub fn begin_poll(&mut self, lane: usize, key: impl Fn(EndpointId) -> u64) {
        if let Some(device) = &mut self.by_lane[lane] {
            self.interrupts.remove(&(device.at, lane));
            device.at = Time::NEVER;
            device.polled = merge(&mut device.arrived, key);
        }
    }

    /// The next packet of this device's poll.
    pub fn next_polled(&mut self, lane: usize) -> Option<Arrived> {
        self.by_lane[lane].as_mut()?.polled.pop_front()
    }

    /// A connection is over: packets that have arrived for its ends go to its remains.
    pub fn redirect(&mut self, pair: usize, left: u32) {
        for device in self.by_lane.iter_mut().flatten() {
            for (to, _) in device.arrived.iter_mut().chain(&mut device.polled) {
                if to.0 as usize / 2 == pair {
                    *to = left_end(left, to.0 as usize % 2);
                }
            }
        }
    }

    /// The routes of a closed connection are reused: drops the packets for its remains.
    pub fn forget(&mut self, left: u32) {
        let ends = [0, 1].map(|side| left_end(left, side));
        for device in self.by_lane.iter_mut().flatten() {
            device.arrived.retain(|(to, _)| !ends.contains(to));
            device.polled.retain(|(to, _)| !ends.contains(to));
        }
    }

    /// The number of waiting packets.
    pub fn packets(&self) -> usize {
        self.by_lane.iter().flatten().map(|device| device.arrived.len()).sum()
    }
}

/// Merges the packets of one poll, in the order in which the host receives them
/// (`dev_gro_receive`).
fn merge(arrived: &mut Vec<Arrived>, key: impl Fn(EndpointId) -> u64) -> VecDeque<Arrived> {
    let mut lists: [Vec<(EndpointId, Segment)>; BUCKETS] = Default::default();
    let mut received = VecDeque::new();
    for (to, packet) in arrived.drain(..) {
        let Packet::Tcp(segment) = packet else {
            received.push_back((to, packet));
            continue;
        };
        let list = &mut lists[(mix(key(to)) >> 32) as usize % BUCKETS];
        let place = list.iter().position(|(waiting, _)| *waiting == to);
        if let Some(place) = place {
            let merged = list[place].1.merge(&segment);
            if merged != Merged::Open {
                let (_, complete) = list.remove(place);
                received.push_back((to, Packet::Tcp(complete)));
            }
            if merged != Merged::Apart {
                continue;
            }
        }
        if !segment.may_be_held() {
            received.push_back((to, packet));
            continue;
        }
        if list.len() == MOST_FLOWS {
            let (oldest, complete) = list.remove(0);
            received.push_back((oldest, Packet::Tcp(complete)));
        }
        list.push((to, segment));
    }
    let rest = lists.into_iter().flatten();
    received.extend(rest.map(|(to, segment)| (to, Packet::Tcp(segment))));
    received
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcplab_tcp::{Flags, SeqNumber};

    fn segment(to: u32, seq: u32, payload: u16) -> Arrived {
        let segment = Segment::new(Flags::ACK, SeqNumber(seq), SeqNumber(1));
        (EndpointId(to), Packet::Tcp(segment.with_payload(payload)))
    }

    /// The endpoint, sequence number and payload of the segments that one poll delivers.
    fn polled(mut arrived: Vec<Arrived>, key: impl Fn(EndpointId) -> u64) -> Vec<(u32, u32, u16)> {
        let received = merge(&mut arrived, key);
        let told = received.into_iter().map(|(to, packet)| match packet {
            Packet::Tcp(segment) => (to.0, segment.seq.0, segment.payload),
            _ => (to.0, 0, 0),
        });
        told.collect()
    }

    #[test]
    fn gro_merges_data_segments_of_a_flow_but_not_acks() {
        let arrived = vec![
            segment(1, 1, 1000),
            segment(2, 1, 1000),
            segment(1, 1001, 1000),
            // A gap: the two segments before it are delivered first.
            segment(1, 4001, 1000),
            segment(2, 1001, 400),
            segment(3, 1, 0),
            segment(3, 1, 0),
        ];
        let expected = [(1, 1, 2000), (2, 1, 1400), (3, 1, 0), (3, 1, 0), (1, 4001, 1000)];
        assert_eq!(polled(arrived, |to| to.0.into()), expected);
    }

    #[test]
    fn a_gro_list_holds_eight_flows() {
        // All have the same hash: the ninth flow flushes the oldest one.
        let arrived: Vec<_> = (1..=9).map(|to| segment(to, 1, 1000)).collect();
        let order: Vec<u32> = polled(arrived, |_| 0).into_iter().map(|it| it.0).collect();
        assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let arrived = (1..=9).map(|to| segment(to, 1, 1000)).chain([segment(1, 1001, 1000)]);
        let received = polled(arrived.collect(), |_| 0);
        assert_eq!((received[0], received[1]), ((1, 1, 1000), (2, 1, 1000)), "1 left before");
    }
}
