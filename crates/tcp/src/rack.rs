//! RACK: a segment is lost when one that left later has arrived and a reordering window has passed
//! (RFC 8985 §6).

use crate::scoreboard::{Overdue, Progress, Sent};
use crate::sender::Sender;
use crate::settings::Settings;
use crate::timer::Kind;
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
    latest: (Time, u64),
    /// `RACK.rtt`.
    pub rtt: Duration,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    /// `RACK.reordering_seen`.
    pub reordering_seen: bool,
    /// The most segments by which one was seen to come late; 0 is as many as `dup_thresh`.
    reordering: u32,
    /// `RACK.reo_wnd_mult`.
    steps: u8,
    persist: u8,
    /// A DSACK came and has not widened the window yet.
    dsack: bool,
    /// `RACK.dsack_round`: until this is acknowledged, no DSACK widens it again. Linux counts segments
    /// delivered instead.
    dsack_round: u64,
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

    /// Widens the window once a round trip for what was delivered twice, and forgets that after a while
    /// (RFC 8985 §6.2 step 4). A round trip is over when what was sent at `end`, or later, comes to
    /// `reached`.
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

impl Sender {
    /// Segments by which others may come late (`tp->reordering` of Linux).
    pub(crate) fn reordering(&self, settings: &Settings) -> u32 {
        let seen = self.flight.rack.reordering;
        if seen == 0 { settings.dup_thresh } else { seen }
    }

    /// A segment came so many segments late.
    pub(crate) fn widen_reordering(&mut self, segments: u64, settings: &Settings) {
        let segments = segments.min(MOST_REORDERING) as u32;
        if segments > self.reordering(settings) {
            self.set_reordering(segments, settings);
        }
    }

    /// Segments come late by as many, be it fewer than was thought.
    pub(crate) fn take_reordering(&mut self, segments: u64, settings: &Settings) {
        self.set_reordering(segments.min(MOST_REORDERING) as u32, settings);
    }

    /// A timeout with many segments reported shows that less comes late than was thought
    /// (`tcp_enter_loss`).
    pub(crate) fn distrust_reordering(&mut self, settings: &Settings) {
        if self.flight.board.sacked() >= u64::from(settings.dup_thresh) {
            self.set_reordering(0, settings);
        }
    }

    fn set_reordering(&mut self, segments: u32, settings: &Settings) {
        self.flight.rack.reordering = segments;
        let reordering = self.reordering(settings);
        if let Some(buffer) = &mut self.buffer {
            buffer.expect_reordering(reordering);
        }
    }

    /// How long after a later one was delivered a segment may still be under way.
    fn reordering_window(&self, settings: &Settings) -> Duration {
        if !self.flight.rack.reordering_seen
            && (self.flight.recovery.is_repairing()
                || self.flight.board.sacked() >= u64::from(settings.dup_thresh))
        {
            return Duration::ZERO;
        }
        let min_rtt = if self.min_rtt == Duration::MAX { Duration::ZERO } else { self.min_rtt };
        let step = settings.behaviour.clock.in_ticks(min_rtt / STEP);
        step.saturating_mul(self.flight.rack.steps.into()).min(self.rtt.srtt())
    }

    /// Finds losses by time, if anything was delivered; sets the timer for those under suspicion.
    pub(crate) fn detect_by_time(&mut self, now: Time, settings: &Settings) -> Overdue {
        if !std::mem::take(&mut self.flight.rack.advanced) {
            return Overdue::default();
        }
        let found = self.judge_by_time(now, settings);
        if let Some(wait) = found.wait {
            let wait =
                (wait + settings.behaviour.timeout_min).min(self.rtt.rto(&settings.rto_limits()));
            self.timer.set(Kind::Reorder, now, wait, settings);
        }
        found
    }

    fn judge_by_time(&mut self, now: Time, settings: &Settings) -> Overdue {
        let allowed = self.flight.rack.rtt + self.reordering_window(settings);
        let latest = self.flight.rack.latest;
        let left = |left_at| allowed.saturating_sub(settings.behaviour.clock.elapsed(now, left_at));
        let buffer = &self.buffer;
        let is_later = |segment: &Sent| match settings
            .behaviour
            .clock
            .departure(segment.left_at)
            .cmp(&latest.0)
        {
            Ordering::Less => false,
            // Packets of the kernel are compared, which end with their last segment
            // (`tcp_skb_sent_after`).
            Ordering::Equal => {
                latest.1
                    <= buffer.as_ref().map_or(segment.end(), |buffer| {
                        buffer.packet_end(segment.start).max(segment.end())
                    })
            }
            Ordering::Greater => true,
        };
        let found = self.flight.board.judge_by_time(is_later, left);
        self.lost += found.lost;
        self.report_losses(now);
        found
    }

    /// Those under suspicion have had their time (RFC 8985 §6.3).
    pub(crate) fn on_reordering_timer(&mut self, now: Time, settings: &Settings) {
        let found = self.judge_by_time(now, settings);
        if found.lost > 0 {
            if !self.flight.recovery.is_in_recovery() {
                self.enter_recovery(now, false, settings);
                self.reduce(1, found.lost, false);
            }
            self.flight.recovery.repair_lost();
        }
        if self.timer.kind != Kind::Retransmit {
            self.rearm(now, settings);
        }
    }

    /// When the first segment left that may not be lost because too little time has passed: after the
    /// last RTT before now.
    pub(crate) fn recent(&self, now: Time, settings: &Settings) -> Time {
        if settings.rack && self.sack {
            settings.behaviour.clock.before(now, self.flight.rack.rtt)
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
