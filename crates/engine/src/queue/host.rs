//! The queue of a sending host. What a sender hands over at once, a burst, is held as one packet,
//! as a Linux host queues the super-packets of segmentation offload. Limits count bursts, turns are
//! taken burst by burst, and a mark or a drop applies to a whole burst. The device segments a burst
//! when it leaves the queue.

use super::{Drops, Next, Queue, Queued};
use crate::observer::Reason;
use crate::packet::{Admission, Departure, Packet};
use crate::route::Flow;
use std::collections::VecDeque;
use tcplab_units::Time;

/// Several packets of a flow that are queued as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst<P> {
    first: P,
    bytes: u32,
    departs: Time,
    /// The index of the burst's packets.
    place: u32,
}

impl<P: Packet> Packet for Burst<P> {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }

    fn has_payload(&self) -> bool {
        self.first.has_payload()
    }

    fn flow(&self, flow: Flow) -> Flow {
        self.first.flow(flow)
    }

    fn departs(&self) -> Time {
        self.departs
    }

    fn memory_bytes(&self) -> u64 {
        self.first.memory_bytes() + u64::from(self.bytes - self.first.wire_bytes())
    }

    fn is_control(&self) -> bool {
        self.first.is_control()
    }

    fn wash(&mut self) {
        self.first.wash();
    }

    fn echo(&self) -> Option<u8> {
        self.first.echo()
    }

    fn is_ack(&self) -> bool {
        self.first.is_ack()
    }

    fn is_superseded(&self, newer: &Self) -> bool {
        self.first.is_superseded(&newer.first)
    }

    fn is_marked(&self) -> bool {
        self.first.is_marked()
    }

    fn is_l4s(&self) -> bool {
        self.first.is_l4s()
    }

    fn mark(&mut self) -> bool {
        self.first.mark()
    }
}

/// How a discipline reports drops to the sending host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    /// The answer to a burst that is dropped on arrival.
    pub refusal: Admission,
    /// Dropped bursts of other flows are reported to the sender, too.
    pub reports_other_flows: bool,
}

impl Answers {
    /// The answers of most disciplines (`NET_XMIT_DROP`).
    pub const DEFAULT: Self = Self { refusal: Admission::Refused, reports_other_flows: false };
}

/// A queue discipline as the queue of a sending host.
#[derive(Clone, Debug)]
pub(crate) struct Own<P: Packet> {
    queue: Box<dyn Queue<Burst<P>>>,
    /// Larger bursts, in bytes, are enqueued packet by packet.
    largest: u32,
    answers: Answers,
    /// The packets of the queued bursts by index, and the free indices.
    bursts: Vec<Vec<Queued<P>>>,
    free: Vec<u32>,
    /// Packets of an incomplete burst.
    coming: Vec<Queued<P>>,
    /// Packets of the burst in transmission.
    cut: VecDeque<Queued<P>>,
    /// Packets dropped from the queue.
    drops: Drops<Burst<P>>,
    waiting: (u64, u64),
}

impl<P: Packet> Own<P> {
    pub fn new(queue: Box<dyn Queue<Burst<P>>>, largest: u32, answers: Answers) -> Self {
        Self {
            queue,
            largest,
            answers,
            bursts: Vec::new(),
            free: Vec::new(),
            coming: Vec::new(),
            cut: VecDeque::new(),
            drops: Vec::new(),
            waiting: (0, 0),
        }
    }

    fn add(&mut self, queued: &Queued<P>) {
        self.waiting.0 += 1;
        self.waiting.1 += u64::from(queued.bytes());
    }

    fn remove(&mut self, queued: &Queued<P>) {
        self.waiting.0 -= 1;
        self.waiting.1 -= u64::from(queued.bytes());
    }

    /// Enqueues a complete burst.
    fn enqueue_burst(
        &mut self,
        now: Time,
        mut packets: Vec<Queued<P>>,
        departs: Time,
        drops: &mut Drops<P>,
    ) -> (Result<(), Reason>, Admission) {
        let Some(&first) = packets.first() else { return (Ok(()), Admission::Accepted) };
        let bytes = packets.iter().map(Queued::bytes).sum();
        let place = self.free.pop().unwrap_or(self.bursts.len() as u32);
        let burst = Burst { first: first.packet, bytes, departs, place };
        let Queued { entered, was_marked, place: step, flow, .. } = first;
        let queued = Queued { entered, was_marked, place: step, flow, packet: burst };
        let accepted = self.queue.enqueue(now, queued, &mut self.drops);
        if let Err(reason) = accepted {
            self.free.push(place);
            for packet in &packets {
                self.remove(packet);
            }
            // The caller reports the last packet.
            packets.pop();
            drops.extend(packets.into_iter().map(|packet| (packet, reason)));
        } else if let Some(slot) = self.bursts.get_mut(place as usize) {
            *slot = packets;
        } else {
            self.bursts.push(packets);
        }
        let Answers { refusal, reports_other_flows } = self.answers;
        let is_reported =
            |dropped: &(Queued<Burst<P>>, Reason)| reports_other_flows || dropped.0.flow == flow;
        let admission = match accepted {
            Err(_) => refusal,
            Ok(()) if self.drops.iter().any(is_reported) => Admission::Crowded,
            Ok(()) => Admission::Accepted,
        };
        self.report_drops(drops);
        (accepted, admission)
    }

    /// Takes the packets of a burst that has left the queue.
    fn take(&mut self, burst: &Burst<P>) -> Vec<Queued<P>> {
        self.free.push(burst.place);
        std::mem::take(&mut self.bursts[burst.place as usize])
    }

    fn report_drops(&mut self, drops: &mut Drops<P>) {
        for (Queued { packet: burst, .. }, reason) in std::mem::take(&mut self.drops) {
            for packet in self.take(&burst) {
                self.remove(&packet);
                drops.push((packet, reason));
            }
        }
    }
}

impl<P: Packet> Queue<P> for Own<P> {
    fn enqueue(
        &mut self,
        now: Time,
        queued: Queued<P>,
        drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.enqueue_own(now, queued, Departure::default(), drops).0
    }

    fn enqueue_own(
        &mut self,
        now: Time,
        queued: Queued<P>,
        departure: Departure,
        drops: &mut Drops<P>,
    ) -> (Result<(), Reason>, Admission) {
        self.add(&queued);
        self.coming.push(queued);
        if departure.goes_on {
            return (Ok(()), Admission::Accepted);
        }
        let packets = std::mem::take(&mut self.coming);
        if packets.iter().map(Queued::bytes).sum::<u32>() <= self.largest {
            return self.enqueue_burst(now, packets, departure.at, drops);
        }
        let (mut refused, mut admission) = (None, Admission::Refused);
        for packet in packets {
            drops.extend(refused.take());
            let (accepted, answer) = self.enqueue_burst(now, vec![packet], departure.at, drops);
            refused = accepted.err().map(|reason| (packet, reason));
            // A burst counts as sent if one of its packets was accepted (`tbf_segment`,
            // `cake_enqueue`).
            if admission != Admission::Accepted {
                admission = answer;
            }
        }
        // The caller reports the last packet.
        (refused.map_or(Ok(()), |(_, reason)| Err(reason)), admission)
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P> {
        if self.cut.is_empty() {
            let next = self.queue.dequeue(now, &mut self.drops);
            self.report_drops(drops);
            let burst = match next {
                Next::Packet(Queued { packet: burst, .. }) => burst,
                Next::NotBefore(then) => return Next::NotBefore(then),
                Next::Empty => return Next::Empty,
            };
            let packets = self.take(&burst);
            self.cut.extend(packets);
            if burst.is_marked() {
                self.cut.iter_mut().for_each(|queued| _ = queued.packet.mark());
            }
        }
        let Some(first) = self.cut.pop_front() else { return Next::Empty };
        self.remove(&first);
        Next::Packet(first)
    }

    fn waiting(&self) -> (u64, u64) {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{Parcel, queued};
    use crate::queue::{DropTail, QueueLimit};

    fn own(limit: u64, largest: u32) -> Own<Parcel> {
        Own::new(Box::new(DropTail::new(QueueLimit::Packets(limit))), largest, Answers::DEFAULT)
    }

    /// Enqueues a burst of so many packets. Returns whether it is accepted, and how many packets
    /// are dropped besides the last.
    fn enter(queue: &mut Own<Parcel>, packets: usize, ect: bool) -> (bool, usize) {
        let mut drops = Vec::new();
        let mut accepted = Ok(());
        for left in (0..packets).rev() {
            let packet = queued(Time::ZERO, Parcel { ect, ..Parcel::default() });
            let departure = Departure { goes_on: left > 0, ..Departure::default() };
            accepted = queue.enqueue_own(Time::ZERO, packet, departure, &mut drops).0;
        }
        (accepted.is_ok(), drops.len())
    }

    fn leave(queue: &mut Own<Parcel>) -> usize {
        let next = || match queue.dequeue(Time::ZERO, &mut Vec::new()) {
            Next::Packet(queued) => Some(queued),
            Next::NotBefore(_) | Next::Empty => None,
        };
        std::iter::from_fn(next).count()
    }

    #[test]
    fn a_limit_counts_bursts_and_one_without_room_is_dropped_whole() {
        let mut queue = own(2, u32::MAX);
        assert_eq!(enter(&mut queue, 5, false), (true, 0));
        assert_eq!(enter(&mut queue, 1, false), (true, 0));
        assert_eq!(enter(&mut queue, 3, false), (false, 2));
        assert_eq!(queue.waiting(), (6, 6 * 1500));
        assert_eq!(leave(&mut queue), 6);
        assert_eq!(queue.waiting(), (0, 0));
    }

    #[test]
    fn what_is_larger_than_the_queue_takes_comes_packet_by_packet() {
        let mut queue = own(4, 3000);
        assert_eq!(enter(&mut queue, 2, false), (true, 0));
        // Of five packets, three fit; the caller reports the last one.
        assert_eq!(enter(&mut queue, 5, false), (false, 1));
        assert_eq!(leave(&mut queue), 5);
    }

    #[test]
    fn the_sender_gets_an_answer_to_each_burst() {
        // qdisc_drop of pfifo_enqueue; RED returns NET_XMIT_CN.
        for refusal in [Admission::Refused, Admission::Dropped] {
            let queue = DropTail::new(QueueLimit::Packets(1));
            let answers = Answers { refusal, ..Answers::DEFAULT };
            let mut queue = Own::new(Box::new(queue), u32::MAX, answers);
            let mut enter = |goes_on| {
                let packet = queued(Time::ZERO, Parcel::default());
                let departure = Departure { goes_on, ..Departure::default() };
                queue.enqueue_own(Time::ZERO, packet, departure, &mut Vec::new()).1
            };
            let answers = [true, false, true, false].map(&mut enter);
            let accepted = Admission::Accepted;
            assert_eq!(answers, [accepted, accepted, accepted, refusal]);
        }
        // A burst that the queue cuts was sent if one of its packets was.
        let mut queue = own(3, 1500);
        let mut enter = |goes_on| {
            let packet = queued(Time::ZERO, Parcel::default());
            let departure = Departure { goes_on, ..Departure::default() };
            queue.enqueue_own(Time::ZERO, packet, departure, &mut Vec::new()).1
        };
        let answers = [true, false, true, false, false].map(&mut enter);
        let accepted = Admission::Accepted;
        assert_eq!(answers, [accepted, accepted, accepted, accepted, Admission::Refused]);
    }

    #[test]
    fn a_burst_is_marked_whole_as_far_as_it_can_be() {
        /// Marks all packets.
        #[derive(Clone, Debug)]
        struct Marks(DropTail<Burst<Parcel>>);

        impl Queue<Burst<Parcel>> for Marks {
            fn enqueue(
                &mut self,
                now: Time,
                mut packet: Queued<Burst<Parcel>>,
                drops: &mut Drops<Burst<Parcel>>,
            ) -> Result<(), Reason> {
                packet.packet.mark();
                self.0.enqueue(now, packet, drops)
            }

            fn dequeue(
                &mut self,
                now: Time,
                drops: &mut Drops<Burst<Parcel>>,
            ) -> Next<Burst<Parcel>> {
                self.0.dequeue(now, drops)
            }

            fn waiting(&self) -> (u64, u64) {
                self.0.waiting()
            }
        }

        for ect in [false, true] {
            let limit = QueueLimit::Packets(10);
            let marks = Box::new(Marks(DropTail::new(limit)));
            let mut queue = Own::new(marks, u32::MAX, Answers::DEFAULT);
            enter(&mut queue, 3, ect);
            for _ in 0..3 {
                let next = queue.dequeue(Time::ZERO, &mut Vec::new());
                assert!(matches!(next, Next::Packet(it) if it.packet.ce == ect));
            }
        }
    }
}
