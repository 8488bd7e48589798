//! Fair queueing with PIE, as in Linux `fq_pie`: flows are hashed to queues that are served in turn
//! as in FQ-CoDel (RFC 8290), each under its own PIE (RFC 8033).

use super::flows::{Flows, HashKey};
use super::pie::{Pie, PieConfig, Updates};
use super::{Drops, Next, Queue, QueueLimit, Queued};
use crate::observer::Reason;
use crate::packet::Packet;
use crate::random::Random;
use tcplab_units::Time;

/// Settings of FQ-PIE.
#[derive(Clone, Debug)]
pub struct FqPieConfig {
    /// The configuration of each queue's PIE.
    pub pie: PieConfig,
    /// The number of queues.
    pub flows: u32,
    /// The bytes that a queue may send in a turn.
    pub quantum: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FqPie<P> {
    config: PieConfig,
    flows: Flows<P, Pie>,
    updates: Updates,
    limit: QueueLimit,
    key: HashKey,
    random: Random,
}

impl<P: Packet> FqPie<P> {
    pub fn new(config: &FqPieConfig, limit: QueueLimit, key: HashKey, random: Random) -> Self {
        let flows = Flows::new(config.flows, config.quantum);
        let updates = Updates::new(&config.pie);
        Self { config: config.pie, flows, updates, limit, key, random }
    }

    fn catch_up(&mut self, now: Time, comes: bool) {
        let (flows, config) = (&mut self.flows, &self.config);
        self.updates.pass(now, comes, |_| {
            let mut changes = false;
            for (line, pie) in flows.known() {
                let before = pie.clone();
                pie.update(config, line.waiting.bytes);
                changes |= *pie != before;
            }
            changes
        });
    }
}

impl<P: Packet> Queue<P> for FqPie<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut queued: Queued<P>,
        _drops: &mut Drops<P>,
    ) -> Result<(), Reason> {
        self.catch_up(now, true);
        let bytes = queued.bytes();
        let all = self.flows.waiting;
        let is_full = self.limit.is_below(all.packets + 1, all.bytes + u64::from(bytes));
        let place = self.flows.place(self.key.of_flow(&queued.flow));
        let (line, pie) = self.flows.queue(place, Pie::default);
        let backlog = line.waiting.bytes;
        let reason = if is_full {
            Reason::Full
        } else if !pie.admits(&self.config, backlog, &mut queued, &mut self.random) {
            Reason::Discipline
        } else {
            self.flows.put(place, queued, Pie::default);
            return Ok(());
        };
        pie.on_drop();
        Err(reason)
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Next<P> {
        let now = now.in_nanos();
        self.catch_up(now, false);
        let next = self.flows.next(|line, pie, all| {
            let first = line.pop(all)?;
            pie.on_leave(now, first.entered, line.waiting.bytes);
            Some(first)
        });
        next.map_or(Next::Empty, Next::Packet)
    }

    fn waiting(&self) -> (u64, u64) {
        (self.flows.waiting.packets, self.flows.waiting.bytes)
    }
}
