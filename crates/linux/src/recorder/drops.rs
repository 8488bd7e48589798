//! The table of drops.

use super::{Recorder, in_time, seconds};
use crate::records::Drop;
use tcplab_tables::{DropRow, Part};

/// The names of wire losses in tcplab's part of the kernel.
pub(super) const LOST: [&str; 2] = ["LOST_ON_THE_WIRE", "CORRUPTED"];

impl Recorder<'_> {
    pub(super) fn drop(&mut self, lane: usize, time: u64, drop: &Drop) {
        let key = self.clients.get(&drop.from).or_else(|| self.clients.get(&drop.to)).copied();
        if time > self.job.duration {
            if let Some(lane) = self.lanes.get_mut(lane) {
                let is_lost = LOST.contains(&drop.reason.as_str());
                *if is_lost { &mut lane.late_lost } else { &mut lane.late_dropped } += 1;
            }
            return;
        }
        let flow = key.map(|(flow, _)| &self.plan.flows[flow].name);
        let drops = &mut self.tables.drops;
        let row = DropRow {
            run: drops.label(&self.plan.id),
            time_s: seconds(time),
            link: self.plan.lanes.get(lane).map(|lane| drops.label(&lane.name)),
            flow: flow.map(|name| drops.label(name)),
            bytes: drop.bytes.into(),
            reason: drops.label(&drop.reason),
        };
        drops.push(row);
    }

    /// Sorts the rows: the kernel reports a loss on the wire when it next looks at the lane.
    pub(super) fn order_drops(&mut self) {
        let times = |part: &Part<'_, DropRow>| in_time(part.numbers("time_s"));
        self.tables.drops = self.tables.drops.in_order(|_| {}, times);
    }
}
