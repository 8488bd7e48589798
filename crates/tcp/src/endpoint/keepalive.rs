//! Whether the peer is still there: keepalives while nothing is under way (RFC 9293 §3.8.4), and
//! the longest that something may stay without an answer (the user timeout, RFC 5482).

use crate::endpoint::{Ended, Endpoint, State};
use crate::settings::{Keepalive, Settings};
use crate::timer::waits_until;
use tcplab_units::{Duration, Time};

/// The keepalives of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepaliveTimer {
    /// When to look again.
    pub due: Time,
    /// When the peer last acknowledged anything.
    heard: Time,
    /// Probes sent since.
    probes: u32,
}

impl KeepaliveTimer {
    pub fn new(now: Time, settings: &Settings) -> Option<Box<Self>> {
        let Keepalive { idle, .. } = settings.keepalive?;
        Some(Box::new(Self {
            due: waits_until(settings.behaviour.clock, now, idle),
            heard: now,
            probes: 0,
        }))
    }

    #[inline]
    pub fn on_segment_received(&mut self, now: Time) {
        self.heard = now;
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
        let silence = now.since(alive.heard);
        // The retransmission timer watches over what is under way.
        let is_busy = self.send.has_outstanding() || self.send.is_stuck();
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
            self.owes_probe = true;
            interval
        };
        alive.due = waits_until(self.settings.behaviour.clock, now, wait);
    }

    /// Starts the user timeout: the retransmission timer expired for the first time since an ACK.
    /// Linux counts from the first retransmission, but of a SYN from its first transmission
    /// (`tcp_connect` sets `retrans_stamp`).
    pub(crate) fn start_user_timeout(&mut self, now: Time) {
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        self.silent_since = match self.send.oldest() {
            _ if self.settings.behaviour.user_timeout_from_retransmission
                && self.state != State::SynSent =>
            {
                now
            }
            Some(oldest) => oldest.left_at,
            None if is_opening => self.send.departure().last_sent(),
            None => now,
        };
        if let Some(most) = self.user_timeout() {
            self.send.deadline = self.silent_since + most;
        }
    }

    /// The user timeout, where it counts: Linux has no such thing for a SYN-ACK
    /// (`reqsk_timer_handler`).
    fn user_timeout(&self) -> Option<Duration> {
        let is_request =
            self.settings.behaviour.syn_ack_has_no_user_timeout && self.state == State::SynReceived;
        self.settings.user_timeout.filter(|_| !is_request)
    }

    /// Whether the user timeout has passed.
    pub(crate) fn is_given_up(&self, now: Time) -> bool {
        let most = self.user_timeout();
        most.is_some_and(|most| now.since(self.silent_since) >= most)
    }

    /// The part of a wait that the user timeout leaves.
    pub(crate) fn within_user_timeout(&self, now: Time, wait: Duration) -> Duration {
        let Some(most) = self.settings.user_timeout else { return wait };
        wait.min((self.silent_since + most).max(now).since(now))
    }
}
