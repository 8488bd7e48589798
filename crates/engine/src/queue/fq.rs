//! Fair queueing, as in Linux `sch_fq`: flows are hashed to queues that are served in turn, each
//! for a quantum of bytes, new ones first.
//!
//! In the queue of a sending host, a packet of a paced socket has an earliest departure time
//! ([`Packet::departs`], set by `tcp_update_skb_after_send`). A flow whose first packet is early is
//! throttled until that time. On a router no packet has a departure time.
//!
//! While all flow queues are empty, a few packets pass in order of arrival. In Linux 6.12, a flow
//! seen for the first time waits until those before it have sent 192 KiB together, because
//! `fq_enqueue` puts the flow into the lists of another band before it looks up the flow's own.

use super::flows::{HashKey, Waiting};
use super::{Drops, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tcplab_units::Time;

/// The number of queues for flows without a socket (`orphan_mask` of `tc`).
const QUEUES: u32 = 1024;

/// Packets that pass in order while all flow queues are empty (`fq_fastpath_check`).
const IN_ORDER: usize = 8;

/// Milliseconds of idle time after which a flow's credit is refilled (`refill_delay` of `tc`).
const REFILL: u64 = 40;

/// Bytes that the flows of each band may send before those of other bands (`weights` of `tc`), and
/// the band of packets without a priority of their own.
const BAND_CREDITS: [i64; 3] = [9 << 16, 3 << 16, 1 << 16];
const BAND: usize = 1;

/// Settings of FQ.
#[derive(Clone, Copy, Debug)]
pub struct FqConfig {
    /// The packet limit of a flow's queue.
    pub flow_limit: u64,
    /// The bytes that a flow may send in a turn.
    pub quantum: u64,
    /// The initial credit of a flow, in bytes.
    pub initial_quantum: u64,
    /// Whether flows are told apart by socket instead of by a hash that they may share.
    pub by_socket: bool,
}

/// The queue of a flow.
#[derive(Clone, Debug)]
struct Slot<P> {
    packets: VecDeque<Queued<P>>,
    /// Credit: bytes that the flow may still send in this turn.
    credit: i64,
    /// When the flow left the lists, in milliseconds; `None` while it is in one.
    left_at: Option<u64>,
    /// The band in whose lists the flow is put next.
    band: usize,
}

/// Flows of one priority, new ones and old ones.
#[derive(Clone, Debug, Default)]
struct Band {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Bytes that the band's flows may still send before those of other bands.
    credit: i64,
}

impl Band {
    /// The number of the flow whose turn it is, and whether it is a new one.
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
    /// The throttled flows: when the first packet may leave, how many flows were throttled before
    /// this one, and the number of the flow. Flows of equal time keep their order
    /// (`fq_flow_set_throttled`).
    early: BTreeSet<(Time, u64, u32)>,
    /// How often a flow was throttled.
    put_aside: u64,
    /// Flows with packets that are not throttled.
    eager: usize,
    /// The band being served.
    band: usize,
    /// The backlog of the flow queues.
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

    /// Whether a packet passes in order of arrival: no flow has a packet that might leave before it
    /// (`fq_fastpath_check`).
    fn may_pass_in_order(&self, now: Time, queued: &Queued<P>) -> bool {
        queued.packet.departs() <= now
            && self.eager == 0
            && self.in_order.len() < IN_ORDER
            && self.early.first().is_none_or(|(departs, ..)| *departs > now)
    }

    /// Flows whose departure time has come rejoin the end of their band's list
    /// (`fq_check_throttled`).
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

    /// The flow whose turn it is, of the current band or, if that has spent its credit or is empty,
    /// of the next: its number, and whether it is a new one.
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
        // A full queue refuses packets on the fast path too (`fq_enqueue`).
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
            // A flow seen for the first time joins the first band, and its own band from its next
            // turn on.
            self.bands[slot.band].new.push_back(place);
            // The kernel compares without a sign, so a flow with negative credit is not refilled.
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
        // The kernel dequeues at whole nanoseconds.
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
    fn the_first_packets_pass_in_order_and_later_ones_by_round_robin() {
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
    fn the_flow_limit_and_the_total_limit_hold() {
        let mut queue = fq(5, 8);
        // Eight packets pass in order besides.
        assert_eq!(enter(&mut queue, at(0), 1, 20), 13);
        assert_eq!(enter(&mut queue, at(0), 2, 20), 3);
        assert_eq!(queue.waiting(), (16, 16 * 1500));
    }

    /// A packet with an earliest departure time.
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
    fn a_throttled_flow_lets_others_pass() {
        // `fq_dequeue`: a flow whose first packet is early is throttled, and the timer runs for the
        // earliest departure time.
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
    fn flows_throttled_until_one_time_leave_in_order_of_throttling() {
        // `fq_flow_set_throttled`: of flows with equal times, the one throttled last comes last.
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
    fn an_idle_flow_gets_a_full_quantum_after_the_refill_delay() {
        // 40 ms after the millisecond in which the flow left the lists; the kernel stores that time
        // as an odd number.
        for (pause, sent) in [(41, 1), (42, 2)] {
            let mut queue = fq(100, 1000);
            enter(&mut queue, at(0), 3, 8);
            enter(&mut queue, at(0), 1, 1);
            enter(&mut queue, at(0), 2, 4);
            // Flow 1 has sent half of its turn and left the lists.
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
