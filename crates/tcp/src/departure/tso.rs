//! Bursts: Linux hands several segments to the network at once, for segmentation offload, and waits
//! with fewer if more may go soon (`tcp_tso_autosize`, `tcp_tso_should_defer`).

use crate::context::Context;
use crate::departure::send_buffer::{Push, Small};
use crate::departure::{Departure, Stream, Window};
use tcplab_cc::Control;
use tcplab_units::{Duration, Rate, Time};

/// The most bytes of a burst: 64 KiB less room for headers (`sk_dst_gso_max_size`).
pub(super) const MOST_BYTES: u64 = 65_536 - 321;
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

/// The burst that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tso {
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

/// The decision on the next burst of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextBurst {
    /// It waits.
    Waits,
    /// So many segments leave.
    Leaves { segments: u64 },
    /// It leaves the send buffer, which was fitted to the window for that.
    LeavesFitted { segments: u64 },
    /// It is too large for the route that is looked up for it: the host drops so many bytes.
    Fails { bytes: u64 },
}

/// Inputs from the other owners for the size of bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizing<'a> {
    /// The controller's decision.
    pub control: &'a Control,
    pub min_rtt: Duration,
    pub mss: u16,
}

/// Inputs from the other owners for the decision whether the next burst leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience<'a> {
    pub stream: &'a Stream,
    pub window: Window,
    /// The most segments of a burst.
    pub most: u64,
    pub is_paced: bool,
    /// Lost segments are sent again: new data does not wait.
    pub is_repairing: bool,
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
    pub fn take_rate(&mut self, rate: u64) {
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

/// Rates and sizes.
impl Departure {
    /// The rate that the window amounts to, in bytes a second.
    #[inline]
    pub fn rate(&self) -> u64 {
        self.bursts.tso.rate()
    }

    /// The controller has decided on the rate.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate) {
        self.bursts.tso.set_rate(rate);
    }

    /// The window amounts to so many bytes a second.
    #[inline]
    pub fn take_rate(&mut self, rate: u64) {
        self.bursts.tso.take_rate(rate);
    }

    /// No rate above this one counts.
    pub fn limit_rate(&mut self, most: Rate) {
        self.bursts.tso.limit_rate(most);
    }

    /// The most segments of a burst.
    #[inline]
    pub fn burst_size(&self, sizing: Sizing<'_>) -> u64 {
        if let Some(longest) = sizing.control.longest_burst {
            return self.burst_of(longest, sizing.mss);
        }
        let min_rtt = sizing.min_rtt.as_picos() / 1_000_000;
        let mut bytes = self.bursts.tso.rate >> RATE_SHIFT;
        bytes += MOST_BYTES.checked_shr((min_rtt >> RTT_SHIFT).min(64) as u32).unwrap_or(0);
        let fewest = sizing.control.least_burst.unwrap_or(FEWEST);
        (bytes.min(MOST_BYTES) / u64::from(sizing.mss)).max(fewest)
    }

    /// Segments of so much time of the rate.
    #[cold]
    fn burst_of(&self, time: Duration, mss: u16) -> u64 {
        let bytes = u128::from(self.bursts.tso.rate) * u128::from(time.as_picos());
        let bytes = (bytes / 1_000_000_000_000).min(MOST_BYTES.into()) as u64;
        (bytes / u64::from(mss)).max(1)
    }
}

/// The burst that is leaving.
impl Departure {
    /// Whether a burst has begun and not ended.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.bursts.tso.has_begun()
    }

    /// Whether the segment that is leaving is not the first of its burst.
    #[inline]
    pub fn is_going_on(&self) -> bool {
        self.bursts.tso.is_going_on()
    }

    /// Whether the repair that begins here goes on with a burst that is leaving.
    #[inline]
    pub fn repairs_on(&self, now: Time, start: u64) -> bool {
        self.bursts.tso.repairs_on(now, start)
    }

    /// Bytes up to the small segment that the burst ends with, that included.
    #[inline]
    pub fn left_to_small(&self, nxt: u64) -> u64 {
        self.bursts.tso.left_to_small(nxt)
    }

    /// Whether the last of several segments is leaving, or of what the application pushed: it is
    /// marked.
    #[inline]
    pub fn is_pushed(&self) -> bool {
        self.bursts.tso.is_pushed()
    }

    /// Whether something was held back for want of window since the last look.
    #[inline]
    pub fn take_deferred(&mut self) -> bool {
        self.bursts.tso.take_deferred()
    }

    /// A burst of so many segments begins.
    #[inline]
    pub fn begin_burst(&mut self, segments: u64) {
        (self.bursts.tso.size, self.bursts.tso.left) = (segments, segments);
    }

    /// The next segment of the burst leaves, if there is one. Says whether there is.
    #[inline]
    pub fn take_segment(&mut self) -> bool {
        let left = &mut self.bursts.tso.left;
        let may = *left > 0;
        *left -= u64::from(may);
        may
    }

    /// A repair leaves. Linux sends again as much as left together, as far as the window and the
    /// size of bursts allow, and paces that as one (`tcp_xmit_retransmit_queue`). `most`: the bytes
    /// that they allow.
    pub fn note_repair(&mut self, now: Time, (start, end): (u64, u64), most: u64) {
        let Some(buffer) = &self.buffer else { return };
        let burst_end = match self.bursts.tso.repairs {
            Some((_, _, end)) if self.bursts.tso.repairs_on(now, start) => end,
            _ => buffer.packet_end(start).min(start + most),
        };
        self.bursts.tso.repairs = Some((now, end, burst_end));
    }

    /// Decides on the next burst. `next_ack` tells when the oldest segment left, and the smoothed
    /// RTT.
    #[inline]
    pub fn next_burst(
        &mut self,
        context: Context<'_>,
        patience: Patience<'_>,
        next_ack: impl FnOnce() -> Option<(Time, Duration)>,
    ) -> NextBurst {
        let Patience { stream, window, most, is_paced, .. } = patience;
        let mss = u64::from(stream.mss);
        let Some(buffer) = self.buffer.as_mut().filter(|_| stream.written > stream.nxt) else {
            return NextBurst::Leaves { segments: 1 };
        };
        if buffer.reached() > stream.nxt {
            // The packet needs more segments than planned: options have taken room.
            let segments = (buffer.reached() - stream.nxt).div_ceil(mss);
            return NextBurst::Leaves { segments };
        }
        let push = buffer.push;
        // The persist timer sends one segment, whatever its size (`tcp_write_wakeup`).
        let is_probe = self.overrides_silly_window && push == Push::One;
        let quota = if is_probe { 1 } else { window.quota(most) };
        let packet = buffer.next(quota * mss);
        let waits = match push {
            Push::Pending => {
                packet.0 > mss && self.waits_for_more(context.now, patience, packet, next_ack)
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
            self.cut(packet, quota * mss, stream, context.settings.nagle)
        };
        if self.is_queue_full(bytes, false, stream.una, is_paced) {
            if let Some(buffer) = &mut self.buffer {
                buffer.split(bytes);
            }
            return NextBurst::Waits;
        }
        if self.path.is_some() && self.fails_at_host(bytes, stream.mss) {
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

    /// `bytes` leave the send buffer as a packet. Says whether they end with data that the
    /// application pushed, and whether the buffer was fitted to the window.
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

    /// The packet of a tail loss probe with new data, of at most `most` segments
    /// (`tcp_write_xmit` with `push_one`). Returns the number of segments, whether the last of them
    /// is marked, as several leave together, or what the application pushed ends there, and whether
    /// the buffer was fitted to the window. Nothing leaves while too much waits at the device.
    #[cold]
    pub fn take_probe_packet(&mut self, patience: Patience<'_>) -> Option<(u64, bool, bool)> {
        let Patience { stream, window, most, is_paced, .. } = patience;
        let mss = u64::from(stream.mss);
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.reached() <= stream.nxt)
        else {
            return Some((most, false, false));
        };
        let bytes = buffer.next_anew(most * mss).min(most * mss).min(stream.usable());
        if self.is_queue_full(bytes, false, stream.una, is_paced) {
            return None;
        }
        let (is_pushed, is_fitted) =
            if bytes > 0 { self.take_packet(bytes, stream, window) } else { (false, false) };
        let segments = bytes.div_ceil(mss).max(1);
        Some((segments, segments > 1 || is_pushed, is_fitted))
    }

    /// The bytes of a packet that may leave: whole segments, and a small one at its end or at the
    /// edge of the peer's window if Nagle's rule lets it (`tcp_mss_split_point`).
    fn cut(
        &self,
        (packet, is_last): (u64, bool),
        most: u64,
        stream: &Stream,
        has_nagle: bool,
    ) -> u64 {
        let (mss, by_peer) = (u64::from(stream.mss), stream.usable());
        if !is_last && packet > mss && most <= by_peer {
            // The packet will not become larger.
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

    /// Whether Nagle's rule lets a small segment leave: the one of Minshall, for which only another
    /// small one must not be under way (`tcp_nagle_check`).
    fn may_end_small(&self, una: u64, has_nagle: bool) -> bool {
        match self.buffer.as_ref().map_or(Small::Alone, |buffer| buffer.small) {
            Small::Alone => !has_nagle || self.bursts.tso.small_end <= una,
            Small::Never => false,
            Small::Always => true,
        }
    }

    /// Whether what the send buffer holds may end with a small segment.
    pub fn may_end_buffer_small(&self, una: u64, has_nagle: bool) -> bool {
        self.buffer.is_some() && self.may_end_small(una, has_nagle)
    }

    /// Whether a segment of so many bytes may leave though it is small: the persist timer ran out,
    /// or the burst that has begun ends with it.
    #[inline]
    pub fn is_small_due(&self, nxt: u64, payload: u64) -> bool {
        let tso = &self.bursts.tso;
        self.overrides_silly_window || (tso.has_begun() && tso.small_end == nxt + payload)
    }

    /// The peer's window, or Nagle's rule, lets nothing go: the next packet has become larger all
    /// the same (`tcp_write_xmit`). `most`: the segments of a burst.
    pub fn fill_packet(&mut self, stream: &Stream, window: Window, most: u64) {
        let wanted = window.quota(most) * u64::from(stream.mss);
        if let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.reached() <= stream.nxt) {
            buffer.next(wanted);
        }
    }

    fn waits_for_more(
        &mut self,
        now: Time,
        patience: Patience<'_>,
        (packet, is_last): (u64, bool),
        next_ack: impl FnOnce() -> Option<(Time, Duration)>,
    ) -> bool {
        let Patience { stream, window: Window { cwnd, in_flight }, most, .. } = patience;
        let mss = u64::from(stream.mss);
        // A paced packet counts as sent when its time is over (`tcp_wstamp_ns`).
        let last_left = self.last_left.max(self.bursts.pacing.next());
        if patience.is_repairing || now.since(last_left) > PATIENCE {
            return false;
        }
        let by_peer = stream.usable();
        let by_window = (cwnd - in_flight) * mss;
        let limit = by_peer.min(by_window);
        let worthwhile = stream.window.min(cwnd * mss) / WINDOW_DIVISOR;
        if limit >= most * mss || (!is_last && limit >= packet) || limit >= worthwhile {
            return false;
        }
        // When the next ACK is far away, waiting for it would leave the path idle.
        let Some((left_at, srtt)) = next_ack() else { return false };
        if left_at + srtt > now + PATIENCE.min(srtt / 2) {
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
