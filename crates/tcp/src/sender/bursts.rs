//! Bursts and their rate: what the window, the RTT and the losses say of them.

use crate::context::Context;
use crate::departure::{Call, Data, NextBurst, Patience, Sizing};
use crate::sender::Sender;
use crate::settings::Settings;
use tcplab_transport::EIGHTH;
use tcplab_units::{Duration, Time};

/// Percent of the window per RTT that is sent in slow start and after (`tcp_pacing_ss_ratio`, ...).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;
/// The first segments of a connection, which are not paced (`tcp_update_skb_after_send`).
const FREE: u64 = 10;

/// Rates.
impl Sender {
    /// Computes the rate by which bursts are sized, after the window has changed
    /// (`tcp_update_pacing_rate`), unless the controller decides on it.
    #[inline]
    pub(crate) fn update_rate(&mut self, context: Context<'_>) {
        self.set_rate_for(context, self.cwnd(), self.congestion.ssthresh());
    }

    /// Computes the rate for this window and threshold.
    #[inline]
    pub(crate) fn set_rate_for(&mut self, context: Context<'_>, cwnd: u64, ssthresh: Option<u64>) {
        if (!context.settings.tso && !context.settings.pacing) || self.congestion.pacing().is_some()
        {
            return;
        }
        let is_starting = ssthresh.is_none_or(|ssthresh| cwnd < ssthresh / 2);
        let percent = if is_starting { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let eighths = (self.rtt.exact_srtt().as_picos() / EIGHTH.as_picos()).max(1);
        let bytes = cwnd.max(self.loss.scoreboard().outstanding()) * u64::from(self.mss);
        self.departure.take_rate(bytes.saturating_mul(80_000 * percent) / eighths);
    }

    #[inline]
    pub(crate) fn is_paced(&self, context: Context<'_>) -> bool {
        context.settings.pacing || self.congestion.pacing().is_some()
    }

    /// By how much Linux lets its timers run longer because what they wait for has yet to leave, in
    /// whole ticks (`tcp_pacing_delay`).
    #[inline]
    pub(crate) fn pacing_delay(&self, context: Context<'_>) -> Duration {
        if context.settings.behaviour.timers_add_pacing_delay && self.is_paced(context) {
            self.departure.pacing_delay(context.now)
        } else {
            Duration::ZERO
        }
    }

    /// Whether it is too early for another burst.
    #[expect(clippy::inline_always, reason = "every segment passes here, and few are paced")]
    #[inline(always)]
    pub(crate) fn is_held_back(&mut self, context: Context<'_>) -> bool {
        let is_paced = self.is_paced(context);
        self.departure.hold(context.now, is_paced)
    }

    /// Data leaves, and puts off what comes after it if the sender paces.
    #[inline]
    pub(crate) fn pace(&mut self, context: Context<'_>, data: Data) {
        if self.is_paced(context) {
            self.departure.pace(context.now, data, self.counters.sent_segments < FREE);
        }
    }
}

/// Bursts.
impl Sender {
    /// The most segments of a burst.
    #[inline]
    pub(crate) fn burst_size(&self) -> u64 {
        let (control, min_rtt) = (self.congestion.control(), self.rtt.min_rtt());
        self.departure.burst_size(Sizing { control, min_rtt, mss: self.mss })
    }

    /// Whether the next segment of new data may leave: in a burst already begun, or in a new one.
    #[inline]
    pub(crate) fn may_go_in_burst(&mut self, context: Context<'_>, in_flight: u64) -> bool {
        if !self.departure.has_begun() {
            let segments = self.next_burst(context, in_flight);
            self.departure.begin_burst(segments);
        }
        self.departure.take_segment()
    }

    /// Segments of the next burst; none to wait.
    #[inline(never)]
    fn next_burst(&mut self, context: Context<'_>, in_flight: u64) -> u64 {
        let patience = Patience {
            stream: &self.stream(),
            window: self.window_for(in_flight),
            most: self.burst_size(),
            is_paced: self.is_paced(context),
            is_repairing: self.loss.recovery().is_repairing(),
        };
        let (loss, rtt) = (&self.loss, &self.rtt);
        let next_ack =
            || loss.scoreboard().front().map(|oldest| (oldest.left_at, rtt.exact_srtt()));
        match self.departure.next_burst(context, patience, next_ack) {
            NextBurst::Waits => 0,
            NextBurst::Leaves { segments } => segments,
            NextBurst::LeavesFitted { segments } => {
                self.congestion.note_decision(context.now);
                segments
            }
            NextBurst::Fails { bytes } => {
                self.note_failed(context, in_flight, bytes);
                0
            }
        }
    }

    /// The packet of a tail loss probe with new data: as many segments as the window has room for,
    /// and one where it has none (`tcp_write_xmit` with `push_one`). Returns the number of
    /// segments, and whether the last of them is marked. Nothing leaves while too much waits at the
    /// device.
    #[cold]
    pub(crate) fn take_probe_packet(
        &mut self,
        context: Context<'_>,
        in_flight: u64,
    ) -> Option<(u64, bool)> {
        if !context.settings.has_packet_buffer() {
            return Some((1, false));
        }
        let room = self.cwnd().saturating_sub(in_flight).min(self.cwnd() / 2);
        let (segments, is_pushed, is_fitted) = self.departure.take_probe_packet(Patience {
            stream: &self.stream(),
            window: self.window_for(in_flight),
            most: room.min(self.burst_size()).max(1),
            is_paced: self.is_paced(context),
            is_repairing: false,
        })?;
        if is_fitted {
            self.congestion.note_decision(context.now);
        }
        Some((segments, is_pushed))
    }

    /// A repair leaves, as part of a burst that the window and the size of bursts allow.
    #[inline(never)]
    pub(crate) fn note_repair(&mut self, now: Time, range: (u64, u64)) {
        if self.departure.has_packets() {
            let room = self.cwnd().saturating_sub(self.in_flight()).max(1);
            let most = room.min(self.burst_size()) * u64::from(self.mss);
            self.departure.note_repair(now, range, most);
        }
    }

    /// The peer's window, or Nagle's rule, lets nothing go: the next packet has become larger all
    /// the same.
    #[inline(never)]
    pub(crate) fn fill_packet(&mut self, context: Context<'_>, in_flight: u64) {
        if self.written <= self.nxt
            || in_flight >= self.cwnd()
            || self.departure.has_begun()
            || self.is_held_back(context)
        {
            return;
        }
        let (window, most) = (self.window_for(in_flight), self.burst_size());
        self.departure.fill_packet(&self.stream(), window, most);
    }
}

/// The send buffer.
impl Sender {
    /// Writes into the send buffer up to the next moment at which something is sent.
    #[inline(never)]
    pub(crate) fn write_as_linux(
        &mut self,
        bytes: u64,
        lowat: Option<u64>,
        is_tight: bool,
        settings: &Settings,
    ) -> u64 {
        if !self.departure.is_in_call() {
            self.check_app_limited();
        }
        let (windows, agreed_mss) = (self.congestion.buffered_windows(), self.agreed_mss);
        let call = Call { bytes, lowat, is_tight, windows, agreed_mss };
        let (stream, window) = (self.stream(), self.window_for(self.in_flight()));
        let taken = self.departure.write(call, &stream, window, settings);
        self.written += taken;
        taken
    }

    /// All that an ACK lets go has left: the application may hear of room.
    #[inline]
    pub(crate) fn signal_write_space_after_ack(&mut self, now: Time, in_flight: u64) {
        let (window, unsent) = (self.window_for(in_flight), self.unsent());
        if self.departure.signal_write_space_after_ack(window, unsent) {
            self.congestion.note_decision(now);
        }
    }
}
