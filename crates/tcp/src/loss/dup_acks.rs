//! Duplicate ACKs without SACK: each stands for one delivered segment, as if SACK had reported it.
//!
//! At most all outstanding segments except the missing one can be delivered (RFC 5681 §3.2, RFC
//! 6582 §3.2). Linux takes more duplicate ACKs than that for a sign of reordering, by as many
//! segments (`tcp_check_reno_reordering`).

use super::scoreboard::Progress;
use super::{AckSigns, Loss};
use crate::settings::Settings;
use tcplab_cc::Phase;

/// The sequence space of a sender, for loss detection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceSpace {
    /// SND.UNA: the oldest offset that is not acknowledged.
    pub una: u64,
    /// SND.NXT: the next offset to be sent for the first time.
    pub nxt: u64,
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// SACK is in use.
    pub sack: bool,
}

impl Loss {
    /// Counts an ACK without SACK blocks. Returns the reordering degree, in segments, that too many
    /// duplicate ACKs show.
    #[inline]
    pub fn count_dup_acks(
        &mut self,
        seen: AckSigns,
        progress: &mut Progress,
        space: SequenceSpace,
        settings: &Settings,
    ) -> Option<u64> {
        let Self { recovery, scoreboard, .. } = self;
        if progress.acked > 0 {
            recovery.stalled = false;
            // Duplicate ACKs had counted these segments as delivered, all except the missing one.
            let reported = recovery.dup_delivered.min(progress.acked - 1);
            progress.delivered -= reported.min(progress.delivered);
            recovery.dup_delivered -= reported;
            recovery.dup_acks = 0;
            if recovery.dup_delivered > 0 && settings.behaviour.emulates_sack {
                return self.limit_reno_sacked(progress.acked);
            }
        } else if seen.duplicate {
            if recovery.dup_acks == 0 {
                recovery.flight = scoreboard.outstanding();
            }
            recovery.dup_acks += 1;
            if space.sack {
                return None;
            }
            if settings.behaviour.emulates_sack {
                let (delivered, reordering) = self.add_reno_sack(space);
                progress.delivered += delivered;
                return reordering;
            }
            if recovery.dup_delivered + scoreboard.lost().max(1) < scoreboard.outstanding() {
                // At least one segment is missing, or the ACK would not be a duplicate.
                recovery.dup_delivered += 1;
                progress.delivered += 1;
            }
        }
        None
    }

    /// Counts another duplicate ACK (`tcp_add_reno_sack`). Returns the segments that it shows to be
    /// delivered, and the reordering degree.
    fn add_reno_sack(&mut self, space: SequenceSpace) -> (u64, Option<u64>) {
        let end = self.recovery.end;
        let counts = match self.recovery.phase {
            // The recovery point is acknowledged, though the episode is still open.
            Phase::Recovery | Phase::Loss if space.una >= end => false,
            // Only segments sent since the timeout can cause duplicates (`tcp_process_loss`).
            Phase::Loss => space.nxt > end,
            _ => true,
        };
        if !counts {
            return (0, None);
        }
        let before = self.recovery.dup_delivered;
        self.recovery.dup_delivered += 1;
        let reordering = self.limit_reno_sacked(0);
        (self.recovery.dup_delivered.saturating_sub(before), reordering)
    }

    /// Limits the delivered segments to the outstanding ones, the present ACK's `acked` included,
    /// less the missing ones. More than that is reordering (`tcp_limit_reno_sacked`,
    /// `tcp_check_reno_reordering`).
    fn limit_reno_sacked(&mut self, acked: u64) -> Option<u64> {
        let Self { recovery, scoreboard, .. } = self;
        let outstanding = scoreboard.outstanding();
        let holes = scoreboard.lost().max(1).min(outstanding);
        (recovery.dup_delivered + holes > outstanding).then(|| {
            recovery.dup_delivered = outstanding - holes;
            outstanding + acked
        })
    }

    /// Whether the number of duplicate ACKs shows a loss.
    pub(super) fn has_enough_duplicates(&self, sack: bool, settings: &Settings) -> bool {
        if settings.behaviour.emulates_sack && !sack {
            // `tcp_newreno_mark_lost`.
            return self.recovery.dup_delivered >= self.reordering(settings).into();
        }
        self.recovery.dup_acks >= settings.dup_thresh
    }
}
