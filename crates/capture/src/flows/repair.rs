//! Why a sender sends something again, as told from outside: the rules of Linux, played by what the
//! capture shows.
//!
//! - Fast retransmission and RACK (RFC 6675, RFC 8985): an ACK makes the sender send again, at once or
//!   after a small part of a round trip.
//! - Tail loss probe (RFC 8985 §7): after a silence, the last segment is sent again, once.
//! - Timeout (RFC 6298): after a silence, the first segment that is not acknowledged is sent again; then
//!   ACKs make the sender send the rest of the flight again.
//! - F-RTO (RFC 5682) and Eifel (RFC 3522): a timeout that was no loss is taken back.

use super::rtt::Estimate;

/// What is sent so soon after an ACK was sent because of it, in nanoseconds.
const AT_ONCE: i64 = 1_000_000;

/// Why something was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// ACKs said that it was lost.
    Fast,
    /// A tail loss probe.
    Probe,
    /// The timer ran out.
    Timeout,
    /// The timer ran out before, and what was in flight then counts as lost.
    AfterTimeout,
}

/// What a sender is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Open,
    /// Repairs what ACKs said to be lost, until this is acknowledged.
    Fast { until: u64 },
    /// Repairs after a timeout, until this is acknowledged; `in_doubt`: it may turn out to be none.
    Loss { until: u64, in_doubt: bool },
}

/// A probe that is under way.
#[derive(Clone, Copy, Debug)]
struct Probing {
    /// The end of the flight then.
    high: u64,
    has_new_data: bool,
}

/// What a sender does about losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repair {
    state: State,
    probing: Option<Probing>,
    backoff: u32,
    /// Segments that were sent again since the repair began, and of which no DSACK has told; the clock of
    /// the first.
    undone: u64,
    stamp: Option<u32>,
    /// The receiver tells of what arrived out of order.
    has_sack: bool,
    /// When the capture saw the last ACK, and the last that acknowledged something new.
    last_ack: i64,
    progress: i64,
    /// How long after an ACK the capture sees what it made the sender send: the round trip from the
    /// capture to the sender.
    pub near: i64,
}

/// The part of a flight that is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    pub now: i64,
    /// The first segment that is not acknowledged, and when it was sent last.
    pub is_head: bool,
    pub head_last: i64,
    pub is_tail: bool,
    /// Whether anything beyond was acknowledged, and whether the receiver would say so.
    pub has_sacked: bool,
    pub has_sack: bool,
    /// The next byte that is to be sent for the first time.
    pub next: u64,
    /// The sender's clock, if the segment has it.
    pub clock: Option<u32>,
}

/// An ACK, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub now: i64,
    pub ack: u64,
    pub has_advanced: bool,
    /// Something was acknowledged that was sent once, and before the timer ran out.
    pub is_original: bool,
    /// So was something that was sent again.
    pub is_repeat: bool,
    pub has_new_sack: bool,
    pub is_duplicate: bool,
    pub has_dsack: bool,
    /// The sender's clock as the other side last heard it.
    pub echo: Option<u32>,
    pub next: u64,
}

impl Repair {
    pub fn state(&self) -> State {
        self.state
    }

    /// Something is in flight after a time when nothing was.
    pub fn begin(&mut self, now: i64) {
        self.progress = self.progress.max(now);
    }

    /// Data was sent for the first time while other data was in flight: by a probe, if the sender had been
    /// silent for a reason.
    pub fn new_data(&mut self, now: i64, end: u64, has_more: bool, estimate: &Estimate) {
        if has_more && self.state == State::Open && self.is_silent(now, estimate) {
            self.probing = Some(Probing { high: end, has_new_data: true });
        }
    }

    /// Whether no ACK explains that something is sent now.
    fn is_silent(&self, now: i64, estimate: &Estimate) -> bool {
        let round = estimate.smoothed() + self.near;
        // RACK waits for a quarter of a round trip after an ACK, and a tick of the clock.
        now - self.last_ack - self.near > round + round / 4 + 2_000_000
    }

    /// Why this is sent again.
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
        // The timer may run out while ACKs arrive that acknowledge nothing. What leaves just behind an ACK is
        // its work where probes and RACK may have put the timer off, which they do with SACK.
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

    /// What was acknowledged had been sent before the repair began (RFC 3522 §3.2).
    fn is_delayed(&self, echo: Option<u32>) -> bool {
        let clocks = echo.filter(|&echo| echo != 0).zip(self.stamp);
        clocks.is_some_and(|(echo, stamp)| echo.wrapping_sub(stamp).cast_signed() < 0)
    }

    /// A DSACK tells of something that was sent again.
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

    /// How far what was sent counts as sent before the timer ran out.
    pub fn before_timeout(&self) -> u64 {
        if let State::Loss { until, .. } = self.state { until } else { 0 }
    }

    /// An ACK arrives.
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
        // Without SACK, ACKs of what was sent again look like news of a loss: more must be acknowledged
        // (RFC 6582 §3.2, `tcp_try_undo_recovery`).
        let more = u64::from(!self.has_sack);
        match self.state {
            State::Fast { until } | State::Loss { until, .. } if seen.ack >= until + more => {
                self.state = State::Open;
            }
            // Nothing was lost: each repetition was told of, or the clock says that the original arrived
            // (`tcp_may_undo`).
            State::Fast { .. } | State::Loss { .. }
                if seen.has_advanced && (self.undone == 0 || self.is_delayed(seen.echo)) =>
            {
                self.state = State::Open;
            }
            State::Open | State::Fast { .. } | State::Loss { in_doubt: false, .. } => {}
            // Without SACK, a repetition that fills a gap acknowledges what is behind the gap as well
            // (`tcp_clean_rtx_queue`).
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
