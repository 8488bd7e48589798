//! The one timer of the sending half: what it waits for, and until when.

use crate::sender::Sender;
use crate::settings::Settings;
use tcplab_units::{Duration, Time};

/// Where a deadline has passed, it is noticed a tick later.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// What a timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The answer to what was sent: a SYN, data, or a probe of a closed window (RFC 6298 §5).
    Retransmit,
    /// A segment that may only be late (RFC 8985 §6.3).
    Reorder,
    /// The moment for a probe of the tail (RFC 8985 §7.2).
    Probe,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub kind: Kind,
    pub at: Time,
}

impl Timer {
    pub const OFF: Self = Self { kind: Kind::Retransmit, at: Time::NEVER };

    #[inline]
    pub fn set(&mut self, kind: Kind, at: Time) {
        *self = Self { kind, at };
    }

    #[inline]
    pub fn stop(&mut self) {
        *self = Self::OFF;
    }
}

impl Sender {
    /// Waits an RTO from now.
    #[inline]
    pub(crate) fn wait_for_answer(&mut self, now: Time, settings: &Settings) {
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let rto = (self.rtt.rto(settings) + self.pacing_delay(now, settings)).min(left);
        self.timer.set(Kind::Retransmit, settings.runs_out(now, rto));
    }

    /// Waits an RTO for what is outstanding: from now, or where another wait was put in between, from
    /// when the oldest segment left.
    #[inline]
    pub(crate) fn rearm(&mut self, now: Time, settings: &Settings) {
        if !self.has_outstanding() {
            return self.timer.stop();
        }
        let rto = if self.timer.kind == Kind::Retransmit || self.timer.at == Time::NEVER {
            self.rtt.rto(settings)
        } else {
            self.left_of_rto(now, settings).max(Duration::from_micros(1))
        };
        let rto = rto + self.pacing_delay(now, settings);
        self.timer.set(Kind::Retransmit, settings.runs_out(now, rto));
    }

    /// How much of the RTO of the oldest segment is left.
    pub(crate) fn left_of_rto(&self, now: Time, settings: &Settings) -> Duration {
        let left_at = self.flight.board.front().map_or(now, |oldest| oldest.left_at);
        (left_at + self.rtt.rto(settings)).max(now).since(now)
    }
}
