//! The receiving half: reassembly, the receive window and window scaling, and SACK blocks.

mod autotune;
mod linux;
mod rbtree;
mod rcv_mss;
mod sack_blocks;
mod skb;

use autotune::Window;
pub(crate) use autotune::{ReceivedData, WindowGrowth};
pub(crate) use rcv_mss::{SegmentShape, SizeClass};

use crate::pages::Pages;
use crate::ranges::RangeSet;
use crate::segment::{SackBlock, Segment};
use crate::seq::Origin;
use crate::settings::Settings;
use linux::Linux;
pub(crate) use skb::OVERHEAD;
use skb::OfoOutcome;
use std::ops::Range;
use tcplab_units::{Duration, Time};

/// The effect of a segment's data on the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// The segment carried no data.
    Nothing,
    /// In order, with no gap before or after it.
    InOrder,
    /// Out of order, old, filling a gap, or beyond the window: acknowledged at once (RFC 5681
    /// §4.2).
    Irregular,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub origin: Origin,
    /// RCV.NXT: the next expected offset.
    pub next: u64,
    /// End of the data that the application has read (`copied_seq`).
    consumed: u64,
    /// The right edge of the window last offered (RCV.NXT + RCV.WND).
    right_edge: u64,
    /// Bytes that the buffer holds.
    buffer: u64,
    mss: u64,
    pub window_scale: u8,
    /// Offset of the peer's FIN.
    fin: Option<u64>,
    out_of_order: RangeSet,
    /// An offset in each SACK block, the most recent first (RFC 2018 §4).
    recent: [u64; 4],
    /// The timestamp that the last pure ACK echoed (`rcv_rtt_last_tsecr`).
    pure_ack_echo: u32,
    /// Duplicates are reported (DSACK, RFC 2883).
    reports_duplicates: bool,
    /// The duplicate to be reported by the next DSACK.
    duplicate: Option<Range<u64>>,
    /// State of Linux's receiver, once there is data.
    linux: Option<Box<Linux>>,
    /// The memory pages in which the peer's data lies.
    pub pages: Pages,
    /// Linux's receive window: the MSS, and when the connection was established.
    autotune_from: Option<(u16, Time)>,
}

impl Receiver {
    pub fn new(settings: &Settings) -> Self {
        // Window scaling: the smallest shift with which 16 bits can offer the whole buffer (RFC
        // 7323 §2.3). Linux allows for the largest buffer that a program can set, or of a fixed
        // buffer for its window (`tcp_select_initial_window`).
        let least = if settings.behaviour.receive_autotuning { settings.rmem_max } else { 0 };
        let fixed = settings.fixed_receive_buffer.filter(|_| settings.behaviour.receive_autotuning);
        let most = fixed.map_or(settings.receive_buffer.max(least), autotune::first_window_of);
        let clamp = settings.window_clamp.unwrap_or(u64::MAX);
        let most = most.min(clamp);
        let bits = u64::BITS - most.leading_zeros();
        let window_scale =
            if settings.window_scaling { bits.saturating_sub(16).min(14) as u8 } else { 0 };
        let largest = u64::from(u16::MAX) << window_scale;
        let mss = settings.mss;
        let autotune_from = settings.behaviour.receive_autotuning.then_some((mss, Time::ZERO));
        let kept =
            if settings.app_win == 0 { 0 } else { settings.receive_buffer >> settings.app_win };
        let buffer = (settings.receive_buffer - kept).min(largest).min(clamp);
        let first = match (autotune_from, settings.initial_receive_window) {
            (Some(_), _) => Linux::new(settings, mss, largest, Pages::OfFile).first_window(),
            (None, Some(segments)) => buffer.min(segments * u64::from(mss)),
            (None, None) => buffer,
        };
        Self {
            origin: Origin::default(),
            next: 0,
            consumed: 1,
            right_edge: 1 + first,
            buffer,
            mss: u64::from(settings.mss),
            window_scale,
            fin: None,
            out_of_order: RangeSet::default(),
            recent: [0; 4],
            pure_ack_echo: 0,
            reports_duplicates: settings.dsack,
            duplicate: None,
            linux: None,
            pages: Pages::OfFile,
            autotune_from,
        }
    }

    /// The options are agreed on: full segments carry this many bytes (`tp->advmss`).
    pub fn set_advmss(&mut self, segment: u16) {
        if let Some((mss, _)) = &mut self.autotune_from {
            *mss = segment;
        }
    }

    /// The options are agreed on before a window was offered: sets the initial window.
    pub fn init_window(&mut self, segment: u16, settings: &Settings) {
        self.set_advmss(segment);
        if self.autotune_from.is_some() {
            self.right_edge =
                1 + Linux::new(settings, segment, self.largest(), self.pages).first_window();
        }
    }

    /// An ACK without data arrived.
    #[inline]
    pub fn note_pure_ack(&mut self, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps() {
            self.pure_ack_echo = timestamps.echo;
        }
    }

    /// Whether the segment echoes the same timestamp as the last pure ACK.
    pub fn is_echo_of_pure_ack(&self, segment: &Segment) -> bool {
        segment.timestamps().is_some_and(|timestamps| timestamps.echo == self.pure_ack_echo)
    }

    /// The largest window that can be offered.
    fn largest(&self) -> u64 {
        u64::from(u16::MAX) << self.window_scale
    }

    /// The peer does not scale windows, so they are limited to 16 bits.
    pub fn disable_window_scaling(&mut self) {
        self.window_scale = 0;
        self.buffer = self.buffer.min(u64::from(u16::MAX));
        self.right_edge = self.right_edge.min(self.consumed + self.buffer);
    }

    /// Bytes in order that the application has not read.
    #[inline]
    pub fn readable(&self) -> u64 {
        let end = if self.is_finished() { self.next - 1 } else { self.next };
        end.saturating_sub(self.consumed)
    }

    /// The application reads up to `most` bytes. Returns how many.
    #[inline]
    pub fn read(&mut self, most: u64) -> u64 {
        let bytes = self.readable().min(most);
        self.consumed += bytes;
        bytes
    }

    /// Whether the peer's FIN has arrived in order.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Bytes of memory of data that the application has not read, out-of-order data included.
    #[inline]
    pub fn memory(&self) -> u64 {
        let bytes = || self.readable() + self.out_of_order.bytes();
        self.linux.as_ref().map_or_else(bytes, |linux| linux.memory())
    }

    /// The host is short of memory: a window with more than half of its buffer in use shrinks.
    pub fn on_memory_pressure(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.on_memory_pressure();
        }
    }

    /// A data segment arrived: the window may grow for it (`tcp_grow_window`).
    #[inline]
    pub fn grow_window(&mut self, now: Time, received: ReceivedData) -> Option<WindowGrowth> {
        self.linux.as_mut().map(|linux| linux.grow_window(now, received))
    }

    /// A segment with old data echoes the timestamp of a segment that left at `echoed`.
    #[cold]
    pub fn measure_rtt_by_timestamp(&mut self, now: Time, echoed: Option<u64>, payload: u64) {
        if let Some(linux) = &mut self.linux {
            linux.window.measure_rtt_by_timestamp(now, echoed, payload);
        }
    }

    /// The connection is established.
    pub fn on_established(&mut self, now: Time) {
        if let Some((_, begun)) = &mut self.autotune_from {
            *begun = now;
        }
    }

    /// When the connection was established, for Linux's receive window.
    pub fn established_at(&self) -> Time {
        self.autotune_from.map_or(Time::ZERO, |(_, begun)| begun)
    }

    /// The next data comes from `segment`, which GRO may have merged.
    #[inline]
    pub fn set_gro_segment(&mut self, segment: &Segment) {
        if let Some(linux) = &mut self.linux {
            linux.set_gro_segment(segment.segment_size().into());
        }
    }

    /// The first data arrives: creates the state of Linux's receiver.
    #[inline]
    pub fn init_autotuning(&mut self, settings: &Settings) {
        if let (None, Some((mss, begun))) = (&self.linux, self.autotune_from) {
            self.begin_autotuning(settings, mss, begun);
        }
    }

    #[cold]
    fn begin_autotuning(&mut self, settings: &Settings, mss: u16, begun: Time) {
        let mut linux = Linux::new(settings, mss, self.largest(), self.pages);
        linux.on_established(begun);
        self.linux = Some(Box::new(linux));
    }

    /// The application has read everything available (`tcp_rcv_space_adjust`).
    #[inline]
    pub fn on_application_read(&mut self, now: Time) {
        if let Some(linux) = &mut self.linux {
            linux.read(now, self.consumed, self.next);
        }
    }

    /// The RTT that the receiver has measured (`rcv_rtt_est`).
    pub fn rtt(&self) -> Option<Duration> {
        self.linux.as_ref()?.window.rtt()
    }

    /// The window last offered, from the acknowledgment `acked` on.
    #[inline]
    pub fn offered_window(&self, acked: u64) -> u64 {
        self.right_edge.saturating_sub(acked)
    }

    /// Whether a window at least as large as with the acknowledgment `acked` could be offered now;
    /// and whether less than half of the buffer is free.
    #[inline]
    pub fn can_repeat_window(&self, acked: u64) -> (bool, bool) {
        let Some(linux) = &self.linux else { return (true, false) };
        let window = linux.window(self.window_scale);
        (window.bytes >= self.offered_window(acked), window.is_short)
    }

    /// The SYN carried `payload` bytes. The window prepared for the SYN-ACK begins behind them
    /// (`tcp_fastopen_create_child`).
    pub fn receive_with_syn(&mut self, payload: u64) {
        self.receive(1, payload, false);
        if self.linux.is_some() {
            self.right_edge += payload;
        }
    }

    /// A range was received twice.
    pub fn note_duplicate(&mut self, range: Range<u64>) {
        if self.reports_duplicates && range.start < range.end {
            self.duplicate = Some(range);
        }
    }

    /// Whether the next ACK carries SACK blocks.
    #[inline]
    pub fn has_sack_blocks(&self) -> bool {
        self.has_gap() || self.duplicate.is_some()
    }

    /// RCV.WND: bytes of window that the peer still has.
    #[inline]
    pub fn window(&self) -> u64 {
        self.right_edge.saturating_sub(self.expected())
    }

    /// RCV.NXT; before the peer's SYN, the offset behind it.
    #[inline]
    fn expected(&self) -> u64 {
        self.next.max(1)
    }

    /// Whether a segment that starts at `start` is acceptable (RFC 9293 §3.10.7.4).
    pub fn is_acceptable(&self, start: u64, length: u64) -> bool {
        let window = self.window();
        match (length, window) {
            (0, 0) => start == self.next,
            // A pure ACK after a full window starts at the right edge.
            (0, _) => self.next <= start && start <= self.right_edge,
            (_, 0) => false,
            (_, _) => start < self.right_edge && start + length > self.next,
        }
    }

    /// Takes the data and the FIN of an acceptable segment.
    #[expect(clippy::inline_always, reason = "every segment with data passes here")]
    #[inline(always)]
    pub fn receive(&mut self, start: u64, payload: u64, fin: bool) -> Reception {
        if payload == 0 && !fin {
            return Reception::Nothing;
        }
        let mut end = start + payload;
        if fin && end < self.right_edge {
            self.fin = Some(end);
            end += 1;
        }
        let end = end.min(self.right_edge);
        let data = start.max(self.next)..end.min(start + payload);
        if start == self.next && self.out_of_order.is_empty() {
            self.next = end;
            if let Some(linux) = &mut self.linux {
                linux.on_data_in_order(data, end);
            }
            return Reception::InOrder;
        }
        self.receive_irregular((start, end), data);
        Reception::Irregular
    }

    /// Takes data out of order, old data, or data that fills a gap.
    #[inline(never)]
    fn receive_irregular(&mut self, (start, end): (u64, u64), data: Range<u64>) {
        if end <= self.next {
            return;
        }
        self.insert(start, end);
        self.note_recent_block(start.max(self.next));
        if let Some(joined) = self.out_of_order.around(self.next) {
            self.next = joined.end;
            self.out_of_order.remove_below(self.next);
            if let Some(linux) = &mut self.linux {
                linux.on_data_in_order(data, self.next);
            }
            if self.linux.is_some() && self.is_finished() {
                // A FIN in order purges out-of-order data and SACK state (`tcp_fin`,
                // `tcp_sack_reset`).
                self.duplicate = None;
            }
        } else if let Some(linux) = &mut self.linux
            && linux.on_ofo_data(data, end) == OfoOutcome::Coalesced
        {
            // Coalesced data sends no DSACK, even for a part received before.
            self.duplicate = None;
        }
    }

    /// Queues the new parts of a range. Of the parts received before, the first is reported (RFC
    /// 2883 §4.2.3).
    fn insert(&mut self, start: u64, end: u64) {
        let from = start.max(self.next);
        let (mut twice, mut reached) = (start..from, from);
        self.out_of_order.insert(from..end, |new| {
            if twice.is_empty() {
                twice = reached..new.start;
            }
            reached = new.end;
        });
        if twice.is_empty() {
            twice = reached..end;
        }
        self.note_duplicate(twice);
    }

    /// Moves the block that contains this offset to the front of the SACK blocks.
    fn note_recent_block(&mut self, at: u64) {
        let block = self.out_of_order.around(at);
        let is_same = |&old: &u64| block.as_ref().is_some_and(|block| block.contains(&old));
        let place = self.recent.iter().position(is_same).unwrap_or(self.recent.len() - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = at;
    }

    /// Whether out-of-order data makes a waiting compressed ACK leave at once.
    #[inline]
    pub fn flushes_compressed_ack(&self, range: &Range<u64>) -> bool {
        range.start > self.next
            && self.linux.as_ref().is_some_and(|linux| linux.blocks.flushes_compressed_ack(range))
    }

    /// The data extends the SACK block that it touches, or is a duplicate; the compressed ACK that
    /// it flushes already reports it (`tcp_sack_extend`).
    pub fn extend_sack_block(&mut self, range: Range<u64>) {
        if let Some(linux) = &mut self.linux {
            linux.blocks.extend(&range);
        }
        let is_known =
            self.out_of_order.around(range.start).is_some_and(|known| known.end >= range.end);
        if is_known && self.linux.as_ref().is_none_or(|linux| !linux.would_coalesce(&range)) {
            self.note_duplicate(range);
        }
    }

    /// Discards a duplicate once it is reported, or when the next data arrives (`tcp_data_queue`).
    #[inline]
    pub fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Whether data is missing before data that was received.
    #[inline]
    pub fn has_gap(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// At most `room` SACK blocks, and their number: a DSACK, then the blocks, the one that changed
    /// last first.
    pub fn sack_blocks(&mut self, room: usize) -> ([SackBlock; 4], usize) {
        let mut blocks: [SackBlock; 5] = Default::default();
        let mut starts = [u64::MAX; 5];
        let mut count = 0;
        if let Some(twice) = self.duplicate.take() {
            blocks[0] = (self.origin.number(twice.start), self.origin.number(twice.end));
            count = 1;
        }
        for range in self.linux.iter().flat_map(|linux| linux.blocks.iter()) {
            blocks[count] = (self.origin.number(range.start), self.origin.number(range.end));
            count += 1;
        }
        for at in self.recent.iter().filter(|_| self.linux.is_none()).copied() {
            if let Some(range) = self.out_of_order.around(at)
                && !starts[..count].contains(&range.start)
            {
                starts[count] = range.start;
                blocks[count] = (self.origin.number(range.start), self.origin.number(range.end));
                count += 1;
            }
        }
        let [first, second, third, fourth, _] = blocks;
        ([first, second, third, fourth], count.min(room).min(4))
    }

    /// The window field of a segment that leaves now, and whether less than half of the buffer is
    /// free. The right edge moves only by steps worth an update (receiver silly-window avoidance,
    /// RFC 9293 §3.8.6.2.2), and never back.
    #[inline]
    pub fn select_window(&mut self, scale: u8) -> (u16, bool) {
        let (now, expected) = (self.window(), self.expected());
        if let Some(linux) = &mut self.linux {
            // In whole units of the scale, and never back (`tcp_select_window`). Window beyond the
            // 16 bits of the field counts as offered nevertheless.
            let Window { mut bytes, is_short } = linux.window(scale);
            if bytes < now {
                bytes = now.next_multiple_of(1 << scale);
            }
            linux.offered = bytes;
            self.right_edge = expected + bytes;
            return ((bytes >> scale).min(u64::from(u16::MAX)) as u16, is_short);
        }
        if self.autotune_from.is_some() {
            // Before the first data, also in whole units of the scale, rounded up.
            let bytes = now.next_multiple_of(1 << scale);
            self.right_edge = expected + bytes;
            return ((bytes >> scale).min(u64::from(u16::MAX)) as u16, false);
        }
        if self.possible_advance() >= self.mss.min(self.buffer / 2) {
            self.right_edge += self.possible_advance();
        }
        ((self.window() >> scale).min(u64::from(u16::MAX)) as u16, false)
    }

    /// Whether the window has grown enough for a window update.
    #[inline]
    pub fn should_send_window_update(&self) -> bool {
        if let Some(linux) = &self.linux {
            // `tcp_cleanup_rbuf`: at least twice as much.
            return 2 * self.window() <= linux.window.clamp()
                && linux.window(self.window_scale).bytes >= 2 * self.window().max(1);
        }
        if self.autotune_from.is_some() {
            return false;
        }
        let opening = self.possible_advance();
        let was_closed = self.window() < self.mss;
        opening > 0
            && (opening * 2 >= self.buffer
                || (was_closed && opening >= self.mss.min(self.buffer / 2)))
    }

    /// By how much the right edge could advance.
    #[inline]
    fn possible_advance(&self) -> u64 {
        (self.consumed + self.buffer).saturating_sub(self.right_edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(buffer: u64) -> Receiver {
        let settings = Settings { receive_buffer: buffer, mss: 1000, ..Settings::default() };
        let mut receiver = Receiver::new(&settings);
        receiver.next = 1;
        receiver
    }

    fn blocks(receiver: &mut Receiver) -> Vec<(u32, u32)> {
        let (blocks, count) = receiver.sack_blocks(4);
        blocks[..count].iter().map(|block| (block.0.0, block.1.0)).collect()
    }

    #[test]
    fn out_of_order_data_becomes_readable_when_the_gap_is_filled() {
        let mut receiver = receiver(100_000);
        assert_eq!(receiver.receive(1001, 1000, false), Reception::Irregular);
        assert_eq!((receiver.next, receiver.readable()), (1, 0));
        assert_eq!(receiver.receive(1, 1000, false), Reception::Irregular);
        assert_eq!((receiver.next, receiver.readable()), (2001, 2000));
        assert_eq!(receiver.receive(2001, 1000, true), Reception::InOrder);
        assert!(receiver.is_finished());
        assert_eq!(receiver.read(u64::MAX), 3000);
        assert_eq!(receiver.readable(), 0);
    }

    #[test]
    fn sack_reports_the_latest_block_first_then_earlier_ones() {
        // RFC 2018 §8, case 2: every second segment is lost.
        let mut receiver = receiver(100_000);
        for start in [1001, 3001, 5001] {
            receiver.receive(start, 1000, false);
        }
        assert_eq!(blocks(&mut receiver), [(5001, 6001), (3001, 4001), (1001, 2001)]);
        receiver.receive(2001, 1000, false);
        assert_eq!(blocks(&mut receiver), [(1001, 4001), (5001, 6001)]);
        receiver.receive(1, 1000, false);
        assert_eq!(blocks(&mut receiver), [(5001, 6001)]);
    }

    #[test]
    fn receiver_drops_data_and_fin_beyond_the_window() {
        let mut receiver = receiver(2500);
        assert!(receiver.is_acceptable(2001, 1000));
        receiver.receive(1, 1000, false);
        receiver.receive(1001, 1000, false);
        receiver.receive(2001, 1000, true);
        assert_eq!((receiver.readable(), receiver.window()), (2500, 0));
        assert!(!receiver.is_finished() && !receiver.is_acceptable(2501, 500));
    }

    #[test]
    fn receiver_opens_the_window_by_whole_segments() {
        let mut receiver = receiver(4000);
        for start in [1, 1001, 2001, 3001] {
            receiver.receive(start, 1000, false);
        }
        assert_eq!(receiver.select_window(0).0, 0);
        receiver.read(900);
        assert!(!receiver.should_send_window_update());
        assert_eq!(receiver.select_window(0).0, 0);
        receiver.read(100);
        assert!(receiver.should_send_window_update());
        assert_eq!(receiver.select_window(0).0, 1000);
    }

    #[test]
    fn scale_is_the_least_that_offers_the_buffer() {
        for (buffer, scale) in [(65_535, 0), (65_536, 1), (1 << 20, 5), (1 << 30, 14)] {
            assert_eq!(receiver(buffer).window_scale, scale, "{buffer}");
        }
        // In Linux, one of 212,992 bytes at least: floor(log2) is 17, less 15.
        for (receive_buffer, scale) in [(8_192, 2), (262_143, 2), (262_144, 3)] {
            let behaviour = crate::settings::Behaviour::LINUX;
            let settings = Settings { behaviour, receive_buffer, ..Settings::default() };
            assert_eq!(Receiver::new(&settings).window_scale, scale, "{receive_buffer}");
        }
        // tcp_select_initial_window: of a buffer that the program asked for, half of it, whatever
        // it may ask for: floor(log2(64,000)) is 15, and of a million it is 19.
        for (fixed, scale) in [(2304, 0), (128_000, 0), (131_072, 1), (2_000_000, 4)] {
            let settings = Settings {
                behaviour: crate::settings::Behaviour::LINUX,
                receive_buffer: 6_291_456,
                fixed_receive_buffer: Some(fixed),
                ..Settings::default()
            };
            assert_eq!(Receiver::new(&settings).window_scale, scale, "{fixed}");
        }
        // Of a window that the program limits: floor(log2(128,000)) is 16, and of 65,535 it is 15,
        // whatever the buffer may become.
        for (clamp, scale) in [(1152, 0), (65_535, 0), (128_000, 1), (300_000, 3), (1 << 30, 7)] {
            let settings = Settings {
                behaviour: crate::settings::Behaviour::LINUX,
                receive_buffer: 6_291_456,
                window_clamp: Some(clamp),
                ..Settings::default()
            };
            assert_eq!(Receiver::new(&settings).window_scale, scale, "{clamp}");
        }
    }
}
