//! The one timer of a sender, set for the RTO (RFC 6298 §5) or for a probe of a closed window.

use crate::sender::Sender;
use crate::settings::Settings;
use crate::timer::{Kind, TICK};
use tcplab_units::{Duration, Time};

/// Where a deadline has passed, it is noticed a tick later.
const LEAST_WAIT: Duration = TICK;

impl Sender {
    /// Waits an RTO from now.
    #[inline(never)]
    pub(crate) fn wait_for_answer(&mut self, now: Time, settings: &Settings) {
        let delay = self.pacing_delay(now, settings);
        self.wait_for_rto(now, delay, settings);
    }

    /// Waits an RTO after a timeout: Linux does not add the pacing delay
    /// (`tcp_retransmit_timer`, which calls `inet_csk_reset_xmit_timer` itself).
    #[cold]
    pub(crate) fn wait_after_timeout(&mut self, now: Time, settings: &Settings) {
        self.wait_for_rto(now, Duration::ZERO, settings);
    }

    #[inline]
    fn wait_for_rto(&mut self, now: Time, more: Duration, settings: &Settings) {
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let rto = (self.rtt.rto(&settings.rto_limits()) + more).min(left);
        self.timer.set(Kind::Retransmit, now, rto, settings);
    }

    /// Waits until the peer is to be probed, which takes nothing, or the host, which sends nothing
    /// (`tcp_probe0_base`).
    pub(crate) fn wait_to_probe(&mut self, now: Time, settings: &Settings) {
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let wait = self.rtt.rto(&settings.rto_limits()).max(settings.behaviour.probe0_min)
            + self.pacing_delay(now, settings);
        self.timer.set(Kind::Retransmit, now, wait.min(left), settings);
    }

    /// Waits an RTO for what is outstanding: from now, or where another wait was put in between,
    /// from when the oldest segment left.
    #[inline]
    pub(crate) fn rearm(&mut self, now: Time, settings: &Settings) {
        if !self.has_outstanding() {
            return self.timer.stop();
        }
        let rto = if self.timer.kind == Kind::Retransmit || self.timer.at == Time::NEVER {
            self.rtt.rto(&settings.rto_limits())
        } else {
            self.left_of_rto(now, settings).max(Duration::from_micros(1))
        };
        let rto = rto + self.pacing_delay(now, settings);
        self.timer.set(Kind::Retransmit, now, rto, settings);
    }

    /// How much of the RTO of the oldest segment is left.
    pub(crate) fn left_of_rto(&self, now: Time, settings: &Settings) -> Duration {
        let left_at = self.loss.board().front().map_or(now, |oldest| oldest.left_at);
        (left_at + self.rtt.rto(&settings.rto_limits())).max(now).since(now)
    }
}
