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

/// Packets sent this soon after an ACK, in nanoseconds, were triggered by it.
const AT_ONCE: i64 = 1_000_000;

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
    /// Fast recovery, until this is acknowledged.
    Fast { until: u64 },
    /// Recovery after a timeout, until this is acknowledged; `in_doubt`: the timeout may turn out
    /// to be spurious.
    Loss { until: u64, in_doubt: bool },
}

/// A probe in progress.
#[derive(Clone, Copy, Debug)]
struct Probing {
    /// The end of the flight at that time.
    high: u64,
    has_new_data: bool,
}

/// A sender's loss recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repair {
    state: State,
    probing: Option<Probing>,
    backoff: u32,
    /// Segments retransmitted since the recovery began that no DSACK has reported, and the
    /// timestamp of the first.
    undone: u64,
    stamp: Option<u32>,
    /// Whether the receiver reports out-of-order data.
    has_sack: bool,
    /// When the capture saw the last ACK, and the last ACK of new data.
    last_ack: i64,
    progress: i64,
    /// The delay from an ACK to the data it triggers, as captured: the round trip from the capture
    /// to the sender.
    pub near: i64,
}

/// A retransmitted part of a flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
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
    pub clock: Option<u32>,
}

/// An ACK, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub now: i64,
    pub ack: u64,
    pub has_advanced: bool,
    /// Whether data was acknowledged that was sent once, before the timeout.
    pub is_original: bool,
    /// Whether retransmitted data was acknowledged.
    pub is_repeat: bool,
    pub has_new_sack: bool,
    pub is_duplicate: bool,
    pub has_dsack: bool,
    /// The sender's timestamp that the other side echoes.
    pub echo: Option<u32>,
    pub next: u64,
}

impl Repair {
    pub fn state(&self) -> State {
        self.state
    }

    /// Data is in flight after a time without any.
    pub fn begin(&mut self, now: i64) {
        self.progress = self.progress.max(now);
    }

    /// New data was sent while other data was in flight: by a probe, if the sender had been silent
    /// for a reason.
    pub fn new_data(&mut self, now: i64, end: u64, has_more: bool, estimate: &Estimate) {
        if has_more && self.state == State::Open && self.is_silent(now, estimate) {
            self.probing = Some(Probing { high: end, has_new_data: true });
        }
    }

    /// Whether no ACK explains a transmission now.
    fn is_silent(&self, now: i64, estimate: &Estimate) -> bool {
        let round = estimate.smoothed() + self.near;
        // RACK waits for a quarter of a round trip after an ACK, and one clock tick.
        now - self.last_ack - self.near > round + round / 4 + 2_000_000
    }

    /// The cause of this retransmission.
    pub fn repeat(&mut self, seen: Repeat, estimate: &Estimate) -> Cause {
        if self.state == State::Open {
            (self.undone, self.stamp) = (0, None);
        }
        self.undone += 1;
        self.has_sack = seen.has_sack;
        self.stamp = self.stamp.or(seen.clock);
        self.cause(seen, estimate)
    }

    fn cause(&mut self, seen: Repeat, estimate: &Estimate) -> Cause {
        let Repeat { now, next, .. } = seen;
        let waited = now - self.progress.max(seen.head_last);
        let timer = (estimate.rto() + self.near) << self.backoff.min(10);
        // The timer may expire while ACKs arrive that acknowledge nothing new. A packet that leaves
        // right after an ACK is due to that ACK if probes and RACK may have postponed the timer,
        // which happens with SACK.
        let is_at_once = now - self.last_ack - self.near <= AT_ONCE;
        let is_due = seen.is_head && waited >= timer / 20 * 19 && !(seen.has_sack && is_at_once);
        if !is_due && !self.is_silent(now, estimate) {
            return self.by_ack(next);
        }
        let may_probe = seen.has_sack
            && !seen.has_sacked
            && self.state == State::Open
            && self.probing.is_none()
            && self.backoff == 0;
        if seen.is_tail && may_probe {
            self.probing = Some(Probing { high: next, has_new_data: false });
            return Cause::Probe;
        }
        if !seen.is_head {
            return self.by_ack(next);
        }
        let in_doubt = self.state == State::Open || self.backoff > 0;
        self.state = State::Loss { until: next, in_doubt };
        self.probing = None;
        self.backoff += 1;
        Cause::Timeout
    }

    /// Whether the acknowledged data had been sent before the recovery began (RFC 3522 §3.2).
    fn is_delayed(&self, echo: Option<u32>) -> bool {
        let clocks = echo.filter(|&echo| echo != 0).zip(self.stamp);
        clocks.is_some_and(|(echo, stamp)| echo.wrapping_sub(stamp).cast_signed() < 0)
    }

    /// A DSACK reports retransmitted segments.
    pub fn told_of(&mut self, segments: u64) {
        self.undone = self.undone.saturating_sub(segments);
    }

    fn by_ack(&mut self, next: u64) -> Cause {
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

    /// Handles an ACK.
    pub fn acknowledged(&mut self, seen: Seen) {
        self.last_ack = seen.now;
        if seen.has_advanced {
            self.progress = seen.now;
            self.backoff = 0;
        }
        if let Some(probe) = self.probing
            && (seen.ack > probe.high
                || seen.ack == probe.high && (probe.has_new_data || seen.has_dsack))
        {
            self.probing = None;
        }
        // Without SACK, ACKs of retransmitted data look like new losses: more must be acknowledged
        // (RFC 6582 §3.2, `tcp_try_undo_recovery`).
        let more = u64::from(!self.has_sack);
        match self.state {
            State::Fast { until } | State::Loss { until, .. } if seen.ack >= until + more => {
                self.state = State::Open;
            }
            // Nothing was lost: each retransmission was reported, or the timestamp says that the
            // original arrived (`tcp_may_undo`).
            State::Fast { .. } | State::Loss { .. }
                if seen.has_advanced && (self.undone == 0 || self.is_delayed(seen.echo)) =>
            {
                self.state = State::Open;
            }
            State::Open | State::Fast { .. } | State::Loss { in_doubt: false, .. } => {}
            // Without SACK, a retransmission that fills a gap also acknowledges the data behind the
            // gap (`tcp_clean_rtx_queue`).
            State::Loss { .. } if seen.is_original && (self.has_sack || !seen.is_repeat) => {
                self.state = State::Open;
            }
            State::Loss { until, .. } => {
                if seen.next > until {
                    if seen.has_new_sack || seen.is_duplicate {
                        self.state = State::Loss { until, in_doubt: false };
                    }
                } else if seen.has_advanced {
                    self.state = State::Loss { until: seen.next, in_doubt: true };
                }
            }
        }
    }
}
