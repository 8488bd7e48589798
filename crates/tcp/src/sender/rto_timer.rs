//! The one timer of a sender, set for the RTO (RFC 6298 §5) or for a probe of a closed window.

use crate::context::Context;
use crate::sender::Sender;
use crate::timer::{Kind, TICK};
use tcplab_units::{Duration, Time};

/// Where a deadline has passed, it is noticed a tick later.
const LEAST_WAIT: Duration = TICK;

impl Sender {
    /// Waits an RTO from now.
    #[inline(never)]
    pub(crate) fn wait_for_answer(&mut self, context: Context<'_>) {
        let delay = self.pacing_delay(context);
        self.wait_for_rto(context, delay);
    }

    /// Waits an RTO after a timeout: Linux does not add the pacing delay
    /// (`tcp_retransmit_timer`, which calls `inet_csk_reset_xmit_timer` itself).
    #[cold]
    pub(crate) fn wait_after_timeout(&mut self, context: Context<'_>) {
        self.wait_for_rto(context, Duration::ZERO);
    }

    /// Waits an RTO from when the oldest segment leaves, which the queue of the device may hold
    /// back (`tcp_rack_reo_timeout`, `tcp_rto_delta_us`).
    #[cold]
    pub(crate) fn wait_from_departure(&mut self, context: Context<'_>) {
        let left_at = self.loss.scoreboard().front().map_or(context.now, |oldest| oldest.left_at);
        let delay = left_at.max(context.now).since(context.now) + self.pacing_delay(context);
        self.wait_for_rto(context, delay);
    }

    #[inline]
    fn wait_for_rto(&mut self, context: Context<'_>, more: Duration) {
        let now = context.now;
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let rto = (self.rtt.rto(&context.settings.rto_limits()) + more).min(left);
        self.timer.set(Kind::Retransmit, now, rto, context.settings);
    }

    /// Waits until the peer is to be probed, which takes nothing, or the host, which sends nothing
    /// (`tcp_probe0_base`).
    pub(crate) fn wait_to_probe(&mut self, context: Context<'_>) {
        let Context { now, settings } = context;
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let wait = self.rtt.rto(&settings.rto_limits()).max(settings.behaviour.probe0_min)
            + self.pacing_delay(context);
        self.timer.set(Kind::Retransmit, now, wait.min(left), settings);
    }

    /// Waits an RTO for what is outstanding: from now, or where another wait was put in between,
    /// from when the oldest segment left.
    #[inline]
    pub(crate) fn rearm(&mut self, context: Context<'_>) {
        let now = context.now;
        if !self.has_outstanding() {
            return self.timer.stop();
        }
        let rto = if self.timer.kind == Kind::Retransmit || self.timer.at == Time::NEVER {
            self.rtt.rto(&context.settings.rto_limits())
        } else {
            self.left_of_rto(context).max(Duration::from_micros(1))
        };
        let rto = rto + self.pacing_delay(context);
        self.timer.set(Kind::Retransmit, now, rto, context.settings);
    }

    /// How much of the RTO of the oldest segment is left.
    pub(crate) fn left_of_rto(&self, context: Context<'_>) -> Duration {
        let now = context.now;
        let left_at = self.loss.scoreboard().front().map_or(now, |oldest| oldest.left_at);
        (left_at + self.rtt.rto(&context.settings.rto_limits())).max(now).since(now)
    }
}
