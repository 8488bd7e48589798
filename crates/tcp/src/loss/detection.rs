//! Loss detection by counting: of SACKed data (RFC 6675, or FACK), or without SACK of duplicate and
//! partial ACKs (RFC 6582 and its predecessors). Detection by time is in `rack`.

use super::dup_acks::SequenceSpace;
use super::{AckSigns, Loss};
use crate::settings::{LossRecovery, Settings, WindowReduction};
use tcplab_cc::Phase;

impl Loss {
    /// Marks losses that an ACK shows. Returns how many.
    pub fn detect_by_counting(
        &mut self,
        seen: AckSigns,
        space: SequenceSpace,
        settings: &Settings,
    ) -> u64 {
        let in_recovery = self.recovery.phase == Phase::Recovery;
        let is_before_recovery = self.recovery.phase < Phase::Recovery;
        let enough = self.has_enough_duplicates(space.sack, settings);
        let mut lost = 0;
        if !space.sack {
            // Duplicate ACKs caused by retransmissions of the last episode do not begin another
            // (RFC 6582 §4.1). Reno has no such rule.
            let heeded = space.una > self.recovery.end
                || !settings.behaviour.avoids_repeated_fast_retransmit
                || settings.recovery == LossRecovery::Reno;
            if is_before_recovery && enough && heeded {
                lost = self.scoreboard.mark_head_lost();
            } else if in_recovery && seen.advanced {
                // A partial ACK: the next missing segment is lost, too (RFC 6582 §3.2 step 3).
                self.recovery.partial_acks += 1;
                self.recovery.retransmission_pending =
                    settings.reduction == WindowReduction::AtOnce;
                lost = self.scoreboard.mark_head_lost();
            }
        } else if settings.behaviour.counts_sacked_segments && !settings.fack {
            if is_before_recovery || in_recovery {
                lost =
                    self.detect_by_sacked_segments(seen, space, self.reordering(settings).into());
            }
        } else if is_before_recovery || in_recovery {
            if self.scoreboard.sacked() > 0 {
                lost = if settings.fack {
                    self.scoreboard.detect_by_fack(settings.dup_thresh)
                } else {
                    self.scoreboard.detect_by_blocks(settings.dup_thresh, space.mss)
                };
            }
            if is_before_recovery && (lost > 0 || enough) {
                lost += self.scoreboard.mark_head_lost();
            }
        }
        lost
    }

    /// Loss detection by the number of SACKed segments, in Linux without RACK. Only this ACK's
    /// effect is considered (`tcp_time_to_recover`, `tcp_update_scoreboard`).
    fn detect_by_sacked_segments(
        &mut self,
        seen: AckSigns,
        space: SequenceSpace,
        reordering: u64,
    ) -> u64 {
        let Self { scoreboard, recovery, .. } = self;
        let is_calm = recovery.phase < Phase::Recovery;
        if is_calm && scoreboard.lost() == 0 && scoreboard.sacked() < reordering {
            return 0;
        }
        // `tcp_force_fast_retransmit`.
        let is_far =
            scoreboard.highest_sacked().unwrap_or(space.una) > space.una + reordering * space.mss;
        let is_shown = is_far && (seen.reports || !is_calm);
        if seen.advanced && !is_shown {
            0
        } else if scoreboard.sacked() >= reordering {
            scoreboard.detect_by_count(reordering)
        } else if is_calm {
            scoreboard.mark_head_lost()
        } else {
            0
        }
    }
}
