//! The calls of an endpoint to its sender, beside data and acknowledgments. The fields of
//! [`Sender`] are private to this folder, but for the sequence space and the timers.

use crate::congestion::CongestionWindow;
use crate::loss::{Progress, Sent};
use crate::send_buffer::SendBuffer;
use crate::sender::{Sender, SenderCounters};
use crate::settings::Settings;
use tcplab_cc::CongestionControl;
use tcplab_units::{Rate, Time};

/// The application's calls.
impl Sender {
    /// The application writes from its own memory, not from a file.
    pub fn expect_copied_writes(&mut self) {
        self.copies = true;
    }

    /// The application waits in a call that looks for room as well.
    pub fn look_for_room(&mut self) {
        let unsent = self.unsent();
        if let Some(buffer) = &mut self.buffer {
            buffer.look(unsent);
        }
    }

    /// The application writes next without having been told of room.
    pub fn try_to_write(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.try_again();
        }
    }

    /// Bytes of memory that written data takes.
    #[inline]
    pub fn memory(&self) -> u64 {
        let sent = self.written.saturating_sub(self.una.max(1));
        self.buffer.as_ref().map_or(sent, |buffer| buffer.used())
    }
}

/// Timers.
impl Sender {
    /// When the pacing timer runs out; `Time::NEVER` if it does not run.
    #[inline]
    pub fn paced_until(&self) -> Time {
        self.flight.get().map_or(Time::NEVER, |flight| flight.pacing.due())
    }

    /// Timers of the connection run out; that of pacing, if it is due. Of all timers only that one
    /// looks for new data while some is under way.
    #[inline]
    pub fn on_timers(&mut self, now: Time, settings: &Settings) {
        let is_paced = self.flight.pacing.due() <= now;
        if let Some(buffer) = self.buffer.as_mut() {
            if is_paced {
                buffer.go_on();
            } else if self.una < self.nxt {
                buffer.stay();
            }
        }
        if is_paced {
            self.flight.pacing.on_timer(now);
            if settings.behaviour.pacing_timer_repairs_first
                && self.flight.loss.recovery().is_repairing()
            {
                // Lost segments come first now, be new data a better test of a timeout or not
                // (`tcp_tsq_write`).
                self.flight.loss.repair_lost();
            }
        }
    }

    /// The SYN timed out, which Linux takes for a loss (`tcp_enter_loss`). Only a timeout of data
    /// takes that back: a notice of a packet that is too large begins with new data then
    /// (`tcp_simple_retransmit`). If the answer to the first SYN was only late, its marks count,
    /// and the first data says that the window was reduced (`tcp_ecn_queue_cwr`).
    #[cold]
    pub fn on_syn_timeout(&mut self, settings: &Settings) {
        self.flight.loss.doubt_timeout(settings.frto);
        self.congestion.owe_cwr(true);
    }

    /// The persist timer ran out: the next segment may be small.
    pub fn probe_closed_window(&mut self) {
        self.overrides_silly_window = true;
        if let Some(buffer) = &mut self.buffer {
            buffer.probe();
        }
    }

    /// The device has transmitted: what was held back goes on.
    pub fn resume(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.go_on();
        }
    }

    /// A segment is discarded: that is no reason for data to leave (`tcp_validate_incoming`).
    pub fn ignore_discarded(&mut self) {
        if self.has_outstanding()
            && let Some(buffer) = &mut self.buffer
        {
            buffer.stay();
        }
    }
}

/// Segments that the endpoint makes.
impl Sender {
    /// A SYN or SYN-ACK leaves.
    pub fn note_syn_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// When data, a SYN or a SYN-ACK last left.
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// Any segment leaves, ACKs included.
    #[inline]
    pub fn note_left(&mut self, now: Time) {
        self.last_left = now;
    }

    /// The SYN carries `payload` bytes (RFC 7413).
    #[cold]
    pub fn send_with_syn(&mut self, now: Time, payload: u16, settings: &Settings) {
        self.flight.loss.send(now, 1, payload);
        self.nxt = 1 + u64::from(payload);
        self.counters.sent_segments += 1;
        if settings.has_packet_buffer() {
            let (cwnd, windows) = (self.cwnd(), self.congestion.buffered_windows());
            let mut buffer = SendBuffer::new(settings, cwnd, windows, self.agreed_mss);
            buffer.begin_with(payload.into());
            self.buffer = Some(Box::new(buffer));
        }
    }

    /// The SYN-ACK acknowledges what comes before `acked` of the SYN's data.
    #[cold]
    pub fn on_syn_acked(&mut self, acked: u64) {
        self.flight.loss.acknowledge(acked, &mut Progress::default());
        self.una = acked;
        if let Some(buffer) = &mut self.buffer {
            buffer.acknowledge(acked);
        }
    }

    /// The first window is one segment: the SYN was lost (RFC 5681 §3.1).
    pub fn begin_with_one(&mut self) {
        self.congestion.begin_with_one();
    }

    /// The segment that opened the connection is no news to the controller, which begins behind it.
    pub fn forget_unheard(&mut self) {
        self.congestion.take_unheard();
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
        self.flight.loss.board().front()
    }

    /// The counts of what was done.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// The rate that the window amounts to, in bytes a second.
    pub fn rate(&self) -> u64 {
        self.flight.tso.rate()
    }

    /// How fast the path last delivered, where that is sampled.
    pub fn delivery_rate(&self) -> Option<Rate> {
        self.flight.loss.rates().and_then(|rates| rates.last(u64::from(self.mss)))
    }

    /// Whether the path's size is anything but what both ends say.
    #[inline]
    pub fn has_path(&self) -> bool {
        self.path.is_some()
    }

    /// Whether the sender keeps few packets at its device.
    #[inline]
    pub fn has_small_queue(&self) -> bool {
        self.small_queue.is_some()
    }
}
