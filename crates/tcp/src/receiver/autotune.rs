//! Receive-window autotuning of Linux: the window begins small and grows with segments whose
//! payload is large relative to their truesize; the buffer grows with the data that the application
//! reads in a round trip (dynamic right-sizing, DRS).
//!
//! `tcp_select_initial_window`, `tcp_init_buffer_space`, `tcp_grow_window`, `tcp_rcv_space_adjust`.

use super::rcv_mss::{RcvMss, SegmentShape, SizeClass};
use super::skb::{OVERHEAD, OfoOutcome};
use crate::segment::clock;
use crate::settings::Settings;
use tcplab_transport::EIGHTH;
use tcplab_units::{Duration, Time};

/// `tcp_rmem[1]`: the initial buffer.
const FIRST_BUFFER: u64 = 131_072;
/// Before the first data, half of the buffer is window (`TCP_DEFAULT_SCALING_RATIO`).
const FIRST_RATIO: u64 = 128;
const RATIO_BITS: u32 = 8;
/// Segments below this size do not grow the window.
const SMALL: u64 = 128;

/// The window and the buffer behind it, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Autotune {
    most_buffer: u64,
    app_win: u32,
    buffer: u64,
    /// The program has set the size of the buffer (`SO_RCVBUF`), and it does not grow.
    is_fixed: bool,
    /// The share of the buffer that is window, in 1/256 (`scaling_ratio`).
    ratio: u64,
    /// The largest window for the buffer (`window_clamp`).
    clamp: u64,
    /// The window of a SYN.
    first: u64,
    /// The present limit of the window (`rcv_ssthresh`).
    rcv_ssthresh: u64,
    mss: u64,
    full: RcvMss,
    /// Bytes that the application read in a round trip (`rcvq_space`), with the time and offset at
    /// which the measurement began.
    read: u64,
    read_since: Time,
    read_from: u64,
    /// 8 times the receiver's RTT, in microseconds (`rcv_rtt_est`).
    rtt_eighths: u64,
    /// When a window's worth of data began to arrive, and where it ends.
    window_began: Option<Time>,
    window_end: u64,
    last_echo: u64,
}

/// A window that could be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub bytes: u64,
    /// Less than half of the buffer is free: quick ACKs end.
    pub is_short: bool,
}

/// A received data segment, as the window depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedData {
    /// The size of the segment, or of each segment that GRO merged.
    pub shape: SegmentShape,
    /// Bytes of all its data.
    pub payload: u64,
    pub in_order: bool,
    /// When the segment left whose timestamp this one echoes, by our timestamp clock.
    pub echoed: Option<u64>,
    /// The end of the segment.
    pub end: u64,
    /// `end` plus the window last offered.
    pub window_end: u64,
    /// The host has memory for a larger window.
    pub may_grow: bool,
    /// SACK is in use. Otherwise the window must not grow on out-of-order data, so that its ACK is
    /// a duplicate.
    pub has_sack: bool,
}

/// The memory of a data segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryUse {
    /// What became of the segment, if it was out of order.
    pub ofo: Option<OfoOutcome>,
    /// Memory of the segment (`truesize`).
    pub memory: u64,
    /// Bytes of memory in use when the segment was counted.
    pub used: u64,
}

/// The window after a data segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowGrowth {
    /// The window has grown.
    pub opened: bool,
    pub size: SizeClass,
    /// Payload bytes of a full segment (`rcv_mss`), as known now.
    pub full: u64,
}

/// The kernel's connection clock (`tcp_mstamp`), in whole microseconds.
fn micros(time: Time) -> u64 {
    time.as_picos() / 1_000_000
}

/// The initial window for a buffer.
pub(super) fn first_window_of(memory: u64) -> u64 {
    (memory * FIRST_RATIO) >> RATIO_BITS
}

fn whole_segments(bytes: u64, segment: u64) -> u64 {
    if bytes > segment { bytes - bytes % segment } else { bytes }
}

impl Autotune {
    /// `largest` is the largest window that can be offered. A limit by the program applies only
    /// until data has shown its memory use, as in the kernel (`tcp_measure_rcv_mss`).
    pub fn new(settings: &Settings, mss: u64, largest: u64) -> Self {
        let most_buffer = settings.receive_buffer;
        let buffer = settings.fixed_receive_buffer.unwrap_or(most_buffer.min(FIRST_BUFFER));
        let mut autotune = Self {
            most_buffer,
            buffer,
            is_fixed: settings.fixed_receive_buffer.is_some(),
            app_win: settings.app_win,
            ratio: FIRST_RATIO,
            clamp: 0,
            first: 0,
            rcv_ssthresh: 0,
            mss: 0,
            full: RcvMss::new(mss, 0),
            read: 0,
            read_since: Time::ZERO,
            read_from: 1,
            rtt_eighths: 0,
            window_began: None,
            window_end: 0,
            last_echo: 0,
        };
        let clamp = settings.window_clamp.unwrap_or(u64::MAX);
        let first = settings.initial_receive_window.map_or(u64::MAX, |segments| segments * mss);
        autotune.init_window(mss, largest.min(clamp), clamp, first);
        autotune
    }

    /// Sets the initial window for full segments of `mss` bytes, in whole segments and within the
    /// limits of the program (`clamped`) and the route (`first`) (`tcp_select_initial_window`); and
    /// the share of the buffer reserved for the application, at least one segment
    /// (`tcp_init_buffer_space`). Where the buffer exceeds the largest window, exactly one segment
    /// is reserved.
    fn init_window(&mut self, mss: u64, largest: u64, clamped: u64, first: u64) {
        let full = self.window_of(self.buffer);
        let mut clamp = full.min(largest);
        if self.app_win > 0 {
            if full > 4 * mss && full <= largest {
                clamp = (full - (full >> self.app_win)).max(4 * mss);
            }
            if clamp > 2 * mss && clamp + mss > full {
                clamp = (full - mss).max(2 * mss);
            }
        }
        self.mss = mss;
        self.clamp = clamp;
        self.first = whole_segments(full.min(clamped), mss).min(first);
        self.rcv_ssthresh = self.first.min(clamp);
        self.full = RcvMss::new(mss, self.first);
        self.read = self.rcv_ssthresh.min(10 * mss);
    }

    /// The window of a SYN, with segments counted without options; or of a SYN-ACK.
    pub fn first_window(&self) -> u64 {
        self.first
    }

    /// The connection is established.
    pub fn on_established(&mut self, now: Time) {
        self.read_since = now;
    }

    fn window_of(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> RATIO_BITS
    }

    /// The window to offer with `used` bytes of memory in use, in units of `scale` bits, after
    /// `offered` (`__tcp_select_window`).
    pub fn window(&self, used: u64, scale: u8, offered: u64) -> Window {
        let (allowed, unit) = (self.window_of(self.buffer), 1 << scale);
        let full = self.clamp.min(allowed);
        let segment = self.full.bytes.min(full);
        let mut free = self.free(used);
        let is_short = free < full / 2;
        if is_short {
            free -= free % unit;
            if free < allowed >> 4 || free < segment {
                return Window { bytes: 0, is_short };
            }
        }
        let free = free.min(self.rcv_ssthresh);
        let bytes = if scale > 0 {
            free.next_multiple_of(unit)
        } else if offered + segment <= free || offered > free {
            free - free % segment.max(1)
        } else if segment == full && free > offered + full / 2 {
            free
        } else {
            offered
        };
        Window { bytes, is_short }
    }

    fn free(&self, used: u64) -> u64 {
        self.window_of(self.buffer.saturating_sub(used))
    }

    /// The host is short of memory: with more than half of the buffer in use, the window shrinks to
    /// four segments (`tcp_adjust_rcv_ssthresh`).
    pub fn on_memory_pressure(&mut self, used: u64) {
        if 2 * self.free(used) < self.window_of(self.buffer) {
            self.rcv_ssthresh = self.rcv_ssthresh.min(4 * self.mss);
        }
    }

    /// The largest window for the present buffer.
    pub fn clamp(&self) -> u64 {
        self.clamp
    }

    /// A segment arrived.
    pub fn on_segment(
        &mut self,
        now: Time,
        received: ReceivedData,
        memory_use: MemoryUse,
    ) -> WindowGrowth {
        let payload = received.payload;
        self.measure_rtt_by_timestamp(now, received.echoed, payload);
        if payload == 0 && memory_use.ofo.is_none() {
            // A FIN without data is not measured, unless it is out of order (`tcp_data_queue`).
            return WindowGrowth {
                opened: false,
                size: SizeClass::Repeated,
                full: self.full.bytes,
            };
        }
        if received.shape.payload > self.full.bytes {
            self.measure(payload, memory_use.memory);
        }
        let size = self.full.measure(received.shape);
        if received.in_order {
            self.measure_rtt_by_window(now, received);
        }
        let is_kept = memory_use.ofo != Some(OfoOutcome::Duplicate);
        let is_worth_it =
            if received.in_order { payload >= SMALL } else { received.has_sack && is_kept };
        let opened = is_worth_it && received.may_grow && self.grow(payload, memory_use);
        WindowGrowth { opened, size, full: self.full.bytes }
    }

    /// A larger segment shows how much memory data takes. If the ratio changes, the clamp is
    /// recomputed without the share reserved for the application (`tcp_measure_rcv_mss`).
    fn measure(&mut self, payload: u64, memory: u64) {
        let ratio = ((payload << RATIO_BITS) / memory.max(1)).max(1);
        if ratio == self.ratio {
            return;
        }
        self.ratio = ratio;
        self.clamp = self.window_of(self.buffer);
        self.read = self.read.min(self.clamp);
    }

    /// Grows the window for a data segment. Returns whether it did (`tcp_grow_window`).
    fn grow(&mut self, payload: u64, memory_use: MemoryUse) -> bool {
        let room = self.clamp.min(self.free(memory_use.used)).saturating_sub(self.rcv_ssthresh);
        if room == 0 {
            return false;
        }
        // Data in order, and coalesced data, may yet free the memory of its head
        // (`truesize_adjust`).
        let is_apart = memory_use.ofo == Some(OfoOutcome::Separate);
        let given_back = if is_apart { 0 } else { OVERHEAD };
        let taken = self.window_of(memory_use.memory.saturating_sub(given_back));
        let mut step = 2 * self.mss;
        if taken > payload {
            step = self.growth_of_costly(taken, payload);
        }
        if step == 0 {
            return false;
        }
        self.rcv_ssthresh += step.max(2 * payload).min(room);
        true
    }

    /// Data with a higher memory use than the ratio grows the window only while that is small
    /// (`__tcp_grow_window`).
    fn growth_of_costly(&self, taken: u64, payload: u64) -> u64 {
        let (mut taken, mut window) = (taken >> 1, self.window_of(self.most_buffer) >> 1);
        while self.rcv_ssthresh <= window {
            if taken <= payload {
                return 2 * self.full.bytes;
            }
            taken >>= 1;
            window >>= 1;
        }
        0
    }

    /// The receiver's RTT by an echoed timestamp, also of a segment with old data
    /// (`tcp_rcv_rtt_measure_ts`).
    pub fn measure_rtt_by_timestamp(&mut self, now: Time, echoed: Option<u64>, payload: u64) {
        if let Some(echoed) = echoed.filter(|&echoed| echoed != self.last_echo) {
            self.last_echo = echoed;
            let passed = clock(now).saturating_sub(echoed) * 1000;
            if payload >= self.full.bytes && passed > 0 {
                self.update_rtt(passed, false);
            }
        }
    }

    /// The receiver's RTT by the arrival of a window of data, before data behind a filled gap
    /// counts (`tcp_rcv_rtt_measure`).
    fn measure_rtt_by_window(&mut self, now: Time, received: ReceivedData) {
        if let Some(began) = self.window_began {
            if received.end < self.window_end {
                return;
            }
            let passed = micros(now) - micros(began);
            self.update_rtt(passed.max(1), true);
        }
        self.window_began = Some(now);
        self.window_end = received.window_end;
    }

    /// Takes an RTT in microseconds; `at_most`: an upper bound, as measured by a window
    /// (`tcp_rcv_rtt_update`).
    fn update_rtt(&mut self, micros: u64, at_most: bool) {
        let (old, new) = (self.rtt_eighths, micros * 8);
        if old == 0 || new < old {
            self.rtt_eighths = new;
        } else if !at_most {
            self.rtt_eighths = old - (old >> 3) + micros;
        }
    }

    /// The receiver's RTT.
    pub fn rtt(&self) -> Option<Duration> {
        (self.rtt_eighths > 0).then(|| EIGHTH * self.rtt_eighths)
    }

    /// The application has read up to `consumed`, and RCV.NXT is `next` (`tcp_rcv_space_adjust`).
    pub fn on_read(&mut self, now: Time, consumed: u64, next: u64) {
        let passed = micros(now) - micros(self.read_since);
        if self.rtt_eighths == 0 || passed < self.rtt_eighths >> 3 {
            return;
        }
        let copied = (consumed - self.read_from).saturating_sub(next - consumed);
        if copied > self.read {
            // Twice the data read, for losses, plus its growth, for slow start.
            let window = 2 * copied + 16 * self.mss;
            let growth = window * (copied - self.read) / self.read.max(1);
            let memory = ((window + 2 * growth) << RATIO_BITS) / self.ratio;
            let buffer = memory.min(self.most_buffer);
            if buffer > self.buffer && !self.is_fixed {
                self.buffer = buffer;
                self.clamp = self.window_of(buffer);
            }
            self.read = copied;
        }
        self.read_from = consumed;
        self.read_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_win_reserve_applies_only_if_the_scale_can_offer_the_buffer() {
        // tcp_init_buffer_space: of 131,072 bytes half is window, 65,536. With tcp_app_win = 1 half
        // of that is kept, but `window_clamp >= maxwin` does not hold for 65,535: one segment is.
        let settings = Settings { app_win: 1, receive_buffer: 1 << 20, ..Settings::default() };
        let clamp = |largest| Autotune::new(&settings, 1448, largest).clamp();
        assert_eq!(clamp(65_535 << 7), 32_768);
        assert_eq!(clamp(65_535), 65_536 - 1448);
    }

    #[test]
    fn first_window_is_limited_by_window_clamp_and_route_initrwnd() {
        // tcp_select_initial_window: of 65,536 bytes 45 whole segments, of a limit of 30,000 there
        // are 20; the route's limit is in segments.
        let first = |window_clamp, initial_receive_window| {
            let settings = Settings {
                receive_buffer: 1 << 20,
                window_clamp,
                initial_receive_window,
                ..Settings::default()
            };
            Autotune::new(&settings, 1448, 65_535 << 7).first_window()
        };
        assert_eq!(first(None, None), 45 * 1448);
        assert_eq!(first(Some(30_000), None), 20 * 1448);
        assert_eq!(first(Some(30_000), Some(10)), 10 * 1448);
        assert_eq!(first(None, Some(100)), 45 * 1448);
    }

    #[test]
    fn smaller_truesize_than_assumed_raises_the_window_clamp() {
        // tcp_measure_rcv_mss: window_clamp becomes 153/256 of 131,072 bytes.
        let settings =
            Settings { receive_buffer: 1 << 20, window_clamp: Some(30_000), ..Settings::default() };
        let mut window = Autotune::new(&settings, 1448, 65_535);
        assert_eq!(window.clamp(), 30_000);
        window.measure(1448, 1448 + 960);
        assert_eq!(window.clamp(), (131_072 * 153) >> 8);
    }

    #[test]
    fn unchanged_scaling_ratio_leaves_the_window_clamp() {
        // tcp_measure_rcv_mss: `old_ratio != scaling_ratio`. 965 of 965 + 960 bytes are 128 of 256,
        // which is what a connection begins with; 1448 of 2408 are 153.
        let clamp_after = |payload| {
            let settings = Settings { app_win: 31, receive_buffer: 1 << 20, ..Settings::default() };
            let mut window = Autotune::new(&settings, 1448, u64::MAX);
            window.measure(payload, payload + 960);
            window.clamp()
        };
        assert_eq!(clamp_after(965), 65_536 - 1448);
        assert_eq!(clamp_after(1448), (131_072 * 153) >> 8);
    }
}
