//! Losses: the scoreboard, loss detection, and the state of loss recovery.
//!
//! [`Loss`] owns the scoreboard (RFC 6675), the state of a recovery, RACK and TLP (RFC 8985),
//! duplicate ACKs (RFC 6582) and the undo of spurious recoveries. Its fields are private to this
//! folder, so no other file changes the scoreboard. The sender's coordinators tell it of ACKs,
//! timers and departures, and read it through [`Loss::scoreboard`] and [`Loss::recovery`].

mod detection;
mod dup_acks;
mod rack;
mod recovery;
mod scoreboard;
mod tlp;
mod undo;

pub(crate) use dup_acks::SequenceSpace;
pub(crate) use recovery::{AckSigns, Recovery};
pub(crate) use scoreboard::{AckState, Progress, RackResult, Scoreboard, Sent};
pub(crate) use tlp::ProbeSigns;

use crate::on_demand::AtRest;
use rack::Rack;
use recovery::Retransmit;
use std::sync::LazyLock;
use tcplab_cc::Phase;
use tcplab_transport::DeliveryRate;
use tcplab_units::Time;
use tlp::TailProbe;
use undo::Undo;

/// The loss state of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loss {
    scoreboard: Scoreboard,
    recovery: Recovery,
    rack: Rack,
    tlp: TailProbe,
    undo: Undo,
}

/// The part of the state before a burst that a refusal restores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    recovery: Recovery,
    tlp: TailProbe,
    segments: usize,
    /// Where the next rate sample begins.
    beginning: Option<(Time, Time)>,
}

impl AtRest for Loss {
    fn at_rest() -> &'static Self {
        static AT_REST: LazyLock<Loss> = LazyLock::new(Loss::default);
        &AT_REST
    }
}

/// Reading.
impl Loss {
    /// The segments sent and not cumulatively acknowledged.
    #[inline]
    pub fn scoreboard(&self) -> &Scoreboard {
        &self.scoreboard
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
        self.scoreboard.in_flight().saturating_sub(self.recovery.dup_delivered)
    }

    /// Segments that the receiver holds out of order, by SACK or by duplicate ACKs (`sacked_out`).
    #[inline]
    pub fn out_of_order(&self) -> u64 {
        self.scoreboard.sacked() + self.recovery.dup_delivered
    }

    /// FlightSize when the loss was first indicated, without segments of limited transmit (RFC 5681
    /// §3.2 step 2).
    pub fn flight_size(&self) -> u64 {
        if self.recovery.dup_acks > 0 {
            self.recovery.flight
        } else {
            self.scoreboard.outstanding()
        }
    }

    /// Whether a segment in the window was retransmitted (`tcp_any_retrans_done`).
    pub fn any_retrans_done(&self) -> bool {
        self.scoreboard.retrans_out() > 0
            || self.scoreboard.front().is_some_and(|oldest| oldest.retransmitted)
    }

    /// The phase after an episode: `Disorder` while a segment is out of order, lost or
    /// retransmitted, else `Open`.
    pub fn open_or_disorder(&self) -> Phase {
        let left = self.out_of_order() + self.scoreboard.lost() > 0;
        if left || self.any_retrans_done() { Phase::Disorder } else { Phase::Open }
    }

    /// The delivery-rate estimator, if rates are sampled.
    #[inline]
    pub fn rates(&self) -> Option<&DeliveryRate> {
        self.scoreboard.rates.as_deref()
    }

    /// The delivery-rate estimator, to be changed.
    #[inline]
    pub fn rates_mut(&mut self) -> Option<&mut DeliveryRate> {
        self.scoreboard.rates.as_deref_mut()
    }

    /// Rates are sampled from now on.
    #[cold]
    pub fn start_rate_sampling(&mut self, rates: DeliveryRate) {
        self.scoreboard.rates = Some(Box::new(rates));
    }
}

/// Departures and acknowledgments of segments.
impl Loss {
    /// A new segment leaves.
    #[inline]
    pub fn send(&mut self, now: Time, start: u64, length: u16) {
        self.scoreboard.send(now, start, length);
        self.recovery.on_new_data();
    }

    /// The segment that starts at `start` is retransmitted. Returns its place on the scoreboard.
    pub fn resend(&mut self, now: Time, start: u64) -> usize {
        let place = self.scoreboard.resend(now, start);
        self.undo.on_retransmit(now);
        place
    }

    /// The last segment is retransmitted as a tail loss probe.
    pub fn resend_last_as_probe(&mut self, now: Time) -> Option<Sent> {
        self.scoreboard.resend_last_as_probe(now)
    }

    /// All offsets below `una` are acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, progress: &mut Progress) {
        self.scoreboard.acknowledge(una, progress);
    }

    /// A SACK block beyond `una`.
    #[inline]
    pub fn sack(&mut self, block: std::ops::Range<u64>, progress: &mut Progress) {
        self.scoreboard.sack(block, progress);
    }

    /// The first lost segment that was not retransmitted since (`NextSeg` rule 1).
    pub fn next_lost(&mut self) -> Option<Sent> {
        self.scoreboard.next_lost()
    }

    /// A segment to send when there is nothing else: rule 3 of `NextSeg` (RFC 6675 §4), and once an
    /// episode rule 4.
    pub fn next_seg_rule3(&mut self) -> Option<Sent> {
        if let Some(suspect) = self.scoreboard.next_seg_rule3() {
            return Some(suspect);
        }
        if std::mem::replace(&mut self.recovery.rescued, true) {
            return None;
        }
        self.scoreboard.last_suspect()
    }

    /// Whether the next retransmission is the first of an episode, and whether it follows a
    /// timeout. It leaves now.
    pub fn take_pending_retransmission(&mut self) -> (bool, bool) {
        let recovery = &mut self.recovery;
        let begins = recovery.is_first_retransmission();
        let is_for_timeout = recovery.answers_timeout();
        recovery.retransmission_pending = false;
        (begins, is_for_timeout)
    }

    /// Retransmissions obey the window again.
    #[inline]
    pub fn clear_pending_retransmission(&mut self) {
        self.recovery.retransmission_pending = false;
    }

    /// No new data can be sent: F-RTO ends (RFC 5682 §3.1 step 2b).
    pub fn give_up_frto(&mut self) {
        self.recovery.give_up_frto();
    }
}

/// Refusals by the host's queue.
impl Loss {
    /// The state before the burst that is about to leave.
    pub fn before_burst(&self) -> Before {
        Before {
            recovery: self.recovery,
            tlp: self.tlp,
            segments: self.scoreboard.outstanding() as usize,
            beginning: self.scoreboard.rates.as_ref().map(|rates| rates.beginning()),
        }
    }

    /// Segments of new data that have left since `before`.
    pub fn new_since(&self, before: &Before) -> u64 {
        self.scoreboard.outstanding().saturating_sub(before.segments as u64)
    }

    /// Whether a tail loss probe has left since `before`.
    pub fn has_probed_since(&self, before: &Before) -> bool {
        self.tlp.end.is_some() && self.tlp.end != before.tlp.end
    }

    /// New data was refused, and has not left.
    pub fn take_back(&mut self, before: &Before) {
        self.scoreboard.take_back(before.segments, before.beginning);
        (self.recovery, self.tlp) = (before.recovery, before.tlp);
        self.tlp.clear_pending();
    }

    /// The retransmission of `range` was refused: nothing is retransmitted for now.
    pub fn take_retransmissions_back(&mut self, range: std::ops::Range<u64>) {
        self.scoreboard.take_retransmissions_back(range);
        self.hold_retransmissions();
    }

    /// A probe that retransmits the last segment was refused.
    pub fn take_probe_back(&mut self, before: &Before) {
        self.tlp = before.tlp;
        self.tlp.clear_pending();
    }

    /// Whether the burst after `before` is the retransmission that follows a timeout.
    pub fn answers_timeout(before: &Before) -> bool {
        before.recovery.answers_timeout()
    }

    /// The end of the outstanding probe.
    pub fn probe_end(&self) -> Option<u64> {
        self.tlp.end
    }

    /// The recovery point of an episode that begins while a burst leaves is the SND.NXT before that
    /// burst; an outstanding probe stays outstanding.
    pub fn begin_before_burst(&mut self, nxt: u64, probe_end: Option<u64>) {
        (self.recovery.end, self.tlp.end) = (nxt, probe_end);
    }
}

/// Episodes.
impl Loss {
    /// Changes the phase. Returns whether an episode begins.
    pub fn set_phase(&mut self, phase: Phase) -> bool {
        let (before, grave) = (self.recovery.phase, Phase::Reduced);
        self.recovery.phase = phase;
        self.recovery.retransmission_pending &= self.recovery.is_recovering();
        (phase >= grave && before < grave) || (phase == Phase::Loss && before < Phase::Loss)
    }

    /// The recovery point is `nxt`. A tail loss probe is ignored from now on.
    pub fn begin_episode(&mut self, nxt: u64) {
        self.recovery.end = nxt;
        self.tlp.end = None;
    }

    /// A recovery begins. Its first retransmission ignores
    /// the window if `retransmits`.
    pub fn begin_recovery(&mut self, retransmits: bool) {
        self.recovery.retransmission_pending = retransmits;
        self.recovery.rescued = false;
        self.recovery.partial_acks = 0;
    }

    /// The episode is over, and its duplicate ACKs are forgotten.
    pub fn end_episode(&mut self) {
        self.recovery.dup_delivered = 0;
        self.recovery.dup_acks = 0;
        self.recovery.retransmission_pending = false;
    }

    /// Duplicate ACKs no longer stand for delivered segments (`tcp_reset_reno_sack`).
    pub fn reset_reno_sack(&mut self) {
        self.recovery.dup_delivered = 0;
    }

    /// Lost segments are not retransmitted for now.
    pub fn hold_retransmissions(&mut self) {
        self.recovery.retransmit = Retransmit::Nothing;
    }

    /// Lost segments may be retransmitted.
    pub fn retransmit_lost(&mut self) {
        self.recovery.retransmit = Retransmit::Lost;
    }

    /// The oldest segments exceed the path MTU and are retransmitted, which is no congestion: the
    /// phase is that of a timeout, and no episode begins.
    pub fn begin_resegmentation(&mut self, nxt: u64) {
        self.recovery.end = nxt;
        self.undo.end();
        self.recovery.phase = Phase::Loss;
    }

    /// Marks all segments lost except those that left after `recent`. Returns how many were not
    /// marked before.
    pub fn mark_all_lost(&mut self, recent: Time, spares_unlost: bool) -> u64 {
        self.scoreboard.mark_all_lost(recent, spares_unlost)
    }

    /// Slow start restarts, and the recovery point is `nxt`.
    pub fn enter_loss(&mut self, nxt: u64) {
        self.recovery = Recovery {
            phase: self.recovery.phase,
            end: nxt,
            retransmission_pending: true,
            retransmit: Retransmit::Lost,
            ..Recovery::default()
        };
    }

    /// The retransmission timer expired. `frto`: F-RTO checks whether that was spurious.
    pub fn on_rto(&mut self, frto: bool) {
        self.recovery.stalled = true;
        self.recovery.frto = frto;
    }

    /// The SYN timed out. `frto`: F-RTO is on.
    #[cold]
    pub fn on_syn_timeout(&mut self, frto: bool) {
        self.recovery.set_frto(frto);
    }

    /// F-RTO ends: the timeout was genuine.
    pub fn end_frto(&mut self) {
        self.recovery.frto = false;
    }

    /// An ACK after a timeout: F-RTO sends new data up to `nxt` to test the timeout (RFC 5682 §3.1
    /// step 2b). Without new data F-RTO ends. Returns whether it continues.
    pub fn send_new_for_frto(&mut self, nxt: u64, has_new_data: bool) -> bool {
        self.recovery.end = nxt;
        if has_new_data {
            self.recovery.retransmit = Retransmit::NewFirst;
        } else {
            self.recovery.frto = false;
        }
        has_new_data
    }

    /// The sender makes progress after a timeout.
    pub fn clear_stalled(&mut self) {
        self.recovery.stalled = false;
    }
}

/// Segments of another size (RFC 1191 §6.4).
impl Loss {
    /// Marks segments with more than `most` bytes of data lost. Returns how many were not marked
    /// before.
    pub fn mark_larger_lost(&mut self, written: u64, most: u16, ends: &[u64]) -> u64 {
        self.scoreboard.mark_larger_lost(written, most, ends)
    }

    /// Cuts the packet at `start` into segments of `size`, as far as it waits for retransmission.
    pub fn cut_lost(&mut self, start: u64, size: u16, ends: &[u64]) {
        self.scoreboard.cut_lost(start, size, ends);
    }

    /// Joins the segment at `start` and the one after it.
    pub fn join(&mut self, start: u64) {
        self.scoreboard.join(start);
    }
}
