//! Congestion window validation: a window that is not used must not grow (RFC 7661, RFC 9002 §7.8;
//! `tcp_cwnd_validate` of Linux).

use tcplab_cc::Control;
use tcplab_units::Time;

/// How much of the window is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct CwndValidation {
    /// The window was full in this round trip.
    is_limited: bool,
    /// Acknowledging this ends the round trip.
    end: u64,
    /// Linux: the most segments outstanding in a round trip in which the window was not full. None:
    /// only a full window counts as full.
    most_out: Option<u64>,
    /// The most segments outstanding since the window was last full.
    used: u64,
    /// When the window was last full or decided upon (`snd_cwnd_stamp`).
    decided_at: Time,
    /// Something was sent since the last look.
    has_sent: bool,
}

/// Outstanding data when all that may leave has left.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// The oldest that is not acknowledged.
    pub una: u64,
    /// The next to be sent.
    pub nxt: u64,
    /// Segments between them.
    pub segments: u64,
}

impl CwndValidation {
    /// Whether the window may grow. In slow start, Linux is content with one half used.
    #[inline]
    #[must_use]
    pub fn is_full(&self, control: &Control) -> bool {
        let in_slow_start = control.ssthresh.is_none_or(|ssthresh| control.cwnd < ssthresh);
        self.is_limited
            || (in_slow_start && self.most_out.is_some_and(|most| control.cwnd < 2 * most))
    }

    /// Data leaves.
    #[inline]
    pub fn note_sent(&mut self) {
        self.has_sent = true;
    }

    /// Whether data left since the last look.
    #[inline]
    #[must_use]
    pub fn has_sent_data(&self) -> bool {
        self.has_sent
    }

    /// The same; the look is taken.
    #[inline]
    pub fn take_sent_data(&mut self) -> bool {
        std::mem::take(&mut self.has_sent)
    }

    /// The window has just been decided upon.
    #[inline]
    pub fn note_decision(&mut self, now: Time) {
        self.decided_at = now;
    }

    /// When the window was last full or decided upon.
    #[must_use]
    pub fn decided_at(&self) -> Time {
        self.decided_at
    }

    /// The window begins anew after an idle time.
    pub fn begin_anew(&mut self, now: Time) {
        (self.used, self.decided_at) = (0, now);
    }

    /// The most segments outstanding since the window was last full; the count begins anew.
    pub fn take_used(&mut self) -> u64 {
        std::mem::take(&mut self.used)
    }

    /// All that may leave has left, and the window kept the rest back if `limited`. It counts as
    /// used while the flight that filled it is being acknowledged.
    #[inline]
    pub fn on_flight(&mut self, limited: bool, out: Outstanding) {
        if limited {
            self.end = out.nxt;
        }
        self.is_limited = out.una < self.end;
    }

    /// The same as Linux counts it, round trip by round trip (`tcp_cwnd_validate`). Says whether a
    /// part of the window is unused.
    #[inline]
    pub fn on_round(
        &mut self,
        now: Time,
        limited: bool,
        out: Outstanding,
        control: &Control,
    ) -> bool {
        let is_new_round = out.una >= self.end;
        if is_new_round
            || limited
            || (!self.is_limited && self.most_out.is_none_or(|most| out.segments > most))
        {
            self.is_limited = limited;
            self.most_out = Some(out.segments);
            self.end = out.nxt;
        }
        if self.is_full(control) {
            self.begin_anew(now);
            return false;
        }
        self.used = self.used.max(out.segments);
        true
    }
}
