//! A first-in, first-out queue with a limit, of which most disciplines are made.

use super::codel::Source;
use super::{Drops, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use std::collections::VecDeque;
use tcplab_units::Time;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    queue: VecDeque<Queued<P>>,
    bytes: u64,
    limit: QueueLimit,
}

impl<P: Packet> Fifo<P> {
    pub fn new(limit: QueueLimit) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, limit }
    }

    /// Appends a packet, unless the queue is full.
    pub fn push(&mut self, queued: Queued<P>) -> Result<(), Reason> {
        if !self.has_room(queued.bytes()) {
            return Err(Reason::Full);
        }
        self.bytes += u64::from(queued.bytes());
        self.queue.push_back(queued);
        Ok(())
    }

    /// Whether a packet of this size fits.
    pub fn has_room(&self, bytes: u32) -> bool {
        let (packets, waiting) = self.waiting();
        !self.limit.is_below(packets + 1, waiting + u64::from(bytes))
    }

    pub fn first(&self) -> Option<&Queued<P>> {
        self.queue.front()
    }

    pub fn pop(&mut self) -> Option<Queued<P>> {
        let first = self.queue.pop_front()?;
        self.bytes -= u64::from(first.bytes());
        Some(first)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes in the queue.
    pub fn waiting(&self) -> (u64, u64) {
        (self.queue.len() as u64, self.bytes)
    }
}

impl<P: Packet> Source<P> for Fifo<P> {
    fn first(&self) -> Option<&Queued<P>> {
        self.queue.front()
    }

    fn pop(&mut self) -> Option<Queued<P>> {
        self.pop()
    }

    fn backlog(&self) -> u64 {
        self.bytes
    }
}

/// A queue that drops packets only when it is full.
#[derive(Clone, Debug)]
pub(crate) struct DropTail<P>(Fifo<P>);

impl<P: Packet> DropTail<P> {
    pub fn new(limit: QueueLimit) -> Self {
        Self(Fifo::new(limit))
    }

    /// A queue that holds these packets.
    pub fn holding(limit: QueueLimit, packets: impl Iterator<Item = Queued<P>>) -> Self {
        let queue: VecDeque<_> = packets.collect();
        let bytes = queue.iter().map(|queued| u64::from(queued.bytes())).sum();
        Self(Fifo { queue, bytes, limit })
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    fn enqueue(
        &mut self,
        _now: Time,
        queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.0.push(queued)
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Next<P> {
        self.0.pop().map_or(Next::Empty, Next::Packet)
    }

    fn waiting(&self) -> (u64, u64) {
        self.0.waiting()
    }

    fn set_limit(&mut self, limit: QueueLimit) -> bool {
        self.0.limit = limit;
        true
    }
}

/// A queue that drops its oldest packets to make room for a new one.
#[derive(Clone, Debug)]
pub(crate) struct DropHead<P>(Fifo<P>);

impl<P: Packet> DropHead<P> {
    pub fn new(limit: QueueLimit) -> Self {
        Self(Fifo::new(limit))
    }
}

impl<P: Packet> Queue<P> for DropHead<P> {
    fn enqueue(
        &mut self,
        _now: Time,
        queued: Queued<P>,
        drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        while !self.0.has_room(queued.bytes())
            && let Some(oldest) = self.0.pop()
        {
            drops.push((oldest, Reason::Full));
        }
        self.0.push(queued)
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Next<P> {
        self.0.pop().map_or(Next::Empty, Next::Packet)
    }

    fn waiting(&self) -> (u64, u64) {
        self.0.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{Parcel, of_flow};
    use crate::route::Flow;

    /// Puts five packets into a queue limited to three. Returns those dropped, and those left.
    fn five(queue: &mut dyn Queue<Parcel>) -> (Vec<u64>, Vec<u64>) {
        let mut drops = Vec::new();
        for key in 1..=5 {
            let packet = of_flow(Flow { key, ..Flow::default() }, Time::ZERO, Parcel::default());
            if let Err(reason) = queue.enqueue(Time::ZERO, packet, &mut drops) {
                drops.push((packet, reason));
            }
        }
        let next = || match queue.dequeue(Time::ZERO, &mut Vec::new()) {
            Next::Packet(queued) => Some(queued.flow.key),
            Next::NotBefore(_) | Next::Empty => None,
        };
        let left = std::iter::from_fn(next).collect();
        (drops.iter().map(|(dropped, _)| dropped.flow.key).collect(), left)
    }

    #[test]
    fn droptail_drops_the_newest_and_drophead_the_oldest() {
        for limit in [QueueLimit::Packets(3), QueueLimit::Bytes(4500)] {
            assert_eq!(five(&mut DropTail::new(limit)), (vec![4, 5], vec![1, 2, 3]));
            assert_eq!(five(&mut DropHead::new(limit)), (vec![1, 2], vec![3, 4, 5]));
        }
        // A packet larger than the whole queue must not empty it in an endless loop.
        assert_eq!(five(&mut DropHead::new(QueueLimit::Bytes(1000))).0, [1, 2, 3, 4, 5]);
    }
}
