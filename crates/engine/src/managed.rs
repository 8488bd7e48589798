//! A queue that a discipline manages: RED looks at packets as they come, `CoDel` as they leave.
//!
//! When a packet leaves such a queue depends on what becomes of those before it, so that is found out
//! no sooner than it happens: whenever a packet comes to the lane or arrives at its end, the lane
//! catches up with its transmitter. That is early enough, as a packet arrives after the next one has
//! begun transmission; where the wire loses the ones ahead, the agenda has the transmitter's times.

use crate::codel::{CoDel, CoDelConfig};
use crate::lane::{Lane, LaneState, QueueLimit, Transit};
use crate::network::{Packet, Reason};
use crate::random::Random;
use crate::red::{Red, RedConfig};
use std::collections::VecDeque;
use tcplab_units::Time;

/// What decides on packets, besides the room there is.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// Random Early Detection. Packets that can be are marked, not dropped, with `ecn`.
    Red {
        /// Its thresholds.
        config: RedConfig,
        /// Whether it marks.
        ecn: bool,
    },
    /// Controlled Delay.
    CoDel(CoDelConfig),
}

#[derive(Clone, Debug)]
enum State {
    Red { red: Box<Red>, ecn: bool },
    CoDel(CoDel),
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued<P> {
    pub entered: Time,
    /// It came with a mark.
    was_marked: bool,
    hop: u32,
    pub packet: P,
}

/// Packets in the order in which they came, and those that were dropped from among them.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<P> {
    queue: VecDeque<Queued<P>>,
    bytes: u64,
    pub dropped: Vec<Queued<P>>,
}

impl<P> Default for Waiting<P> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), bytes: 0, dropped: Vec::new() }
    }
}

impl<P: Packet> Waiting<P> {
    pub fn push(&mut self, queued: Queued<P>) {
        self.bytes += u64::from(queued.packet.wire_bytes());
        self.queue.push_back(queued);
    }

    pub fn pop(&mut self) -> Option<Queued<P>> {
        let first = self.queue.pop_front()?;
        self.bytes -= u64::from(first.packet.wire_bytes());
        Some(first)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_full(&self, limit: QueueLimit, bytes: u32) -> bool {
        match limit {
            QueueLimit::Packets(most) => self.queue.len() as u64 >= most,
            QueueLimit::Bytes(most) => self.bytes + u64::from(bytes) > most,
        }
    }
}

/// What a lane with a discipline has in place of a drop-tail queue.
#[derive(Clone, Debug)]
pub(crate) struct Managed<P> {
    state: State,
    waiting: Waiting<P>,
    in_transit: VecDeque<Transit<P>>,
    /// What did not get through and was not collected: when, why, its hop.
    gone: Vec<(Time, Reason, u32, P)>,
    is_on_agenda: bool,
    /// Until when the queue's occupancy is counted.
    counted_until: Time,
}

impl<P> Managed<P> {
    pub fn new(discipline: &Discipline, random: impl FnOnce(&'static str) -> Random) -> Self {
        let state = match discipline {
            Discipline::Red { config, ecn } => {
                State::Red { red: Box::new(Red::new(*config, random("red"))), ecn: *ecn }
            }
            Discipline::CoDel(config) => State::CoDel(CoDel::new(config)),
        };
        let (waiting, in_transit) = (Waiting::default(), VecDeque::new());
        let (gone, is_on_agenda, counted_until) = (Vec::new(), false, Time::ZERO);
        Self { state, waiting, in_transit, gone, is_on_agenda, counted_until }
    }

    /// Packets that wait or are on the wire.
    pub fn packets(&self) -> usize {
        self.waiting.queue.len() + self.in_transit.len()
    }

    /// Packets and bytes that wait.
    fn queued(&self) -> (u64, u64) {
        (self.waiting.queue.len() as u64, self.waiting.bytes)
    }
}

impl<P: Packet> Lane<P> {
    /// Takes a packet into a managed queue.
    pub(crate) fn enter(&mut self, now: Time, hop: u32, mut packet: P) {
        self.catch_up(now);
        self.count_occupancy(now);
        let Some(managed) = &mut self.managed else { return };
        let Managed { state, waiting, gone, .. } = &mut **managed;
        let was_marked = packet.is_marked();
        let mut passes = true;
        if let State::Red { red, ecn } = state {
            let is_idle = waiting.queue.is_empty() && self.free_at <= now;
            let idle = is_idle.then(|| now.since(self.free_at));
            passes = !red.signals(waiting.bytes, idle) || (*ecn && packet.mark());
        }
        if !passes || waiting.is_full(self.queue, packet.wire_bytes()) {
            let reason = if passes { Reason::Full } else { Reason::Discipline };
            gone.push((now, reason, hop, packet));
            self.counters.dropped_packets += 1;
            return;
        }
        waiting.push(Queued { entered: now, was_marked, hop, packet });
        self.catch_up(now);
        // A packet that finds the transmitter free has not waited.
        if let Some(managed) = &self.managed {
            let (packets, bytes) = managed.queued();
            self.occupancy.reach(packets, bytes);
        }
    }

    /// Counts the time that the queue, which is about to change, has been as it is.
    fn count_occupancy(&mut self, until: Time) {
        let Some(managed) = &mut self.managed else { return };
        let (packets, bytes) = managed.queued();
        self.occupancy.wait(until.since(managed.counted_until), packets, bytes);
        managed.counted_until = until.max(managed.counted_until);
    }

    /// A lane with a managed queue as it is now.
    #[cold]
    pub(crate) fn managed_state(&mut self, now: Time) -> LaneState {
        self.catch_up(now);
        self.count_occupancy(now);
        let managed = self.managed.as_ref().expect("only lanes with a managed queue are asked");
        let (queue_packets, queue_bytes) = managed.queued();
        LaneState {
            counters: self.counters,
            queue_packets,
            queue_bytes,
            transit_packets: managed.in_transit.len() as u64,
            occupancy: self.occupancy,
            busy: self.busy(now),
        }
    }

    /// The packet that has arrived at the end, if one has.
    pub(crate) fn arrive(&mut self, now: Time) -> Option<Transit<P>> {
        self.catch_up(now);
        let managed = self.managed.as_mut()?;
        managed.is_on_agenda = false;
        let has_arrived = managed.in_transit.front().is_some_and(|first| first.arrives <= now);
        let arrived = has_arrived.then(|| managed.in_transit.pop_front()).flatten();
        self.counters.arrived_packets += u64::from(arrived.is_some());
        arrived
    }

    /// When the lane is to be looked at next, if that is not on the agenda yet.
    pub(crate) fn next_look(&mut self) -> Option<Time> {
        let managed = self.managed.as_mut().filter(|managed| !managed.is_on_agenda)?;
        let waits = !managed.waiting.queue.is_empty();
        let arrives = managed.in_transit.front().map(|first| first.arrives);
        let next = arrives.or(waits.then_some(self.free_at.in_nanos()))?;
        managed.is_on_agenda = true;
        Some(next)
    }

    /// What did not get through since the last time: when, why, its hop.
    pub(crate) fn collect_gone(&mut self) -> impl Iterator<Item = (Time, Reason, u32, P)> {
        self.managed.iter_mut().flat_map(|managed| managed.gone.drain(..))
    }

    /// Transmits what has left a managed queue until now.
    pub(crate) fn catch_up(&mut self, now: Time) {
        let Some(mut managed) = self.managed.take() else { return };
        let Managed { state, waiting, in_transit, gone, counted_until, .. } = &mut *managed;
        while self.free_at <= now
            && let Some(first) = waiting.queue.front()
        {
            let begins = self.free_at.max(first.entered);
            let (packets, bytes) = (waiting.queue.len() as u64, waiting.bytes);
            self.occupancy.wait(begins.since(*counted_until), packets, bytes);
            *counted_until = begins.max(*counted_until);
            let next = match state {
                State::Red { .. } => waiting.pop(),
                State::CoDel(codel) => codel.next(begins.in_nanos(), waiting),
            };
            for dropped in waiting.dropped.drain(..) {
                self.counters.dropped_packets += 1;
                gone.push((begins, Reason::Discipline, dropped.hop, dropped.packet));
            }
            let Some(Queued { was_marked, hop, packet, .. }) = next else { continue };
            self.counters.marked_packets += u64::from(packet.is_marked() && !was_marked);
            match self.transmit(begins, packet.wire_bytes(), || packet.has_payload()) {
                Some(arrives) => in_transit.push_back(Transit { arrives, hop, packet }),
                None => gone.push((begins, Reason::Lost, hop, packet)),
            }
        }
        self.managed = Some(managed);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet that enters a queue then.
    pub fn queued(entered: Time, packet: Parcel) -> Queued<Parcel> {
        Queued { entered, was_marked: packet.ce, hop: 0, packet }
    }

    /// A packet of full size.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Parcel {
        /// It can be marked.
        pub ect: bool,
        pub ce: bool,
    }

    impl Packet for Parcel {
        fn wire_bytes(&self) -> u32 {
            1500
        }
        fn has_payload(&self) -> bool {
            true
        }
        fn is_marked(&self) -> bool {
            self.ce
        }
        fn mark(&mut self) -> bool {
            self.ce |= self.ect;
            self.ce
        }
    }
}
