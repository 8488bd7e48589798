//! The receiving half: reassembly, the window offered, what is reported by SACK.

mod autotune;
mod linux;
mod rbtree;
mod rcv_mss;
mod sack_blocks;
mod skb;

use autotune::Window;
pub(crate) use autotune::{Sized, Tuned};
pub(crate) use rcv_mss::{Shape, Size};

use crate::pages::Pages;
use crate::ranges::RangeSet;
use crate::segment::{SackBlock, Segment};
use crate::seq::Origin;
use crate::settings::Settings;
use linux::Linux;
use skb::Early;
pub(crate) use skb::OVERHEAD;
use std::ops::Range;
use tcplab_units::{Duration, Time};

/// The effect of a segment's data on the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// The segment carried no data.
    Nothing,
    /// In order, with nothing missing behind it.
    InOrder,
    /// Out of order, old, filling a gap, or beyond the window: to be acknowledged at once
    /// (RFC 5681 §4.2).
    Irregular,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub origin: Origin,
    /// The next offset expected.
    pub next: u64,
    /// Bytes the application has read, as an offset.
    consumed: u64,
    /// The right edge of the window as last offered.
    edge: u64,
    /// Bytes the buffer holds.
    buffer: u64,
    mss: u64,
    pub window_scale: u8,
    /// Offset of the peer's FIN.
    fin: Option<u64>,
    out_of_order: RangeSet,
    /// A byte of each block reported, the most recent first (RFC 2018 §4).
    recent: [u64; 4],
    /// The timestamp that the last ACK without data echoed (`rcv_rtt_last_tsecr`).
    passed_echo: u32,
    /// Duplicates are reported (DSACK, RFC 2883).
    reports_duplicates: bool,
    /// The duplicate that has not been reported.
    duplicate: Option<Range<u64>>,
    /// State that only Linux keeps, once there is data.
    linux: Option<Box<Linux>>,
    /// The pages that the peer's data lies in.
    pub pages: Pages,
    /// The receive window is that of Linux: the full segment size, and since when.
    begins_as_linux: Option<(u16, Time)>,
}

impl Receiver {
    pub fn new(settings: &Settings) -> Self {
        // The least scale by which 16 bits can offer the whole buffer (RFC 7323 §2.3). Linux counts
        // with the most that a program may ask for, if that is larger, or else with the window of
        // what it has asked for (`tcp_select_initial_window`).
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
        let begins_as_linux = settings.behaviour.receive_autotuning.then_some((mss, Time::ZERO));
        let kept =
            if settings.app_win == 0 { 0 } else { settings.receive_buffer >> settings.app_win };
        let buffer = (settings.receive_buffer - kept).min(largest).min(clamp);
        let first = match (begins_as_linux, settings.initial_receive_window) {
            (Some(_), _) => Linux::new(settings, mss, largest, Pages::OfFile).first_window(),
            (None, Some(segments)) => buffer.min(segments * u64::from(mss)),
            (None, None) => buffer,
        };
        Self {
            origin: Origin::default(),
            next: 0,
            consumed: 1,
            edge: 1 + first,
            buffer,
            mss: u64::from(settings.mss),
            window_scale,
            fin: None,
            out_of_order: RangeSet::default(),
            recent: [0; 4],
            passed_echo: 0,
            reports_duplicates: settings.dsack,
            duplicate: None,
            linux: None,
            pages: Pages::OfFile,
            begins_as_linux,
        }
    }

    /// Sets the payload of a full segment, after the options are negotiated (`tp->advmss`).
    pub fn set_advertised_mss(&mut self, segment: u16) {
        if let Some((mss, _)) = &mut self.begins_as_linux {
            *mss = segment;
        }
    }

    /// The options are agreed on before a window was offered.
    pub fn open_for(&mut self, segment: u16, settings: &Settings) {
        self.set_advertised_mss(segment);
        if self.begins_as_linux.is_some() {
            self.edge =
                1 + Linux::new(settings, segment, self.largest(), self.pages).first_window();
        }
    }

    /// An ACK without data came.
    #[inline]
    pub fn pass_echo(&mut self, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps() {
            self.passed_echo = timestamps.echo;
        }
    }

    /// Whether what a segment echoes was echoed by the last ACK without data.
    pub fn has_passed(&self, segment: &Segment) -> bool {
        segment.timestamps().is_some_and(|timestamps| timestamps.echo == self.passed_echo)
    }

    /// The greatest window that can be offered.
    fn largest(&self) -> u64 {
        u64::from(u16::MAX) << self.window_scale
    }

    /// The peer does not scale windows: 16 bits must do.
    pub fn without_scaling(&mut self) {
        self.window_scale = 0;
        self.buffer = self.buffer.min(u64::from(u16::MAX));
        self.edge = self.edge.min(self.consumed + self.buffer);
    }

    /// Bytes in order that the application has not read.
    #[inline]
    pub fn readable(&self) -> u64 {
        let end = if self.is_finished() { self.next - 1 } else { self.next };
        end.saturating_sub(self.consumed)
    }

    /// The application reads.
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

    /// Bytes of memory that waits for the application, or for what is missing before it.
    #[inline]
    pub fn memory(&self) -> u64 {
        let bytes = || self.readable() + self.out_of_order.bytes();
        self.linux.as_ref().map_or_else(bytes, |linux| linux.memory())
    }

    /// Memory is short: if more than half of the buffer is in use, the window becomes small.
    pub fn on_memory_pressure(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.on_memory_pressure();
        }
    }

    /// A segment was taken: the window may open further for it.
    #[inline]
    pub fn tune(&mut self, now: Time, sized: Sized) -> Option<Tuned> {
        self.linux.as_mut().map(|linux| linux.earn(now, sized))
    }

    /// A segment that brings nothing new answers one that left then.
    #[cold]
    pub fn time_by_echo(&mut self, now: Time, echoed: Option<u64>, payload: u64) {
        if let Some(linux) = &mut self.linux {
            linux.window.time_by_echo(now, echoed, payload);
        }
    }

    /// The connection stands.
    pub fn begin(&mut self, now: Time) {
        if let Some((_, begun)) = &mut self.begins_as_linux {
            *begun = now;
        }
    }

    /// Since when the connection stands, where that is of interest.
    pub fn since(&self) -> Time {
        self.begins_as_linux.map_or(Time::ZERO, |(_, begun)| begun)
    }

    /// This segment is received next.
    #[inline]
    pub fn expect(&mut self, segment: &Segment) {
        if let Some(linux) = &mut self.linux {
            linux.expect(segment.segment_size().into());
        }
    }

    /// The first data has come.
    #[inline]
    pub fn prepare(&mut self, settings: &Settings) {
        if let (None, Some((mss, begun))) = (&self.linux, self.begins_as_linux) {
            let mut linux = Linux::new(settings, mss, self.largest(), self.pages);
            linux.begin(begun);
            self.linux = Some(Box::new(linux));
        }
    }

    /// The application has read what there was.
    #[inline]
    pub fn tune_to_reader(&mut self, now: Time) {
        if let Some(linux) = &mut self.linux {
            linux.read(now, self.consumed, self.next);
        }
    }

    /// The round-trip time as the receiver sees it, where it looks.
    pub fn rtt(&self) -> Option<Duration> {
        self.linux.as_ref()?.window.rtt()
    }

    /// The window that was offered with the acknowledgment of this offset.
    #[inline]
    pub fn offered(&self, acked: u64) -> u64 {
        self.edge.saturating_sub(acked)
    }

    /// Whether at least the window could be offered again that was when this offset was
    /// acknowledged, and whether the buffer is short.
    #[inline]
    pub fn can_hold_window(&self, acked: u64) -> (bool, bool) {
        let Some(linux) = &self.linux else { return (true, false) };
        let window = linux.window(self.window_scale);
        (window.bytes >= self.offered(acked), window.is_short)
    }

    /// So much came with the SYN. The window that was prepared for its answer is offered beyond it
    /// (`tcp_fastopen_create_child`).
    pub fn take_with_syn(&mut self, payload: u64) {
        self.receive(1, payload, false);
        if self.linux.is_some() {
            self.edge += payload;
        }
    }

    /// These offsets came twice.
    pub fn note_duplicate(&mut self, range: Range<u64>) {
        if self.reports_duplicates && range.start < range.end {
            self.duplicate = Some(range);
        }
    }

    /// Whether there is something to report in SACK blocks.
    #[inline]
    pub fn has_report(&self) -> bool {
        self.has_gap() || self.duplicate.is_some()
    }

    /// Bytes of window left as the peer knows it.
    #[inline]
    pub fn window(&self) -> u64 {
        self.edge.saturating_sub(self.expected())
    }

    /// The next offset of data expected: before the peer's SYN, the one behind it.
    #[inline]
    fn expected(&self) -> u64 {
        self.next.max(1)
    }

    /// Whether a segment that begins at `start` may carry anything of use (RFC 9293 §3.10.7.4).
    pub fn is_acceptable(&self, start: u64, length: u64) -> bool {
        let window = self.window();
        match (length, window) {
            (0, 0) => start == self.next,
            // An ACK that follows a full window begins at its edge.
            (0, _) => self.next <= start && start <= self.edge,
            (_, 0) => false,
            (_, _) => start < self.edge && start + length > self.next,
        }
    }

    /// Takes the data and FIN of an acceptable segment.
    #[inline]
    pub fn receive(&mut self, start: u64, payload: u64, fin: bool) -> Reception {
        if payload == 0 && !fin {
            return Reception::Nothing;
        }
        let mut end = start + payload;
        if fin && end < self.edge {
            self.fin = Some(end);
            end += 1;
        }
        let end = end.min(self.edge);
        let data = start.max(self.next)..end.min(start + payload);
        if start == self.next && self.out_of_order.is_empty() {
            self.next = end;
            if let Some(linux) = &mut self.linux {
                linux.take(data, end);
            }
            return Reception::InOrder;
        }
        if end <= self.next {
            return Reception::Irregular;
        }
        self.insert(start, end);
        self.remember(start.max(self.next));
        if let Some(joined) = self.out_of_order.around(self.next) {
            self.next = joined.end;
            self.out_of_order.remove_below(self.next);
            if let Some(linux) = &mut self.linux {
                linux.take(data, self.next);
            }
            if self.linux.is_some() && self.is_finished() {
                // Behind a FIN nothing is out of order (`tcp_fin`, `tcp_sack_reset`).
                self.duplicate = None;
            }
        } else if let Some(linux) = &mut self.linux
            && linux.take_early(data, end) == Early::Merged
        {
            // Be some of it there before or not.
            self.duplicate = None;
        }
        Reception::Irregular
    }

    /// Keeps what is new of this; of what is not, the first part is reported (RFC 2883 §4.2.3).
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

    fn remember(&mut self, at: u64) {
        let block = self.out_of_order.around(at);
        let is_same = |&old: &u64| block.as_ref().is_some_and(|block| block.contains(&old));
        let place = self.recent.iter().position(is_same).unwrap_or(self.recent.len() - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = at;
    }

    /// Whether data out of order makes news that do not wait.
    #[inline]
    pub fn is_news(&self, range: &Range<u64>) -> bool {
        range.start > self.next
            && self.linux.as_ref().is_some_and(|linux| linux.blocks.is_news(range))
    }

    /// Such data makes the block larger that it touches, or came before: what waits to be told
    /// tells of it.
    pub fn announce(&mut self, range: Range<u64>) {
        if let Some(linux) = &mut self.linux {
            linux.blocks.extend(&range);
        }
        let is_known =
            self.out_of_order.around(range.start).is_some_and(|known| known.end >= range.end);
        if is_known && self.linux.as_ref().is_none_or(|linux| !linux.merges(&range)) {
            self.note_duplicate(range);
        }
    }

    /// A duplicate that has not been reported when the next data arrives, or once it has been, is
    /// forgotten (`tcp_data_queue`).
    #[inline]
    pub fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Whether data is missing.
    #[inline]
    pub fn has_gap(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Adds the blocks of data received out of order to `segment`, the one that changed last first.
    /// No more than `room`.
    pub fn with_sack(&mut self, segment: Segment, room: usize) -> Segment {
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
        segment.with_sack(blocks.into_iter().take(count.min(room)))
    }

    /// The window to offer now, as it goes into the header. The right edge moves only by steps
    /// worth telling (RFC 9293 §3.8.6.2.2) and never back. Also says whether the buffer is short.
    #[inline]
    pub fn offer(&mut self, scale: u8) -> (u16, bool) {
        let (now, expected) = (self.window(), self.expected());
        if let Some(linux) = &mut self.linux {
            // In whole units of the scale, and never back (`tcp_select_window`). What the header
            // has no room for counts as offered all the same.
            let Window { mut bytes, is_short } = linux.window(scale);
            if bytes < now {
                bytes = now.next_multiple_of(1 << scale);
            }
            linux.offered = bytes;
            self.edge = expected + bytes;
            return ((bytes >> scale).min(u64::from(u16::MAX)) as u16, is_short);
        }
        if self.begins_as_linux.is_some() {
            // Before there was data, too: in whole units of the scale, rounded up.
            let bytes = now.next_multiple_of(1 << scale);
            self.edge = expected + bytes;
            return ((bytes >> scale).min(u64::from(u16::MAX)) as u16, false);
        }
        if self.opening() >= self.mss.min(self.buffer / 2) {
            self.edge += self.opening();
        }
        ((self.window() >> scale).min(u64::from(u16::MAX)) as u16, false)
    }

    /// Whether the window has opened so far that the peer is to be told unasked.
    #[inline]
    pub fn should_update(&self) -> bool {
        if let Some(linux) = &self.linux {
            // `tcp_cleanup_rbuf`: at least twice as much.
            return 2 * self.window() <= linux.window.clamp()
                && linux.window(self.window_scale).bytes >= 2 * self.window().max(1);
        }
        if self.begins_as_linux.is_some() {
            return false;
        }
        let opening = self.opening();
        let was_closed = self.window() < self.mss;
        opening > 0
            && (opening * 2 >= self.buffer
                || (was_closed && opening >= self.mss.min(self.buffer / 2)))
    }

    /// By how much the right edge could move.
    #[inline]
    fn opening(&self) -> u64 {
        (self.consumed + self.buffer).saturating_sub(self.edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Flags;
    use crate::seq::SeqNumber;

    fn receiver(buffer: u64) -> Receiver {
        let settings = Settings { receive_buffer: buffer, mss: 1000, ..Settings::default() };
        let mut receiver = Receiver::new(&settings);
        receiver.next = 1;
        receiver
    }

    fn blocks(receiver: &mut Receiver) -> Vec<(u32, u32)> {
        let segment = Segment::new(Flags::ACK, SeqNumber(0), SeqNumber(0));
        receiver.with_sack(segment, 4).sack().iter().map(|block| (block.0.0, block.1.0)).collect()
    }

    #[test]
    fn holds_what_comes_early_and_joins_it() {
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
    fn reports_the_latest_block_first_and_then_the_ones_before() {
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
    fn takes_nothing_beyond_the_window() {
        let mut receiver = receiver(2500);
        assert!(receiver.is_acceptable(2001, 1000));
        receiver.receive(1, 1000, false);
        receiver.receive(1001, 1000, false);
        receiver.receive(2001, 1000, true);
        assert_eq!((receiver.readable(), receiver.window()), (2500, 0));
        assert!(!receiver.is_finished() && !receiver.is_acceptable(2501, 500));
    }

    #[test]
    fn opens_the_window_in_steps_worth_telling() {
        let mut receiver = receiver(4000);
        for start in [1, 1001, 2001, 3001] {
            receiver.receive(start, 1000, false);
        }
        assert_eq!(receiver.offer(0).0, 0);
        receiver.read(900);
        assert!(!receiver.should_update());
        assert_eq!(receiver.offer(0).0, 0);
        receiver.read(100);
        assert!(receiver.should_update());
        assert_eq!(receiver.offer(0).0, 1000);
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
