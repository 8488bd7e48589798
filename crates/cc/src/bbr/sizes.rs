//! Sizes in segments: of a burst, of the BDP, in the network, of the window.

use super::{
    BW_UNIT, Bbr, FIRST_SEGMENTS, LEAST_FOR_BURSTS, LEAST_WINDOW, MOST_AGGREGATION, MOST_BURST,
    MOST_BURST_BYTES, Mode, UNIT, segments_in,
};
use crate::kernel::micros;
use crate::{Ack, FlowState, Phase};

impl Bbr {
    pub(super) fn least_burst(&self) -> u64 {
        if self.pacing_rate < LEAST_FOR_BURSTS { 1 } else { 2 }
    }

    /// The segments of a burst at the pacing rate.
    pub(super) fn burst(&self) -> u64 {
        let bytes = (self.pacing_rate >> 10).min(MOST_BURST_BYTES);
        (bytes / self.mss.max(1)).max(self.least_burst()).min(MOST_BURST)
    }

    /// The BDP in segments, times a gain, rounded up.
    pub(super) fn path(&self, bandwidth: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return FIRST_SEGMENTS };
        let scaled = (u128::from(bandwidth) * u128::from(min_rtt)).saturating_mul(gain.into());
        let segments = (scaled / u128::from(UNIT)).div_ceil(u128::from(BW_UNIT));
        u64::try_from(segments).unwrap_or(u64::MAX)
    }

    /// Adds room for bursts at both ends, rounds up to an even number, and adds more while the path
    /// is probed.
    pub(super) fn with_room(&self, segments: u64) -> u64 {
        let room = segments.saturating_add(3 * self.burst());
        let even = room.saturating_add(room % 2);
        let is_probing = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        even.saturating_add(if is_probing { 2 } else { 0 })
    }

    pub(super) fn inflight(&self, gain: u64) -> u64 {
        self.with_room(self.path(self.bandwidth.get(), gain))
    }

    /// The segments in the network when the next segment may leave, given those in flight now.
    pub(super) fn in_network_then(&self, flow: &FlowState, in_flight: u64) -> u64 {
        let wait = micros(flow.next_departure.since(flow.now));
        let burst = if self.pacing_gain > UNIT { self.burst() } else { 0 };
        in_flight.saturating_add(burst).saturating_sub(segments_in(self.bandwidth(), wait))
    }

    /// Enters and leaves recovery (`bbr_set_cwnd_to_recover_or_restore`). Returns whether as many
    /// segments leave as arrive.
    fn recover(&mut self, flow: &FlowState, ack: &Ack) -> bool {
        let conserving = flow.in_flight.saturating_add(ack.delivered);
        if ack.lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(ack.lost).max(1);
        }
        let before = std::mem::replace(&mut self.before, flow.phase);
        if flow.phase == Phase::Recovery && before != Phase::Recovery {
            self.conserves = true;
            self.round_end = flow.delivered;
            self.cwnd = conserving;
        } else if before >= Phase::Recovery && flow.phase < Phase::Recovery {
            self.cwnd = self.cwnd.max(self.cwnd_before);
            self.conserves = false;
        }
        if self.conserves {
            self.cwnd = self.cwnd.max(conserving);
        }
        self.conserves
    }

    pub(super) fn set_window(&mut self, flow: &FlowState, ack: &Ack) {
        if ack.delivered > 0 && !self.recover(flow, ack) {
            let bandwidth = self.bandwidth();
            let mut target = self.path(bandwidth, self.cwnd_gain);
            if self.is_full {
                let most = segments_in(bandwidth, MOST_AGGREGATION);
                target = target.saturating_add(self.aggregation.extra().min(most));
            }
            let target = self.with_room(target);
            // The kernel's count includes the SYN.
            let delivered = flow.delivered.saturating_add(1);
            if self.is_full {
                self.cwnd = self.cwnd.saturating_add(ack.delivered).min(target);
            } else if self.cwnd < target || delivered < FIRST_SEGMENTS {
                self.cwnd = self.cwnd.saturating_add(ack.delivered);
            }
            self.cwnd = self.cwnd.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(LEAST_WINDOW);
        }
    }
}
