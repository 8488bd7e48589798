//! TCP small queues (TSQ): a limit on the data of a sender at its own host's device
//! (`tcp_small_queue_check`).
//!
//! A new burst waits while more than a millisecond of the sender's rate is queued there, or two
//! bursts if that is more; a retransmission waits at twice as much. The device reports when packets
//! have left, and a throttled sender continues (`tcp_wfree`, `tcp_tsq_write`). A burst counts until
//! all of it has left, as a device that segments bursts reports it. Packets without data do not
//! count.

use crate::departure::Departure;
use crate::departure::data::Data;
use crate::departure::send_buffer::OVERHEAD;
use crate::segment::Segment;
use std::collections::VecDeque;
use tcplab_units::Time;

/// A sender may queue 2^-10 s of its rate (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// The limit for a sender that is not paced (`tcp_limit_output_bytes`).
const MOST: u64 = 1 << 20;
/// Retransmissions may queue more by this power of two.
const RETRANSMISSIONS: u32 = 1;

/// A burst at the device.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The data of the burst.
    start: u64,
    end: u64,
    /// Bytes that have not left.
    left: u64,
    /// The memory of the whole burst.
    memory: u64,
}

/// The packets of a sender at its device.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallQueue {
    bursts: VecDeque<Waiting>,
    /// The memory of all bursts (`sk_wmem_alloc`).
    memory: u64,
    /// Start of the newest burst of new data.
    newest: u64,
    /// A burst waits for the device (`TSQ_THROTTLED`).
    is_throttled: bool,
    /// The device's queue holds bursts until their departure time (`SK_PACING_FQ`).
    paces: bool,
    /// Of the last segment with data, until it is passed on: whether it continues the burst before
    /// it, and the earliest time at which it may leave the device's queue.
    departing: Option<(bool, Time)>,
    /// The segment that waits to be passed to the device, with the same time.
    waiting: Option<(Segment, Time)>,
}

impl SmallQueue {
    /// Data leaves for the device, in the same burst as before or in a new one.
    fn add(&mut self, goes_on: bool, start: u64, bytes: u64) {
        if !goes_on || self.bursts.is_empty() {
            self.bursts.push_back(Waiting { start, end: start, left: 0, memory: OVERHEAD });
            self.memory += OVERHEAD;
        }
        if let Some(burst) = self.bursts.back_mut() {
            burst.end = start + bytes;
            burst.left += bytes;
            burst.memory += bytes;
            self.memory += bytes;
        }
    }

    /// `bytes` have left the device. Returns whether a throttled burst may continue.
    fn remove(&mut self, mut bytes: u64) -> bool {
        let mut is_done = false;
        while let Some(burst) = self.bursts.front_mut() {
            let taken = bytes.min(burst.left);
            burst.left -= taken;
            bytes -= taken;
            if burst.left > 0 {
                break;
            }
            self.memory -= burst.memory;
            self.bursts.pop_front();
            is_done = true;
            if bytes == 0 {
                break;
            }
        }
        is_done && std::mem::take(&mut self.is_throttled)
    }
}

impl Departure {
    /// The device reports packets that have left it. `paces`: its queue holds each packet until its
    /// departure time.
    pub fn enable_small_queue(&mut self, paces: bool) {
        self.small_queue = Some(Box::new(SmallQueue { paces, ..SmallQueue::default() }));
    }

    /// Takes the segment that leaves for the device, or none, and returns the segment before it:
    /// with its departure time, and whether the next segment belongs to the same burst.
    pub fn pass_to_device(
        &mut self,
        now: Time,
        segment: Option<Segment>,
    ) -> Option<(Segment, Time, bool)> {
        let leaves_at = self.leaves_at(now);
        let queue = self.small_queue.as_mut()?;
        let (goes_on, at) = queue.departing.take().unwrap_or((false, leaves_at));
        let before = std::mem::replace(&mut queue.waiting, segment.map(|segment| (segment, at)));
        before.map(|(segment, at)| (segment, at, goes_on))
    }

    /// Whether the sender limits its packets at the device.
    #[inline]
    pub fn has_small_queue(&self) -> bool {
        self.small_queue.is_some()
    }

    /// Bytes have left the device, or were dropped there. Returns whether a throttled burst may
    /// continue.
    pub fn on_tx_completion(&mut self, bytes: u64) -> bool {
        self.small_queue.as_mut().is_some_and(|queue| queue.remove(bytes))
    }

    /// Whether a burst of `bytes` waits until the device has transmitted.
    #[inline]
    pub fn is_queue_full(
        &mut self,
        bytes: u64,
        is_retransmission: bool,
        una: u64,
        is_paced: bool,
    ) -> bool {
        self.small_queue.is_some()
            && self.has_too_much_queued(bytes, is_retransmission, una, is_paced)
    }

    #[cold]
    fn has_too_much_queued(
        &mut self,
        bytes: u64,
        is_retransmission: bool,
        una: u64,
        is_paced: bool,
    ) -> bool {
        let rate = self.bursts.tso.rate() >> RATE_SHIFT;
        let Some(queue) = &mut self.small_queue else { return false };
        let limit = rate.max(2 * (bytes + OVERHEAD)).min(if is_paced { u64::MAX } else { MOST });
        let limit = limit << if is_retransmission { RETRANSMISSIONS } else { 0 };
        // The kernel's count (`sk_wmem_alloc`) begins at 1. A sender with at most one burst
        // outstanding is never throttled.
        let is_full = queue.memory + 1 > limit && una < queue.newest;
        queue.is_throttled |= is_full;
        is_full
    }

    /// Whether a retransmission waits for the device. It counts with the size of its packet
    /// (`tcp_xmit_retransmit_queue`).
    pub fn is_queue_full_for_retransmission(
        &mut self,
        (start, end): (u64, u64),
        una: u64,
        is_paced: bool,
    ) -> bool {
        if self.small_queue.is_none() {
            return false;
        }
        let packet_end = self.packet_end(start).unwrap_or(end);
        self.has_too_much_queued(packet_end.max(end) - start, true, una, is_paced)
    }

    /// Whether the packet with the byte at `place` is still at the device. If so, it is not
    /// retransmitted yet (`skb_still_in_host_queue`).
    pub fn waits_for_device(&mut self, place: u64) -> bool {
        let Some(queue) = &mut self.small_queue else { return false };
        let waits = queue.bursts.iter().any(|burst| (burst.start..burst.end).contains(&place));
        queue.is_throttled |= waits;
        waits
    }

    /// The memory of the queued packets, while data is outstanding (`tcp_should_autocork`).
    #[inline]
    pub(super) fn queued_under_way(&self, has_outstanding: bool) -> u64 {
        let queue = self.small_queue.as_ref().filter(|_| has_outstanding);
        queue.map_or(0, |queue| queue.memory)
    }

    /// Continues with waiting data when the device has transmitted a burst.
    #[cold]
    pub(super) fn resume_on_tx_completion(&mut self) {
        if let Some(queue) = &mut self.small_queue {
            queue.is_throttled = true;
        }
    }

    /// Whether the device's queue holds bursts until their departure time.
    #[inline]
    pub fn is_paced_by_device(&self) -> bool {
        self.small_queue.as_ref().is_some_and(|queue| queue.paces)
    }

    /// Data leaves for the device.
    #[cold]
    pub fn note_queued(&mut self, now: Time, data: Data) {
        let Data { start, payload, is_retransmission, .. } = data;
        let goes_on = self.is_same_burst(now, is_retransmission.then_some(start));
        let leaves_at = self.data_leaves_at(now);
        let Some(queue) = &mut self.small_queue else { return };
        queue.add(goes_on, start, payload.into());
        queue.departing = Some((goes_on, leaves_at));
        if !goes_on && !is_retransmission {
            queue.newest = start;
        }
    }
}
