//! The sender's timer, set for the RTO (RFC 6298 §5) or as the persist timer.

use crate::context::Context;
use crate::sender::Sender;
use crate::timer::{Kind, TICK};
use tcplab_units::{Duration, Time};

/// A deadline that has already passed is noticed one tick later.
const LEAST_WAIT: Duration = TICK;

impl Sender {
    /// Starts the retransmission timer: one RTO from now.
    #[inline(never)]
    pub(crate) fn arm_rto(&mut self, context: Context<'_>) {
        let delay = self.pacing_delay(context);
        self.set_rto_timer(context, delay);
    }

    /// Starts the retransmission timer after a timeout: Linux does not add the pacing delay there
    /// (`tcp_retransmit_timer` calls `inet_csk_reset_xmit_timer` itself).
    #[cold]
    pub(crate) fn arm_rto_after_timeout(&mut self, context: Context<'_>) {
        self.set_rto_timer(context, Duration::ZERO);
    }

    /// Starts the retransmission timer from when the oldest segment leaves, which the queue of the
    /// device may hold back (`tcp_rack_reo_timeout`, `tcp_rto_delta_us`).
    #[cold]
    pub(crate) fn arm_rto_from_departure(&mut self, context: Context<'_>) {
        let left_at = self.loss.scoreboard().front().map_or(context.now, |oldest| oldest.left_at);
        let delay = left_at.max(context.now).since(context.now) + self.pacing_delay(context);
        self.set_rto_timer(context, delay);
    }

    #[inline]
    fn set_rto_timer(&mut self, context: Context<'_>, more: Duration) {
        let now = context.now;
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let rto = (self.rtt.rto(&context.settings.rto_limits()) + more).min(left);
        self.timer.set(context, Kind::Retransmit, rto);
    }

    /// Starts the persist timer: for a peer that has closed its window, or a host that cannot send
    /// (`tcp_probe0_base`).
    pub(crate) fn arm_persist_timer(&mut self, context: Context<'_>) {
        let Context { now, settings } = context;
        let left = self.deadline.max(now).since(now).max(LEAST_WAIT);
        let wait = self.rtt.rto(&settings.rto_limits()).max(settings.behaviour.probe0_min)
            + self.pacing_delay(context);
        self.timer.set(context, Kind::Retransmit, wait.min(left));
    }

    /// Restarts the retransmission timer (`tcp_rearm_rto`): one RTO from now or, if another timer
    /// was set in between, from when the oldest segment left.
    #[inline]
    pub(crate) fn rearm_rto(&mut self, context: Context<'_>) {
        if !self.has_outstanding() {
            return self.timer.stop();
        }
        let rto = if self.timer.kind == Kind::Retransmit || self.timer.at == Time::NEVER {
            self.rtt.rto(&context.settings.rto_limits())
        } else {
            self.remaining_rto(context).max(Duration::from_micros(1))
        };
        let rto = rto + self.pacing_delay(context);
        self.timer.set(context, Kind::Retransmit, rto);
    }

    /// The time left of the oldest segment's RTO.
    pub(crate) fn remaining_rto(&self, context: Context<'_>) -> Duration {
        let now = context.now;
        let left_at = self.loss.scoreboard().front().map_or(now, |oldest| oldest.left_at);
        (left_at + self.rtt.rto(&context.settings.rto_limits())).max(now).since(now)
    }
}
