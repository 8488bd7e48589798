//! The calls of an endpoint to its sender, beside data and acknowledgments. The fields of
//! [`Sender`] are private to this folder, but for the sequence space and the timers.

use crate::congestion::CongestionWindow;
use crate::context::Context;
use crate::departure::{Call, Departure};
use crate::loss::{Progress, Sent};
use crate::segment::Segment;
use crate::sender::{Sender, SenderCounters};
use tcplab_cc::CongestionControl;
use tcplab_units::{Rate, Time};

/// The application's calls.
impl Sender {
    /// The application writes from its own memory, not from a file.
    pub fn expect_copied_writes(&mut self) {
        self.departure.expect_copied_writes();
    }

    /// The application waits in a call that looks for room as well.
    pub fn look_for_room(&mut self) {
        let unsent = self.unsent();
        self.departure.look_for_room(unsent);
    }

    /// The application writes next without having been told of room.
    pub fn try_to_write(&mut self) {
        self.departure.try_to_write();
    }

    /// Bytes of memory that written data takes.
    #[inline]
    pub fn memory(&self) -> u64 {
        let sent = self.written.saturating_sub(self.una.max(1));
        self.departure.memory().unwrap_or(sent)
    }
}

/// Timers.
impl Sender {
    /// Timers of the connection run out; that of pacing, if it is due. Of all timers only that one
    /// looks for new data while some is under way.
    #[inline]
    pub fn on_timers(&mut self, context: Context<'_>) {
        let now = context.now;
        if self.departure.on_timers(now, self.una < self.nxt)
            && context.settings.behaviour.pacing_timer_repairs_first
            && self.loss.recovery().is_repairing()
        {
            // Lost segments come first now, be new data a better test of a timeout or not
            // (`tcp_tsq_write`).
            self.loss.repair_lost();
        }
    }

    /// The SYN timed out, which Linux takes for a loss (`tcp_enter_loss`). Only a timeout of data
    /// takes that back: a notice of a packet that is too large begins with new data then
    /// (`tcp_simple_retransmit`). If the answer to the first SYN was only late, its marks count,
    /// and the first data says that the window was reduced (`tcp_ecn_queue_cwr`).
    #[cold]
    pub fn on_syn_timeout(&mut self, context: Context<'_>) {
        self.loss.on_syn_timeout(context.settings.frto);
        self.congestion.owe_cwr(true);
    }

    /// The persist timer ran out: the next segment may be small.
    pub fn probe_closed_window(&mut self) {
        self.departure.probe_closed_window();
    }

    /// The device has transmitted: what was held back goes on, and repairs go first
    /// (`tcp_tsq_write`).
    pub fn resume(&mut self) {
        self.departure.resume();
        if self.loss.recovery().is_repairing() {
            self.loss.repair_lost();
        }
    }

    /// A segment is discarded: that is no reason for data to leave (`tcp_validate_incoming`).
    pub fn ignore_discarded(&mut self) {
        if self.has_outstanding() {
            self.departure.stay();
        }
    }
}

/// The device and the path.
impl Sender {
    /// The device tells of packets that have left it; `paces`: its queue keeps each until its time.
    pub fn keep_queue_small(&mut self, paces: bool) {
        self.departure.keep_queue_small(paces);
    }

    /// Takes the segment that leaves for the device, or none, and gives the one before it: with its
    /// departure time, and whether the next one is of its burst.
    pub fn hand_over(
        &mut self,
        now: Time,
        segment: Option<Segment>,
    ) -> Option<(Segment, Time, bool)> {
        self.departure.hand_over(now, segment)
    }

    /// The device has sent or dropped these bytes (`tcp_wfree`). Returns whether a burst waits for
    /// that.
    pub fn on_tx_completion(&mut self, bytes: u64) -> bool {
        self.departure.on_tx_completion(bytes)
    }

    /// A packet leaves, with data or without: the route is looked up for it.
    #[cold]
    pub fn look_route_up(&mut self) {
        self.departure.look_route_up();
    }

    /// A notice of a packet that was too large comes now.
    pub fn note_notice(&mut self, now: Time) {
        self.departure.note_notice(now);
    }

    /// The payload of the segment that has just failed at the host, or 0; it is accounted for now.
    pub fn take_failed(&mut self) -> u16 {
        self.departure.take_failed()
    }
}

/// Segments that the endpoint makes.
impl Sender {
    /// A SYN or SYN-ACK leaves.
    pub fn note_syn_sent(&mut self, now: Time) {
        self.departure.note_sent(now);
    }

    /// Any segment leaves, ACKs included.
    #[inline]
    pub fn note_left(&mut self, now: Time) {
        self.departure.note_left(now);
    }

    /// The SYN carries `payload` bytes (RFC 7413).
    #[cold]
    pub fn send_with_syn(&mut self, context: Context<'_>, payload: u16) {
        self.loss.send(context.now, 1, payload);
        self.nxt = 1 + u64::from(payload);
        self.counters.sent_segments += 1;
        if context.settings.has_packet_buffer() {
            let (windows, agreed_mss) = (self.congestion.buffered_windows(), self.agreed_mss);
            let (lowat, is_tight) = (None, false);
            let call = Call { bytes: payload.into(), lowat, is_tight, windows, agreed_mss };
            self.departure.begin_with_syn(call, self.cwnd(), context.settings);
        }
    }

    /// The SYN-ACK acknowledges what comes before `acked` of the SYN's data.
    #[cold]
    pub fn on_syn_acked(&mut self, acked: u64) {
        self.loss.acknowledge(acked, &mut Progress::default());
        self.una = acked;
        self.departure.acknowledge(acked);
    }

    /// The first window is one segment: the SYN was lost (RFC 5681 §3.1).
    pub fn begin_with_one(&mut self) {
        self.congestion.begin_with_one();
    }

    /// The segment that opened the connection is no news to the controller, which begins behind it.
    pub fn forget_early_arrival(&mut self) {
        self.congestion.take_early_arrivals();
    }

    /// Whether the peer is to be told of a reduction; it is told now (RFC 3168 §6.1.2).
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        self.congestion.take_cwr()
    }
}

/// Reading.
impl Sender {
    /// How much may be in flight.
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

    /// The counts of what was done.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// What leaves when.
    #[inline]
    pub fn departure(&self) -> &Departure {
        &self.departure
    }

    /// How fast the path last delivered, where that is sampled.
    pub fn delivery_rate(&self) -> Option<Rate> {
        self.loss.rates().and_then(|rates| rates.last(u64::from(self.mss)))
    }
}
