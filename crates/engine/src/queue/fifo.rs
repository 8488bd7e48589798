//! Packets in the order in which they came, as far as there is room: what most disciplines are made of.

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

    /// Takes a packet, if there is room.
    pub fn push(&mut self, queued: Queued<P>) -> Result<(), Reason> {
        let bytes = self.bytes + u64::from(queued.bytes());
        let has_room = match self.limit {
            QueueLimit::Packets(most) => (self.queue.len() as u64) < most,
            QueueLimit::Bytes(most) => bytes <= most,
        };
        if !has_room {
            return Err(Reason::Full);
        }
        self.bytes = bytes;
        self.queue.push_back(queued);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<Queued<P>> {
        let first = self.queue.pop_front()?;
        self.bytes -= u64::from(first.bytes());
        Some(first)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes.
    pub fn waiting(&self) -> (u64, u64) {
        (self.queue.len() as u64, self.bytes)
    }
}

/// A queue that drops what has no room, and nothing else.
#[derive(Debug)]
pub(crate) struct DropTail<P>(Fifo<P>);

impl<P: Packet> DropTail<P> {
    pub fn new(limit: QueueLimit) -> Self {
        Self(Fifo::new(limit))
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
}
