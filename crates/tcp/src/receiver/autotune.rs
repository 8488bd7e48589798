//! Linux's receive window: it begins small, opens as data shows that it is worth its memory, and
//! the buffer behind it grows with what the application reads in a round trip (dynamic
//! right-sizing).
//!
//! `tcp_select_initial_window`, `tcp_init_buffer_space`, `tcp_grow_window`, `tcp_rcv_space_adjust`.

use super::rcv_mss::{RcvMss, Shape, Size};
use super::skb::{Early, OVERHEAD};
use crate::segment::clock;
use crate::settings::Settings;
use tcplab_transport::EIGHTH;
use tcplab_units::{Duration, Time};

/// `tcp_rmem[1]`: what buffers begin with.
const FIRST_BUFFER: u64 = 131_072;
/// Before a segment has shown how much memory it takes, half of the buffer is window.
const FIRST_RATIO: u64 = 128;
const RATIO_BITS: u32 = 8;
/// Segments up to this size do not open the window.
const SMALL: u64 = 128;

/// The window and the buffer behind it, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Autotune {
    most_buffer: u64,
    app_win: u32,
    buffer: u64,
    /// The program has asked for a buffer of this size: it does not grow.
    is_fixed: bool,
    /// How much of the buffer is window, in 1/256 (`scaling_ratio`).
    ratio: u64,
    /// The largest window that the buffer allows (`window_clamp`).
    clamp: u64,
    /// The window of a SYN.
    first: u64,
    /// The window that data has earned so far (`rcv_ssthresh`).
    earned: u64,
    mss: u64,
    full: RcvMss,
    /// The bytes that the application read in a round trip (`rcvq_space`), since when, and from
    /// where.
    read: u64,
    read_since: Time,
    read_from: u64,
    /// 8 times the round-trip time as the receiver sees it, in microseconds.
    rtt_eighths: u64,
    /// When a window's worth began to arrive, and where it ends.
    window_began: Option<Time>,
    window_end: u64,
    last_echo: u64,
}

/// A window that could be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub bytes: u64,
    /// Less than half of the buffer is free: the sender is not to be hurried any more.
    pub is_short: bool,
}

/// A data segment as the window sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sized {
    /// Its own, or that of each of those that became one.
    pub shape: Shape,
    /// Bytes of all data.
    pub payload: u64,
    pub in_order: bool,
    /// When the segment left that it answers, by our clock of timestamps.
    pub echoed: Option<u64>,
    /// The end of the segment.
    pub end: u64,
    /// `end` plus the window last offered.
    pub window_end: u64,
    /// There is memory for a larger window.
    pub may_grow: bool,
    /// Losses are told of by blocks. Otherwise the window must not grow for what is out of order:
    /// its ACK is to be a duplicate.
    pub has_sack: bool,
}

/// The fate of a segment with data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Where it went, if it is out of order.
    pub early: Option<Early>,
    /// Bytes of memory that came with it.
    pub memory: u64,
    /// Bytes of memory in use when the segment was counted.
    pub used: u64,
}

/// The window after a data segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuned {
    /// The window opens further.
    pub opened: bool,
    pub size: Size,
    /// Payload bytes of a full segment, as known now.
    pub full: u64,
}

/// The kernel's clock of connections (`tcp_mstamp`): what lies between two times is counted in its
/// ticks.
fn micros(time: Time) -> u64 {
    time.as_picos() / 1_000_000
}

/// The window of a buffer of which nothing is known.
pub(super) fn first_window_of(memory: u64) -> u64 {
    (memory * FIRST_RATIO) >> RATIO_BITS
}

fn whole_segments(bytes: u64, segment: u64) -> u64 {
    if bytes > segment { bytes - bytes % segment } else { bytes }
}

impl Autotune {
    /// `largest` is the greatest window that can be offered. Of a window that the program limits,
    /// the kernel keeps nothing but this, once data has shown how much memory it takes
    /// (`tcp_measure_rcv_mss`).
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
            earned: 0,
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
        autotune.open_for(mss, largest.min(clamp), clamp, first);
        autotune
    }

    /// Full segments carry so many bytes: the first window, in whole segments, and what is kept of
    /// the buffer for the application, one segment at least (`tcp_init_buffer_space`). Where the
    /// buffer is more than can be offered, that segment is all. The first window is no larger than
    /// the one that the program (`clamped`) and the route (`first`) allow
    /// (`tcp_select_initial_window`).
    fn open_for(&mut self, mss: u64, largest: u64, clamped: u64, first: u64) {
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
        self.earned = self.first.min(clamp);
        self.full = RcvMss::new(mss, self.first);
        self.read = self.earned.min(10 * mss);
    }

    /// The window of a SYN, in which segments are as large as they are without options, or a
    /// SYN-ACK.
    pub fn first_window(&self) -> u64 {
        self.first
    }

    /// The connection stands.
    pub fn begin(&mut self, now: Time) {
        self.read_since = now;
    }

    fn window_of(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> RATIO_BITS
    }

    /// The window to offer with so much memory in use, in units of `scale` bits, where `offered`
    /// was offered last (`__tcp_select_window`).
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
        let free = free.min(self.earned);
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

    /// Memory is short: with more than half of the buffer in use, four segments are the window
    /// (`tcp_adjust_rcv_ssthresh`).
    pub fn on_memory_pressure(&mut self, used: u64) {
        if 2 * self.free(used) < self.window_of(self.buffer) {
            self.earned = self.earned.min(4 * self.mss);
        }
    }

    /// The largest window there can be now.
    pub fn clamp(&self) -> u64 {
        self.clamp
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, now: Time, sized: Sized, kept: Kept) -> Tuned {
        let payload = sized.payload;
        self.time_by_echo(now, sized.echoed, payload);
        if payload == 0 && kept.early.is_none() {
            // A FIN alone says nothing of sizes, unless a segment is missing before it
            // (`tcp_data_queue`).
            return Tuned { opened: false, size: Size::Repeated, full: self.full.bytes };
        }
        if sized.shape.payload > self.full.bytes {
            self.measure(payload, kept.memory);
        }
        let size = self.full.measure(sized.shape);
        if sized.in_order {
            self.time_by_window(now, sized);
        }
        let is_kept = kept.early != Some(Early::Known);
        let is_worth_it = if sized.in_order { payload >= SMALL } else { sized.has_sack && is_kept };
        let opened = is_worth_it && sized.may_grow && self.earn(payload, kept);
        Tuned { opened, size, full: self.full.bytes }
    }

    /// A segment of another size shows how much memory data takes. If that ratio changes, the
    /// clamp is computed again, without the share reserved for the application
    /// (`tcp_measure_rcv_mss`).
    fn measure(&mut self, payload: u64, memory: u64) {
        let ratio = ((payload << RATIO_BITS) / memory.max(1)).max(1);
        if ratio == self.ratio {
            return;
        }
        self.ratio = ratio;
        self.clamp = self.window_of(self.buffer);
        self.read = self.read.min(self.clamp);
    }

    fn earn(&mut self, payload: u64, kept: Kept) -> bool {
        let room = self.clamp.min(self.free(kept.used)).saturating_sub(self.earned);
        if room == 0 {
            return false;
        }
        // Data in order, and such that becomes one with what is there, may yet give back what its
        // head takes (`truesize_adjust`).
        let is_apart = kept.early == Some(Early::Apart);
        let given_back = if is_apart { 0 } else { OVERHEAD };
        let taken = self.window_of(kept.memory.saturating_sub(given_back));
        let mut step = 2 * self.mss;
        if taken > payload {
            step = self.step_of_costly(taken, payload);
        }
        if step == 0 {
            return false;
        }
        self.earned += step.max(2 * payload).min(room);
        true
    }

    /// Data that takes more memory than the ratio says opens the window only while it is small.
    fn step_of_costly(&self, taken: u64, payload: u64) -> u64 {
        let (mut taken, mut window) = (taken >> 1, self.window_of(self.most_buffer) >> 1);
        while self.earned <= window {
            if taken <= payload {
                return 2 * self.full.bytes;
            }
            taken >>= 1;
            window >>= 1;
        }
        0
    }

    /// A segment, be it one that came before, answers one that left then by our clock of timestamps
    /// (`tcp_rcv_rtt_measure_ts`).
    pub fn time_by_echo(&mut self, now: Time, echoed: Option<u64>, payload: u64) {
        if let Some(echoed) = echoed.filter(|&echoed| echoed != self.last_echo) {
            self.last_echo = echoed;
            let passed = clock(now).saturating_sub(echoed) * 1000;
            if payload >= self.full.bytes && passed > 0 {
                self.take_rtt(passed, false);
            }
        }
    }

    /// `tcp_rcv_rtt_measure`, which comes before data behind a gap moves up.
    fn time_by_window(&mut self, now: Time, sized: Sized) {
        if let Some(began) = self.window_began {
            if sized.end < self.window_end {
                return;
            }
            let passed = micros(now) - micros(began);
            self.take_rtt(passed.max(1), true);
        }
        self.window_began = Some(now);
        self.window_end = sized.window_end;
    }

    /// A round trip took so many microseconds; by a whole window, at the most.
    fn take_rtt(&mut self, micros: u64, at_most: bool) {
        let (old, new) = (self.rtt_eighths, micros * 8);
        if old == 0 || new < old {
            self.rtt_eighths = new;
        } else if !at_most {
            self.rtt_eighths = old - (old >> 3) + micros;
        }
    }

    /// The round-trip time as the receiver sees it.
    pub fn rtt(&self) -> Option<Duration> {
        (self.rtt_eighths > 0).then(|| EIGHTH * self.rtt_eighths)
    }

    /// The application has read up to this offset, of all that comes before `next`.
    pub fn on_read(&mut self, now: Time, consumed: u64, next: u64) {
        let passed = micros(now) - micros(self.read_since);
        if self.rtt_eighths == 0 || passed < self.rtt_eighths >> 3 {
            return;
        }
        let copied = (consumed - self.read_from).saturating_sub(next - consumed);
        if copied > self.read {
            // Twice that, for losses, and as much more as it grows, for slow start.
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
    fn half_of_the_buffer_is_kept_unless_it_is_more_than_can_be_offered() {
        // tcp_init_buffer_space: of 131,072 bytes half is window, 65,536. With tcp_app_win = 1 half
        // of that is kept, but `window_clamp >= maxwin` does not hold for 65,535: one segment is.
        let settings = Settings { app_win: 1, receive_buffer: 1 << 20, ..Settings::default() };
        let clamp = |largest| Autotune::new(&settings, 1448, largest).clamp();
        assert_eq!(clamp(65_535 << 7), 32_768);
        assert_eq!(clamp(65_535), 65_536 - 1448);
    }

    #[test]
    fn the_first_window_is_what_the_program_and_the_route_allow() {
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
    fn data_that_takes_less_memory_than_was_thought_lifts_the_limit_of_the_program() {
        // tcp_measure_rcv_mss: window_clamp becomes 153/256 of 131,072 bytes.
        let settings =
            Settings { receive_buffer: 1 << 20, window_clamp: Some(30_000), ..Settings::default() };
        let mut window = Autotune::new(&settings, 1448, 65_535);
        assert_eq!(window.clamp(), 30_000);
        window.measure(1448, 1448 + 960);
        assert_eq!(window.clamp(), (131_072 * 153) >> 8);
    }

    #[test]
    fn a_segment_that_takes_what_was_thought_leaves_the_window_as_it_is() {
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
