//! The state of a recovery: the phase, the recovery point, and the retransmissions that are
//! allowed.
//!
//! Without SACK each duplicate ACK stands for one delivered segment, as if it had been SACKed.
//! Window inflation (RFC 5681 §3.2) and its deflation by partial ACKs (RFC 6582 §3.2) thus become a
//! count of segments in flight, the same with and without SACK.

use crate::settings::{LossRecovery, Settings};
use tcplab_cc::Phase;

/// The transmissions that the last event allows (`REXMIT_NONE`, `REXMIT_LOST`, `REXMIT_NEW`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmit {
    /// New data only.
    Nothing,
    /// Lost segments, and then new data.
    Lost,
    /// New data, and lost segments only if there is none (F-RTO, RFC 5682 §3.1 step 2b).
    NewFirst,
}

/// What an ACK reports to loss recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSigns {
    /// The ACK acknowledged data; `una` before it.
    pub advanced: bool,
    pub before: u64,
    /// A duplicate ACK: acknowledges nothing new, has no data, and does not change the window (RFC
    /// 5681 §2).
    pub duplicate: bool,
    /// The ACK newly SACKs a segment.
    pub reports: bool,
    /// When the segment left whose timestamp the ACK echoes, by the timestamp clock.
    pub echoed: Option<u64>,
    /// The ACK reports ECN marks.
    pub marked: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(super) phase: Phase,
    /// `RecoveryPoint` (RFC 6675), `recover` (RFC 6582): the episode ends when this is
    /// acknowledged.
    pub(super) end: u64,
    pub(super) dup_acks: u32,
    /// Segments outstanding when the first of these duplicate ACKs arrived.
    pub(super) flight: u64,
    /// Without SACK: segments delivered according to duplicate ACKs.
    pub(super) dup_delivered: u64,
    /// The next retransmission ignores the window: the first of the episode.
    pub(super) retransmission_pending: bool,
    /// The rescue retransmission of this episode has been sent (RFC 6675 §4 rule 4).
    pub(super) rescued: bool,
    pub(super) partial_acks: u32,
    /// The retransmission timer expired and nothing was acknowledged since.
    pub(super) stalled: bool,
    /// F-RTO checks whether the timeout was spurious.
    pub(super) frto: bool,
    pub(super) retransmit: Retransmit,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            dup_acks: 0,
            flight: 0,
            dup_delivered: 0,
            retransmission_pending: false,
            rescued: false,
            partial_acks: 0,
            stalled: false,
            frto: false,
            retransmit: Retransmit::Nothing,
        }
    }
}

impl Recovery {
    /// `RecoveryPoint` (RFC 6675), `recover` (RFC 6582).
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether the retransmission timer expired and nothing was acknowledged since.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Whether F-RTO checks if the timeout was spurious.
    pub fn is_frto(&self) -> bool {
        self.frto
    }

    /// Whether the next retransmission ignores the window.
    #[inline]
    pub fn is_retransmission_pending(&self) -> bool {
        self.retransmission_pending
    }

    /// Whether the next retransmission follows a timeout.
    pub fn answers_timeout(&self) -> bool {
        self.retransmission_pending && self.stalled && self.phase == Phase::Loss
    }

    /// Segments delivered according to duplicate ACKs.
    #[inline]
    pub fn dup_delivered(&self) -> u64 {
        self.dup_delivered
    }

    /// Whether duplicate ACKs arrived, too few to show a loss.
    #[inline]
    pub fn is_in_disorder(&self) -> bool {
        self.phase <= Phase::Disorder && self.dup_acks > 0
    }

    #[inline]
    pub fn is_in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Whether losses are being repaired, in recovery or after a timeout.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        self.phase >= Phase::Recovery
    }

    /// Whether a window reduction is in progress, so that the window does not grow.
    #[inline]
    pub fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Whether lost segments may be retransmitted: before new data, or after it.
    #[inline]
    pub fn may_retransmit(&self, before_new: bool) -> bool {
        match self.retransmit {
            Retransmit::Nothing => false,
            Retransmit::Lost => before_new,
            Retransmit::NewFirst => !before_new,
        }
    }

    /// The SYN timed out: F-RTO checks the timeout, if it is on.
    #[cold]
    pub fn set_frto(&mut self, frto: bool) {
        self.frto = frto;
    }

    /// New data was sent first for F-RTO; its ACK decides.
    #[inline]
    pub fn on_new_data(&mut self) {
        if self.retransmit == Retransmit::NewFirst {
            self.retransmit = Retransmit::Nothing;
        }
    }

    /// No new data can be sent: F-RTO ends (RFC 5682 §3.1 step 2b).
    #[inline]
    pub fn give_up_frto(&mut self) {
        if self.retransmit == Retransmit::NewFirst {
            self.frto = false;
            self.retransmit = Retransmit::Lost;
        }
    }

    /// Whether the next segment is the first retransmission of an episode. It restarts the timer;
    /// those of later partial ACKs do not.
    #[inline]
    pub fn is_first_retransmission(&self) -> bool {
        self.retransmission_pending && self.partial_acks == 0
    }

    /// Whether an ACK restarts the retransmission timer. Without SACK, partial ACKs after the first
    /// do not (RFC 6582 §3.2), unless the sender is "slow but steady".
    #[inline]
    pub fn moves_timer(&self, settings: &Settings, sack: bool) -> bool {
        sack || settings.recovery == LossRecovery::NewRenoSteady
            || self.phase != Phase::Recovery
            || self.partial_acks <= 1
    }
}
