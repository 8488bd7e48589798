//! Bursts that the queue of the sender's own host refuses or drops (`__tcp_transmit_skb`).
//!
//! Linux treats both as congestion, and reduces the window as for an ECN mark (`tcp_enter_cwr`). A
//! refused burst (`NET_XMIT_DROP`) was not sent: its data waits for the next ACK, timer or write. A
//! dropped burst (`NET_XMIT_CN`) was sent, and is lost.

use crate::congestion;
use crate::context::Context;
use crate::departure;
use crate::loss::{self, Loss};
use crate::sender::Sender;
use crate::timer::{Kind, Timer};
use tcplab_cc::{Cause, Phase};
use tcplab_units::{Duration, Time};

/// The wait after a refused retransmission or zero-window probe (`TCP_RESOURCE_PROBE_INTERVAL`).
const RESOURCE_PROBE: Duration = Duration::from_millis(500);

/// The state of the sender before a burst, to which a refusal returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    nxt: u64,
    timer: Timer,
    loss: loss::Before,
    departure: departure::Before,
    congestion: congestion::Before,
}

impl Sender {
    /// The state before the burst that is about to leave.
    #[cold]
    pub fn before_burst(&self) -> Before {
        Before {
            nxt: self.nxt,
            timer: self.timer,
            loss: self.loss.before_burst(),
            departure: self.departure.before_burst(),
            congestion: self.congestion.before_burst(),
        }
    }

    /// Whether the burst in progress is complete.
    pub fn ends_burst(&self, context: Context<'_>) -> bool {
        !self.loss.is_tlp_pending() && self.departure.ends_burst(context.now, self.nxt)
    }

    /// Segments of new data that have left since `before`.
    pub fn new_since(&self, before: &Before) -> u64 {
        self.loss.new_since(&before.loss)
    }

    /// The host's queue has refused the burst with the data in `range`, the only one since
    /// `before`. `sent` segments of new data left before it in the same event.
    #[cold]
    pub fn on_refused(
        &mut self,
        context: Context<'_>,
        before: &Before,
        range: (u64, u64),
        sent: u64,
    ) {
        if self.new_since(before) > 0 {
            self.take_new_data_back(context, before);
        } else {
            self.take_retransmissions_back(context, before, range);
        }
        self.enter_cwr(context, sent);
    }

    fn take_new_data_back(&mut self, context: Context<'_>, before: &Before) {
        let is_probe = self.loss.has_probed_since(&before.loss);
        self.loss.take_back(&before.loss);
        self.nxt = before.nxt;
        self.departure.take_back(&before.departure, Some(before.nxt));
        self.congestion.take_back(before.congestion);
        self.timer = before.timer;
        if is_probe {
            self.arm_rto_without_probe(context);
        } else if before.departure.is_wakeup() {
            // `tcp_send_probe0`.
            self.timer.set(context, Kind::Retransmit, RESOURCE_PROBE);
        } else if self.timer.at == Time::NEVER && self.needs_window_probe() {
            self.arm_persist_timer(context);
        }
    }

    fn take_retransmissions_back(
        &mut self,
        context: Context<'_>,
        before: &Before,
        (start, end): (u64, u64),
    ) {
        let is_probe = self.loss.has_probed_since(&before.loss);
        self.departure.take_back(&before.departure, None);
        self.congestion.take_back(before.congestion);
        self.timer = before.timer;
        if is_probe {
            self.loss.take_probe_back(&before.loss);
            self.arm_rto_without_probe(context);
            return;
        }
        self.loss.take_retransmissions_back(start..end);
        if Loss::answers_timeout(&before.loss) {
            // Nothing was retransmitted, so the timeout does not double the RTO
            // (`tcp_retransmit_timer`).
            self.rtt.undo_backoff();
            self.timer.set(context, Kind::Retransmit, RESOURCE_PROBE);
        }
    }

    /// The host's queue has dropped a burst as the burst of `segments` since `before` entered it:
    /// that burst itself if `is_newest`, or else another one. `sent` segments of new data left
    /// before it in the same event.
    #[cold]
    pub fn on_dropped(
        &mut self,
        context: Context<'_>,
        before: &Before,
        (segments, sent): (u64, u64),
        is_newest: bool,
    ) {
        if is_newest {
            self.departure.drop_newest(&before.departure);
        }
        let probe_end = self.loss.probe_end();
        let sent = if self.new_since(before) > 0 { sent } else { 0 };
        if self.enter_cwr(context, segments + sent) {
            self.loss.begin_before_burst(before.nxt, probe_end);
        }
    }

    /// Congestion in the host reduces the window (`tcp_enter_cwr`). The `sent` segments that left
    /// in this event count as sent in the reduction, as `tcp_write_xmit` counts them at its end.
    /// Returns whether a reduction begins.
    #[cold]
    pub fn enter_cwr(&mut self, context: Context<'_>, sent: u64) -> bool {
        if !self.congestion.is_controlled() {
            // Here a controller exists once data is sent; in Linux, once the connection is
            // established.
            self.departure.note_early_refusal();
            return false;
        }
        self.loss.forbid_undo();
        if self.loss.phase() >= Phase::Reduced {
            return false;
        }
        self.loss.end_undo();
        self.begin_reduction(context, Cause::Ecn, self.loss.scoreboard().outstanding());
        self.set_phase(Phase::Reduced);
        for _ in 0..sent {
            self.congestion.on_sent();
        }
        true
    }
}
