//! Loss detection by counting: SACK blocks (RFC 6675, or FACK), or without SACK duplicate and
//! partial ACKs (RFC 6582, or its forerunners). Detection by time is in `rack`.

use super::dup_acks::Space;
use super::{Loss, Seen};
use crate::settings::{LossRecovery, Settings, WindowReduction};
use tcplab_cc::Phase;

impl Loss {
    /// Finds losses by an ACK. Returns how many.
    pub fn find_by_count(&mut self, seen: Seen, space: Space, settings: &Settings) -> u64 {
        let in_recovery = self.recovery.phase == Phase::Recovery;
        let calm = self.recovery.phase < Phase::Recovery;
        let enough = self.has_enough_duplicates(space.sack, settings);
        let mut lost = 0;
        if !space.sack {
            // Duplicates of what the last episode sent twice do not begin another (RFC 6582 §4.1).
            // Reno knew nothing of that.
            let heeded = space.una > self.recovery.end
                || !settings.behaviour.avoids_repeated_fast_retransmit
                || settings.recovery == LossRecovery::Reno;
            if calm && enough && heeded {
                lost = self.board.lose_front();
            } else if in_recovery && seen.advanced {
                // A partial ACK: the next hole is lost too (RFC 6582 §3.2 step 3).
                self.recovery.partial_acks += 1;
                self.recovery.owes_retransmission = settings.reduction == WindowReduction::AtOnce;
                lost = self.board.lose_front();
            }
        } else if settings.behaviour.counts_sacked_segments && !settings.fack {
            if calm || in_recovery {
                lost = self.find_by_segments(seen, space, self.reordering(settings).into());
            }
        } else if calm || in_recovery {
            if self.board.sacked() > 0 {
                lost = if settings.fack {
                    self.board.detect_by_fack(settings.dup_thresh)
                } else {
                    self.board.judge(settings.dup_thresh, space.mss)
                };
            }
            if calm && (lost > 0 || enough) {
                lost += self.board.lose_front();
            }
        }
        lost
    }

    /// Segments are counted, not bytes or blocks, and only those that might be lost because of this
    /// ACK are looked at (`tcp_time_to_recover`, `tcp_update_scoreboard`).
    fn find_by_segments(&mut self, seen: Seen, space: Space, reordering: u64) -> u64 {
        let Self { board, recovery, .. } = self;
        let is_calm = recovery.phase < Phase::Recovery;
        if is_calm && board.lost() == 0 && board.sacked() < reordering {
            return 0;
        }
        // `tcp_force_fast_retransmit`.
        let is_far =
            board.highest_sacked().unwrap_or(space.una) > space.una + reordering * space.mss;
        let is_shown = is_far && (seen.reports || !is_calm);
        if seen.advanced && !is_shown {
            0
        } else if board.sacked() >= reordering {
            board.judge_by_count(reordering)
        } else if is_calm {
            board.lose_front()
        } else {
            0
        }
    }
}
