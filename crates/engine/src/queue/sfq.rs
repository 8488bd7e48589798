//! Stochastic Fairness Queueing (`McKenney` 1990), as in Linux `sch_sfq`: flows are hashed to
//! queues that are served round robin, each for a quantum of bytes. When the limit is reached, the
//! longest queue loses its last packet.

use super::flows::{HashKey, Waiting};
use super::{Drops, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use std::collections::{BTreeMap, VecDeque};
use tcplab_units::Time;

/// Settings of SFQ.
#[derive(Clone, Copy, Debug)]
pub struct SfqConfig {
    /// The packet limit of one queue.
    pub depth: u64,
    /// The most queues that may be backlogged at once.
    pub flows: u64,
    /// The number of hash values, a power of two.
    pub divisor: u32,
    /// The bytes that a queue may send in a turn.
    pub quantum: u64,
}

/// A backlogged queue.
#[derive(Clone, Debug)]
struct Slot<P> {
    packets: VecDeque<Queued<P>>,
    /// Bytes that the queue may still send in this turn.
    allotted: i64,
    /// The sequence number of the queue's last change in length.
    changed: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Sfq<P> {
    config: SfqConfig,
    limit: QueueLimit,
    key: HashKey,
    /// Backlogged queues by hash.
    slots: BTreeMap<u32, Slot<P>>,
    /// Hashes in the order of their turns.
    round: VecDeque<u32>,
    waiting: Waiting,
    changes: u64,
}

impl<P: Packet> Sfq<P> {
    pub fn new(config: &SfqConfig, limit: QueueLimit, key: HashKey) -> Self {
        let mut config = *config;
        config.flows = config.flows.min(config.divisor.into());
        // No queue may be longer than its depth, and no more queues may be backlogged
        // (`sfq_change`).
        let limit = match limit {
            QueueLimit::Packets(packets) => {
                let packets = packets.min(config.depth.saturating_mul(config.flows));
                config.flows = config.flows.min(packets);
                QueueLimit::Packets(packets)
            }
            QueueLimit::Bytes(_) => limit,
        };
        Self {
            config,
            limit,
            key,
            slots: BTreeMap::new(),
            round: VecDeque::new(),
            waiting: Waiting::default(),
            changes: 0,
        }
    }

    fn quantum(&self) -> i64 {
        i64::try_from(self.config.quantum).unwrap_or(i64::MAX).max(1)
    }

    /// Drops the last packet of the longest queue: of several, the one that reached this length
    /// last. If all queues hold one packet, the next in turn loses it (`sfq_drop`).
    fn make_room(&mut self, drops: &mut Drops<P>) {
        let length = |slot: &Slot<P>| (slot.packets.len(), slot.changed);
        let longest = self.slots.iter().max_by_key(|(_, slot)| length(slot));
        let Some((&longest, slot)) = longest else { return };
        let place =
            if slot.packets.len() > 1 { Some(longest) } else { self.round.front().copied() };
        let Some(place) = place else { return };
        self.changes += 1;
        let Some(slot) = self.slots.get_mut(&place) else { return };
        slot.changed = self.changes;
        if let Some(last) = slot.packets.pop_back() {
            self.waiting.remove(last.bytes());
            drops.push((last, Reason::Full));
        }
        if slot.packets.is_empty() {
            self.slots.remove(&place);
            self.round.pop_front();
        }
    }
}

impl<P: Packet> Queue<P> for Sfq<P> {
    fn enqueue(
        &mut self,
        _now: Time,
        queued: Queued<P>,
        drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        let place = self.key.of_flow(&queued.flow) & (self.config.divisor - 1);
        let (quantum, number) = (self.quantum(), self.slots.len() as u64);
        let length = self.slots.get(&place).map(|slot| slot.packets.len() as u64);
        if length.map_or(number >= self.config.flows, |length| length >= self.config.depth) {
            return Err(Reason::Full);
        }
        self.changes += 1;
        self.waiting.add(queued.bytes());
        let slot = self.slots.entry(place).or_insert_with(|| Slot {
            packets: VecDeque::new(),
            allotted: quantum,
            changed: 0,
        });
        slot.packets.push_back(queued);
        slot.changed = self.changes;
        if length.is_none() {
            self.round.push_back(place);
        }
        while self.limit.is_below(self.waiting.packets, self.waiting.bytes) {
            self.make_room(drops);
        }
        Ok(())
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Next<P> {
        let quantum = self.quantum();
        loop {
            let Some(&place) = self.round.front() else { return Next::Empty };
            let Some(slot) = self.slots.get_mut(&place) else { return Next::Empty };
            if slot.allotted <= 0 {
                slot.allotted += quantum;
                self.round.rotate_left(1);
                continue;
            }
            let Some(first) = slot.packets.pop_front() else { return Next::Empty };
            self.changes += 1;
            slot.changed = self.changes;
            self.waiting.remove(first.bytes());
            if slot.packets.is_empty() {
                self.slots.remove(&place);
                self.round.pop_front();
            } else {
                slot.allotted -= i64::from(first.bytes());
            }
            return Next::Packet(first);
        }
    }

    fn waiting(&self) -> (u64, u64) {
        (self.waiting.packets, self.waiting.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{Parcel, leave, of_flow};
    use crate::route::Flow;

    fn sfq(limit: u64, depth: u64, flows: u64) -> Sfq<Parcel> {
        let config = SfqConfig { depth, flows, divisor: 1024, quantum: 1500 };
        Sfq::new(&config, QueueLimit::Packets(limit), HashKey(0))
    }

    /// Enqueues so many packets. Returns the flows of the packets dropped for them, and how many
    /// were refused.
    fn enter(queue: &mut Sfq<Parcel>, flow: u64, number: usize) -> (Vec<u64>, usize) {
        let mut drops = Vec::new();
        let refused = (0..number).filter(|_| {
            let flow = Flow { key: flow, ..Flow::default() };
            let packet = of_flow(flow, Time::ZERO, Parcel::default());
            queue.enqueue(Time::ZERO, packet, &mut drops).is_err()
        });
        let refused = refused.count();
        (drops.iter().map(|(dropped, _)| dropped.flow.key).collect(), refused)
    }

    #[test]
    fn flows_take_turns_and_a_new_flow_comes_last() {
        let mut queue = sfq(100, 100, 100);
        enter(&mut queue, 1, 3);
        enter(&mut queue, 2, 2);
        assert_eq!([leave(&mut queue), leave(&mut queue)], [Some(1), Some(2)]);
        enter(&mut queue, 3, 1);
        // The turn of flow 2 ends at the next dequeue, after the new packet has come.
        let rest: Vec<_> = std::iter::from_fn(|| leave(&mut queue)).collect();
        assert_eq!(rest, [1, 3, 2, 1]);
    }

    #[test]
    fn overflow_drops_from_the_longest_queue() {
        // McKenney 1990: buffers are taken from the longest queue, here from its tail.
        let mut queue = sfq(6, 100, 100);
        enter(&mut queue, 1, 4);
        enter(&mut queue, 2, 2);
        assert_eq!(enter(&mut queue, 2, 1), (vec![1], 0));
        // Both hold three packets: the one that reached this length last loses one.
        assert_eq!(enter(&mut queue, 3, 1), (vec![1], 0));
        assert_eq!(enter(&mut queue, 3, 1), (vec![2], 0));
        // All hold two packets, so the longest queue is that of the new packet.
        assert_eq!(enter(&mut queue, 3, 1), (vec![3], 0));
    }

    #[test]
    fn overflow_with_one_packet_each_drops_from_the_next_in_turn() {
        let mut queue = sfq(3, 100, 100);
        for flow in 1..=3 {
            assert_eq!(enter(&mut queue, flow, 1), (vec![], 0));
        }
        assert_eq!(enter(&mut queue, 4, 1), (vec![], 1));
        let mut queue = sfq(3, 100, 100);
        queue.config.flows = 100;
        for flow in 1..=3 {
            enter(&mut queue, flow, 1);
        }
        assert_eq!(enter(&mut queue, 4, 1), (vec![1], 0));
        let rest: Vec<_> = std::iter::from_fn(|| leave(&mut queue)).collect();
        assert_eq!(rest, [2, 3, 4]);
    }

    #[test]
    fn the_depth_limits_the_packets_of_a_flow() {
        let mut queue = sfq(100, 4, 100);
        assert_eq!(enter(&mut queue, 1, 6), (vec![], 2));
        // The limit is at most the depth of all flows together.
        assert_eq!(sfq(1000, 4, 10).limit, QueueLimit::Packets(40));
    }
}
