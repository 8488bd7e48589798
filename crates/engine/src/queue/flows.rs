//! Many queues, each for one flow or a few, that are served in turn: deficit round robin with new
//! flows first (RFC 8290 §4.1 and §4.2), as in Linux `fq_codel` and `fq_pie`.

use super::Queued;
use crate::packet::Packet;
use crate::random::mix;
use crate::route::Flow;
use std::collections::VecDeque;

/// The key under which a router hashes flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashKey(pub u64);

impl HashKey {
    /// The hash of a flow, the same as `tcplab_flow_hash` of our part of the kernel.
    pub fn of_flow(self, flow: &Flow) -> u32 {
        self.of(flow.key)
    }

    /// The hash of any value.
    pub fn of(self, value: u64) -> u32 {
        (mix(value ^ self.0) >> 32) as u32
    }
}

/// Scales a hash to a place among `number`, which is at most 2^32.
pub(crate) fn scaled(hash: u32, number: u32) -> u32 {
    ((u64::from(hash) * u64::from(number)) >> 32) as u32
}

/// The backlog in packets and bytes, of one queue or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub packets: u64,
    pub bytes: u64,
}

impl Waiting {
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    pub fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// The packets of a flow, in order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Line<P> {
    packets: VecDeque<Queued<P>>,
    pub waiting: Waiting,
}

impl<P: Packet> Line<P> {
    /// The first packet.
    #[inline]
    pub fn first(&self) -> Option<&Queued<P>> {
        self.packets.front()
    }

    /// Takes the first packet out of the line, and out of the total backlog.
    #[inline]
    pub fn pop(&mut self, all: &mut Waiting) -> Option<Queued<P>> {
        let first = self.packets.pop_front()?;
        self.waiting.remove(first.bytes());
        all.remove(first.bytes());
        Some(first)
    }
}

/// The queue of a flow, with the state `A` of its AQM.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueue<P, A> {
    pub line: Line<P>,
    pub manager: A,
    /// The number of the queue, which hashes select.
    place: u32,
    /// Deficit: bytes that the queue may still send in this turn.
    deficit: i64,
    /// Whether the queue is in the list of new or of old queues.
    is_listed: bool,
}

/// All queues of a discipline. Only queues to which a packet has come take memory and time.
#[derive(Clone, Debug)]
pub(crate) struct Flows<P, A> {
    /// Queues to which a packet has come, in that order. The lists name queues by their index.
    queues: Vec<FlowQueue<P, A>>,
    /// By place: the index of the queue, if a packet has come to it.
    known: Vec<Option<u32>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
    pub waiting: Waiting,
}

impl<P: Packet, A> Flows<P, A> {
    pub fn new(number: u32, quantum: u64) -> Self {
        Self {
            queues: Vec::new(),
            known: vec![None; number as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::try_from(quantum).unwrap_or(i64::MAX).max(1),
            waiting: Waiting::default(),
        }
    }

    /// The number of the queue for a hash.
    pub fn place(&self, hash: u32) -> u32 {
        scaled(hash, self.known.len() as u32)
    }

    /// The queue of a number, with new AQM state if no packet has come to it before.
    pub fn queue(&mut self, place: u32, manager: impl FnOnce() -> A) -> (&Line<P>, &mut A) {
        let index = self.index(place, manager);
        let queue = &mut self.queues[index as usize];
        (&queue.line, &mut queue.manager)
    }

    #[inline]
    fn index(&mut self, place: u32, manager: impl FnOnce() -> A) -> u32 {
        *self.known[place as usize].get_or_insert_with(|| {
            let line = Line { packets: VecDeque::new(), waiting: Waiting::default() };
            let manager = manager();
            self.queues.push(FlowQueue { line, manager, place, deficit: 0, is_listed: false });
            self.queues.len() as u32 - 1
        })
    }

    /// All queues to which a packet has come.
    pub fn known(&mut self) -> impl Iterator<Item = (&Line<P>, &mut A)> {
        self.queues.iter_mut().map(|queue| (&queue.line, &mut queue.manager))
    }

    /// Appends a packet to a queue, which gets new AQM state at its first packet.
    #[inline]
    pub fn put(&mut self, place: u32, queued: Queued<P>, manager: impl FnOnce() -> A) {
        let index = self.index(place, manager);
        let queue = &mut self.queues[index as usize];
        queue.line.waiting.add(queued.bytes());
        self.waiting.add(queued.bytes());
        queue.line.packets.push_back(queued);
        if !queue.is_listed {
            queue.is_listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(index);
        }
    }

    /// The queue with the largest backlog in bytes, the first of several, and the total backlog.
    pub fn largest_backlog(&mut self) -> Option<(&mut FlowQueue<P, A>, &mut Waiting)> {
        let listed = self.new.iter().chain(&self.old).copied();
        let largest_backlog = listed.max_by_key(|index| {
            let queue = &self.queues[*index as usize];
            (queue.line.waiting.bytes, std::cmp::Reverse(queue.place))
        })?;
        Some((&mut self.queues[largest_backlog as usize], &mut self.waiting))
    }

    /// The packet to transmit now: `take` takes it from the queue whose turn it is.
    pub fn next(
        &mut self,
        mut take: impl FnMut(&mut Line<P>, &mut A, &mut Waiting) -> Option<Queued<P>>,
    ) -> Option<Queued<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let index = *self.new.front().or(self.old.front())?;
            let queue = &mut self.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                self.leave(is_new);
                self.old.push_back(index);
                continue;
            }
            let FlowQueue { line, manager, .. } = queue;
            if let Some(next) = take(line, manager, &mut self.waiting) {
                queue.deficit -= i64::from(next.bytes());
                return Some(next);
            }
            // An empty new queue takes a turn among the old ones first: otherwise it could starve
            // them.
            self.leave(is_new);
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                self.queues[index as usize].is_listed = false;
            }
        }
    }

    fn leave(&mut self, is_new: bool) {
        if is_new { &mut self.new } else { &mut self.old }.pop_front();
    }
}
