//! Congestion window validation: whether the window limits the sender, and the decay of an unused
//! window.

use crate::context::Context;
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_transport::Outstanding;

impl Sender {
    /// Everything that may leave now has left. `limited`: the window held the rest back.
    #[inline]
    pub(crate) fn validate_cwnd(&mut self, context: Context<'_>, limited: bool) {
        let has_sent = self.congestion.take_sent_new_data();
        if context.settings.behaviour.kernel_cwnd_validation {
            if has_sent || limited {
                self.validate_as_linux(context, limited);
            }
        } else {
            let out = self.outstanding();
            self.congestion.validate_flight(limited, out);
        }
    }

    #[inline]
    fn outstanding(&self) -> Outstanding {
        let segments = self.loss.scoreboard().outstanding();
        Outstanding { una: self.una, nxt: self.nxt, segments }
    }

    #[inline(never)]
    fn validate_as_linux(&mut self, context: Context<'_>, limited: bool) {
        let Context { now, settings } = context;
        let out = self.outstanding();
        if !self.congestion.validate_round(now, limited, out) {
            return;
        }
        let wait = settings.behaviour.clock.in_jiffies(self.rtt.rto(&settings.rto_limits()));
        let starves = settings.behaviour.clock.idle(now, self.congestion.cwnd_stamp()) >= wait;
        if settings.restart_after_idle && starves {
            self.congestion.stamp_cwnd(now);
            let waits_for_room = self.departure.owes_write_space();
            if self.loss.phase() == Phase::Open && !waits_for_room {
                // The initial window counts as used (`tcp_cwnd_application_limited`,
                // `tcp_init_cwnd`).
                let used = self.congestion.take_cwnd_used();
                let used = used.max(settings.initial_window);
                self.consult(now, |cc, flow| cc.on_unused(flow, used));
            }
        }
    }
}
