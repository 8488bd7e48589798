//! Losses: the scoreboard, and all that finds, doubts or repairs a loss.
//!
//! [`Loss`] owns the scoreboard (RFC 6675), the state of a recovery, RACK and TLP (RFC 8985),
//! duplicate ACKs (RFC 6582) and the undo of false alarms. Its fields are private to this folder:
//! no other file changes the scoreboard. The sender's coordinators tell it of ACKs, timers and
//! departures, and read it through [`Loss::board`] and [`Loss::recovery`].

mod detection;
mod dup_acks;
mod rack;
mod recovery;
mod scoreboard;
mod tlp;
mod undo;

pub(crate) use dup_acks::Space;
pub(crate) use recovery::{Recovery, Seen};
pub(crate) use scoreboard::{Arrival, Overdue, Progress, Scoreboard, Sent};
pub(crate) use tlp::Sign;

use crate::on_demand::AtRest;
use rack::Rack;
use recovery::Repair;
use std::sync::LazyLock;
use tcplab_cc::Phase;
use tcplab_transport::DeliveryRate;
use tcplab_units::Time;
use tlp::TailProbe;
use undo::Undo;

/// The losses of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loss {
    board: Scoreboard,
    recovery: Recovery,
    rack: Rack,
    tlp: TailProbe,
    undo: Undo,
}

impl AtRest for Loss {
    fn at_rest() -> &'static Self {
        static AT_REST: LazyLock<Loss> = LazyLock::new(Loss::default);
        &AT_REST
    }
}

/// Reading.
impl Loss {
    /// The segments sent and not acknowledged.
    #[inline]
    pub fn scoreboard(&self) -> &Scoreboard {
        &self.board
    }

    /// The state of the recovery.
    #[inline]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The phase of the sender.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.recovery.phase
    }

    /// Segments in flight.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight().saturating_sub(self.recovery.dup_delivered)
    }

    /// Segments that the receiver has out of order, by SACK or by duplicate ACKs.
    #[inline]
    pub fn out_of_order(&self) -> u64 {
        self.board.sacked() + self.recovery.dup_delivered
    }

    /// FlightSize when the loss showed itself. What limited transmit has sent since is not part of
    /// it (RFC 5681 §3.2 step 2).
    pub fn flight_size(&self) -> u64 {
        if self.recovery.dup_acks > 0 { self.recovery.flight } else { self.board.outstanding() }
    }

    /// Whether a segment in the window was sent more than once.
    pub fn has_retransmitted(&self) -> bool {
        self.board.repaired() > 0 || self.board.front().is_some_and(|oldest| oldest.retransmitted)
    }

    /// The phase after an episode: `Disorder` while a segment is out of order, lost or sent again.
    pub fn settled_phase(&self) -> Phase {
        let left = self.out_of_order() + self.board.lost() > 0;
        if left || self.has_retransmitted() { Phase::Disorder } else { Phase::Open }
    }

    /// Rate samples, where they are taken.
    #[inline]
    pub fn rates(&self) -> Option<&DeliveryRate> {
        self.board.rates.as_deref()
    }

    /// The rate samples, to be changed.
    #[inline]
    pub fn rates_mut(&mut self) -> Option<&mut DeliveryRate> {
        self.board.rates.as_deref_mut()
    }

    /// Rate samples are taken from now on.
    #[cold]
    pub fn sample_rates(&mut self, rates: DeliveryRate) {
        self.board.rates = Some(Box::new(rates));
    }
}

/// Segments leave and are acknowledged.
impl Loss {
    /// A new segment leaves.
    #[inline]
    pub fn send(&mut self, now: Time, start: u64, length: u16) {
        self.board.send(now, start, length);
        self.recovery.on_new_data();
    }

    /// The segment that starts at `start` leaves once more. Returns its place.
    pub fn resend(&mut self, now: Time, start: u64) -> usize {
        let place = self.board.resend(now, start);
        self.undo.on_retransmit(now);
        place
    }

    /// The last segment leaves once more, as a probe.
    pub fn probe_last(&mut self, now: Time) -> Option<Sent> {
        self.board.probe_last(now)
    }

    /// All offsets below `una` were received.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, progress: &mut Progress) {
        self.board.acknowledge(una, progress);
    }

    /// The receiver reports a block beyond `una`.
    #[inline]
    pub fn sack(&mut self, block: std::ops::Range<u64>, progress: &mut Progress) {
        self.board.sack(block, progress);
    }

    /// The first segment that is lost and was not sent again since (`NextSeg` rule 1).
    pub fn next_lost(&mut self) -> Option<Sent> {
        self.board.next_lost()
    }

    /// A segment to send when there is nothing else: rule 3 of `NextSeg` (RFC 6675 §4), and once an
    /// episode rule 4.
    pub fn next_suspect(&mut self) -> Option<Sent> {
        if let Some(suspect) = self.board.next_suspect() {
            return Some(suspect);
        }
        if std::mem::replace(&mut self.recovery.rescued, true) {
            return None;
        }
        self.board.last_suspect()
    }

    /// Whether the next retransmission is the first of an episode, and whether it answers a
    /// timeout; it leaves now.
    pub fn take_owed_retransmission(&mut self) -> (bool, bool) {
        let recovery = &mut self.recovery;
        let (begins, is_for_timeout) = (recovery.begins_repair(), recovery.answers_timeout());
        recovery.owes_retransmission = false;
        (begins, is_for_timeout)
    }

    /// No retransmission may leave regardless of the window any more.
    #[inline]
    pub fn clear_forced_retransmission(&mut self) {
        self.recovery.owes_retransmission = false;
    }

    /// Nothing new can be sent: F-RTO is given up (RFC 5682 §3.1 step 2b).
    pub fn give_up_new_data(&mut self) {
        self.recovery.give_up_new_data();
    }
}

/// Episodes.
impl Loss {
    /// The phase changes. Says whether that begins an episode.
    pub fn set_phase(&mut self, phase: Phase) -> bool {
        let (before, grave) = (self.recovery.phase, Phase::Reduced);
        self.recovery.phase = phase;
        self.recovery.owes_retransmission &= self.recovery.is_repairing();
        (phase >= grave && before < grave) || (phase == Phase::Loss && before < Phase::Loss)
    }

    /// The episode lasts until `nxt` is acknowledged; a probe says nothing any more.
    pub fn begin_episode(&mut self, nxt: u64) {
        self.recovery.end = nxt;
        self.tlp.end = None;
    }

    /// A recovery begins; `owes`: the first retransmission does not wait for the window.
    pub fn begin_recovery(&mut self, owes: bool) {
        self.recovery.owes_retransmission = owes;
        self.recovery.rescued = false;
        self.recovery.partial_acks = 0;
    }

    /// The episode is over: duplicates counted in it say nothing any more.
    pub fn end_episode(&mut self) {
        self.recovery.dup_delivered = 0;
        self.recovery.dup_acks = 0;
        self.recovery.owes_retransmission = false;
    }

    /// Duplicate ACKs do not stand for segments any more (`tcp_reset_reno_sack`).
    pub fn forget_duplicates(&mut self) {
        self.recovery.dup_delivered = 0;
    }

    /// Retransmits no lost segments until told otherwise.
    pub fn hold_retransmissions(&mut self) {
        self.recovery.repair = Repair::Nothing;
    }

    /// Allows lost segments to be retransmitted.
    pub fn repair_lost(&mut self) {
        self.recovery.repair = Repair::Lost;
    }

    /// The oldest segments are too large for the path and leave again, which is no congestion: the
    /// phase is that of a timeout, and no episode begins.
    pub fn begin_resegmentation(&mut self, nxt: u64) {
        self.recovery.end = nxt;
        self.undo.end();
        self.recovery.phase = Phase::Loss;
    }

    /// All is lost but what left after `recent`. Returns how many were not known to be lost.
    pub fn lose_all(&mut self, recent: Time, spares_unlost: bool) -> u64 {
        self.board.lose_all(recent, spares_unlost)
    }

    /// Slow start begins anew, until `nxt` is acknowledged.
    pub fn start_over(&mut self, nxt: u64) {
        self.recovery = Recovery {
            phase: self.recovery.phase,
            end: nxt,
            owes_retransmission: true,
            repair: Repair::Lost,
            ..Recovery::default()
        };
    }

    /// The retransmission timer ran out; `frto`: that may have been spurious.
    pub fn note_timeout(&mut self, frto: bool) {
        self.recovery.stalled = true;
        self.recovery.frto = frto;
    }

    /// The SYN timed out; `frto`: that may have been spurious.
    #[cold]
    pub fn on_syn_timeout(&mut self, frto: bool) {
        self.recovery.on_syn_timeout(frto);
    }

    /// The timeout was not spurious.
    pub fn confirm_timeout(&mut self) {
        self.recovery.frto = false;
    }

    /// An ACK after a timeout lets new data test whether it was needed, up to `nxt` (RFC 5682 §3.1
    /// step 2b). Without new data the timeout is believed. Says whether the test goes on.
    pub fn test_timeout(&mut self, nxt: u64, has_new_data: bool) -> bool {
        self.recovery.end = nxt;
        if has_new_data {
            self.recovery.repair = Repair::NewFirst;
        } else {
            self.recovery.frto = false;
        }
        has_new_data
    }

    /// The sender is not stalled after a timeout.
    pub fn note_progress(&mut self) {
        self.recovery.stalled = false;
    }
}

/// Segments of another size (RFC 1191 §6.4).
impl Loss {
    /// Segments with more than `most` bytes of data are lost. Returns how many were not known to
    /// be.
    pub fn lose_larger(&mut self, written: u64, most: u16, ends: &[u64]) -> u64 {
        self.board.lose_larger(written, most, ends)
    }

    /// The packet at `start` is cut into segments of `size`, as far as it waits to be sent again.
    pub fn cut_lost(&mut self, start: u64, size: u16, ends: &[u64]) {
        self.board.cut_lost(start, size, ends);
    }

    /// The segment at `start` and the one behind it become one.
    pub fn join(&mut self, start: u64) {
        self.board.join(start);
    }
}
