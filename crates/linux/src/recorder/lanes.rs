//! The table of links, and the total counters of each lane.

use super::{Recorder, seconds};
use crate::records::LaneState;
use tcplab_tables::{LaneTotals, LinkRow};

/// The last known state of a lane, and the last sampled one.
#[derive(Clone, Copy, Default)]
pub(super) struct Lane {
    seen: LaneState,
    /// The time of the last sample, and the counters then.
    sampled: u64,
    busy_ps: u64,
    queue_packet_ps: u128,
    queue_byte_ps: u128,
    /// Packets that were dropped or lost after the end of the experiment, before the kernel
    /// stopped.
    pub late_dropped: u64,
    pub late_lost: u64,
}

impl Recorder<'_> {
    pub(super) fn lane(&mut self, number: usize, time: u64, state: &LaneState) {
        let lane = &mut self.lanes[number];
        lane.seen = *state;
        let is_due = self.job.record.links.is_some_and(|interval| time.is_multiple_of(interval));
        // The end has its own record, beside that of the interval.
        if !is_due || time <= lane.sampled || time > self.job.duration {
            return;
        }
        // The kernel may sample some nanoseconds after the nominal time, when a packet has just
        // come.
        let busy_ps = state.busy_ps.max(lane.busy_ps);
        let interval = time - lane.sampled;
        let utilisation = (busy_ps - lane.busy_ps) as f64 / interval as f64 / 1e3;
        // The mean of an integral over the queue since the last sample.
        let mean = |until: u128, since: u128| {
            until.saturating_sub(since) as f64 / (u128::from(interval) * 1000) as f64
        };
        let queue_mean_packets = mean(state.queue_packet_ps, lane.queue_packet_ps);
        let queue_mean_bytes = mean(state.queue_byte_ps, lane.queue_byte_ps);
        (lane.sampled, lane.busy_ps) = (time, busy_ps);
        (lane.queue_packet_ps, lane.queue_byte_ps) = (state.queue_packet_ps, state.queue_byte_ps);
        let links = &mut self.tables.links;
        let row = LinkRow {
            run: links.label(&self.plan.id),
            link: links.label(&self.plan.lanes[number].name),
            time_s: seconds(time),
            queue_packets: state.queue_packets,
            queue_bytes: state.queue_bytes,
            queue_max_packets: state.queue_max_packets,
            queue_max_bytes: state.queue_max_bytes,
            queue_mean_packets,
            queue_mean_bytes,
            dropped_packets: state.dropped_packets,
            lost_packets: state.lost_packets,
            marked_packets: state.marked_packets,
            sent_packets: state.sent_packets,
            sent_bytes: state.sent_bytes,
            utilisation,
        };
        links.push(row);
    }

    pub(super) fn packet_hops(&self) -> u64 {
        let arrived = self.lanes.iter().map(|lane| lane.seen.arrived_packets);
        arrived.fold(0, u64::saturating_add)
    }
}

impl Lane {
    /// The whereabouts of the packets that had entered the lane by the end of the experiment.
    pub(super) fn totals(&self) -> LaneTotals {
        let state = &self.seen;
        // A wrong count of the kernel breaks the laws, which are checked later.
        let late = self.late_dropped + self.late_lost;
        LaneTotals {
            entered: state.entered_packets.saturating_sub(late),
            arrived: state.arrived_packets,
            dropped: state.dropped_packets.saturating_sub(self.late_dropped),
            lost: state.lost_packets.saturating_sub(self.late_lost),
            queued: state.queue_packets,
            in_transit: state.transit_packets,
        }
    }
}
