//! Whether the window is what limits the sender: one that is not used must not grow (RFC 7661;
//! `tcp_cwnd_validate` of Linux).

use crate::recovery::Phase;
use crate::sender::Sender;
use crate::settings::Settings;
use tcplab_cc::Control;
use tcplab_units::Time;

/// How much of the window is used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CwndValidation {
    /// It was full in this round trip.
    is_limited: bool,
    /// Once this is acknowledged, another round trip begins.
    end: u64,
    /// Linux: the most segments outstanding in a round trip in which it was not full; none: what is
    /// full is full, and nothing else.
    most_out: Option<u64>,
    /// The most segments outstanding since it was last full.
    used: u64,
    /// When it was last full or decided upon (`snd_cwnd_stamp`).
    decided_at: Time,
    /// Something was sent since the last look.
    has_sent: bool,
}

impl CwndValidation {
    /// Whether the window may grow. In slow start Linux is content with one half used.
    #[inline]
    pub fn is_full(&self, control: &Control) -> bool {
        let in_slow_start = control.ssthresh.is_none_or(|ssthresh| control.cwnd < ssthresh);
        self.is_limited
            || (in_slow_start && self.most_out.is_some_and(|most| control.cwnd < 2 * most))
    }

    #[inline]
    pub fn note_sent(&mut self) {
        self.has_sent = true;
    }

    /// Something was sent since the last look.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.has_sent
    }

    /// The window has just been decided upon.
    #[inline]
    pub fn note_decision(&mut self, now: Time) {
        self.decided_at = now;
    }

    /// The window begins anew after a pause.
    pub fn begin_anew(&mut self, now: Time) {
        (self.used, self.decided_at) = (0, now);
    }
}

impl Sender {
    /// All that may leave now has left; `limited`: the window kept the rest back.
    #[inline]
    pub(crate) fn note_use_of_window(&mut self, now: Time, limited: bool, settings: &Settings) {
        let has_sent = std::mem::take(&mut self.flight.validation.has_sent);
        if settings.behaviour.kernel_cwnd_validation {
            if has_sent || limited {
                self.validate(now, limited, settings);
            }
        } else {
            // The window is the limit while what filled it is being acknowledged.
            if limited {
                self.flight.validation.end = self.nxt;
            }
            self.flight.validation.is_limited = self.una < self.flight.validation.end;
        }
    }

    #[inline(never)]
    fn validate(&mut self, now: Time, limited: bool, settings: &Settings) {
        let out = self.flight.board.outstanding();
        let usage = &mut self.flight.validation;
        let is_new_round = self.una >= usage.end;
        if is_new_round
            || limited
            || (!usage.is_limited && usage.most_out.is_none_or(|most| out > most))
        {
            usage.is_limited = limited;
            usage.most_out = Some(out);
            usage.end = self.nxt;
        }
        if usage.is_full(&self.control) {
            usage.begin_anew(now);
            return;
        }
        usage.used = usage.used.max(out);
        let wait = settings.behaviour.clock.in_jiffies(self.rtt.rto(&settings.rto_limits()));
        let starves = settings.behaviour.clock.idle(now, usage.decided_at) >= wait;
        if settings.restart_after_idle && starves {
            usage.decided_at = now;
            let waits_for_room = self.buffer.as_ref().is_some_and(|buffer| buffer.owes_room());
            if self.flight.recovery.phase == Phase::Open && !waits_for_room {
                // A first window counts as used, whatever the handshake made of that
                // (`tcp_cwnd_application_limited`, `tcp_init_cwnd`).
                let used = std::mem::take(&mut self.flight.validation.used);
                let used = used.max(settings.initial_window);
                self.consult(now, |cc, flow| cc.on_unused(flow, used));
            }
        }
    }
}
