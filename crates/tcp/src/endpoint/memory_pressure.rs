//! Memory pressure of the host (`tcp_mem` of Linux).
//!
//! An endpoint counts its own memory; the host sums it and tells each endpoint its limits. As in
//! `__sk_mem_raise_allocated`, `tcp_should_expand_sndbuf`, `tcp_grow_window` and
//! `__tcp_select_window`, with two differences: Linux counts pages, and received data is never
//! dropped here to free memory.

use crate::endpoint::Endpoint;

/// Memory that every connection may hold, unless its host is above the highest limit
/// (`tcp_wmem[0]`, `tcp_rmem[0]`).
pub const GUARANTEED: u64 = 4096;

/// The kernel's unit of memory (`PAGE_SIZE`).
const PAGE: u64 = 4096;

/// Memory limits of a connection, by the state of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPressure {
    /// The host is above `tcp_mem[0]`: send buffers stop growing.
    pub is_above_low: bool,
    /// The host is under pressure (`tcp_mem[1]`): receive windows stop growing, and shrink where
    /// more than half of the buffer is in use.
    pub is_under_pressure: bool,
    /// The most memory that the connection may hold, in bytes.
    pub limit: u64,
}

/// The host's memory pressure as one endpoint knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub pressure: MemoryPressure,
    /// A write was refused for want of memory.
    was_write_refused: bool,
}

impl Endpoint {
    /// Bytes of memory that the connection holds: written and not acknowledged, and received and
    /// not read.
    #[inline]
    pub fn memory(&self) -> u64 {
        self.send.memory() + self.receive.memory()
    }

    /// Whether `bytes` fit into the pages that the connection has allocated already: the smallest
    /// number of whole pages that holds its memory (`sk_forward_alloc`, `sk_mem_reclaim`).
    #[inline]
    pub(crate) fn has_forward_alloc(&self, bytes: u64) -> bool {
        let memory = self.memory();
        memory.next_multiple_of(PAGE) - memory >= bytes
    }

    /// The host sets the memory limits.
    pub fn set_memory_pressure(&mut self, pressure: MemoryPressure) {
        if pressure.is_under_pressure {
            self.receive.on_memory_pressure();
        }
        let first = || Box::new(Memory { pressure, was_write_refused: false });
        self.memory.get_or_insert_with(first).pressure = pressure;
    }

    /// Whether a write was refused for want of memory since the last call.
    pub fn take_write_refused(&mut self) -> bool {
        self.memory.as_mut().is_some_and(|memory| std::mem::take(&mut memory.was_write_refused))
    }

    /// How many of `bytes` may be written.
    #[cold]
    pub(crate) fn limit_by_memory(&mut self, bytes: u64) -> u64 {
        let held = self.memory();
        let Some(memory) = &mut self.memory else { return bytes };
        let left = memory.pressure.limit.saturating_sub(held);
        memory.was_write_refused |= left < bytes;
        bytes.min(left)
    }

    /// Whether memory is too short to keep an out-of-order segment. Data in order is always kept.
    #[cold]
    pub(crate) fn exceeds_memory(&self, payload: u64) -> bool {
        let most = self.memory.as_ref().map_or(u64::MAX, |memory| memory.pressure.limit);
        self.memory().saturating_add(payload) > most
    }

    pub(crate) fn is_above_low(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.pressure.is_above_low)
    }

    pub(crate) fn is_under_pressure(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.pressure.is_under_pressure)
    }
}
