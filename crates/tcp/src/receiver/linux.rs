//! State of Linux's receiver: the autotuned window, the memory of received data, and the SACK
//! blocks.

use super::autotune::{Autotune, MemoryUse, ReceivedData, Window, WindowGrowth};
use super::sack_blocks::SackBlocks;
use super::skb::{OfoOutcome, Packets};
use crate::pages::Pages;
use crate::settings::Settings;
use std::ops::Range;
use tcplab_units::Time;

#[derive(Clone, Debug)]
pub(super) struct Linux {
    pub window: Autotune,
    pub blocks: SackBlocks,
    packets: Packets,
    /// Memory in use when the last segment was counted, before data behind a filled gap moves to
    /// the receive queue.
    memory: u64,
    /// The window last offered (`rcv_wnd`).
    pub offered: u64,
    /// What became of the last segment, if it was out of order.
    ofo: Option<OfoOutcome>,
    /// Payload bytes of each segment that GRO merged into the present one.
    segment: u64,
    /// Memory of the last segment.
    taken: u64,
}

impl Linux {
    /// A receiver of full segments with `mss` bytes, and windows of at most `largest`. The peer's
    /// data lies in `pages`.
    pub fn new(settings: &Settings, mss: u16, largest: u64, pages: Pages) -> Self {
        Self {
            window: Autotune::new(settings, mss.into(), largest),
            blocks: SackBlocks::default(),
            packets: Packets::new(pages),
            memory: 0,
            offered: 0,
            ofo: None,
            segment: u64::MAX,
            taken: 0,
        }
    }

    /// The window of a SYN.
    pub fn first_window(&self) -> u64 {
        self.window.first_window()
    }

    /// The connection was established at `since`.
    pub fn on_established(&mut self, since: Time) {
        self.window.on_established(since);
    }

    /// The next data comes in segments of this many bytes.
    #[inline]
    pub fn set_gro_segment(&mut self, segment: u64) {
        self.segment = segment;
    }

    /// Data in order arrived; RCV.NXT is now `next`.
    pub fn on_data_in_order(&mut self, range: Range<u64>, next: u64) {
        let end = range.end;
        self.taken = self.packets.add(range, self.segment);
        self.ofo = None;
        self.memory = self.packets.memory();
        self.packets.advance(end, next);
        self.blocks.advance(next);
    }

    /// Whether out-of-order data would join another packet.
    pub fn would_coalesce(&self, range: &Range<u64>) -> bool {
        self.packets.would_coalesce(range, self.segment)
    }

    /// Out-of-order data arrived (`tcp_data_queue_ofo`). `end` includes a FIN. Returns what became
    /// of it.
    pub fn on_ofo_data(&mut self, range: Range<u64>, end: u64) -> OfoOutcome {
        let told = range.start..end;
        let before = self.packets.memory();
        let (early, taken) = self.packets.queue_ofo(range, end, self.segment);
        // A packet of its own is charged after the window grows.
        self.memory = if early == OfoOutcome::Separate { before } else { self.packets.memory() };
        (self.ofo, self.taken) = (Some(early), taken);
        self.blocks.add(told);
        early
    }

    /// The window may grow for a segment (`tcp_grow_window`).
    pub fn grow_window(&mut self, now: Time, received: ReceivedData) -> WindowGrowth {
        let memory_use = MemoryUse { ofo: self.ofo, memory: self.taken, used: self.memory };
        self.window.on_segment(now, received, memory_use)
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> u64 {
        self.packets.memory()
    }

    /// The host is short of memory.
    pub fn on_memory_pressure(&mut self) {
        self.window.on_memory_pressure(self.packets.memory());
    }

    /// The window that could be offered now.
    #[inline(never)]
    pub fn window(&self, scale: u8) -> Window {
        self.window.window(self.packets.memory(), scale, self.offered)
    }

    /// The application has read up to `consumed`, and RCV.NXT is `next`.
    pub fn read(&mut self, now: Time, consumed: u64, next: u64) {
        // Each packet may start a new measurement; of packets read together, only the first does.
        let first = self.packets.first_end().unwrap_or(consumed).min(consumed);
        self.window.on_read(now, first, next);
        self.packets.read(consumed);
    }
}
