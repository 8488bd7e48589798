//! State of Linux's receiver beside the stream: the window that it earns, the memory that data
//! takes, and the blocks it tells of.

use super::autotune::{Autotune, Kept, Sized, Tuned, Window};
use super::sack_blocks::SackBlocks;
use super::skb::{Early, Packets};
use crate::pages::Pages;
use crate::settings::Settings;
use std::ops::Range;
use tcplab_units::Time;

#[derive(Clone, Debug)]
pub(super) struct Linux {
    pub window: Autotune,
    pub blocks: SackBlocks,
    packets: Packets,
    /// The memory in use when the last segment was counted, which is before data behind it moves
    /// up.
    memory: u64,
    /// The window that was offered last (`rcv_wnd`).
    pub offered: u64,
    /// The fate of the last segment, if it was out of order.
    early: Option<Early>,
    /// Bytes of data in each of the segments that became one on arrival.
    segment: u64,
    /// The memory of the last segment.
    taken: u64,
}

impl Linux {
    /// For full segments of so many bytes, and no greater window than `largest`. Their sender has
    /// data in these pages.
    pub fn new(settings: &Settings, mss: u16, largest: u64, pages: Pages) -> Self {
        Self {
            window: Autotune::new(settings, mss.into(), largest),
            blocks: SackBlocks::default(),
            packets: Packets::new(pages),
            memory: 0,
            offered: 0,
            early: None,
            segment: u64::MAX,
            taken: 0,
        }
    }

    /// The window of a SYN.
    pub fn first_window(&self) -> u64 {
        self.window.first_window()
    }

    /// The connection stands since then.
    pub fn begin(&mut self, since: Time) {
        self.window.begin(since);
    }

    /// The next data carries so many bytes in each of its segments.
    #[inline]
    pub fn expect(&mut self, segment: u64) {
        self.segment = segment;
    }

    /// Data in order, after which `next` is expected.
    pub fn take(&mut self, range: Range<u64>, next: u64) {
        let end = range.end;
        self.taken = self.packets.add(range, self.segment);
        self.early = None;
        self.memory = self.packets.memory();
        self.packets.advance(end, next);
        self.blocks.advance(next);
    }

    /// Whether data that something is missing before would become part of another packet.
    pub fn merges(&self, range: &Range<u64>) -> bool {
        self.packets.merges(range, self.segment)
    }

    /// Data that something is missing before; with a FIN, `end` is behind that. Says what becomes
    /// of it.
    pub fn take_early(&mut self, range: Range<u64>, end: u64) -> Early {
        let told = range.start..end;
        let before = self.packets.memory();
        let (early, taken) = self.packets.add_early(range, end, self.segment);
        // A packet of its own takes its memory last of all.
        self.memory = if early == Early::Apart { before } else { self.packets.memory() };
        (self.early, self.taken) = (Some(early), taken);
        self.blocks.add(told);
        early
    }

    /// The window may open further for a segment.
    pub fn earn(&mut self, now: Time, sized: Sized) -> Tuned {
        let kept = Kept { early: self.early, memory: self.taken, used: self.memory };
        self.window.on_segment(now, sized, kept)
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> u64 {
        self.packets.memory()
    }

    /// Memory is short.
    pub fn on_memory_pressure(&mut self) {
        self.window.on_memory_pressure(self.packets.memory());
    }

    /// The window to offer now.
    #[inline(never)]
    pub fn window(&self, scale: u8) -> Window {
        self.window.window(self.packets.memory(), scale, self.offered)
    }

    /// The application has read up to `consumed`, before `next`.
    pub fn read(&mut self, now: Time, consumed: u64, next: u64) {
        // Each packet may begin a new measurement; of those read at once, only the first does.
        let first = self.packets.first_end().unwrap_or(consumed).min(consumed);
        self.window.on_read(now, first, next);
        self.packets.read(consumed);
    }
}
