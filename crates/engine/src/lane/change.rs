//! Changes of a lane's settings while packets are on it.
//!
//! A lane with a plain drop-tail queue becomes a managed one at its first change, and the decisions
//! made ahead for waiting packets are revoked. Lanes with a wire are managed from the beginning for
//! that reason ([`LaneConfig::may_change`](super::LaneConfig::may_change)): the wire's random draws
//! for a packet cannot be revoked. For the one packet in transmission the wire remembers its draws.

use super::Lane;
use super::context::LaneContext;
use super::managed::{Kind, Managed};
use super::wire::Wire;
use crate::observer::Observer;
use crate::packet::Packet;
use crate::queue::{Discipline, DropTail, Queue, QueueLimit, Queued};
use crate::random::Random;
use tcplab_units::{Duration, Rate, Time};

/// New settings of a lane. A setting that is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct LaneChange {
    /// The transmission rate. The packet in transmission continues at this rate.
    pub rate: Option<Rate>,
    /// The propagation delay of packets that leave from then on.
    pub delay: Option<Duration>,
    /// The queue discipline and the queue limit. Waiting packets are dropped, as by
    /// `tc qdisc replace`. Where both queues are drop-tail they stay, even beyond the new limit
    /// (`fifo_set_limit`).
    pub queue: Option<(Option<Discipline>, QueueLimit)>,
    /// Whether packets with a shorter delay overtake others, for a lane that had no wire.
    pub may_overtake: bool,
}

impl<P: Packet> Lane<P> {
    /// Applies a change before anything else happens at `at`. `random` makes the generator for a
    /// name.
    pub(crate) fn change<O: Observer<P>>(
        &mut self,
        at: Time,
        change: &LaneChange,
        random: impl Fn(&str) -> Random,
        context: &mut LaneContext<'_, O>,
    ) {
        let before = Time::from_picos(at.as_picos().saturating_sub(1));
        if self.managed.is_none() {
            self.manage(before, context);
        }
        self.catch_up(before, context);
        if change.rate.is_some() || change.delay.is_some() {
            self.change_wire(at, change);
        }
        if let Some((discipline, limit)) = &change.queue {
            self.replace_queue(at, discipline.as_ref(), *limit, random, context);
        }
    }

    /// Moves the queue into a managed one, with the packets whose transmission has not begun by
    /// `until`.
    fn manage<O>(&mut self, until: Time, context: &LaneContext<'_, O>) {
        assert!(self.wire.is_none(), "a lane with a wire that may change is managed");
        self.settle(until);
        let waits = self.waiting.iter().map(|packet| (packet.begins, packet.bytes));
        self.occupancy = self.occupancy.without(until, waits);
        if let Some(first) = self.waiting.front() {
            self.busy = self.busy.saturating_sub(self.free_at.since(first.begins));
            self.free_at = first.begins;
        }
        self.counters.sent_packets -= self.waiting.len() as u64;
        self.counters.sent_bytes -= self.waiting_bytes;
        let begun = self.in_transit.len() - self.waiting.len();
        self.waiting.clear();
        self.waiting_bytes = 0;
        let queued = self.in_transit.split_off(begun).into_iter().map(|transit| Queued {
            // The entry time is no longer known, only that it lies before now.
            entered: Time::ZERO,
            was_marked: transit.packet.is_marked(),
            place: transit.place,
            flow: transit.packet.flow(context.routes.flow(transit.place)),
            packet: transit.packet,
        });
        let queue = Box::new(DropTail::holding(self.queue, queued));
        let mut managed = Managed::drop_tail(self.queue, Kind::default());
        managed.go_on_from(until, queue, std::mem::take(&mut self.in_transit));
        managed.asks_at = self.free_at;
        self.managed = Some(Box::new(managed));
    }

    /// Changes the rate and the delay, also for a packet in transmission.
    fn change_wire(&mut self, at: Time, change: &LaneChange) {
        let Some(managed) = self.managed.as_deref_mut() else { return };
        let left = self.free_at;
        let is_busy = left >= at;
        let wire = self.wire.get_or_insert_with(|| {
            // Without a wire, packets are in transit in order, and each one arrives.
            let mut arrivals = managed.in_transit().rev();
            let last = if is_busy { arrivals.next() } else { None };
            let bytes = last.map_or(0, |last| last.packet.wire_bytes());
            let begun = left.since(Time::ZERO).saturating_sub(self.rate.time_for(bytes.into()));
            let sending = (Time::ZERO + begun, bytes, last.map(|last| last.arrives));
            let before = arrivals.next().map_or(Time::ZERO, |before| before.arrives);
            Box::new(Wire::bare(change.may_overtake, sending, before))
        });
        let new = (change.rate.unwrap_or(self.rate), change.delay.unwrap_or(self.delay));
        managed.allow_reordering(wire.is_disorderly_if(change.delay.is_some()));
        if !is_busy {
            (self.rate, self.delay) = new;
            self.last_size = (0, Duration::ZERO);
            return;
        }
        let lane = (&mut self.rate, &mut self.delay, &mut self.last_size);
        let (leaves, put_off) = wire.decide_again((at, left), new, lane);
        self.busy = (self.busy + leaves.since(left)).saturating_sub(left.since(leaves));
        self.free_at = leaves;
        if let Some(put_off) = put_off {
            managed.put_off(put_off);
        }
        if managed.asks_at == left {
            managed.asks_at = leaves;
        }
    }

    /// Replaces the lane's queue.
    fn replace_queue<O: Observer<P>>(
        &mut self,
        at: Time,
        discipline: Option<&Discipline>,
        limit: QueueLimit,
        random: impl Fn(&str) -> Random,
        context: &mut LaneContext<'_, O>,
    ) {
        self.queue = limit;
        let Some(managed) = self.managed.as_deref_mut() else { return };
        if discipline.is_none() && managed.queue.set_limit(limit) {
            return;
        }
        let queue: Box<dyn Queue<P>> = match discipline {
            Some(discipline) => discipline.queue(limit, random),
            None => Box::new(DropTail::new(limit)),
        };
        let purged = managed.replace(at, queue, &mut self.occupancy);
        // A drop-tail queue has counted its waiting packets as sent.
        self.counters.sent_packets += purged.0;
        self.counters.sent_bytes += purged.1;
        self.report_drops(at, context);
    }
}
