//! Detects loss and leads the sender through repair: fast retransmit and recovery with SACK
//! (RFC 6675) and without (RFC 6582), and the aftermath of a timeout.
//!
//! Without SACK each duplicate ACK stands for one segment that arrived, as if it had been SACKed.
//! That makes the window inflation of RFC 5681 §3.2 and its deflation by partial ACKs (RFC 6582
//! §3.2) a matter of counting what is in flight, the same for both.

use crate::scoreboard::{Progress, Scoreboard};
use tcplab_cc::Cause;

/// Where the sender stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// A loss was found by the ACKs of later segments and is being repaired.
    Recovery,
    /// The timer ran out and everything not SACKed is being sent again.
    Loss,
}

/// What the sender must know of the acknowledgment that just came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub una: u64,
    pub nxt: u64,
    /// Whether it acknowledges nothing, carries nothing and changes nothing (RFC 5681 §2).
    pub duplicate: bool,
}

/// What is to be told to the congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The phase goes on.
    None,
    /// A congestion episode begins.
    Begins(Cause),
    /// The data outstanding when it began is acknowledged.
    Ends,
}

/// How loss is detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub sack: bool,
    pub dup_thresh: u32,
    pub mss: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub phase: Phase,
    /// `RecoveryPoint` (RFC 6675), `recover` (RFC 6582): acknowledging this ends the episode.
    end: u64,
    dup_acks: u32,
    /// Segments outstanding when the first of those ACKs came.
    flight: u64,
    /// Without SACK: segments that duplicate ACKs have reported.
    dup_delivered: u64,
    /// The first retransmission of the episode does not wait for the window.
    pub owes_retransmission: bool,
    /// The one rescue of this episode has been sent (RFC 6675 §4 rule 4).
    pub rescued: bool,
    partial_acks: u32,
    /// The timer ran out and nothing was acknowledged since.
    stalled: bool,
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
        }
    }
}

impl Recovery {
    /// Segments that left the network according to duplicate ACKs.
    #[inline]
    pub fn dup_delivered(&self) -> u64 {
        self.dup_delivered
    }

    /// FlightSize when the loss showed itself. What limited transmit has sent since is not part of it
    /// (RFC 5681 §3.2 step 2).
    #[inline]
    pub fn flight(&self, board: &Scoreboard) -> u64 {
        if self.dup_acks > 0 { self.flight } else { board.outstanding() }
    }

    /// Some ACKs reported later data, too few to call a loss.
    #[inline]
    pub fn in_doubt(&self) -> bool {
        self.phase == Phase::Open && self.dup_acks > 0
    }

    /// Whether the next segment is the first retransmission of an episode: the timer starts again with
    /// it, but not with those that later partial ACKs ask for.
    #[inline]
    pub fn begins_repair(&self) -> bool {
        self.owes_retransmission && self.partial_acks == 0
    }

    /// Whether the ACK just taken moves the retransmission timer. Partial ACKs after the first do
    /// not, without SACK (the impatient variant, RFC 6582 §3.2 and §4).
    #[inline]
    pub fn moves_timer(&self, sack: bool) -> bool {
        sack || self.phase != Phase::Recovery || self.partial_acks <= 1
    }

    /// Takes an ACK. Segments newly found lost are marked on the board and counted in `lost`.
    #[inline]
    pub fn on_ack(
        &mut self,
        board: &mut Scoreboard,
        progress: &mut Progress,
        arrival: Arrival,
        rules: Rules,
    ) -> (Turn, u64) {
        if progress.acked > 0 {
            self.stalled = false;
            // What duplicate ACKs reported is now acknowledged; the segment that was missing was not
            // among it.
            let reported = self.dup_delivered.min(progress.acked - 1);
            progress.delivered -= reported.min(progress.delivered);
            self.dup_delivered -= reported;
            self.dup_acks = 0;
        } else if arrival.duplicate {
            if self.dup_acks == 0 {
                self.flight = board.outstanding();
            }
            self.dup_acks += 1;
            // At least one segment is missing, or the ACK would not be a duplicate.
            if !rules.sack && self.dup_delivered + board.lost().max(1) < board.outstanding() {
                self.dup_delivered += 1;
                progress.delivered += 1;
            }
        }
        match self.phase {
            Phase::Open => {
                if progress.acked == 0 && self.dup_acks == 0 && progress.delivered == 0 {
                    return (Turn::None, 0);
                }
                self.look_for_loss(board, progress, arrival, rules)
            }
            Phase::Recovery | Phase::Loss if arrival.una >= self.end => {
                self.phase = Phase::Open;
                self.dup_acks = 0;
                self.dup_delivered = 0;
                self.owes_retransmission = false;
                (Turn::Ends, 0)
            }
            Phase::Recovery => {
                let lost = if rules.sack {
                    board.judge(rules.dup_thresh, rules.mss)
                } else if progress.acked > 0 {
                    // A partial ACK: the next hole is lost too (RFC 6582 §3.2 step 3).
                    self.partial_acks += 1;
                    self.owes_retransmission = true;
                    board.lose_front()
                } else {
                    0
                };
                (Turn::None, lost)
            }
            Phase::Loss => (Turn::None, 0),
        }
    }

    #[inline]
    fn look_for_loss(
        &mut self,
        board: &mut Scoreboard,
        progress: &Progress,
        arrival: Arrival,
        rules: Rules,
    ) -> (Turn, u64) {
        if !rules.sack && progress.acked > 0 {
            self.dup_delivered = 0;
        }
        let mut lost = 0;
        if board.sacked() > 0 {
            lost = board.judge(rules.dup_thresh, rules.mss);
        }
        let enough = self.dup_acks >= rules.dup_thresh;
        // Duplicates of what the last episode sent twice do not begin another (RFC 6582 §4.1).
        let heeded = rules.sack || arrival.una > self.end;
        if !(board.has_unrepaired() || (enough && heeded)) {
            return (Turn::None, 0);
        }
        lost += board.lose_front();
        self.phase = Phase::Recovery;
        self.end = arrival.nxt;
        self.owes_retransmission = true;
        self.rescued = false;
        self.partial_acks = 0;
        (Turn::Begins(Cause::Loss), lost)
    }

    /// The retransmission timer ran out.
    pub fn on_timeout(&mut self, board: &mut Scoreboard, nxt: u64) -> (Turn, u64) {
        let lost = board.lose_all();
        // Another timeout of the same data is the same episode (RFC 5681 §3.1).
        let turn = if self.phase == Phase::Loss && self.stalled {
            Turn::None
        } else {
            Turn::Begins(Cause::Timeout)
        };
        *self = Self {
            phase: Phase::Loss,
            end: nxt,
            owes_retransmission: true,
            stalled: true,
            ..Self::default()
        };
        (turn, lost)
    }
}
