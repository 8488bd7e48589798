//! TSO bursts: Linux passes several segments to the network at once, for segmentation offload, and
//! defers a burst if a larger one is possible soon (`tcp_tso_autosize`, `tcp_tso_should_defer`).
//! Nagle's algorithm decides on a small segment at the end of a burst (`tcp_nagle_check`).

use crate::context::Context;
use crate::departure::send_buffer::{Nagle, Push};
use crate::departure::{Departure, Stream, Window};
use tcplab_cc::Control;
use tcplab_units::{Duration, Rate, Time};

/// The largest burst in bytes: 64 KiB less headers (`sk_dst_gso_max_size`).
pub(super) const MOST_BYTES: u64 = 65_536 - 321;
/// The smallest burst in segments (`tcp_min_tso_segs`).
const FEWEST: u64 = 2;
/// A burst holds 2^-10 s of the pacing rate (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// On short paths a burst may hold `MOST_BYTES >> (RTT in microseconds >> 9)` bytes more.
const RTT_SHIFT: u32 = 9;
/// A burst is deferred only if data left less than this ago, and an ACK is expected within this.
const DEFER_LIMIT: Duration = Duration::from_millis(1);
/// A third of the window is sent without deferral (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The burst in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tso {
    /// Its segments, and how many of them have not left.
    size: u64,
    left: u64,
    /// The pacing rate in bytes a second, and its maximum (`sk_max_pacing_rate`).
    rate: u64,
    max_rate: Option<u64>,
    /// The burst ends with a pushed packet.
    ends_pushed: bool,
    /// A burst was deferred because the congestion window was too small for it.
    deferred: bool,
    /// The burst of retransmissions in progress: its time, the start of its next segment, and its
    /// end.
    retransmissions: Option<(Time, u64, u64)>,
    /// End of the last burst whose last segment was below the MSS (`snd_sml`).
    small_end: u64,
}

/// The decision on the next burst of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextBurst {
    /// The burst waits.
    Waits,
    /// The burst leaves, with so many segments.
    Leaves { segments: u64 },
    /// The same, and the send buffer was fitted to the window.
    LeavesFitted { segments: u64 },
    /// The burst exceeds the route's MTU: the host drops its bytes.
    Fails { bytes: u64 },
}

/// Inputs for the size of bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstSizing<'a> {
    /// The controller's decision.
    pub control: &'a Control,
    pub min_rtt: Duration,
    pub mss: u16,
}

/// Inputs for the decision on the next burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstRequest<'a> {
    pub stream: &'a Stream,
    pub window: Window,
    /// The most segments of a burst.
    pub most: u64,
    pub is_paced: bool,
    /// Lost segments are being retransmitted, so new data is not deferred.
    pub is_recovering: bool,
}

/// The smaller of two optional limits.
pub(crate) fn min_limit(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl Tso {
    /// The pacing rate in bytes a second.
    #[inline]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The controller decides on the pacing rate.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate) {
        self.set_window_rate(rate.bits_per_second() / 8);
    }

    /// Limits the pacing rate.
    pub fn set_max_rate(&mut self, most: Rate) {
        self.max_rate = Some(most.bits_per_second() / 8);
    }

    #[inline]
    pub fn set_window_rate(&mut self, rate: u64) {
        self.rate = self.max_rate.map_or(rate, |most| rate.min(most));
    }

    /// Whether the segment that leaves is not the first of its burst.
    #[inline]
    pub fn continues_burst(&self) -> bool {
        self.left + 1 < self.size
    }

    /// Whether the retransmission that starts here continues a burst in progress.
    #[inline]
    pub fn continues_retransmission(&self, now: Time, start: u64) -> bool {
        self.retransmissions
            .is_some_and(|(at, next, end)| (at, next) == (now, start) && start < end)
    }

    /// Whether a burst is in progress.
    #[inline]
    pub fn is_in_burst(&self) -> bool {
        self.left > 0
    }

    /// Bytes up to the end of the burst, if that is a segment below the MSS.
    #[inline]
    pub fn left_to_small(&self, nxt: u64) -> u64 {
        if self.left > 0 && self.small_end > nxt { self.small_end - nxt } else { u64::MAX }
    }

    /// Whether the segment that leaves is pushed: the last one of several, or of a pushed packet.
    #[inline]
    pub fn is_pushed(&self) -> bool {
        self.left == 0 && (self.size > 1 || self.ends_pushed)
    }

    /// Whether a burst was deferred for want of congestion window since the last call; the burst in
    /// progress ends.
    #[inline]
    pub fn take_deferred(&mut self) -> bool {
        (self.size, self.left) = (0, 0);
        std::mem::take(&mut self.deferred)
    }

    /// The burst since `before` has not left after all.
    #[cold]
    pub fn take_back(&mut self, before: Self) {
        let Self { rate, max_rate, deferred, .. } = *self;
        *self = Self { rate, max_rate, deferred, ..before };
    }

    /// Whether a burst of retransmissions has another segment to send now.
    pub fn is_retransmitting(&self, now: Time) -> bool {
        self.retransmissions.is_some_and(|(at, next, end)| at == now && next < end)
    }
}

/// Rates and sizes.
impl Departure {
    /// The pacing rate in bytes a second.
    #[inline]
    pub fn rate(&self) -> u64 {
        self.bursts.tso.rate()
    }

    /// The controller decides on the pacing rate.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate) {
        self.bursts.tso.set_rate(rate);
    }

    /// Sets the pacing rate that follows from window and RTT, in bytes a second.
    #[inline]
    pub fn set_window_rate(&mut self, rate: u64) {
        self.bursts.tso.set_window_rate(rate);
    }

    /// Limits the pacing rate.
    pub fn set_max_rate(&mut self, most: Rate) {
        self.bursts.tso.set_max_rate(most);
    }

    /// The largest burst in segments (`tcp_tso_autosize`).
    #[inline]
    pub fn burst_size(&self, sizing: BurstSizing<'_>) -> u64 {
        if let Some(longest) = sizing.control.longest_burst {
            return self.burst_of(longest, sizing.mss);
        }
        let min_rtt = sizing.min_rtt.as_picos() / 1_000_000;
        let mut bytes = self.bursts.tso.rate >> RATE_SHIFT;
        bytes += MOST_BYTES.checked_shr((min_rtt >> RTT_SHIFT).min(64) as u32).unwrap_or(0);
        let fewest = sizing.control.least_burst.unwrap_or(FEWEST);
        (bytes.min(MOST_BYTES) / u64::from(sizing.mss)).max(fewest)
    }

    /// Segments of this much time at the pacing rate.
    #[cold]
    fn burst_of(&self, time: Duration, mss: u16) -> u64 {
        let bytes = u128::from(self.bursts.tso.rate) * u128::from(time.as_picos());
        let bytes = (bytes / 1_000_000_000_000).min(MOST_BYTES.into()) as u64;
        (bytes / u64::from(mss)).max(1)
    }
}

/// The burst that is leaving.
impl Departure {
    /// Whether a burst is in progress.
    #[inline]
    pub fn is_in_burst(&self) -> bool {
        self.bursts.tso.is_in_burst()
    }

    /// Whether the segment that leaves is not the first of its burst.
    #[inline]
    pub fn continues_burst(&self) -> bool {
        self.bursts.tso.continues_burst()
    }

    /// Whether the retransmission that starts here continues a burst in progress.
    #[inline]
    pub fn continues_retransmission(&self, now: Time, start: u64) -> bool {
        self.bursts.tso.continues_retransmission(now, start)
    }

    /// Bytes up to the end of the burst, if that is a segment below the MSS.
    #[inline]
    pub fn left_to_small(&self, nxt: u64) -> u64 {
        self.bursts.tso.left_to_small(nxt)
    }

    /// Whether the segment that leaves is pushed: the last one of several, or of a pushed packet.
    #[inline]
    pub fn is_pushed(&self) -> bool {
        self.bursts.tso.is_pushed()
    }

    /// Whether a burst was deferred for want of congestion window since the last call; the burst in
    /// progress ends.
    #[inline]
    pub fn take_deferred(&mut self) -> bool {
        self.bursts.tso.take_deferred()
    }

    /// Begins a burst of this many segments.
    #[inline]
    pub fn begin_burst(&mut self, segments: u64) {
        (self.bursts.tso.size, self.bursts.tso.left) = (segments, segments);
    }

    /// Whether the burst has another segment; it leaves.
    #[inline]
    pub fn take_segment(&mut self) -> bool {
        let left = &mut self.bursts.tso.left;
        let may = *left > 0;
        *left -= u64::from(may);
        may
    }

    /// A retransmission leaves. Linux retransmits a whole packet at once, as far as window and
    /// burst size allow, and paces it as one burst (`tcp_xmit_retransmit_queue`). `most`: the bytes
    /// that they allow.
    pub fn note_retransmission_burst(&mut self, now: Time, (start, end): (u64, u64), most: u64) {
        let Some(buffer) = &self.buffer else { return };
        let burst_end = match self.bursts.tso.retransmissions {
            Some((_, _, end)) if self.bursts.tso.continues_retransmission(now, start) => end,
            _ => buffer.packet_end(start).min(start + most),
        };
        self.bursts.tso.retransmissions = Some((now, end, burst_end));
    }

    /// Decides on the next burst (`tcp_write_xmit`). `next_ack` returns when the oldest segment
    /// left, and the smoothed RTT.
    #[inline]
    pub fn next_burst(
        &mut self,
        context: Context<'_>,
        request: BurstRequest<'_>,
        next_ack: impl FnOnce() -> Option<(Time, Duration)>,
    ) -> NextBurst {
        let BurstRequest { stream, window, most, is_paced, .. } = request;
        let mss = u64::from(stream.mss);
        let Some(buffer) = self.buffer.as_mut().filter(|_| stream.written > stream.nxt) else {
            return NextBurst::Leaves { segments: 1 };
        };
        if buffer.sent_end() > stream.nxt {
            // Options have taken room, so the packet needs more segments than planned.
            let segments = (buffer.sent_end() - stream.nxt).div_ceil(mss);
            return NextBurst::Leaves { segments };
        }
        let push = buffer.push;
        // The persist timer sends one segment of any size (`tcp_write_wakeup`).
        let is_probe = self.overrides_silly_window && push == Push::One;
        let quota = if is_probe { 1 } else { window.quota(most) };
        let packet = buffer.next(quota * mss);
        let waits = match push {
            Push::Pending => {
                packet.0 > mss && self.tso_should_defer(context.now, request, packet, next_ack)
            }
            Push::One => false,
            Push::Done => true,
        };
        if waits {
            return NextBurst::Waits;
        }
        let bytes = if is_probe {
            packet.0.min(mss).min(stream.usable())
        } else {
            self.split_point(packet, quota * mss, stream, context.settings.nagle)
        };
        if self.is_queue_full(bytes, false, stream.una, is_paced) {
            if let Some(buffer) = &mut self.buffer {
                buffer.split(bytes);
            }
            return NextBurst::Waits;
        }
        if self.path.is_some() && self.is_dropped_locally(bytes, stream.mss) {
            return NextBurst::Fails { bytes };
        }
        let (is_pushed, is_fitted) = self.take_packet(bytes, stream, window);
        self.bursts.tso.ends_pushed = is_pushed || is_probe;
        if let Some(buffer) = self.buffer.as_mut().filter(|_| push == Push::One) {
            buffer.push = Push::Done;
        }
        let segments = bytes.div_ceil(mss);
        if is_fitted {
            NextBurst::LeavesFitted { segments }
        } else {
            NextBurst::Leaves { segments }
        }
    }

    /// A packet of `bytes` leaves the send buffer. Returns whether it ends with pushed data, and
    /// whether the buffer was fitted to the window.
    #[expect(clippy::inline_always, reason = "every packet passes here")]
    #[inline(always)]
    fn take_packet(&mut self, bytes: u64, stream: &Stream, window: Window) -> (bool, bool) {
        let mss = u64::from(stream.mss);
        if !bytes.is_multiple_of(mss) {
            self.bursts.tso.small_end = stream.nxt + bytes;
        }
        let unsent = stream.unsent().saturating_sub(bytes);
        let Some(buffer) = &mut self.buffer else { return (false, false) };
        let is_pushed = buffer.send(bytes);
        let has_window = window.in_flight + bytes.div_ceil(mss) < window.cwnd;
        (is_pushed, buffer.signal_write_space(window.cwnd, has_window, unsent))
    }

    /// The packet of a tail loss probe with new data, of at most `most` segments (`tcp_write_xmit`
    /// with `push_one`). Returns the number of segments; whether the last one is pushed, because it
    /// ends several or a pushed packet; and whether the buffer was fitted to the window. None while
    /// the small queue is full.
    #[cold]
    pub fn take_probe_packet(&mut self, request: BurstRequest<'_>) -> Option<(u64, bool, bool)> {
        let BurstRequest { stream, window, most, is_paced, .. } = request;
        let mss = u64::from(stream.mss);
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.sent_end() <= stream.nxt)
        else {
            return Some((most, false, false));
        };
        let bytes = buffer.head_packet_anew(most * mss).min(most * mss).min(stream.usable());
        if self.is_queue_full(bytes, false, stream.una, is_paced) {
            return None;
        }
        let (is_pushed, is_fitted) =
            if bytes > 0 { self.take_packet(bytes, stream, window) } else { (false, false) };
        let segments = bytes.div_ceil(mss).max(1);
        Some((segments, segments > 1 || is_pushed, is_fitted))
    }

    /// The bytes of a packet that may leave (`tcp_mss_split_point`): whole segments, and a small
    /// one at the end of the packet or of the peer's window if Nagle's algorithm allows it.
    fn split_point(
        &self,
        (packet, is_last): (u64, bool),
        most: u64,
        stream: &Stream,
        has_nagle: bool,
    ) -> u64 {
        let (mss, by_peer) = (u64::from(stream.mss), stream.usable());
        if !is_last && packet > mss && most <= by_peer {
            // Not the last packet: nothing will be appended to it.
            return packet.min(most);
        }
        let bytes = packet.min(by_peer).min(most);
        let small = bytes % mss;
        if bytes > small && !self.may_end_small(stream.una, has_nagle) {
            bytes - small
        } else {
            bytes
        }
    }

    /// Nagle's algorithm in Minshall's variant: whether a small segment may leave, which it may
    /// unless another small one is outstanding (`tcp_nagle_check`).
    fn may_end_small(&self, una: u64, has_nagle: bool) -> bool {
        match self.buffer.as_ref().map_or(Nagle::Minshall, |buffer| buffer.nagle) {
            Nagle::Minshall => !has_nagle || self.bursts.tso.small_end <= una,
            Nagle::Corked => false,
            Nagle::Off => true,
        }
    }

    /// Whether Nagle's algorithm allows a small last segment of the send buffer.
    pub fn may_end_buffer_small(&self, una: u64, has_nagle: bool) -> bool {
        self.buffer.is_some() && self.may_end_small(una, has_nagle)
    }

    /// Whether a small segment must leave: the persist timer expired, or the burst in progress ends
    /// with it.
    #[inline]
    pub fn is_small_due(&self, nxt: u64, payload: u64) -> bool {
        let tso = &self.bursts.tso;
        self.overrides_silly_window || (tso.is_in_burst() && tso.small_end == nxt + payload)
    }

    /// The peer's window, or Nagle's algorithm, holds the next packet back. It is filled up
    /// nevertheless (`tcp_write_xmit`). `most`: the segments of a burst.
    pub fn grow_next_packet(&mut self, stream: &Stream, window: Window, most: u64) {
        let wanted = window.quota(most) * u64::from(stream.mss);
        if let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.sent_end() <= stream.nxt)
        {
            buffer.next(wanted);
        }
    }

    /// Whether the burst is deferred (`tcp_tso_should_defer`).
    fn tso_should_defer(
        &mut self,
        now: Time,
        request: BurstRequest<'_>,
        (packet, is_last): (u64, bool),
        next_ack: impl FnOnce() -> Option<(Time, Duration)>,
    ) -> bool {
        let BurstRequest { stream, window: Window { cwnd, in_flight }, most, .. } = request;
        let mss = u64::from(stream.mss);
        // A paced packet counts as sent at its departure time (`tcp_wstamp_ns`).
        let last_left = self.last_segment_sent.max(self.bursts.pacing.next());
        if request.is_recovering || now.since(last_left) > DEFER_LIMIT {
            return false;
        }
        let by_peer = stream.usable();
        let by_window = (cwnd - in_flight) * mss;
        let limit = by_peer.min(by_window);
        let worthwhile = stream.window.min(cwnd * mss) / WINDOW_DIVISOR;
        if limit >= most * mss || (!is_last && limit >= packet) || limit >= worthwhile {
            return false;
        }
        // With the next ACK far away, deferring would leave the path idle.
        let Some((left_at, srtt)) = next_ack() else { return false };
        if left_at + srtt > now + DEFER_LIMIT.min(srtt / 2) {
            return false;
        }
        if by_window < by_peer && by_window <= packet {
            self.bursts.tso.deferred = true;
            return true;
        }
        if by_window >= by_peer && by_peer <= packet {
            return true;
        }
        !(is_last && stream.closed)
    }
}
