//! Reordering and losses found by time (RFC 8985 §6), as far as they concern more than the
//! scoreboard.

use crate::context::Context;
use crate::loss::{Overdue, Progress, Seen, Sent};
use crate::sender::Sender;
use crate::timer::Kind;

impl Sender {
    /// Counts an ACK without SACK blocks.
    #[inline]
    pub(crate) fn count_duplicates(
        &mut self,
        context: Context<'_>,
        seen: Seen,
        progress: &mut Progress,
    ) {
        let space = self.space();
        if let Some(late) = self.loss.count_duplicates(seen, progress, space, context.settings) {
            self.set_reordering(context, late);
        }
    }

    /// A segment came so many segments late.
    pub(crate) fn widen_reordering(&mut self, context: Context<'_>, segments: u64) {
        if self.loss.is_more_reordering(segments, context.settings) {
            self.set_reordering(context, segments);
        }
    }

    /// A timeout with many segments reported shows that less comes late than was thought
    /// (`tcp_enter_loss`).
    pub(crate) fn distrust_reordering(&mut self, context: Context<'_>) {
        if self.loss.scoreboard().sacked() >= u64::from(context.settings.dup_thresh) {
            self.set_reordering(context, 0);
        }
    }

    fn set_reordering(&mut self, context: Context<'_>, segments: u64) {
        self.loss.set_reordering(segments);
        let reordering = self.loss.reordering(context.settings);
        self.departure.expect_reordering(reordering);
    }

    /// Finds losses by time, if anything was delivered; sets the timer for those under suspicion.
    pub(crate) fn detect_by_time(&mut self, context: Context<'_>) -> Overdue {
        let Context { now, settings } = context;
        if !self.loss.take_advanced() {
            return Overdue::default();
        }
        let found = self.judge_by_time(context);
        if let Some(wait) = found.wait {
            let wait =
                (wait + settings.behaviour.timeout_min).min(self.rtt.rto(&settings.rto_limits()));
            self.timer.set(Kind::Reorder, now, wait, settings);
        }
        found
    }

    fn judge_by_time(&mut self, context: Context<'_>) -> Overdue {
        let now = context.now;
        let departure = &self.departure;
        let packet_end = |segment: &Sent| {
            departure.packet_end(segment.start).map_or(segment.end(), |end| end.max(segment.end()))
        };
        let rtts = (self.rtt.min_rtt(), self.rtt.srtt());
        let found = self.loss.judge_by_time(now, rtts, packet_end, context.settings);
        self.lost += found.lost;
        self.report_losses(now);
        found
    }

    /// The reordering timer ran out (RFC 8985 §6.3).
    pub(crate) fn on_reordering_timer(&mut self, context: Context<'_>) {
        let found = self.judge_by_time(context);
        if found.lost > 0 {
            self.loss.note_reordering_over(context.now);
            if !self.loss.recovery().is_in_recovery() {
                self.enter_recovery(context, false);
                self.reduce(1, found.lost, false);
            }
            self.loss.repair_lost();
        }
        if self.timer.kind != Kind::Retransmit {
            self.rearm(context);
        }
    }
}
