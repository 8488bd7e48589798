//! Whether the peer is alive: keepalives of an idle connection (RFC 9293 §3.8.4), and the user
//! timeout (RFC 5482), which bounds the time without an acknowledgment.

use crate::context::Context;
use crate::endpoint::{Ended, Endpoint, State};
use crate::settings::Keepalive;
use crate::timer::waits_until;
use tcplab_units::{Duration, Time};

/// The keepalive timer of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepaliveTimer {
    /// When the timer expires.
    pub due: Time,
    /// When the peer last acknowledged anything.
    last_ack: Time,
    /// Keepalive probes sent since.
    probes: u32,
}

impl KeepaliveTimer {
    pub fn new(context: Context<'_>) -> Option<Box<Self>> {
        let Context { now, settings } = context;
        let Keepalive { idle, .. } = settings.keepalive?;
        Some(Box::new(Self {
            due: waits_until(settings.behaviour.clock, now, idle),
            last_ack: now,
            probes: 0,
        }))
    }

    #[inline]
    pub fn on_heard(&mut self, now: Time) {
        self.last_ack = now;
        self.probes = 0;
    }
}

impl Endpoint {
    /// The keepalive timer expired (`tcp_keepalive_timer`).
    pub(crate) fn on_keepalive_timer(&mut self, now: Time) {
        let (Some(alive), Some(keepalive)) = (&mut self.keepalive, self.settings.keepalive) else {
            return;
        };
        let Keepalive { idle, interval, probes } = keepalive;
        let silence = now.since(alive.last_ack);
        // The retransmission timer covers outstanding data.
        let is_busy = self.send.has_outstanding() || self.send.needs_window_probe();
        let wait = if is_busy {
            idle
        } else if silence < idle {
            idle.saturating_sub(silence)
        } else if self
            .settings
            .user_timeout
            .map_or(alive.probes >= probes, |most| silence >= most && alive.probes > 0)
        {
            self.reset();
            return self.end(Ended::TimedOut);
        } else {
            alive.probes += 1;
            self.window_probe_pending = true;
            interval
        };
        alive.due = waits_until(self.settings.behaviour.clock, now, wait);
    }

    /// The retransmission timer expired for the first time since the last answer: sets the start of
    /// the user timeout. In Linux it starts with the first retransmission, for a SYN with the SYN
    /// itself (`tcp_connect` sets `retrans_stamp`).
    pub(crate) fn start_user_timeout(&mut self, now: Time) {
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        self.unanswered_since = match self.send.oldest() {
            _ if self.settings.behaviour.user_timeout_from_retransmission
                && self.state != State::SynSent =>
            {
                now
            }
            Some(oldest) => oldest.left_at,
            None if is_opening => self.send.departure().last_data_sent(),
            None => now,
        };
        if let Some(most) = self.user_timeout() {
            self.send.deadline = self.unanswered_since + most;
        }
    }

    /// The user timeout, where it applies: Linux has none for a SYN-ACK (`reqsk_timer_handler`).
    fn user_timeout(&self) -> Option<Duration> {
        let is_request =
            self.settings.behaviour.syn_ack_has_no_user_timeout && self.state == State::SynReceived;
        self.settings.user_timeout.filter(|_| !is_request)
    }

    /// Whether the user timeout has passed.
    pub(crate) fn has_user_timeout_passed(&self, now: Time) -> bool {
        let most = self.user_timeout();
        most.is_some_and(|most| now.since(self.unanswered_since) >= most)
    }

    /// A wait, cut at the end of the user timeout.
    pub(crate) fn within_user_timeout(&self, now: Time, wait: Duration) -> Duration {
        let Some(most) = self.settings.user_timeout else { return wait };
        wait.min((self.unanswered_since + most).max(now).since(now))
    }
}
