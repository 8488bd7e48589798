//! RACK: a segment is lost when a segment that left later was delivered and a reordering window has
//! passed since (RFC 8985 §6).

use super::Loss;
use super::scoreboard::{Progress, RackResult, Sent};
use crate::context::Context;
use crate::settings::Settings;
use std::cmp::Ordering;
use tcplab_units::{Duration, Time};

/// Recoveries for which a widened reordering window is kept (RFC 8985 §6.2 step 4).
const PERSIST: u8 = 16;
/// The window grows by quarters of the minimum RTT.
const STEP: u64 = 4;
/// `tcp_max_reordering`.
const MOST_REORDERING: u64 = 300;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: the segment sent last of those delivered.
    pub(super) latest: (Time, u64),
    /// `RACK.rtt`.
    pub(super) rtt: Duration,
    /// A segment was delivered since the last loss detection.
    pub(super) advanced: bool,
    /// `RACK.reordering_seen`.
    pub(super) reordering_seen: bool,
    /// Reordering degree in segments (`tp->reordering`); 0 means `dup_thresh`.
    pub(super) reordering: u32,
    /// `RACK.reo_wnd_mult`.
    pub(super) reo_wnd_mult: u8,
    reo_wnd_persist: u8,
    /// A DSACK arrived and has not widened the window yet.
    dsack_pending: bool,
    /// `RACK.dsack_round`: until this is acknowledged, no DSACK widens the window again. Linux
    /// counts delivered segments instead.
    dsack_round: u64,
    /// When the reordering timer last found losses.
    timed_out: Time,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            latest: (Time::ZERO, 0),
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            reordering: 0,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_pending: false,
            dsack_round: 0,
            timed_out: Time::NEVER,
        }
    }
}

impl Rack {
    /// Takes in the deliveries of an ACK (RFC 8985 §6.2 step 2).
    #[inline]
    pub fn advance(&mut self, context: Context<'_>, progress: &Progress) {
        if let Some(left) = progress.last_left {
            self.advanced = true;
            self.rtt = context.settings.behaviour.clock.elapsed(context.now, left);
        }
        if let Some(latest) = progress.latest {
            self.latest = self.latest.max(latest);
        }
    }

    /// A DSACK arrived; reordering may be the cause.
    pub fn note_duplicate(&mut self) {
        self.dsack_pending |= self.reordering_seen;
    }

    /// Widens the reordering window for DSACKs, at most once a round trip, and narrows it after a
    /// while (RFC 8985 §6.2 step 4). A round trip ends when data sent at or after `end` comes to
    /// `reached`.
    #[inline]
    pub fn update_reo_wnd(&mut self, reached: u64, end: u64) {
        if reached < self.dsack_round {
            self.dsack_pending = false;
        }
        if std::mem::take(&mut self.dsack_pending) {
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.dsack_round = end;
            self.reo_wnd_persist = PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// A genuine recovery ended.
    pub fn recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// A recovery was undone by DSACK.
    pub fn undone_by_dsack(&mut self) {
        self.reo_wnd_persist = PERSIST.min(self.reo_wnd_persist + 1);
    }

    /// Loss detection has to run again.
    pub fn set_advanced(&mut self) {
        self.advanced = true;
    }
}

impl Loss {
    /// The reordering degree in segments (`tp->reordering`).
    pub fn reordering(&self, settings: &Settings) -> u32 {
        let seen = self.rack.reordering;
        if seen == 0 { settings.dup_thresh } else { seen }
    }

    /// Sets the reordering degree; 0 means `dup_thresh`.
    pub fn set_reordering(&mut self, segments: u64) {
        self.rack.reordering = segments.min(MOST_REORDERING) as u32;
    }

    /// Whether `segments` exceeds the reordering degree known so far.
    pub fn is_more_reordering(&self, segments: u64, settings: &Settings) -> bool {
        segments.min(MOST_REORDERING) as u32 > self.reordering(settings)
    }

    /// The reordering timer ran out, and found losses.
    pub fn note_reordering_over(&mut self, now: Time) {
        self.rack.timed_out = now;
    }

    /// Whether that is now.
    #[inline]
    pub fn is_reordering_over(&self, now: Time) -> bool {
        self.rack.timed_out == now
    }

    /// RACK has seen reordering.
    pub fn set_reordering_seen(&mut self) {
        self.rack.reordering_seen = true;
    }

    /// Takes in the departure times of the delivered segments (RFC 8985 §6.2 step 2).
    #[inline]
    pub fn rack_advance(&mut self, context: Context<'_>, progress: &Progress) {
        self.rack.advance(context, progress);
    }

    /// Widens the reordering window for a DSACK, once a round trip (RFC 8985 §6.2 step 4).
    #[inline]
    pub fn rack_update_reo_wnd(&mut self, reached: u64, end: u64) {
        self.rack.update_reo_wnd(reached, end);
    }

    /// The reordering window: how long a segment may be outstanding after a later one was delivered
    /// (`tcp_rack_reo_wnd`).
    fn reordering_window(
        &self,
        min_rtt: Duration,
        srtt: Duration,
        settings: &Settings,
    ) -> Duration {
        if !self.rack.reordering_seen
            && (self.recovery.is_recovering()
                || self.scoreboard.sacked() >= u64::from(settings.dup_thresh))
        {
            return Duration::ZERO;
        }
        let min_rtt = if min_rtt == Duration::MAX { Duration::ZERO } else { min_rtt };
        let step = settings.behaviour.clock.in_ticks(min_rtt / STEP);
        step.saturating_mul(self.rack.reo_wnd_mult.into()).min(srtt)
    }

    /// Whether a segment was delivered since the last loss detection; the flag is cleared.
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.rack.advanced)
    }

    /// Detects losses by time (RFC 8985 §6.2 step 5; `tcp_rack_detect_loss`). `packet_end` returns
    /// the end of the packet in which a segment was sent.
    pub fn rack_detect_loss(
        &mut self,
        context: Context<'_>,
        (min_rtt, srtt): (Duration, Duration),
        packet_end: impl Fn(&Sent) -> u64,
    ) -> RackResult {
        let Context { now, settings } = context;
        let clock = settings.behaviour.clock;
        let allowed = self.rack.rtt + self.reordering_window(min_rtt, srtt, settings);
        let latest = self.rack.latest;
        let left = |left_at| allowed.saturating_sub(clock.elapsed(now, left_at));
        let is_later = |segment: &Sent| match clock.departure(segment.left_at).cmp(&latest.0) {
            Ordering::Less => false,
            // The kernel compares packets, whose end is that of their last segment
            // (`tcp_skb_sent_after`).
            Ordering::Equal => latest.1 <= packet_end(segment),
            Ordering::Greater => true,
        };
        self.scoreboard.detect_by_time(is_later, left)
    }

    /// A timeout does not mark segments lost that left after this: they were sent less than the
    /// last RTT ago.
    pub fn spared_after(&self, context: Context<'_>, sack: bool) -> Time {
        let Context { now, settings } = context;
        if settings.rack && sack {
            settings.behaviour.clock.before(now, self.rack.rtt)
        } else {
            Time::NEVER
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reo_wnd_grows_by_dsack_at_most_once_per_round_trip() {
        let mut rack = Rack { reordering_seen: true, ..Rack::default() };
        // RFC 8985 §6.2 step 4: once a round trip, which ends when what came after it is delivered.
        for (reached, end, steps) in
            [(10, 30, 2), (20, 40, 2), (30, 50, 3), (49, 60, 3), (50, 70, 4)]
        {
            rack.note_duplicate();
            rack.update_reo_wnd(reached, end);
            assert_eq!(rack.reo_wnd_mult, steps, "{reached}");
        }
    }
}
