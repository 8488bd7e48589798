//! RACK: a segment is lost when one that left later has arrived and a reordering window has passed
//! (RFC 8985 §6).

use super::Loss;
use super::scoreboard::{Overdue, Progress, Sent};
use crate::settings::Settings;
use std::cmp::Ordering;
use tcplab_units::{Duration, Time};

/// Recoveries for which a widened window is kept (RFC 8985 §6.2 step 4).
const PERSIST: u8 = 16;
/// Windows grow by quarters of the least RTT.
const STEP: u64 = 4;
/// `tcp_max_reordering`.
const MOST_REORDERING: u64 = 300;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: the latest sent of all that was delivered.
    pub(super) latest: (Time, u64),
    /// `RACK.rtt`.
    pub(super) rtt: Duration,
    /// Something was delivered since losses were last looked for.
    pub(super) advanced: bool,
    /// `RACK.reordering_seen`.
    pub(super) reordering_seen: bool,
    /// The most segments by which one was seen to come late; 0 is as many as `dup_thresh`.
    pub(super) reordering: u32,
    /// `RACK.reo_wnd_mult`.
    pub(super) steps: u8,
    persist: u8,
    /// A DSACK came and has not widened the window yet.
    dsack: bool,
    /// `RACK.dsack_round`: until this is acknowledged, no DSACK widens it again. Linux counts
    /// segments delivered instead.
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
            steps: 1,
            persist: 0,
            dsack: false,
            dsack_round: 0,
            timed_out: Time::NEVER,
        }
    }
}

impl Rack {
    /// Takes in what was delivered (RFC 8985 §6.2 step 2).
    #[inline]
    pub fn advance(&mut self, now: Time, progress: &Progress, settings: &Settings) {
        if let Some(left) = progress.last_left {
            self.advanced = true;
            self.rtt = settings.behaviour.clock.elapsed(now, left);
        }
        if let Some(latest) = progress.latest {
            self.latest = self.latest.max(latest);
        }
    }

    /// Something was delivered twice, and reordering is why.
    pub fn note_duplicate(&mut self) {
        self.dsack |= self.reordering_seen;
    }

    /// Widens the window once a round trip for what was delivered twice, and forgets that after a
    /// while (RFC 8985 §6.2 step 4). A round trip is over when what was sent at `end`, or later,
    /// comes to `reached`.
    #[inline]
    pub fn adapt(&mut self, reached: u64, end: u64) {
        if reached < self.dsack_round {
            self.dsack = false;
        }
        if std::mem::take(&mut self.dsack) {
            self.steps = self.steps.saturating_add(1);
            self.dsack_round = end;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ended that was needed.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was undone by DSACK.
    pub fn undone_by_dsack(&mut self) {
        self.persist = PERSIST.min(self.persist + 1);
    }

    /// The judgment of losses has to be made anew.
    pub fn reconsider(&mut self) {
        self.advanced = true;
    }
}

impl Loss {
    /// Segments by which others may come late (`tp->reordering` of Linux).
    pub fn reordering(&self, settings: &Settings) -> u32 {
        let seen = self.rack.reordering;
        if seen == 0 { settings.dup_thresh } else { seen }
    }

    /// Segments may come late by as many as this; 0 is `dup_thresh`.
    pub fn set_reordering(&mut self, segments: u64) {
        self.rack.reordering = segments.min(MOST_REORDERING) as u32;
    }

    /// Whether `segments` is more reordering than was seen before.
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
    pub fn see_reordering(&mut self) {
        self.rack.reordering_seen = true;
    }

    /// Learns from the departure times of the segments delivered (RFC 8985 §6.2 step 2).
    #[inline]
    pub fn follow_departures(&mut self, now: Time, progress: &Progress, settings: &Settings) {
        self.rack.advance(now, progress, settings);
    }

    /// Widens the reordering window for a DSACK, once a round trip (RFC 8985 §6.2 step 4).
    #[inline]
    pub fn adapt_reordering_window(&mut self, reached: u64, end: u64) {
        self.rack.adapt(reached, end);
    }

    /// How long after a later one was delivered a segment may still be under way.
    fn reordering_window(
        &self,
        min_rtt: Duration,
        srtt: Duration,
        settings: &Settings,
    ) -> Duration {
        if !self.rack.reordering_seen
            && (self.recovery.is_repairing()
                || self.board.sacked() >= u64::from(settings.dup_thresh))
        {
            return Duration::ZERO;
        }
        let min_rtt = if min_rtt == Duration::MAX { Duration::ZERO } else { min_rtt };
        let step = settings.behaviour.clock.in_ticks(min_rtt / STEP);
        step.saturating_mul(self.rack.steps.into()).min(srtt)
    }

    /// Whether anything was delivered since losses were last looked for by time; the look is taken.
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.rack.advanced)
    }

    /// Finds losses by time (RFC 8985 §6.2 step 5). `packet_end`: the end of the packet that a
    /// segment was sent in.
    pub fn judge_by_time(
        &mut self,
        now: Time,
        (min_rtt, srtt): (Duration, Duration),
        packet_end: impl Fn(&Sent) -> u64,
        settings: &Settings,
    ) -> Overdue {
        let clock = settings.behaviour.clock;
        let allowed = self.rack.rtt + self.reordering_window(min_rtt, srtt, settings);
        let latest = self.rack.latest;
        let left = |left_at| allowed.saturating_sub(clock.elapsed(now, left_at));
        let is_later = |segment: &Sent| match clock.departure(segment.left_at).cmp(&latest.0) {
            Ordering::Less => false,
            // The kernel compares packets, which end with their last segment
            // (`tcp_skb_sent_after`).
            Ordering::Equal => latest.1 <= packet_end(segment),
            Ordering::Greater => true,
        };
        self.board.judge_by_time(is_later, left)
    }

    /// The departure time from which on a segment is spared by a timeout: it has not had the last
    /// RTT.
    pub fn recent(&self, now: Time, sack: bool, settings: &Settings) -> Time {
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
    fn a_second_report_within_a_round_trip_does_not_widen_the_window() {
        let mut rack = Rack { reordering_seen: true, ..Rack::default() };
        // RFC 8985 §6.2 step 4: once a round trip, which ends when what came after it is delivered.
        for (reached, end, steps) in
            [(10, 30, 2), (20, 40, 2), (30, 50, 3), (49, 60, 3), (50, 70, 4)]
        {
            rack.note_duplicate();
            rack.adapt(reached, end);
            assert_eq!(rack.steps, steps, "{reached}");
        }
    }
}
