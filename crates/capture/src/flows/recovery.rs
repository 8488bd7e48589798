//! Why a sender retransmits, inferred from outside: the rules of Linux, applied to the packets of
//! the capture.
//!
//! - Fast retransmission and RACK (RFC 6675, RFC 8985): an ACK triggers a retransmission, at once
//!   or after a small part of a round trip.
//! - Tail loss probe (RFC 8985 §7): after a silence, the last segment is sent again, once.
//! - Timeout (RFC 6298): after a silence, the first unacknowledged segment is sent again; then ACKs
//!   trigger the retransmission of the rest of the flight.
//! - F-RTO (RFC 5682) and Eifel (RFC 3522): a spurious timeout is undone.

use super::rtt::Estimate;

/// Packets sent this soon after an ACK, in nanoseconds, were triggered by the ACK.
const ACK_CLOCKED: i64 = 1_000_000;

/// The cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// ACKs indicated a loss.
    Fast,
    /// A tail loss probe.
    Probe,
    /// The retransmission timer expired.
    Timeout,
    /// Follows an earlier timeout, after which the data then in flight counts as lost.
    AfterTimeout,
}

/// The state of a sender's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Open,
    /// Fast recovery, until the byte `until` is acknowledged.
    Fast { until: u64 },
    /// Recovery after a timeout, until the byte `until` is acknowledged; `in_doubt`: the timeout
    /// may turn out to be spurious.
    Loss { until: u64, in_doubt: bool },
}

/// A tail loss probe in flight.
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// The end of the flight when the probe was sent.
    end: u64,
    has_new_data: bool,
}

/// A sender's loss recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    state: State,
    tail_probe: Option<TailProbe>,
    backoff: u32,
    /// Segments retransmitted since the recovery began that no DSACK has reported, and the
    /// timestamp of the first.
    undo_retrans: u64,
    retrans_stamp: Option<u32>,
    /// Whether the receiver reports out-of-order data.
    has_sack: bool,
    /// The capture times of the last ACK, and of the last ACK of new data.
    last_ack: i64,
    progress: i64,
    /// The delay from an ACK to the data it triggers, as captured: the round trip from the capture
    /// to the sender.
    pub sender_rtt: i64,
}

/// A retransmitted part of a flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    pub now: i64,
    /// Whether this is the first unacknowledged segment, and when it was last sent.
    pub is_head: bool,
    pub head_last: i64,
    pub is_tail: bool,
    /// Whether later data was acknowledged, and whether the receiver would report it.
    pub has_sacked: bool,
    pub has_sack: bool,
    /// The next new byte.
    pub next: u64,
    /// The sender's timestamp, if the segment has one.
    pub timestamp: Option<u32>,
}

/// What an ACK reports to loss recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckInfo {
    pub now: i64,
    /// The acknowledgment number.
    pub number: u64,
    pub has_advanced: bool,
    /// Whether data was acknowledged that was sent once, before the timeout.
    pub has_original: bool,
    /// Whether retransmitted data was acknowledged.
    pub has_retransmitted: bool,
    pub has_new_sack: bool,
    pub is_duplicate: bool,
    pub has_dsack: bool,
    /// The sender's timestamp that the other side echoes.
    pub echo: Option<u32>,
    pub next: u64,
}

impl Recovery {
    pub fn state(&self) -> State {
        self.state
    }

    /// Data is sent while none is in flight.
    pub fn on_restart(&mut self, now: i64) {
        self.progress = self.progress.max(now);
    }

    /// New data is sent. While other data is in flight (`has_more`) and no ACK explains the time,
    /// the new data is a tail loss probe.
    pub fn on_new_data(&mut self, now: i64, end: u64, has_more: bool, estimate: &Estimate) {
        if has_more && self.state == State::Open && self.is_silent(now, estimate) {
            self.tail_probe = Some(TailProbe { end, has_new_data: true });
        }
    }

    /// Whether no ACK explains a transmission now.
    fn is_silent(&self, now: i64, estimate: &Estimate) -> bool {
        let round = estimate.smoothed() + self.sender_rtt;
        // RACK waits for a quarter of a round trip after an ACK, and one clock tick.
        now - self.last_ack - self.sender_rtt > round + round / 4 + 2_000_000
    }

    /// The cause of this retransmission.
    pub fn on_retransmission(&mut self, sent: Retransmission, estimate: &Estimate) -> Cause {
        if self.state == State::Open {
            (self.undo_retrans, self.retrans_stamp) = (0, None);
        }
        self.undo_retrans += 1;
        self.has_sack = sent.has_sack;
        self.retrans_stamp = self.retrans_stamp.or(sent.timestamp);
        self.cause(sent, estimate)
    }

    fn cause(&mut self, sent: Retransmission, estimate: &Estimate) -> Cause {
        let Retransmission { now, next, .. } = sent;
        let waited = now - self.progress.max(sent.head_last);
        let timer = (estimate.rto() + self.sender_rtt) << self.backoff.min(10);
        // The timer may expire while ACKs arrive that acknowledge nothing new. A packet that leaves
        // right after an ACK is due to that ACK if probes and RACK may have postponed the timer,
        // which happens with SACK.
        let is_ack_clocked = now - self.last_ack - self.sender_rtt <= ACK_CLOCKED;
        let is_due =
            sent.is_head && waited >= timer / 20 * 19 && !(sent.has_sack && is_ack_clocked);
        if !is_due && !self.is_silent(now, estimate) {
            return self.ack_triggered(next);
        }
        let may_probe = sent.has_sack
            && !sent.has_sacked
            && self.state == State::Open
            && self.tail_probe.is_none()
            && self.backoff == 0;
        if sent.is_tail && may_probe {
            self.tail_probe = Some(TailProbe { end: next, has_new_data: false });
            return Cause::Probe;
        }
        if !sent.is_head {
            return self.ack_triggered(next);
        }
        let in_doubt = self.state == State::Open || self.backoff > 0;
        self.state = State::Loss { until: next, in_doubt };
        self.tail_probe = None;
        self.backoff += 1;
        Cause::Timeout
    }

    /// Whether the acknowledged data had been sent before the recovery began (RFC 3522 §3.2).
    fn is_echo_older(&self, echo: Option<u32>) -> bool {
        let timestamps = echo.filter(|&echo| echo != 0).zip(self.retrans_stamp);
        timestamps.is_some_and(|(echo, stamp)| echo.wrapping_sub(stamp).cast_signed() < 0)
    }

    /// A DSACK reports retransmitted segments.
    pub fn on_dsack(&mut self, segments: u64) {
        self.undo_retrans = self.undo_retrans.saturating_sub(segments);
    }

    fn ack_triggered(&mut self, next: u64) -> Cause {
        match self.state {
            State::Loss { .. } => Cause::AfterTimeout,
            State::Fast { .. } => Cause::Fast,
            State::Open => {
                self.state = State::Fast { until: next };
                Cause::Fast
            }
        }
    }

    /// The byte up to which data counts as sent before the timeout.
    pub fn before_timeout(&self) -> u64 {
        if let State::Loss { until, .. } = self.state { until } else { 0 }
    }

    /// Whether nothing is to be decided: no recovery and no probe is in progress.
    #[inline]
    pub fn is_calm(&self) -> bool {
        self.state == State::Open && self.tail_probe.is_none()
    }

    /// Handles an ACK, while nothing is to be decided, that reports nothing new.
    #[inline]
    pub fn on_repeated_ack(&mut self, now: i64) {
        self.last_ack = now;
    }

    /// Handles an ACK.
    pub fn on_ack(&mut self, ack: AckInfo) {
        self.last_ack = ack.now;
        if ack.has_advanced {
            self.progress = ack.now;
            self.backoff = 0;
        }
        if let Some(probe) = self.tail_probe
            && (ack.number > probe.end
                || ack.number == probe.end && (probe.has_new_data || ack.has_dsack))
        {
            self.tail_probe = None;
        }
        // Without SACK, ACKs of retransmitted data look like new losses: more must be acknowledged
        // (RFC 6582 §3.2, `tcp_try_undo_recovery`).
        let more = u64::from(!self.has_sack);
        match self.state {
            State::Fast { until } | State::Loss { until, .. } if ack.number >= until + more => {
                self.state = State::Open;
            }
            // Nothing was lost: DSACKs reported each retransmission, or the echoed timestamp is
            // that of the original (`tcp_may_undo`).
            State::Fast { .. } | State::Loss { .. }
                if ack.has_advanced && (self.undo_retrans == 0 || self.is_echo_older(ack.echo)) =>
            {
                self.state = State::Open;
            }
            State::Open | State::Fast { .. } | State::Loss { in_doubt: false, .. } => {}
            // Without SACK, a retransmission that fills a gap also acknowledges the data behind the
            // gap (`tcp_clean_rtx_queue`).
            State::Loss { .. } if ack.has_original && (self.has_sack || !ack.has_retransmitted) => {
                self.state = State::Open;
            }
            State::Loss { until, .. } => {
                if ack.next > until {
                    if ack.has_new_sack || ack.is_duplicate {
                        self.state = State::Loss { until, in_doubt: false };
                    }
                } else if ack.has_advanced {
                    self.state = State::Loss { until: ack.next, in_doubt: true };
                }
            }
        }
    }
}
