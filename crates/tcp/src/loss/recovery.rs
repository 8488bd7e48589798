//! The state of a recovery: the phase, the recovery point, and what may be retransmitted.
//!
//! Without SACK each duplicate ACK stands for one segment that arrived, as if it had been SACKed.
//! That makes the window inflation of RFC 5681 §3.2 and its deflation by partial ACKs (RFC 6582
//! §3.2) a matter of counting segments in flight, the same for both.

use crate::settings::{LossRecovery, Settings};
use tcplab_cc::Phase;

/// The retransmissions that the last event allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// New data only.
    Nothing,
    /// Lost segments, and then new data.
    Lost,
    /// New data, and only if there is none what is lost (F-RTO, RFC 5682 §3.1 step 2b).
    NewFirst,
}

/// The signs in an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The ACK acknowledged data, and `una` before it.
    pub advanced: bool,
    pub before: u64,
    /// The ACK is a duplicate: it acknowledges, carries and changes nothing (RFC 5681 §2).
    pub duplicate: bool,
    /// The ACK reports segments, and some for the first time.
    pub reports: bool,
    /// When what it answers had left, by the clock of its timestamp.
    pub echoed: Option<u64>,
    /// The receiver got marks of congestion.
    pub marked: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(super) phase: Phase,
    /// `RecoveryPoint` (RFC 6675), `recover` (RFC 6582): acknowledging this ends the episode.
    pub(super) end: u64,
    pub(super) dup_acks: u32,
    /// Segments outstanding when the first of those ACKs came.
    pub(super) flight: u64,
    /// Without SACK: segments that duplicate ACKs have reported.
    pub(super) dup_delivered: u64,
    /// The first retransmission of the episode does not wait for the window.
    pub(super) owes_retransmission: bool,
    /// The one rescue of this episode has been sent (RFC 6675 §4 rule 4).
    pub(super) rescued: bool,
    pub(super) partial_acks: u32,
    /// The timer ran out and nothing was acknowledged since.
    pub(super) stalled: bool,
    /// The timeout may have been spurious (F-RTO).
    pub(super) frto: bool,
    pub(super) repair: Repair,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            dup_acks: 0,
            flight: 0,
            dup_delivered: 0,
            owes_retransmission: false,
            rescued: false,
            partial_acks: 0,
            stalled: false,
            frto: false,
            repair: Repair::Nothing,
        }
    }
}

impl Recovery {
    /// `RecoveryPoint` (RFC 6675), `recover` (RFC 6582).
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether the timer ran out and nothing was acknowledged since.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Whether a timeout may have been spurious (F-RTO).
    pub fn suspects_timeout(&self) -> bool {
        self.frto
    }

    /// Whether the next retransmission does not wait for the window.
    #[inline]
    pub fn owes_retransmission(&self) -> bool {
        self.owes_retransmission
    }

    /// Whether the next retransmission answers a timeout.
    pub fn answers_timeout(&self) -> bool {
        self.owes_retransmission && self.stalled && self.phase == Phase::Loss
    }

    /// Segments that left the network according to duplicate ACKs.
    #[inline]
    pub fn dup_delivered(&self) -> u64 {
        self.dup_delivered
    }

    /// Whether there were duplicate ACKs, too few for a loss to be detected.
    #[inline]
    pub fn has_dup_acks(&self) -> bool {
        self.phase <= Phase::Disorder && self.dup_acks > 0
    }

    #[inline]
    pub fn is_in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Losses are being repaired.
    #[inline]
    pub fn is_repairing(&self) -> bool {
        self.phase >= Phase::Recovery
    }

    /// The window is led to a smaller one, and does not grow.
    #[inline]
    pub fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Whether what is lost may be sent again, before new data or after it.
    #[inline]
    pub fn may_repair(&self, before_new: bool) -> bool {
        match self.repair {
            Repair::Nothing => false,
            Repair::Lost => before_new,
            Repair::NewFirst => !before_new,
        }
    }

    /// The retransmission timer of a SYN expired. F-RTO, if it is on, finds out whether it was
    /// spurious.
    #[cold]
    pub fn on_syn_timeout(&mut self, frto: bool) {
        self.frto = frto;
    }

    /// New data was sent first; what arrives will tell more.
    #[inline]
    pub fn on_new_data(&mut self) {
        if self.repair == Repair::NewFirst {
            self.repair = Repair::Nothing;
        }
    }

    /// Nothing new can be sent: F-RTO is given up (RFC 5682 §3.1 step 2b).
    #[inline]
    pub fn give_up_new_data(&mut self) {
        if self.repair == Repair::NewFirst {
            self.frto = false;
            self.repair = Repair::Lost;
        }
    }

    /// Whether the next segment is the first retransmission of an episode: the timer starts again
    /// with it, but not with those that later partial ACKs ask for.
    #[inline]
    pub fn begins_repair(&self) -> bool {
        self.owes_retransmission && self.partial_acks == 0
    }

    /// Whether the ACK just taken moves the retransmission timer. Partial ACKs after the first do
    /// not, without SACK (RFC 6582 §3.2), unless the sender is steady.
    #[inline]
    pub fn moves_timer(&self, settings: &Settings, sack: bool) -> bool {
        sack || settings.recovery == LossRecovery::NewRenoSteady
            || self.phase != Phase::Recovery
            || self.partial_acks <= 1
    }
}
