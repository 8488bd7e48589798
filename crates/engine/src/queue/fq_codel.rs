//! Fair queueing with `CoDel` (RFC 8290), as in Linux `fq_codel`: flows are hashed to queues that
//! are served in turn, each under its own `CoDel`. When the limit is reached, the queue with the
//! largest backlog in bytes loses packets from its head.

use super::codel::{CoDel, CoDelConfig, Source};
use super::flows::{Flows, HashKey, Line, Waiting};
use super::{Drops, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use tcplab_units::Time;

/// The most packets dropped at once when the limit is reached (`drop_batch` of `tc`).
const MOST_DROPPED: u64 = 64;

/// Settings of FQ-CoDel.
#[derive(Clone, Debug)]
pub struct FqCoDelConfig {
    /// The configuration of each queue's `CoDel`.
    pub codel: CoDelConfig,
    /// The number of queues.
    pub flows: u32,
    /// The bytes that a queue may send in a turn.
    pub quantum: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FqCoDel<P> {
    codel: CoDel,
    flows: Flows<P, CoDel>,
    limit: QueueLimit,
    key: HashKey,
}

/// One of the queues.
struct Share<'a, P> {
    line: &'a mut Line<P>,
    all: &'a mut Waiting,
}

impl<P: Packet> Source<P> for Share<'_, P> {
    fn first(&self) -> Option<&Queued<P>> {
        self.line.first()
    }

    fn pop(&mut self) -> Option<Queued<P>> {
        self.line.pop(self.all)
    }

    fn backlog(&self) -> u64 {
        self.all.bytes
    }
}

impl<P: Packet> FqCoDel<P> {
    pub fn new(config: &FqCoDelConfig, limit: QueueLimit, key: HashKey) -> Self {
        let flows = Flows::new(config.flows, config.quantum);
        Self { codel: CoDel::new(&config.codel), flows, limit, key }
    }

    /// Drops half of the largest backlog in bytes, or a full batch of packets (RFC 8290 §4.1.2,
    /// `fq_codel_drop`).
    fn make_room(&mut self, drops: &mut Drops<P>) {
        let Some((queue, all)) = self.flows.largest_backlog() else { return };
        let enough = queue.line.waiting.bytes / 2;
        let (mut packets, mut bytes) = (0, 0);
        while packets < MOST_DROPPED && (packets == 0 || bytes < enough) {
            let Some(first) = queue.line.pop(all) else { break };
            packets += 1;
            bytes += u64::from(first.bytes());
            drops.push((first, Reason::Full));
        }
        queue.manager.count_drops(packets);
    }
}

impl<P: Packet> Queue<P> for FqCoDel<P> {
    fn enqueue(
        &mut self,
        _now: Time,
        queued: Queued<P>,
        drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        let place = self.flows.place(self.key.of_flow(&queued.flow));
        let codel = &self.codel;
        self.flows.put(place, queued, || codel.clone());
        while self.limit.is_below(self.flows.waiting.packets, self.flows.waiting.bytes) {
            self.make_room(drops);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P> {
        let now = now.in_nanos();
        let next =
            self.flows.next(|line, codel, all| codel.next(now, &mut Share { line, all }, drops));
        next.map_or(Next::Empty, Next::Packet)
    }

    fn waiting(&self) -> (u64, u64) {
        (self.flows.waiting.packets, self.flows.waiting.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{Parcel, leave, of_flow};
    use crate::route::Flow;
    use tcplab_units::Duration;

    fn fq_codel(flows: u32, quantum: u64, limit: u64) -> FqCoDel<Parcel> {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        let codel = CoDelConfig { target, interval, mtu: 1514, ecn: false };
        let config = FqCoDelConfig { codel, flows, quantum };
        FqCoDel::new(&config, QueueLimit::Packets(limit), HashKey(0))
    }

    fn enter(queue: &mut FqCoDel<Parcel>, flow: u64, number: usize) -> usize {
        let mut drops = Vec::new();
        for _ in 0..number {
            let flow = Flow { key: flow, ..Flow::default() };
            queue
                .enqueue(Time::ZERO, of_flow(flow, Time::ZERO, Parcel::default()), &mut drops)
                .unwrap();
        }
        drops.len()
    }

    #[test]
    fn flows_share_by_bytes_and_new_flows_go_first() {
        // RFC 8290 §4.2: two packets in a turn of 3000 bytes. The later flow is new, so its turn
        // follows the current one, and its next turn follows those of the others.
        let mut queue = fq_codel(1024, 3000, 1000);
        enter(&mut queue, 1, 5);
        enter(&mut queue, 2, 5);
        let first: Vec<_> = (0..5).filter_map(|_| leave(&mut queue)).collect();
        assert_eq!(first, [1, 1, 2, 2, 1]);
        enter(&mut queue, 3, 3);
        let rest: Vec<_> = std::iter::from_fn(|| leave(&mut queue)).collect();
        assert_eq!(rest, [3, 3, 1, 2, 2, 3, 1, 2]);
        assert_eq!(queue.waiting(), (0, 0));
    }

    #[test]
    fn an_emptied_new_flow_becomes_old_before_it_is_new_again() {
        // §4.2: an empty new queue joins the old ones first; otherwise it could starve them.
        let mut queue = fq_codel(1024, 1500, 1000);
        enter(&mut queue, 1, 3);
        assert_eq!(leave(&mut queue), Some(1));
        for _ in 0..3 {
            enter(&mut queue, 2, 1);
            enter(&mut queue, 1, 1);
            assert_eq!([leave(&mut queue), leave(&mut queue)], [Some(2), Some(1)]);
        }
    }

    #[test]
    fn overflow_drops_half_of_the_largest_queue_from_its_head() {
        // §4.1.2: half of the queue's bytes, and 64 packets at the most.
        for (room, lost) in [(20, 10), (400, 64)] {
            let mut queue = fq_codel(1024, 1500, room + 5);
            enter(&mut queue, 1, 5);
            assert_eq!(enter(&mut queue, 2, room as usize), 0);
            // One more packet makes the number odd: at least half of the bytes are dropped.
            let odd = (room + 1).div_ceil(2).min(64) as usize;
            assert_eq!(enter(&mut queue, 2, 1), odd.max(lost));
            assert_eq!(queue.waiting().0, room + 6 - odd as u64);
        }
    }

    #[test]
    fn flows_hashed_to_one_queue_share_its_quantum() {
        let mut queue = fq_codel(1, 1500, 1000);
        enter(&mut queue, 1, 2);
        enter(&mut queue, 2, 2);
        let order: Vec<_> = std::iter::from_fn(|| leave(&mut queue)).collect();
        assert_eq!(order, [1, 1, 2, 2]);
    }
}
