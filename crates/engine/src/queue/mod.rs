//! Queue disciplines: which packets wait on a lane, which one leaves next, and when. (Unobserved
//! drop-tail is part of the lane itself.)
//!
//! A discipline is a file here and a variant of [`Discipline`]. It may hold many queues, be
//! non-work-conserving, drop packets that it accepted before, from any position, and mark packets
//! ([`Packet::mark`]). A discipline knows nothing of the lane: the times of its calls tell when the
//! transmitter was idle.

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
use crate::packet::{Admission, Departure, Packet};
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
use host::Answers;
use pie::{PieConfig, PieQueue};
use policer::{Policer, PolicerConfig};
use red::{Red, RedConfig, RedQueue};
use sfq::{Sfq, SfqConfig};
use std::fmt::Debug;
use tbf::{TbfConfig, TokenBucket};
use tcplab_units::Time;

/// The limit of a lane's queue. The packet in transmission does not count: it has left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// In whole packets.
    Packets(u64),
    /// In bytes on the wire; a packet that does not fit whole is dropped.
    Bytes(u64),
}

impl QueueLimit {
    /// Whether this occupancy exceeds the limit.
    pub(crate) fn is_below(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(most) => packets > most,
            Self::Bytes(most) => bytes > most,
        }
    }
}

/// Queue disciplines other than drop-tail.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// Random Early Detection. With `ecn`, ECN-capable packets are marked instead of dropped.
    Red {
        /// Its thresholds.
        config: RedConfig,
        /// Whether RED marks.
        ecn: bool,
    },
    /// Controlled Delay.
    CoDel(CoDelConfig),
    /// Fair queueing with `CoDel`.
    FqCoDel(FqCoDelConfig),
    /// Proportional Integral controller Enhanced.
    Pie(PieConfig),
    /// Fair queueing with PIE.
    FqPie(FqPieConfig),
    /// Fair queueing.
    Fq(FqConfig),
    /// Stochastic Fairness Queueing.
    Sfq(SfqConfig),
    /// A token bucket.
    Tbf(TbfConfig),
    /// Common Applications Kept Enhanced. The limit is in its configuration.
    Cake(CakeConfig),
    /// The dual-queue coupled AQM of L4S.
    DualPi2(DualPi2Config),
    /// A token bucket that drops out-of-profile packets.
    Policer(PolicerConfig),
    /// Drop from the head: a full queue drops its oldest packets.
    DropHead,
}

impl Discipline {
    /// The largest burst, in bytes, that a sending host's queue accepts whole. A token bucket
    /// segments bursts that it could never send (`tbf_enqueue`); CAKE and `DualPI2` segment all
    /// (`cake_enqueue`).
    pub(crate) fn largest_burst(&self) -> u32 {
        match self {
            Self::Cake(_) | Self::DualPi2(_) => 0,
            Self::Tbf(config) => u32::try_from(config.largest()).unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    /// How drops are reported to the sending host (`red_enqueue`, `fq_pie_qdisc_enqueue`,
    /// `pfifo_tail_enqueue`).
    pub(crate) fn answers(&self) -> Answers {
        let refusal = match self {
            Self::Red { .. } | Self::FqPie(_) => Admission::Dropped,
            _ => Admission::Refused,
        };
        Answers { refusal, reports_other_flows: matches!(self, Self::DropHead) }
    }

    /// An empty queue. `random` makes the generator for a name.
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
    /// When the packet was enqueued.
    pub entered: Time,
    /// Whether the packet was ECN-marked on arrival.
    pub was_marked: bool,
    /// The packet's place on its route.
    pub place: u32,
    /// The flow that disciplines with many queues hash.
    pub flow: Flow,
    pub packet: P,
}

impl<P: Packet> Queued<P> {
    pub fn bytes(&self) -> u32 {
        self.packet.wire_bytes()
    }
}

/// Packets that a queue has dropped since the list was last emptied: the only way to report drops.
pub(crate) type Drops<P> = Vec<(Queued<P>, Reason)>;

/// The answer to a transmitter that polls the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next<P> {
    /// The packet to transmit now.
    Packet(Queued<P>),
    /// Packets wait, but none may leave before this time. The transmitter polls again then, or when
    /// a packet comes.
    NotBefore(Time),
    /// The queue is empty. The transmitter polls again when a packet has come.
    Empty,
}

/// A queue discipline.
///
/// Calls come in order of time. Times are not rounded: a transmitter may become idle between two
/// nanoseconds, while packets come at whole ones.
pub(crate) trait Queue<P: Packet>: Debug + Copied<P> {
    /// Enqueues a packet. A refusal returns the reason. Other packets that are dropped for the new
    /// one, or were dropped meanwhile, go to `drops`.
    fn enqueue(&mut self, now: Time, packet: Queued<P>, drops: &mut Drops<P>)
    -> Result<(), Reason>;

    /// Enqueues a packet of the sending host in the host's own queue. Also returns the answer
    /// to the burst that ends with the packet.
    fn enqueue_own(
        &mut self,
        now: Time,
        packet: Queued<P>,
        _departure: Departure,
        drops: &mut Drops<P>,
    ) -> (Result<(), Reason>, Admission) {
        (self.enqueue(now, packet, drops), Admission::Accepted)
    }

    /// The transmitter is idle and asks for a packet, either since now or since the queue last
    /// returned none.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Next<P>;

    /// Packets and bytes in the queue.
    fn waiting(&self) -> (u64, u64);

    /// Changes the limit of a drop-tail queue, whose waiting packets stay. Returns whether the
    /// queue is one.
    fn set_limit(&mut self, _limit: QueueLimit) -> bool {
        false
    }
}

/// Clones a discipline behind [`Queue`]. All disciplines that derive `Clone` implement it.
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

    /// A packet enqueued at that time.
    pub fn queued<P: Packet>(entered: Time, packet: P) -> Queued<P> {
        of_flow(Flow::default(), entered, packet)
    }

    /// A packet of a flow, enqueued at that time.
    pub fn of_flow<P: Packet>(flow: Flow, entered: Time, packet: P) -> Queued<P> {
        let was_marked = packet.is_marked();
        Queued { entered, was_marked, place: 0, flow, packet }
    }

    /// The flow of the packet that leaves a queue at the beginning of a run, if any does.
    pub fn leave(queue: &mut impl Queue<Parcel>) -> Option<u64> {
        match queue.dequeue(Time::ZERO, &mut Vec::new()) {
            Next::Packet(queued) => Some(queued.flow.key),
            Next::NotBefore(_) | Next::Empty => None,
        }
    }

    /// A packet of full size.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Parcel {
        /// Whether the packet is ECN-capable.
        pub ect: bool,
        /// Whether the packet is of a scalable sender.
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
