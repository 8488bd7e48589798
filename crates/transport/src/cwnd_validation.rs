//! Congestion window validation: a window that is not used must not grow (RFC 7661, RFC 9002 §7.8;
//! `tcp_cwnd_validate` of Linux).

use tcplab_cc::Control;
use tcplab_units::Time;

/// The use of the congestion window.
#[derive(Clone, Copy, Debug, Default)]
pub struct CwndValidation {
    /// The window was full in this round trip (`is_cwnd_limited`).
    is_limited: bool,
    /// The round trip ends when this is acknowledged (`cwnd_usage_seq`).
    end: u64,
    /// Linux: the most segments outstanding in a round trip in which the window was not full
    /// (`max_packets_out`). None: only a full window counts as full.
    max_packets_out: Option<u64>,
    /// The most segments outstanding since the window was last full (`snd_cwnd_used`).
    cwnd_used: u64,
    /// When the window was last full or set (`snd_cwnd_stamp`).
    cwnd_stamp: Time,
    /// New data was sent since the last validation.
    has_sent: bool,
}

/// Outstanding data, after everything that may leave has left.
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
    /// Whether the window limited the sender and may grow (`tcp_is_cwnd_limited`). In slow start,
    /// half of it is enough in Linux.
    #[inline]
    #[must_use]
    pub fn is_full(&self, control: &Control) -> bool {
        let in_slow_start = control.ssthresh.is_none_or(|ssthresh| control.cwnd < ssthresh);
        self.is_limited
            || (in_slow_start && self.max_packets_out.is_some_and(|most| control.cwnd < 2 * most))
    }

    /// New data leaves.
    #[inline]
    pub fn note_sent(&mut self) {
        self.has_sent = true;
    }

    /// Whether new data left since the last validation.
    #[inline]
    #[must_use]
    pub fn has_sent_new_data(&self) -> bool {
        self.has_sent
    }

    /// Whether new data left since the last validation; the flag is cleared.
    #[inline]
    pub fn take_sent_new_data(&mut self) -> bool {
        std::mem::take(&mut self.has_sent)
    }

    /// The window was set now.
    #[inline]
    pub fn stamp_cwnd(&mut self, now: Time) {
        self.cwnd_stamp = now;
    }

    /// When the window was last full or set.
    #[must_use]
    pub fn cwnd_stamp(&self) -> Time {
        self.cwnd_stamp
    }

    /// Validation restarts after an idle time, or after the window was full.
    pub fn restart(&mut self, now: Time) {
        (self.cwnd_used, self.cwnd_stamp) = (0, now);
    }

    /// The most segments outstanding since the window was last full; the count restarts.
    pub fn take_cwnd_used(&mut self) -> u64 {
        std::mem::take(&mut self.cwnd_used)
    }

    /// Everything that may leave has left. `limited`: the window held the rest back. The window
    /// counts as full while the flight that filled it is being acknowledged.
    #[inline]
    pub fn on_flight(&mut self, limited: bool, out: Outstanding) {
        if limited {
            self.end = out.nxt;
        }
        self.is_limited = out.una < self.end;
    }

    /// Validation by round trips, as in Linux (`tcp_cwnd_validate`). Returns whether a part of the
    /// window is unused.
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
            || (!self.is_limited && self.max_packets_out.is_none_or(|most| out.segments > most))
        {
            self.is_limited = limited;
            self.max_packets_out = Some(out.segments);
            self.end = out.nxt;
        }
        if self.is_full(control) {
            self.restart(now);
            return false;
        }
        self.cwnd_used = self.cwnd_used.max(out.segments);
        true
    }
}
