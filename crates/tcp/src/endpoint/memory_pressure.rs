//! Memory pressure of the host (`tcp_mem` of Linux).
//!
//! An endpoint knows what it holds itself; whoever has several tells each what is left. As in
//! `__sk_mem_raise_allocated`, `tcp_should_expand_sndbuf`, `tcp_grow_window` and
//! `__tcp_select_window`, but that Linux counts in pages, and that here nothing is taken back from
//! what was received.

use crate::endpoint::Endpoint;

/// The memory that a connection may always hold, unless its host is above the last limit
/// (`tcp_wmem[0]`, `tcp_rmem[0]`).
pub const GUARANTEED: u64 = 4096;

/// Memory is counted in pages (`PAGE_SIZE`).
const PAGE: u64 = 4096;

/// The memory that the connections of a host have left together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Send buffers do not grow any more.
    pub is_tight: bool,
    /// Windows do not grow any more, and become small where more than half of a buffer is in use.
    pub is_pressed: bool,
    /// Nothing is taken that would make the connection hold more than this.
    pub most: u64,
}

/// The memory pressure that one endpoint has heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub shortage: Shortage,
    /// An application could not write for it.
    was_refused: bool,
}

impl Endpoint {
    /// Bytes of memory that the connection holds: what was written and not acknowledged, and what
    /// arrived and was not read.
    #[inline]
    pub fn memory(&self) -> u64 {
        self.send.memory() + self.receive.memory()
    }

    /// Whether so much memory fits into what the connection has taken already: whole pages, as few
    /// as hold all that it has (`sk_forward_alloc`, `sk_mem_reclaim`).
    #[inline]
    pub(crate) fn has_left(&self, bytes: u64) -> bool {
        let memory = self.memory();
        memory.next_multiple_of(PAGE) - memory >= bytes
    }

    /// The host tells of the memory that is left.
    pub fn set_shortage(&mut self, shortage: Shortage) {
        if shortage.is_pressed {
            self.receive.on_memory_pressure();
        }
        let first = || Box::new(Memory { shortage, was_refused: false });
        self.memory.get_or_insert_with(first).shortage = shortage;
    }

    /// Whether the application could not write since the last look, because memory was short.
    pub fn take_refused(&mut self) -> bool {
        self.memory.as_mut().is_some_and(|memory| std::mem::take(&mut memory.was_refused))
    }

    /// How much of this may be written.
    #[cold]
    pub(crate) fn affordable(&mut self, bytes: u64) -> u64 {
        let held = self.memory();
        let Some(memory) = &mut self.memory else { return bytes };
        let left = memory.shortage.most.saturating_sub(held);
        memory.was_refused |= left < bytes;
        bytes.min(left)
    }

    /// Whether data cannot be kept that something is missing before. What is in order is always
    /// taken: the application waits for it.
    #[cold]
    pub(crate) fn is_too_costly(&self, payload: u64) -> bool {
        let most = self.memory.as_ref().map_or(u64::MAX, |memory| memory.shortage.most);
        self.memory().saturating_add(payload) > most
    }

    pub(crate) fn is_tight(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.shortage.is_tight)
    }

    pub(crate) fn is_pressed(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.shortage.is_pressed)
    }
}
