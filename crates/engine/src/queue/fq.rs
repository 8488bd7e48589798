//! A fair queue, as `fq` of Linux: flows are hashed to queues that are served in turn, each for some bytes,
//! new ones first.
//!
//! In the queue of a sending host, a packet of a socket that is paced has a time before which it does not
//! leave ([`Packet::departs`], the earliest departure time of `tcp_update_skb_after_send`). A flow whose
//! first packet is early has no turn until that time. On a router no packet has such a time.
//!
//! While no flow's queue holds a packet, a few packets pass in the order in which they come. A flow that
//! is seen for the first time waits, in Linux 6.12, until those before it have sent 192 KiB together:
//! `fq_enqueue` puts it into the lists of another priority before it looks at its own.

use super::flows::{HashKey, Waiting};
use super::{Drops, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tcplab_units::Time;

/// How many queues flows without a socket are spread over (`orphan_mask` of `tc`).
const QUEUES: u32 = 1024;

/// Packets that pass in order while no flow's queue holds one (`fq_fastpath_check`).
const IN_ORDER: usize = 8;

/// Milliseconds after which a flow that comes again may send a whole turn (`refill_delay` of `tc`).
const REFILL: u64 = 40;

/// Bytes that the flows of each priority may send before those of others (`weights` of `tc`), and the
/// priority of packets for which nothing else is asked.
const BAND_CREDITS: [i64; 3] = [9 << 16, 3 << 16, 1 << 16];
const BAND: usize = 1;

/// Settings of FQ.
#[derive(Clone, Copy, Debug)]
pub struct FqConfig {
    /// Packets that the queue of a flow holds.
    pub flow_limit: u64,
    /// The bytes that a flow may send in its turn.
    pub quantum: u64,
    /// The bytes that a flow may send at first.
    pub initial_quantum: u64,
    /// Flows are told apart by their sockets, not by a hash that they may share.
    pub by_socket: bool,
}

/// The queue of a flow.
#[derive(Clone, Debug)]
struct Slot<P> {
    packets: VecDeque<Queued<P>>,
    /// Bytes that it may still send in this turn.
    credit: i64,
    /// When it left the lists, in milliseconds; none while it stands in one.
    left_at: Option<u64>,
    /// The band in whose lists it is put next.
    band: usize,
}

/// Flows of one priority: those that have come lately, and those before them.
#[derive(Clone, Debug, Default)]
struct Band {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Bytes that its flows may still send before those of other bands.
    credit: i64,
}

impl Band {
    /// The flow whose turn it is: its number, and whether it is a new one.
    fn first(&self) -> Option<(u32, bool)> {
        let old = || Some((*self.old.front()?, false));
        self.new.front().map(|&new| (new, true)).or_else(old).filter(|_| self.credit > 0)
    }

    fn leave(&mut self, is_new: bool) {
        if is_new { &mut self.new } else { &mut self.old }.pop_front();
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Fq<P> {
    config: FqConfig,
    limit: QueueLimit,
    key: HashKey,
    in_order: VecDeque<Queued<P>>,
    slots: BTreeMap<u32, Slot<P>>,
    bands: [Band; 3],
    /// The flows whose first packet is early: when it may leave, how many flows were put aside before
    /// this one, and the number of the flow. Flows of the same time keep their order
    /// (`fq_flow_set_throttled`).
    early: BTreeSet<(Time, u64, u32)>,
    /// How often a flow was put aside.
    put_aside: u64,
    /// The flows that have packets and are not early.
    eager: usize,
    /// The band whose flows are served.
    band: usize,
    /// In the queues of flows.
    in_slots: Waiting,
    waiting: Waiting,
}

fn millis(time: Time) -> u64 {
    time.since(Time::ZERO).as_millis()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl<P: Packet> Fq<P> {
    pub fn new(config: &FqConfig, limit: QueueLimit, key: HashKey) -> Self {
        Self {
            config: *config,
            limit,
            key,
            in_order: VecDeque::new(),
            slots: BTreeMap::new(),
            bands: std::array::from_fn(|_| Band::default()),
            early: BTreeSet::new(),
            put_aside: 0,
            eager: 0,
            band: 0,
            in_slots: Waiting::default(),
            waiting: Waiting::default(),
        }
    }

    /// Whether a packet passes in the order in which it comes: no flow has one that might leave before it
    /// (`fq_fastpath_check`).
    fn may_pass_in_order(&self, now: Time, queued: &Queued<P>) -> bool {
        queued.packet.departs() <= now
            && self.eager == 0
            && self.in_order.len() < IN_ORDER
            && self.early.first().is_none_or(|(departs, ..)| *departs > now)
    }

    /// Flows whose time has come are served again, behind the others of their band (`fq_check_throttled`).
    fn wake_early(&mut self, now: Time) {
        while let Some(&(departs, _, place)) = self.early.first()
            && departs <= now
        {
            self.early.pop_first();
            self.eager += 1;
            let band = self.slots.get(&place).map_or(BAND, |slot| slot.band);
            self.bands[band].old.push_back(place);
        }
    }

    /// The flow whose turn it is, of this band or, if that has spent its credit or none waits, of the next:
    /// its number, and whether it is a new one.
    fn first(&mut self) -> Option<(u32, bool)> {
        let mut empty = 0;
        loop {
            if let Some(first) = self.bands[self.band].first() {
                return Some(first);
            }
            loop {
                empty += 1;
                if empty > self.bands.len() {
                    return None;
                }
                self.band = (self.band + 1) % self.bands.len();
                let (band, most) = (&mut self.bands[self.band], BAND_CREDITS[self.band]);
                band.credit = (band.credit + most).min(most);
                if band.credit > 0 {
                    break;
                }
                empty = 0;
            }
        }
    }
}

impl<P: Packet> Queue<P> for Fq<P> {
    fn enqueue(
        &mut self,
        now: Time,
        queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        let bytes = queued.bytes();
        // Without room, not even in order (`fq_enqueue`).
        let Waiting { packets, bytes: held } = self.in_slots;
        if self.limit.is_below(packets + 1, held + u64::from(bytes)) {
            return Err(Reason::Full);
        }
        if self.may_pass_in_order(now, &queued) {
            self.waiting.add(bytes);
            self.in_order.push_back(queued);
            return Ok(());
        }
        let FqConfig { flow_limit, quantum, initial_quantum, by_socket } = self.config;
        let hash = self.key.of_flow(&queued.flow);
        let place = if by_socket { hash } else { hash % QUEUES };
        let slot = self.slots.entry(place).or_insert_with(|| Slot {
            packets: VecDeque::new(),
            credit: signed(initial_quantum),
            left_at: Some(millis(now) | 1),
            band: 0,
        });
        if slot.packets.len() as u64 >= flow_limit {
            return Err(Reason::Full);
        }
        if let Some(left) = slot.left_at.take() {
            // A flow that nobody knew yet comes to the first band, with its next turn to its own.
            self.bands[slot.band].new.push_back(place);
            // The kernel compares without a sign, so who has sent too much gets nothing.
            if millis(now) > left + REFILL && slot.credit >= 0 {
                slot.credit = slot.credit.max(signed(quantum));
            }
        }
        slot.band = BAND;
        self.waiting.add(bytes);
        self.in_slots.add(bytes);
        self.eager += usize::from(slot.packets.is_empty());
        slot.packets.push_back(queued);
        Ok(())
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Next<P> {
        if let Some(first) = self.in_order.pop_front() {
            self.waiting.remove(first.bytes());
            return Next::Packet(first);
        }
        let quantum = signed(self.config.quantum).max(1);
        // The kernel asks at whole nanoseconds.
        let now = now.in_nanos();
        self.wake_early(now);
        while self.in_slots.packets > 0 {
            let Some((place, is_new)) = self.first() else { break };
            let Some(slot) = self.slots.get_mut(&place) else { break };
            if slot.credit <= 0 {
                slot.credit += quantum;
                self.bands[self.band].leave(is_new);
                self.bands[slot.band].old.push_back(place);
                continue;
            }
            if let Some(departs) = slot.packets.front().map(|first| first.packet.departs())
                && departs > now
            {
                self.bands[self.band].leave(is_new);
                self.early.insert((departs, self.put_aside, place));
                self.put_aside += 1;
                self.eager -= 1;
                continue;
            }
            if let Some(first) = slot.packets.pop_front() {
                self.eager -= usize::from(slot.packets.is_empty());
                slot.credit -= i64::from(first.bytes());
                self.bands[self.band].credit -= i64::from(first.bytes());
                self.waiting.remove(first.bytes());
                self.in_slots.remove(first.bytes());
                return Next::Packet(first);
            }
            if !is_new {
                slot.left_at = Some(millis(now) | 1);
            }
            self.bands[self.band].leave(is_new);
            if is_new {
                self.bands[slot.band].old.push_back(place);
            }
        }
        self.early.first().map_or(Next::Empty, |(departs, ..)| Next::NotBefore(*departs))
    }

    fn waiting(&self) -> (u64, u64) {
        (self.waiting.packets, self.waiting.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{Parcel, of_flow};
    use crate::route::Flow;
    use tcplab_units::Duration;

    fn fq(flow_limit: u64, limit: u64) -> Fq<Parcel> {
        let config =
            FqConfig { flow_limit, quantum: 3000, initial_quantum: 3000, by_socket: false };
        Fq::new(&config, QueueLimit::Packets(limit), HashKey(0))
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// How many of these packets are accepted.
    fn enter(queue: &mut Fq<Parcel>, now: Time, flow: u64, number: usize) -> usize {
        let accepted = (0..number).filter(|_| {
            let packet = of_flow(Flow { key: flow, ..Flow::default() }, now, Parcel::default());
            queue.enqueue(now, packet, &mut Vec::new()).is_ok()
        });
        accepted.count()
    }

    fn leave(queue: &mut Fq<Parcel>, now: Time, most: usize) -> Vec<u64> {
        let next = || match queue.dequeue(now, &mut Vec::new()) {
            Next::Packet(queued) => Some(queued.flow.key),
            Next::NotBefore(_) | Next::Empty => None,
        };
        std::iter::from_fn(next).take(most).collect()
    }

    #[test]
    fn a_few_packets_pass_in_order_and_the_others_in_turn() {
        let mut queue = fq(100, 1000);
        enter(&mut queue, at(0), 1, 7);
        enter(&mut queue, at(0), 2, 1);
        enter(&mut queue, at(0), 1, 4);
        enter(&mut queue, at(0), 2, 4);
        let order = leave(&mut queue, at(0), 100);
        assert_eq!(order[..8], [1, 1, 1, 1, 1, 1, 1, 2]);
        assert_eq!(order[8..], [1, 1, 2, 2, 1, 1, 2, 2]);
    }

    #[test]
    fn a_flow_holds_so_many_packets_and_all_so_many() {
        let mut queue = fq(5, 8);
        // Eight in order besides.
        assert_eq!(enter(&mut queue, at(0), 1, 20), 13);
        assert_eq!(enter(&mut queue, at(0), 2, 20), 3);
        assert_eq!(queue.waiting(), (16, 16 * 1500));
    }

    /// A packet that does not leave before its time.
    #[derive(Clone, Copy, Debug)]
    struct Timed(Time);

    impl Packet for Timed {
        fn wire_bytes(&self) -> u32 {
            1500
        }
        fn has_payload(&self) -> bool {
            true
        }
        fn departs(&self) -> Time {
            self.0
        }
    }

    #[test]
    fn what_is_early_waits_and_lets_others_pass() {
        // `fq_dequeue`: a flow whose first packet is early is put aside, and the timer runs for the one whose
        // time comes first.
        let config =
            FqConfig { flow_limit: 9, quantum: 3000, initial_quantum: 3000, by_socket: true };
        let mut queue = Fq::new(&config, QueueLimit::Packets(9), HashKey(0));
        for (flow, departs) in [(1, 7), (2, 5), (2, 6), (3, 0)] {
            let flow = Flow { key: flow, ..Flow::default() };
            let packet = of_flow(flow, at(0), Timed(at(departs)));
            queue.enqueue(at(0), packet, &mut Vec::new()).unwrap();
        }
        for (now, expected) in [
            (0, Ok(3)),
            (0, Err(Some(at(5)))),
            (5, Ok(2)),
            (5, Err(Some(at(6)))),
            (8, Ok(2)),
            (8, Ok(1)),
            (8, Err(None)),
        ] {
            let next = match queue.dequeue(at(now), &mut Vec::new()) {
                Next::Packet(queued) => Ok(queued.flow.key),
                Next::NotBefore(then) => Err(Some(then)),
                Next::Empty => Err(None),
            };
            assert_eq!(next, expected, "{now}");
        }
    }

    #[test]
    fn flows_whose_time_comes_together_leave_in_the_order_in_which_they_were_put_aside() {
        // `fq_flow_set_throttled`: of flows with the same time, the one that was put aside last comes last.
        let config =
            FqConfig { flow_limit: 9, quantum: 3000, initial_quantum: 3000, by_socket: true };
        let mut queue = Fq::new(&config, QueueLimit::Packets(9), HashKey(0));
        for key in [3, 1, 2] {
            let flow = Flow { key, ..Flow::default() };
            let packet = of_flow(flow, at(0), Timed(at(5)));
            queue.enqueue(at(0), packet, &mut Vec::new()).unwrap();
            assert!(matches!(queue.dequeue(at(0), &mut Vec::new()), Next::NotBefore(_)));
        }
        let order = std::iter::from_fn(|| match queue.dequeue(at(5), &mut Vec::new()) {
            Next::Packet(queued) => Some(queued.flow.key),
            Next::NotBefore(_) | Next::Empty => None,
        });
        assert_eq!(order.collect::<Vec<_>>(), [3, 1, 2]);
    }

    #[test]
    fn after_a_pause_a_flow_may_send_a_whole_turn() {
        // 40 ms after the millisecond in which it left, made odd.
        for (pause, sent) in [(41, 1), (42, 2)] {
            let mut queue = fq(100, 1000);
            enter(&mut queue, at(0), 3, 8);
            enter(&mut queue, at(0), 1, 1);
            enter(&mut queue, at(0), 2, 4);
            // Flow 1 has sent half of its turn, and left the lists.
            assert_eq!(leave(&mut queue, at(0), 13)[8..], [1, 2, 2, 2, 2]);
            enter(&mut queue, at(0), 3, 8);
            enter(&mut queue, at(0), 4, 3);
            leave(&mut queue, at(0), 11);
            enter(&mut queue, at(pause), 3, 8);
            enter(&mut queue, at(pause), 1, 2);
            enter(&mut queue, at(pause), 2, 2);
            let order = leave(&mut queue, at(pause), 100);
            let first = order[8..].iter().take_while(|&&flow| flow == 1).count();
            assert_eq!(first, sent, "{pause}: {order:?}");
        }
    }
}
