//! Queues: what waits on a lane, which packet leaves it next, and when. (Drop-tail, as long as nobody looks
//! at its packets, is part of the lane.)
//!
//! A discipline is a file here and a variant of [`Discipline`]. It may hold many queues, let packets
//! wait although the transmitter is free, drop packets that it took before, from anywhere, and mark
//! them ([`Packet::mark`]). It knows nothing of the lane: the times at which it is called tell when
//! the transmitter was free.

pub(crate) mod cake;
pub(crate) mod codel;
pub(crate) mod dualpi2;
mod fifo;
mod flows;
pub(crate) mod fq;
pub(crate) mod fq_codel;
pub(crate) mod fq_pie;
pub(crate) mod host;
pub(crate) mod pie;
pub(crate) mod policer;
pub(crate) mod red;
pub(crate) mod sfq;
pub(crate) mod tbf;

use crate::observer::Reason;
use crate::packet::{Departure, Packet};
use crate::random::Random;
use crate::route::Flow;
use cake::{Cake, CakeConfig};
use codel::{CoDelConfig, CoDelQueue};
use dualpi2::{DualPi2, DualPi2Config};
use fifo::DropHead;
pub(crate) use fifo::{DropTail, Fifo};
use flows::HashKey;
use fq::{Fq, FqConfig};
use fq_codel::{FqCoDel, FqCoDelConfig};
use fq_pie::{FqPie, FqPieConfig};
use pie::{PieConfig, PieQueue};
use policer::{Policer, PolicerConfig};
use red::{Red, RedConfig, RedQueue};
use sfq::{Sfq, SfqConfig};
use std::fmt::Debug;
use tbf::{TbfConfig, TokenBucket};
use tcplab_units::Time;

/// How much may wait on a lane. The packet in transmission does not count: it has left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Whole packets.
    Packets(u64),
    /// Bytes on the wire; a packet that does not fit whole is dropped.
    Bytes(u64),
}

impl QueueLimit {
    /// Whether there is no room for so much.
    pub(crate) fn is_below(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(most) => packets > most,
            Self::Bytes(most) => bytes > most,
        }
    }
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
    /// A fair queue of flows with `CoDel`.
    FqCoDel(FqCoDelConfig),
    /// Proportional Integral controller Enhanced.
    Pie(PieConfig),
    /// A fair queue of flows with PIE.
    FqPie(FqPieConfig),
    /// A fair queue of flows.
    Fq(FqConfig),
    /// Stochastic Fairness Queueing.
    Sfq(SfqConfig),
    /// A token bucket.
    Tbf(TbfConfig),
    /// Common Applications Kept Enhanced. Its limit is in its configuration.
    Cake(CakeConfig),
    /// The dual-queue coupled AQM of L4S.
    DualPi2(DualPi2Config),
    /// A token bucket that drops.
    Policer(PolicerConfig),
    /// The oldest packets are dropped.
    DropHead,
}

impl Discipline {
    /// The most bytes of a burst that a queue of the sending host takes whole: a token bucket cuts what it
    /// can never send (`tbf_enqueue`), CAKE and `DualPI2` cut all (`cake_enqueue`).
    pub(crate) fn largest_burst(&self) -> u32 {
        match self {
            Self::Cake(_) | Self::DualPi2(_) => 0,
            Self::Tbf(config) => u32::try_from(config.largest()).unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    /// An empty queue. `random` makes the generator of an element of this name.
    pub(crate) fn queue<P: Packet>(
        &self,
        limit: QueueLimit,
        random: impl Fn(&str) -> Random,
    ) -> Box<dyn Queue<P>> {
        let fifo = Fifo::new(limit);
        let key = || HashKey(random("hash").bits());
        match self {
            Self::Red { config, ecn } => {
                let red = Red::new(*config, random("red"));
                Box::new(RedQueue::new(red, config, *ecn, fifo))
            }
            Self::CoDel(config) => Box::new(CoDelQueue::new(config, fifo)),
            Self::FqCoDel(config) => Box::new(FqCoDel::new(config, limit, key())),
            Self::Pie(config) => Box::new(PieQueue::new(config, fifo, random("pie"))),
            Self::FqPie(config) => Box::new(FqPie::new(config, limit, key(), random("fq-pie"))),
            Self::Fq(config) => Box::new(Fq::new(config, limit, key())),
            Self::Sfq(config) => Box::new(Sfq::new(config, limit, key())),
            Self::Tbf(config) => Box::new(TokenBucket::new(config, fifo)),
            Self::Cake(config) => Box::new(Cake::new(config, key(), random("cake"))),
            Self::DualPi2(config) => Box::new(DualPi2::new(config, limit, random("dualpi2"))),
            Self::Policer(config) => Box::new(Policer::new(config, fifo)),
            Self::DropHead => Box::new(DropHead::new(limit)),
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
    pub flow: Flow,
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
    NotBefore(Time),
    /// None waits. The transmitter asks again when a packet has come.
    Empty,
}

/// A queue discipline.
///
/// Calls come in the order of time. Times are not rounded: a transmitter is free in between two
/// nanoseconds, and packets come at whole ones.
pub(crate) trait Queue<P: Packet>: Debug + Copied<P> {
    /// A packet comes. If it is not accepted, the reason is told; others that are dropped for it, or
    /// were dropped meanwhile, go to `drops`.
    fn enqueue(&mut self, now: Time, packet: Queued<P>, drops: &mut Drops<P>)
    -> Result<(), Reason>;

    /// A packet of the sending host comes to its own queue.
    fn enqueue_own(
        &mut self,
        now: Time,
        packet: Queued<P>,
        _departure: Departure,
        drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.enqueue(now, packet, drops)
    }

    /// The transmitter is free, since now or since it was last told that there is nothing.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P>;

    /// How many packets wait, and their bytes.
    fn waiting(&self) -> (u64, u64);

    /// Has another limit from now on, if it is one of drop-tail: packets that wait stay. Says whether it
    /// is.
    fn set_limit(&mut self, _limit: QueueLimit) -> bool {
        false
    }
}

/// Copies of a discipline behind [`Queue`]: all that derive `Clone` have them.
pub(crate) trait Copied<P: Packet> {
    fn copied(&self) -> Box<dyn Queue<P>>;
}

impl<P: Packet, Q: Queue<P> + Clone + 'static> Copied<P> for Q {
    fn copied(&self) -> Box<dyn Queue<P>> {
        Box::new(self.clone())
    }
}

impl<P: Packet> Clone for Box<dyn Queue<P>> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet that enters a queue then.
    pub fn queued<P: Packet>(entered: Time, packet: P) -> Queued<P> {
        of_flow(Flow::default(), entered, packet)
    }

    /// A packet of a flow that enters a queue then.
    pub fn of_flow<P: Packet>(flow: Flow, entered: Time, packet: P) -> Queued<P> {
        let was_marked = packet.is_marked();
        Queued { entered, was_marked, place: 0, flow, packet }
    }

    /// Whose packet leaves a queue at the beginning of a run, if any does.
    pub fn leave(queue: &mut impl Queue<Parcel>) -> Option<u64> {
        match queue.dequeue(Time::ZERO, &mut Vec::new()) {
            Next::Packet(queued) => Some(queued.flow.key),
            Next::NotBefore(_) | Next::Empty => None,
        }
    }

    /// A packet of full size.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Parcel {
        /// It can be marked.
        pub ect: bool,
        /// It is of a scalable sender.
        pub l4s: bool,
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
        fn is_l4s(&self) -> bool {
            self.l4s || self.ce
        }
        fn mark(&mut self) -> bool {
            self.ce |= self.ect;
            self.ce
        }
    }
}
