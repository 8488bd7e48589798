//! The endpoint's calls of its sender, beside data and acknowledgments. Except for the sequence
//! space and the timers, the fields of [`Sender`] are private to this folder.

use crate::congestion::CongestionWindow;
use crate::context::Context;
use crate::departure::{Departure, WriteCall};
use crate::loss::{Progress, Sent};
use crate::sender::{Sender, SenderCounters};
use tcplab_cc::CongestionControl;
use tcplab_units::{Rate, Time};

/// The application's calls.
impl Sender {
    /// The application writes from its own memory, not from a file.
    pub fn expect_copied_writes(&mut self) {
        self.departure.expect_copied_writes();
    }

    /// The application waits in a call that also checks for buffer space.
    pub fn on_poll(&mut self) {
        let unsent = self.unsent();
        self.departure.on_poll(unsent);
    }

    /// The application writes next without a signal of buffer space.
    pub fn wake_writer(&mut self) {
        self.departure.wake_writer();
    }

    /// Bytes of memory that written data occupies.
    #[inline]
    pub fn memory(&self) -> u64 {
        let sent = self.written.saturating_sub(self.una.max(1));
        self.departure.memory().unwrap_or(sent)
    }
}

/// Timers.
impl Sender {
    /// Timers of the connection expire, the pacing timer among them if it is due. Of all timers,
    /// only the pacing timer may send new data while data is outstanding.
    #[inline]
    pub fn on_timers(&mut self, context: Context<'_>) {
        let now = context.now;
        if self.departure.on_timers(now, self.una < self.nxt)
            && context.settings.behaviour.pacing_timer_retransmits_first
            && self.loss.recovery().is_recovering()
        {
            // Retransmissions come first, even where F-RTO asks for new data (`tcp_tsq_write`).
            self.loss.retransmit_lost();
        }
    }

    /// The SYN timed out: Linux enters the loss state (`tcp_enter_loss`), which only a later
    /// timeout of data leaves. Until then `tcp_simple_retransmit` starts with new data after an
    /// ICMP notice. If the SYN-ACK answers the first SYN after all, its ECN marks count, and the
    /// first data carries CWR (`tcp_ecn_queue_cwr`).
    #[cold]
    pub fn on_syn_timeout(&mut self, context: Context<'_>) {
        self.loss.on_syn_timeout(context.settings.frto);
        self.congestion.set_cwr_pending(true);
    }

    /// The persist timer expired: the next segment may be small.
    pub fn probe_closed_window(&mut self) {
        self.departure.probe_closed_window();
    }

    /// The device has transmitted: throttled data continues, and retransmissions go first
    /// (`tcp_tsq_write`).
    pub fn resume(&mut self) {
        self.departure.resume();
        if self.loss.recovery().is_recovering() {
            self.loss.retransmit_lost();
        }
    }

    /// A segment was discarded. Discarded segments trigger no transmission
    /// (`tcp_validate_incoming`).
    pub fn ignore_discarded(&mut self) {
        if self.has_outstanding() {
            self.departure.suppress_sending();
        }
    }
}

/// The device and the path.
impl Sender {
    /// The device reports packets that have left it. `paces`: its queue holds each packet until its
    /// departure time.
    pub fn enable_small_queue(&mut self, paces: bool) {
        self.departure.enable_small_queue(paces);
    }

    /// Whether the segment that leaves now continues the burst before it, and the earliest time at
    /// which it may leave the device's queue.
    pub fn take_departing(&mut self, now: Time) -> (bool, Time) {
        self.departure.take_departing(now)
    }

    /// Whether a throttled sender may continue because the host's queue refused or dropped a burst.
    #[inline]
    pub fn take_resumption(&mut self) -> bool {
        self.departure.take_resumption()
    }

    /// Bytes have left the device, or were dropped there. Returns whether a throttled burst may
    /// continue.
    pub fn on_tx_completion(&mut self, bytes: u64) -> bool {
        self.departure.on_tx_completion(bytes)
    }

    /// A packet with or without data leaves, and its route is looked up.
    #[cold]
    pub fn on_route_lookup(&mut self) {
        self.departure.on_route_lookup();
    }

    /// An ICMP "fragmentation needed" notice arrives now.
    pub fn note_icmp_notice(&mut self, now: Time) {
        self.departure.note_icmp_notice(now);
    }

    /// Payload bytes of the segment that the host has just dropped as too large, or 0. To be
    /// accounted for once.
    pub fn take_local_drop(&mut self) -> u16 {
        self.departure.take_local_drop()
    }
}

/// Segments that the endpoint makes.
impl Sender {
    /// A SYN or SYN-ACK leaves.
    pub fn note_syn_sent(&mut self, now: Time) {
        self.departure.note_sent(now);
    }

    /// Any segment leaves, a pure ACK included.
    #[inline]
    pub fn note_segment_sent(&mut self, now: Time) {
        self.departure.note_segment_sent(now);
    }

    /// The SYN carries `payload` bytes (RFC 7413).
    #[cold]
    pub fn send_with_syn(&mut self, context: Context<'_>, payload: u16) {
        self.loss.send(context.now, 1, payload);
        self.nxt = 1 + u64::from(payload);
        self.counters.sent_segments += 1;
        if context.settings.has_packet_buffer() {
            let (windows, agreed_mss) = (self.congestion.buffered_windows(), self.agreed_mss);
            let (lowat, is_above_low) = (None, false);
            let call =
                WriteCall { bytes: payload.into(), lowat, is_above_low, windows, agreed_mss };
            self.departure.begin_with_syn(call, self.cwnd(), context.settings);
        }
    }

    /// The SYN-ACK acknowledges the SYN's data below `acked`.
    #[cold]
    pub fn on_syn_acked(&mut self, acked: u64) {
        self.loss.acknowledge(acked, &mut Progress::default());
        self.una = acked;
        self.departure.acknowledge(acked);
    }

    /// The initial window is one segment, because the SYN was lost (RFC 5681 §3.1).
    pub fn begin_with_one(&mut self) {
        self.congestion.begin_with_one();
    }

    /// The controller begins after the segment that opened the connection, and is not told of it.
    pub fn forget_early_arrivals(&mut self) {
        self.congestion.take_segments_before_controller();
    }

    /// Whether the next new data carries CWR (RFC 3168 §6.1.2); the flag is cleared.
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        self.congestion.take_cwr()
    }
}

/// Reading.
impl Sender {
    /// The congestion window.
    #[inline]
    pub fn congestion(&self) -> &CongestionWindow {
        &self.congestion
    }

    /// The controller, read-only.
    pub fn cc(&self) -> Option<&dyn CongestionControl> {
        self.congestion.cc()
    }

    /// The oldest segment that is not acknowledged.
    pub fn oldest(&self) -> Option<&Sent> {
        self.loss.scoreboard().front()
    }

    /// The sender's counters.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// The departures.
    #[inline]
    pub fn departure(&self) -> &Departure {
        &self.departure
    }

    /// The latest delivery rate, where it is sampled.
    pub fn delivery_rate(&self) -> Option<Rate> {
        self.loss.rates().and_then(|rates| rates.last_rate(u64::from(self.mss)))
    }
}
