//! Duplicate ACKs without SACK: each stands for a segment that arrived, as if SACK had reported one.
//!
//! As many as are outstanding but for the one that is missing (RFC 5681 §3.2, RFC 6582 §3.2); more than
//! that, and Linux takes it that segments come late, by as many (`tcp_check_reno_reordering`).

use crate::recovery::{Phase, Seen};
use crate::scoreboard::Progress;
use crate::sender::{Flight, Sender};
use crate::settings::Settings;

impl Sender {
    /// Counts what duplicate and other ACKs say without SACK blocks.
    #[inline]
    pub(crate) fn count_duplicates(
        &mut self,
        seen: Seen,
        progress: &mut Progress,
        settings: &Settings,
    ) {
        let Flight { recovery, board, .. } = &mut *self.flight;
        if progress.acked > 0 {
            recovery.stalled = false;
            // Segments that duplicate ACKs reported are now acknowledged; the missing one was not among
            // them.
            let reported = recovery.dup_delivered.min(progress.acked - 1);
            progress.delivered -= reported.min(progress.delivered);
            recovery.dup_delivered -= reported;
            recovery.dup_acks = 0;
            if recovery.dup_delivered > 0 && settings.behaviour.emulates_sack {
                self.limit_duplicates(progress.acked, settings);
            }
        } else if seen.duplicate {
            if recovery.dup_acks == 0 {
                recovery.flight = board.outstanding();
            }
            recovery.dup_acks += 1;
            if self.sack {
                return;
            }
            if settings.behaviour.emulates_sack {
                progress.delivered += self.add_duplicate(settings);
            } else if recovery.dup_delivered + board.lost().max(1) < board.outstanding() {
                // At least one segment is missing, or the ACK would not be a duplicate.
                recovery.dup_delivered += 1;
                progress.delivered += 1;
            }
        }
    }

    /// Another duplicate ACK. Says how many segments more have arrived for that (`tcp_add_reno_sack`).
    fn add_duplicate(&mut self, settings: &Settings) -> u64 {
        let end = self.flight.recovery.end;
        let counts = match self.flight.recovery.phase {
            // An episode that is over but in name.
            Phase::Recovery | Phase::Loss if self.una >= end => false,
            // Only segments sent since can cause a duplicate (`tcp_process_loss`).
            Phase::Loss => self.nxt > end,
            _ => true,
        };
        if !counts {
            return 0;
        }
        let before = self.flight.recovery.dup_delivered;
        self.flight.recovery.dup_delivered += 1;
        self.limit_duplicates(0, settings);
        self.flight.recovery.dup_delivered.saturating_sub(before)
    }

    /// Of what is outstanding, with what the present ACK `acked`, not all can have been reported: else
    /// segments come late (`tcp_limit_reno_sacked`, `tcp_check_reno_reordering`).
    fn limit_duplicates(&mut self, acked: u64, settings: &Settings) {
        let Flight { recovery, board, .. } = &mut *self.flight;
        let outstanding = board.outstanding();
        let holes = board.lost().max(1).min(outstanding);
        if recovery.dup_delivered + holes > outstanding {
            recovery.dup_delivered = outstanding - holes;
            self.take_reordering(outstanding + acked, settings);
        }
    }

    /// Whether duplicate ACKs show a loss, of which so many are enough.
    pub(crate) fn has_enough_duplicates(&self, settings: &Settings) -> bool {
        if settings.behaviour.emulates_sack && !self.sack {
            // `tcp_newreno_mark_lost`.
            return self.flight.recovery.dup_delivered >= self.reordering(settings).into();
        }
        self.flight.recovery.dup_acks >= settings.dup_thresh
    }
}
