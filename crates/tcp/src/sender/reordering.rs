//! Reordering and RACK loss detection (RFC 8985 §6), as far as they concern more than the
//! scoreboard.

use crate::context::Context;
use crate::loss::{AckSigns, Progress, RackResult, Sent};
use crate::sender::Sender;
use crate::timer::Kind;

impl Sender {
    /// Counts duplicate ACKs without SACK.
    #[inline]
    pub(crate) fn count_dup_acks(
        &mut self,
        context: Context<'_>,
        seen: AckSigns,
        progress: &mut Progress,
    ) {
        let space = self.sequence_space();
        if let Some(late) = self.loss.count_dup_acks(seen, progress, space, context.settings) {
            self.set_reordering(context, late);
        }
    }

    /// A segment arrived late by this many segments (`tcp_check_sack_reordering`).
    pub(crate) fn raise_reordering(&mut self, context: Context<'_>, segments: u64) {
        if self.loss.is_more_reordering(segments, context.settings) {
            self.set_reordering(context, segments);
        }
    }

    /// After a timeout with many segments SACKed, the reordering degree returns to its default
    /// (`tcp_enter_loss`).
    pub(crate) fn reset_reordering(&mut self, context: Context<'_>) {
        if self.loss.scoreboard().sacked() >= u64::from(context.settings.dup_thresh) {
            self.set_reordering(context, 0);
        }
    }

    fn set_reordering(&mut self, context: Context<'_>, segments: u64) {
        self.loss.set_reordering(segments);
        let reordering = self.loss.reordering(context.settings);
        self.departure.expect_reordering(reordering);
    }

    /// RACK loss detection after a delivery (`tcp_rack_mark_lost`). Sets the reordering timer for
    /// segments that may be lost.
    pub(crate) fn rack_mark_lost(&mut self, context: Context<'_>) -> RackResult {
        let settings = context.settings;
        if !self.loss.take_advanced() {
            return RackResult::default();
        }
        let found = self.rack_detect_loss(context);
        if let Some(wait) = found.wait {
            let wait =
                (wait + settings.behaviour.timeout_min).min(self.rtt.rto(&settings.rto_limits()));
            self.timer.set(context, Kind::Reorder, wait);
        }
        found
    }

    fn rack_detect_loss(&mut self, context: Context<'_>) -> RackResult {
        let now = context.now;
        let departure = &self.departure;
        let packet_end = |segment: &Sent| {
            departure.packet_end(segment.start).map_or(segment.end(), |end| end.max(segment.end()))
        };
        let rtts = (self.rtt.min_rtt(), self.rtt.srtt());
        let found = self.loss.rack_detect_loss(context, rtts, packet_end);
        self.lost += found.lost;
        self.report_losses(now);
        found
    }

    /// The reordering timer expired (RFC 8985 §6.3).
    pub(crate) fn on_reordering_timer(&mut self, context: Context<'_>) {
        let found = self.rack_detect_loss(context);
        if found.lost > 0 {
            self.loss.note_reordering_over(context.now);
            if !self.loss.recovery().is_in_recovery() {
                self.enter_recovery(context, false);
                self.update_reduction(1, found.lost, false);
            }
            self.loss.retransmit_lost();
        }
        if self.timer.kind != Kind::Retransmit {
            self.rearm_rto(context);
        }
    }
}
