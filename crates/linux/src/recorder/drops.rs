//! The table of drops.

use super::{Recorder, seconds};
use crate::records::Drop;
use tcplab_tables::DropRow;

/// How the kernel part of this backend calls a loss on the wire.
pub(super) const LOST: &str = "LOST_ON_THE_WIRE";

/// A packet that did not arrive.
pub(super) struct Dropped {
    time: u64,
    lane: usize,
    flow: Option<String>,
    bytes: u32,
    reason: String,
}

impl Recorder<'_> {
    pub(super) fn drop(&mut self, lane: usize, time: u64, drop: &Drop) {
        let key = self.clients.get(&drop.from).or_else(|| self.clients.get(&drop.to)).copied();
        if time > self.job.duration {
            if let Some(lane) = self.lanes.get_mut(lane) {
                let is_lost = drop.reason == LOST;
                *if is_lost { &mut lane.late_lost } else { &mut lane.late_dropped } += 1;
            }
            return;
        }
        let flow = key.map(|key| self.name(key));
        let (bytes, reason) = (drop.bytes, drop.reason.clone());
        self.drops.push(Dropped { time, lane, flow, bytes, reason });
    }

    pub(super) fn add_drops(&mut self) {
        let drops = &mut self.tables.drops;
        // The kernel hears of a loss on the wire when it next looks at the lane.
        self.drops.sort_by_key(|drop| drop.time);
        for drop in &self.drops {
            let row = DropRow {
                run: drops.label(&self.plan.id),
                time_s: seconds(drop.time),
                link: self.plan.lanes.get(drop.lane).map(|lane| drops.label(&lane.name)),
                flow: drop.flow.as_ref().map(|name| drops.label(name)),
                bytes: drop.bytes.into(),
                reason: drops.label(&drop.reason),
            };
            drops.push(row);
        }
    }
}
