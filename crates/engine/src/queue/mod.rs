//! Queues: what waits on a lane, which packet leaves it next, and when. (Drop-tail, as long as nobody looks
//! at its packets, is part of the lane.)
//!
//! A discipline is a file here and a variant of [`Discipline`]. It may hold many queues, let packets
//! wait although the transmitter is free, drop packets that it took before, from anywhere, and mark
//! them ([`Packet::mark`]). It knows nothing of the lane: the times at which it is called tell when
//! the transmitter was free.

pub(crate) mod codel;
mod fifo;
pub(crate) mod red;

use crate::observer::Reason;
use crate::packet::Packet;
use crate::random::Random;
use codel::{CoDelConfig, CoDelQueue};
pub(crate) use fifo::{DropTail, Fifo};
use red::{Red, RedConfig, RedQueue};
use std::fmt::Debug;
use tcplab_units::Time;

/// How much may wait on a lane. The packet in transmission does not count: it has left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Whole packets.
    Packets(u64),
    /// Bytes on the wire; a packet that does not fit whole is dropped.
    Bytes(u64),
}

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

impl Discipline {
    /// An empty queue. `random` makes the generator of an element of this name.
    pub(crate) fn queue<P: Packet>(
        &self,
        limit: QueueLimit,
        random: impl Fn(&str) -> Random,
    ) -> Box<dyn Queue<P>> {
        let fifo = Fifo::new(limit);
        match self {
            Self::Red { config, ecn } => {
                Box::new(RedQueue::new(Red::new(*config, random("red")), *ecn, fifo))
            }
            Self::CoDel(config) => Box::new(CoDelQueue::new(config, fifo)),
        }
    }
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued<P> {
    /// When it came.
    pub entered: Time,
    /// It came with a mark.
    pub was_marked: bool,
    /// Its place on its route.
    pub place: u32,
    /// What disciplines with many queues hash.
    #[cfg_attr(not(test), expect(dead_code, reason = "RED and CoDel have one queue each"))]
    pub flow: u64,
    pub packet: P,
}

impl<P: Packet> Queued<P> {
    pub fn bytes(&self) -> u32 {
        self.packet.wire_bytes()
    }
}

/// Packets that a queue has dropped since they were last taken from here: the one way to say so.
pub(crate) type Drops<P> = Vec<(Queued<P>, Reason)>;

/// The answer to a transmitter that asks for a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next<P> {
    /// This one is transmitted from now on.
    Packet(Queued<P>),
    /// Packets wait, and none may leave before a later time: then the transmitter asks again. It does so
    /// earlier if a packet comes.
    #[cfg_attr(not(test), expect(dead_code, reason = "RED and CoDel are work-conserving"))]
    NotBefore(Time),
    /// None waits. The transmitter asks again when a packet has come.
    Empty,
}

/// A queue discipline.
///
/// Calls come in the order of time. Times are not rounded: a transmitter is free in between two
/// nanoseconds, and packets come at whole ones.
pub(crate) trait Queue<P: Packet>: Debug {
    /// A packet comes. If it is not accepted, the reason is told; others that are dropped for it, or
    /// were dropped meanwhile, go to `drops`.
    fn enqueue(&mut self, now: Time, packet: Queued<P>, drops: &mut Drops<P>)
    -> Result<(), Reason>;

    /// The transmitter is free, since now or since it was last told that there is nothing.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P>;

    /// How many packets wait, and their bytes.
    fn waiting(&self) -> (u64, u64);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet that enters a queue then.
    pub fn queued<P: Packet>(entered: Time, packet: P) -> Queued<P> {
        let was_marked = packet.is_marked();
        Queued { entered, was_marked, place: 0, flow: packet.flow(0), packet }
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
