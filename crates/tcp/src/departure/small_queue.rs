//! TCP small queues (TSQ): a limit on the data of a sender at its own host's device
//! (`tcp_small_queue_check`).
//!
//! A new burst waits while more than a millisecond of the sender's rate is queued there, or two
//! bursts if that is more; a retransmission waits at twice as much. The device reports when packets
//! have left, and a throttled sender continues (`tcp_wfree`, `tcp_tsq_write`). A burst counts until
//! all of it has left, as a device that segments bursts reports it. Packets without data do not
//! count.

use crate::departure::data::Data;
use crate::departure::send_buffer::{OVERHEAD, Push, Writer};
use crate::departure::{Bursts, Departure};
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
    /// The queue refused or dropped a burst while another one waited for the device. Freeing the
    /// packet wakes the sender (`tcp_wfree`).
    resumes: bool,
    /// The queue refused a burst before there was a congestion controller.
    refused_early: bool,
    /// The device's queue holds bursts until their departure time (`SK_PACING_FQ`).
    paces: bool,
    /// Of the last segment with data, until it is passed on: whether it continues the burst before
    /// it, and the earliest time at which it may leave the device's queue.
    departing: Option<(bool, Time)>,
}

/// The data at the device before a burst.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    bursts: usize,
    memory: u64,
    newest: u64,
}

/// The part of the state before a burst that a refusal restores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    bursts: Bursts,
    held: Held,
    writer: Writer,
    /// The persist timer sends the burst (`tcp_write_wakeup`).
    is_wakeup: bool,
}

impl Before {
    /// Whether the persist timer sends the burst.
    pub fn is_wakeup(&self) -> bool {
        self.is_wakeup
    }
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

    /// Whether the segment that leaves now continues the burst before it, and the earliest time at
    /// which it may leave the device's queue.
    pub fn take_departing(&mut self, now: Time) -> (bool, Time) {
        let leaves_at = self.leaves_at(now);
        let departing = self.small_queue.as_mut().and_then(|queue| queue.departing.take());
        departing.unwrap_or((false, leaves_at))
    }

    /// Whether the burst in progress ends with the last segment.
    pub fn ends_burst(&self, now: Time, nxt: u64) -> bool {
        let tso = &self.bursts.tso;
        let ends = self.buffer.as_ref().is_none_or(|buffer| buffer.sent_end() <= nxt);
        ends && !tso.is_in_burst() && !tso.is_retransmitting(now)
    }

    /// Whether the persist timer sends the next segment (`tcp_write_wakeup`) into the queue of the
    /// host.
    #[inline]
    pub fn is_write_wakeup(&self) -> bool {
        self.small_queue.is_some()
            && self.overrides_silly_window
            && self.buffer.as_ref().is_some_and(|buffer| buffer.push == Push::One)
    }

    /// The state before the burst that is about to leave.
    pub fn before_burst(&self) -> Before {
        let held = self.small_queue.as_ref().map_or(Held::default(), |queue| Held {
            bursts: queue.bursts.len(),
            memory: queue.memory,
            newest: queue.newest,
        });
        Before {
            bursts: self.bursts.get().copied().unwrap_or_default(),
            held,
            writer: self.buffer.as_ref().map_or(Writer::default(), |buffer| buffer.writer()),
            is_wakeup: self.is_write_wakeup(),
        }
    }

    /// The host's queue has refused the burst since `before`. `unsent`: the start of its data, if
    /// that is new.
    #[cold]
    pub fn take_back(&mut self, before: &Before, unsent: Option<u64>) {
        self.bursts.tso.take_back(before.bursts.tso);
        self.bursts.pacing = before.bursts.pacing;
        self.overrides_silly_window = false;
        self.drop_newest(before);
        if let Some(queue) = &mut self.small_queue {
            queue.newest = before.held.newest;
        }
        if let (Some(buffer), Some(unsent)) = (&mut self.buffer, unsent) {
            buffer.take_back(unsent, before.writer);
        }
    }

    /// The burst since `before` is not at the device any more.
    #[cold]
    pub fn drop_newest(&mut self, before: &Before) {
        if let Some(queue) = &mut self.small_queue {
            queue.bursts.truncate(before.held.bursts);
            queue.memory = before.held.memory;
            queue.resumes |= std::mem::take(&mut queue.is_throttled);
        }
    }

    /// The queue refused a burst before there was a controller to reduce the window.
    #[cold]
    pub fn note_early_refusal(&mut self) {
        if let Some(queue) = &mut self.small_queue {
            queue.refused_early = true;
        }
    }

    /// Whether the queue refused a burst before there was a controller. To be acted on once.
    pub fn take_early_refusal(&mut self) -> bool {
        self.small_queue.as_mut().is_some_and(|queue| std::mem::take(&mut queue.refused_early))
    }

    /// Whether a throttled sender may continue because the queue refused or dropped a burst.
    #[inline]
    pub fn take_resumption(&mut self) -> bool {
        self.small_queue.as_mut().is_some_and(|queue| std::mem::take(&mut queue.resumes))
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
