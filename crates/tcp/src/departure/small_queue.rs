//! TCP small queues: how much of a sender waits at its own host's device (`tcp_small_queue_check`).
//!
//! No new burst leaves while more than a millisecond of the sender's rate waits there, or two
//! bursts if that is more; of repairs, twice as much. The device says when packets have left, and a
//! sender that was held back goes on (`tcp_wfree`, `tcp_tsq_write`). A burst counts until all of it
//! has left, as a device that cuts bursts tells of it. Packets without data do not count.

use crate::departure::Departure;
use crate::departure::data::Data;
use crate::departure::send_buffer::OVERHEAD;
use crate::segment::Segment;
use std::collections::VecDeque;
use tcplab_units::Time;

/// A sender may queue 2^-10 s of its rate (`sk_pacing_shift`).
const RATE_SHIFT: u32 = 10;
/// The most for a sender that is not paced (`tcp_limit_output_bytes`).
const MOST: u64 = 1 << 20;
/// Repairs may be more by so many powers of two.
const REPAIRS: u32 = 1;

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

/// The packets of a sender that wait at its device.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallQueue {
    bursts: VecDeque<Waiting>,
    /// The memory of all bursts (`sk_wmem_alloc`).
    memory: u64,
    /// Where the newest burst of new data begins.
    newest: u64,
    /// A burst was held back (`TSQ_THROTTLED`).
    is_throttled: bool,
    /// The queue keeps bursts until their time (`SK_PACING_FQ`).
    paces: bool,
    /// Of the segment with data that has left last, until somebody asks: whether it goes on with
    /// the burst before it, and when it may leave the queue.
    departing: Option<(bool, Time)>,
    /// The segment before it, and when that may leave the queue.
    waiting: Option<(Segment, Time)>,
}

impl SmallQueue {
    /// Data leaves for the device, of the burst before or of a new one.
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

    /// `bytes` have left the device. Says whether a burst waits for that.
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
    /// The device tells of packets that have left it; `paces`: its queue keeps each until its time.
    pub fn keep_queue_small(&mut self, paces: bool) {
        self.small_queue = Some(Box::new(SmallQueue { paces, ..SmallQueue::default() }));
    }

    /// Takes the segment that leaves for the device, or none, and gives the one before it: with its
    /// departure time, and whether the next one is of its burst.
    pub fn hand_over(
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

    /// Whether the sender keeps few packets at its device.
    #[inline]
    pub fn has_small_queue(&self) -> bool {
        self.small_queue.is_some()
    }

    /// The device has sent or dropped these bytes (`tcp_wfree`). Returns whether a burst waits for
    /// that.
    pub fn on_tx_completion(&mut self, bytes: u64) -> bool {
        self.small_queue.as_mut().is_some_and(|queue| queue.remove(bytes))
    }

    /// Whether a burst of so many bytes waits until something has left the device.
    #[inline]
    pub fn is_queue_full(&mut self, bytes: u64, is_repair: bool, una: u64, is_paced: bool) -> bool {
        self.small_queue.is_some() && self.has_too_much_queued(bytes, is_repair, una, is_paced)
    }

    #[cold]
    fn has_too_much_queued(
        &mut self,
        bytes: u64,
        is_repair: bool,
        una: u64,
        is_paced: bool,
    ) -> bool {
        let rate = self.bursts.tso.rate() >> RATE_SHIFT;
        let Some(queue) = &mut self.small_queue else { return false };
        let limit = rate.max(2 * (bytes + OVERHEAD)).min(if is_paced { u64::MAX } else { MOST });
        let limit = limit << if is_repair { REPAIRS } else { 0 };
        // The kernel's count begins at 1. A sender with no more than one burst under way is never
        // held back.
        let is_full = queue.memory + 1 > limit && una < queue.newest;
        queue.is_throttled |= is_full;
        is_full
    }

    /// Whether a repair must wait: it counts as large as the packet that it is a part of
    /// (`tcp_xmit_retransmit_queue`).
    pub fn is_queue_full_for_repair(
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

    /// Whether the packet with the byte at `place` is still at the device: Linux does not send it
    /// again before it has left (`skb_still_in_host_queue`).
    pub fn waits_for_device(&mut self, place: u64) -> bool {
        let Some(queue) = &mut self.small_queue else { return false };
        let waits = queue.bursts.iter().any(|burst| (burst.start..burst.end).contains(&place));
        queue.is_throttled |= waits;
        waits
    }

    /// The memory of what waits at the device, while data is under way (`tcp_should_autocork`).
    #[inline]
    pub(super) fn queued_under_way(&self, has_outstanding: bool) -> u64 {
        let queue = self.small_queue.as_ref().filter(|_| has_outstanding);
        queue.map_or(0, |queue| queue.memory)
    }

    /// When the device has transmitted a burst, what was held back goes on.
    #[cold]
    pub(super) fn go_on_when_sent(&mut self) {
        if let Some(queue) = &mut self.small_queue {
            queue.is_throttled = true;
        }
    }

    /// Whether the queue of the device keeps bursts until their time.
    #[inline]
    pub fn is_paced_by_device(&self) -> bool {
        self.small_queue.as_ref().is_some_and(|queue| queue.paces)
    }

    /// Data leaves for the device.
    #[cold]
    pub fn note_queued(&mut self, now: Time, data: Data) {
        let Data { start, payload, again, .. } = data;
        let goes_on = self.goes_on(now, again.then_some(start));
        let leaves_at = self.data_leaves_at(now);
        let Some(queue) = &mut self.small_queue else { return };
        queue.add(goes_on, start, payload.into());
        queue.departing = Some((goes_on, leaves_at));
        if !goes_on && !again {
            queue.newest = start;
        }
    }
}
