//! Bursts: Linux hands several segments to the network at once, for segmentation offload, and waits
//! with fewer if more may go soon (`tcp_tso_autosize`, `tcp_tso_should_defer`).

use crate::send_buffer::{Push, SendBuffer, Sizes, Small};
use crate::sender::Sender;
use crate::settings::Settings;
use tcplab_transport::EIGHTH;
use tcplab_units::{Duration, Rate, Time};

/// The most bytes of a burst: 64 KiB less room for headers (`sk_dst_gso_max_size`).
const MOST_BYTES: u64 = 65_536 - 321;
/// The fewest segments of a burst (`tcp_min_tso_segs`).
const FEWEST: u64 = 2;
/// A burst is what the rate sends in 2^-10 s (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// On short paths a burst may have `MOST_BYTES >> (RTT in microseconds >> 9)` bytes more.
const RTT_SHIFT: u32 = 9;
/// Waiting is for what was sent less than this ago, and for an ACK expected within this.
const PATIENCE: Duration = Duration::from_millis(1);
/// A third of the window is worth sending (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;
/// Percent of the window per RTT that is sent in slow start and after (`tcp_pacing_ss_ratio`, ...).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

/// The burst that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tso {
    /// Segments of it, and how many of them have not left.
    size: u64,
    left: u64,
    /// Bytes a second that the window amounts to, and the most that they may be
    /// (`sk_max_pacing_rate`).
    rate: u64,
    most_rate: Option<u64>,
    /// A packet ends with it that the application pushed.
    ends_pushed: bool,
    /// Fewer were held back, for want of window.
    deferred: bool,
    /// The burst of repairs that is leaving: when, where its next segment begins, and where it
    /// ends.
    repairs: Option<(Time, u64, u64)>,
    /// Where the last burst ended that did not fill its last segment (`snd_sml`).
    small_end: u64,
}

/// The lesser of two limits, of which there may be none.
pub(crate) fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl Tso {
    /// Bytes a second.
    #[inline]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The controller has decided on it.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate) {
        self.take_rate(rate.bits_per_second() / 8);
    }

    /// No rate above this one counts.
    pub fn limit_rate(&mut self, most: Rate) {
        self.most_rate = Some(most.bits_per_second() / 8);
    }

    #[inline]
    fn take_rate(&mut self, rate: u64) {
        self.rate = self.most_rate.map_or(rate, |most| rate.min(most));
    }

    /// Whether the segment that is leaving is not the first of its burst.
    #[inline]
    pub fn is_going_on(&self) -> bool {
        self.left + 1 < self.size
    }

    /// Whether the repair that begins here goes on with a burst that is leaving.
    #[inline]
    pub fn repairs_on(&self, now: Time, start: u64) -> bool {
        self.repairs.is_some_and(|(at, next, end)| (at, next) == (now, start) && start < end)
    }

    /// Whether a burst has begun and not ended.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.left > 0
    }

    /// Bytes up to the small segment that the burst ends with, that included.
    #[inline]
    pub fn left_to_small(&self, nxt: u64) -> u64 {
        if self.left > 0 && self.small_end > nxt { self.small_end - nxt } else { u64::MAX }
    }

    /// Whether the last of several segments is leaving, or of what the application pushed: it is
    /// marked.
    #[inline]
    pub fn is_pushed(&self) -> bool {
        self.left == 0 && (self.size > 1 || self.ends_pushed)
    }

    /// Whether something was held back for want of window since the last look.
    #[inline]
    pub fn take_deferred(&mut self) -> bool {
        (self.size, self.left) = (0, 0);
        std::mem::take(&mut self.deferred)
    }
}

impl Sender {
    /// Computes the rate by which bursts are sized, after the window has changed
    /// (`tcp_update_pacing_rate`), unless the controller decides on it.
    #[inline]
    pub(crate) fn update_rate(&mut self, settings: &Settings) {
        self.set_rate_for(self.cwnd(), self.congestion.ssthresh(), settings);
    }

    /// Computes the rate for this window and threshold.
    #[inline]
    pub(crate) fn set_rate_for(&mut self, cwnd: u64, ssthresh: Option<u64>, settings: &Settings) {
        if (!settings.tso && !settings.pacing) || self.congestion.pacing().is_some() {
            return;
        }
        let is_starting = ssthresh.is_none_or(|ssthresh| cwnd < ssthresh / 2);
        let percent = if is_starting { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let eighths = (self.rtt.exact_srtt().as_picos() / EIGHTH.as_picos()).max(1);
        let bytes = cwnd.max(self.flight.loss.board().outstanding()) * u64::from(self.mss);
        self.flight.tso.take_rate(bytes.saturating_mul(80_000 * percent) / eighths);
    }

    /// The most segments of a burst.
    #[inline]
    pub(crate) fn burst_size(&self) -> u64 {
        if let Some(longest) = self.congestion.control().longest_burst {
            return self.burst_of(longest);
        }
        let min_rtt = self.rtt.min_rtt().as_picos() / 1_000_000;
        let mut bytes = self.flight.tso.rate >> RATE_SHIFT;
        bytes += MOST_BYTES.checked_shr((min_rtt >> RTT_SHIFT).min(64) as u32).unwrap_or(0);
        let fewest = self.congestion.control().least_burst.unwrap_or(FEWEST);
        (bytes.min(MOST_BYTES) / u64::from(self.mss)).max(fewest)
    }

    /// Segments of so much time of the rate.
    #[cold]
    fn burst_of(&self, time: Duration) -> u64 {
        let bytes = u128::from(self.flight.tso.rate) * u128::from(time.as_picos());
        let bytes = (bytes / 1_000_000_000_000).min(MOST_BYTES.into()) as u64;
        (bytes / u64::from(self.mss)).max(1)
    }

    /// Whether the next segment of new data may leave: in a burst already begun, or in a new one.
    #[inline]
    pub(crate) fn may_go_in_burst(
        &mut self,
        now: Time,
        in_flight: u64,
        settings: &Settings,
    ) -> bool {
        if self.flight.tso.left == 0 {
            self.flight.tso.size = self.next_burst(now, in_flight, settings);
            self.flight.tso.left = self.flight.tso.size;
        }
        let left = &mut self.flight.tso.left;
        let may = *left > 0;
        *left -= u64::from(may);
        may
    }

    /// A repair leaves. Linux sends again as much as left together, as far as the window and the
    /// size of bursts allow, and paces that as one (`tcp_xmit_retransmit_queue`).
    #[inline(never)]
    pub(crate) fn note_repair(&mut self, now: Time, start: u64, end: u64) {
        let Some(buffer) = &self.buffer else { return };
        let burst_end = match self.flight.tso.repairs {
            Some((_, _, end)) if self.flight.tso.repairs_on(now, start) => end,
            _ => {
                let room = self.cwnd().saturating_sub(self.in_flight()).max(1);
                let segments = room.min(self.burst_size());
                buffer.packet_end(start).min(start + segments * u64::from(self.mss))
            }
        };
        self.flight.tso.repairs = Some((now, end, burst_end));
    }

    /// Writes into the send buffer up to the next moment at which something is sent.
    #[inline(never)]
    pub(crate) fn write_as_linux(
        &mut self,
        bytes: u64,
        lowat: Option<u64>,
        is_tight: bool,
        settings: &Settings,
    ) -> u64 {
        let (cwnd, has_window) = (self.cwnd(), self.in_flight() < self.cwnd());
        let packet = self.packet_bytes();
        let windows = self.congestion.buffered_windows();
        let unsent = self.unsent();
        let queued = self.queued_under_way();
        let sizes = Sizes { packet, half_window: self.largest_window / 2, queued };
        if self.buffer.as_ref().is_none_or(|buffer| !buffer.is_in_call()) {
            self.check_app_limited();
        }
        let buffer = self.buffer.get_or_insert_with(|| {
            Box::new(SendBuffer::new(settings, cwnd, windows, self.agreed_mss))
        });
        (buffer.is_tight, buffer.polls) = (is_tight, lowat.is_some());
        buffer.lowat = least(lowat, settings.most_unsent);
        buffer.is_copied = self.copies;
        // Unless the ACK that may have made room found nothing that could leave.
        buffer.tell_room_after_ack(cwnd, has_window, unsent);
        buffer.poll(unsent);
        let taken = buffer.write(bytes, unsent, sizes);
        self.written += taken;
        if std::mem::take(&mut buffer.is_corked) {
            self.go_on_when_sent();
        }
        taken
    }

    /// All that an ACK lets go has left: the application may hear of room.
    #[inline]
    pub(crate) fn tell_room_after_ack(&mut self, now: Time, in_flight: u64) {
        let (cwnd, unsent) = (self.cwnd(), self.unsent());
        if let Some(buffer) = &mut self.buffer
            && buffer.tell_room_after_ack(cwnd, in_flight < cwnd, unsent)
        {
            self.congestion.note_decision(now);
        }
    }

    /// The segments of a burst of at most `most` that the window lets go.
    #[inline]
    fn quota(&self, in_flight: u64, most: u64) -> u64 {
        let cwnd = self.cwnd();
        (cwnd - in_flight).min((cwnd / 2).max(1)).min(most)
    }

    /// The peer's window, or Nagle's rule, lets nothing go: the next packet has become larger all
    /// the same (`tcp_write_xmit`).
    #[inline(never)]
    pub(crate) fn fill_packet(&mut self, now: Time, in_flight: u64, settings: &Settings) {
        if self.written <= self.nxt
            || in_flight >= self.cwnd()
            || self.flight.tso.has_begun()
            || self.is_held_back(now, settings)
        {
            return;
        }
        let wanted = self.quota(in_flight, self.burst_size()) * u64::from(self.mss);
        let nxt = self.nxt;
        if let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.reached() <= nxt) {
            buffer.next(wanted);
        }
    }

    /// Segments of the next burst; none to wait.
    #[inline(never)]
    fn next_burst(&mut self, now: Time, in_flight: u64, settings: &Settings) -> u64 {
        let (cwnd, mss, most) = (self.cwnd(), u64::from(self.mss), self.burst_size());
        let room = cwnd - in_flight;
        let quota = self.quota(in_flight, most);
        let Some(buffer) = self.buffer.as_mut().filter(|_| self.written > self.nxt) else {
            return 1;
        };
        if buffer.reached() > self.nxt {
            // The packet needs more segments than planned: options have taken room.
            return (buffer.reached() - self.nxt).div_ceil(mss);
        }
        let push = buffer.push;
        // The persist timer sends one segment, whatever its size (`tcp_write_wakeup`).
        let is_probe = self.overrides_silly_window && push == Push::One;
        let quota = if is_probe { 1 } else { quota };
        let (packet, is_last) = buffer.next(quota * mss);
        let waits = match push {
            Push::Pending => {
                packet > mss && self.waits_for_more(now, room, (packet, is_last), most)
            }
            Push::One => false,
            Push::Done => true,
        };
        if waits {
            return 0;
        }
        let bytes = if is_probe {
            packet.min(mss).min((self.una + self.window).saturating_sub(self.nxt))
        } else {
            self.cut((packet, is_last), quota * mss, settings)
        };
        if self.is_queue_full(bytes, false, settings) {
            if let Some(buffer) = &mut self.buffer {
                buffer.split(bytes);
            }
            return 0;
        }
        if self.path.is_some() && self.fails_at_host(now, in_flight, bytes, settings) {
            return 0;
        }
        self.flight.tso.ends_pushed = self.take_packet(now, in_flight, bytes) || is_probe;
        if let Some(buffer) = self.buffer.as_mut().filter(|_| push == Push::One) {
            buffer.push = Push::Done;
        }
        bytes.div_ceil(mss)
    }

    /// `bytes` leave the send buffer as a packet. Says whether they end with data that the
    /// application pushed.
    #[expect(clippy::inline_always, reason = "every packet passes here")]
    #[inline(always)]
    fn take_packet(&mut self, now: Time, in_flight: u64, bytes: u64) -> bool {
        let (cwnd, mss) = (self.cwnd(), u64::from(self.mss));
        if !bytes.is_multiple_of(mss) {
            self.flight.tso.small_end = self.nxt + bytes;
        }
        let unsent = self.unsent().saturating_sub(bytes);
        let Some(buffer) = &mut self.buffer else { return false };
        let is_pushed = buffer.send(bytes);
        if buffer.tell_room(cwnd, in_flight + bytes.div_ceil(mss) < cwnd, unsent) {
            self.congestion.note_decision(now);
        }
        is_pushed
    }

    /// The packet of a tail loss probe with new data: as many segments as the window has room for,
    /// and one where it has none (`tcp_write_xmit` with `push_one`). Returns the number of
    /// segments, and whether the last of them is marked: several leave together, or what the
    /// application pushed ends there. Nothing leaves while too much waits at the device.
    #[cold]
    pub(crate) fn take_probe_packet(
        &mut self,
        now: Time,
        in_flight: u64,
        settings: &Settings,
    ) -> Option<(u64, bool)> {
        if !settings.has_packet_buffer() {
            return Some((1, false));
        }
        let mss = u64::from(self.mss);
        let room = self.cwnd().saturating_sub(in_flight).min(self.cwnd() / 2);
        let most = room.min(self.burst_size()).max(1) * mss;
        let by_peer = (self.una + self.window).saturating_sub(self.nxt);
        let nxt = self.nxt;
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.reached() <= nxt) else {
            return Some((most / mss, false));
        };
        let bytes = buffer.next_anew(most).min(most).min(by_peer);
        if self.is_queue_full(bytes, false, settings) {
            return None;
        }
        let is_pushed = bytes > 0 && self.take_packet(now, in_flight, bytes);
        let segments = bytes.div_ceil(mss).max(1);
        Some((segments, segments > 1 || is_pushed))
    }

    /// The bytes of a packet that may leave: whole segments, and a small one at its end or at the
    /// edge of the peer's window if Nagle's rule lets it (`tcp_mss_split_point`).
    fn cut(&self, (packet, is_last): (u64, bool), most: u64, settings: &Settings) -> u64 {
        let by_peer = (self.una + self.window).saturating_sub(self.nxt);
        if !is_last && packet > u64::from(self.mss) && most <= by_peer {
            // The packet will not become larger.
            return packet.min(most);
        }
        let bytes = packet.min(by_peer).min(most);
        let small = bytes % u64::from(self.mss);
        if bytes > small && !self.may_end_small(settings) { bytes - small } else { bytes }
    }

    /// Whether Nagle's rule lets a small segment leave: the one of Minshall, for which only another
    /// small one must not be under way (`tcp_nagle_check`).
    pub(crate) fn may_end_small(&self, settings: &Settings) -> bool {
        match self.buffer.as_ref().map_or(Small::Alone, |buffer| buffer.small) {
            Small::Alone => !settings.nagle || self.flight.tso.small_end <= self.una,
            Small::Never => false,
            Small::Always => true,
        }
    }

    /// Whether the burst that has begun ends with a segment of so many bytes.
    #[inline]
    pub(crate) fn ends_burst(&self, payload: u64) -> bool {
        let end = self.nxt + payload;
        self.flight.tso.has_begun() && self.flight.tso.small_end == end
    }

    /// The largest packet that is filled with data written (`tcp_bound_to_half_wnd`).
    fn packet_bytes(&self) -> u64 {
        let mss = u64::from(self.mss);
        (MOST_BYTES.min(self.largest_window / 2) / mss).max(1) * mss
    }

    fn waits_for_more(
        &mut self,
        now: Time,
        room: u64,
        (packet, is_last): (u64, bool),
        most: u64,
    ) -> bool {
        let mss = u64::from(self.mss);
        // A paced packet counts as sent when its time is over (`tcp_wstamp_ns`).
        let last_left = self.last_left.max(self.flight.pacing.next());
        if self.flight.loss.recovery().is_repairing() || now.since(last_left) > PATIENCE {
            return false;
        }
        let by_peer = (self.una + self.window).saturating_sub(self.nxt);
        let by_window = room * mss;
        let limit = by_peer.min(by_window);
        let worthwhile = self.window.min(self.cwnd() * mss) / WINDOW_DIVISOR;
        if limit >= most * mss || (!is_last && limit >= packet) || limit >= worthwhile {
            return false;
        }
        // When the next ACK is far away, waiting for it would leave the path idle.
        let Some(oldest) = self.flight.loss.board().front() else { return false };
        let srtt = self.rtt.exact_srtt();
        if oldest.left_at + srtt > now + PATIENCE.min(srtt / 2) {
            return false;
        }
        if by_window < by_peer && by_window <= packet {
            self.flight.tso.deferred = true;
            return true;
        }
        if by_window >= by_peer && by_peer <= packet {
            return true;
        }
        !(is_last && self.closed)
    }
}
