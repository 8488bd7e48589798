//! Whether the window is what limits the sender, and what becomes of one that is not used.

use crate::context::Context;
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_transport::Outstanding;

impl Sender {
    /// All that may leave now has left; `limited`: the window kept the rest back.
    #[inline]
    pub(crate) fn note_use_of_window(&mut self, context: Context<'_>, limited: bool) {
        let has_sent = self.congestion.take_sent_data();
        if context.settings.behaviour.kernel_cwnd_validation {
            if has_sent || limited {
                self.validate(context, limited);
            }
        } else {
            let out = self.extent();
            self.congestion.validate_flight(limited, out);
        }
    }

    #[inline]
    fn extent(&self) -> Outstanding {
        let segments = self.loss.scoreboard().outstanding();
        Outstanding { una: self.una, nxt: self.nxt, segments }
    }

    #[inline(never)]
    fn validate(&mut self, context: Context<'_>, limited: bool) {
        let Context { now, settings } = context;
        let out = self.extent();
        if !self.congestion.validate_round(now, limited, out) {
            return;
        }
        let wait = settings.behaviour.clock.in_jiffies(self.rtt.rto(&settings.rto_limits()));
        let starves = settings.behaviour.clock.idle(now, self.congestion.decided_at()) >= wait;
        if settings.restart_after_idle && starves {
            self.congestion.note_decision(now);
            let waits_for_room = self.departure.owes_write_space();
            if self.loss.phase() == Phase::Open && !waits_for_room {
                // A first window counts as used, whatever the handshake made of that
                // (`tcp_cwnd_application_limited`, `tcp_init_cwnd`).
                let used = self.congestion.take_used();
                let used = used.max(settings.initial_window);
                self.consult(now, |cc, flow| cc.on_unused(flow, used));
            }
        }
    }
}
