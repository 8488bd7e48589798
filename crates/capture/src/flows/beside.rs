//! Follows connections while another thread reads the capture. The results are those of a single
//! thread: segments arrive in order.

use super::duplicates::DuplicateFilter;
use super::segment::{Hashes, Segment};
use super::{FlowTables, Flows};
use crate::decode::Ip;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// The number of segments handed over at once.
const BATCH: usize = 256;
/// The most batches in circulation. Where other programs run as well, a thread does not wait at
/// once while the other one has no processor.
const BATCHES: usize = 64;
/// The number of empty batches returned at once: a return may have to wake the other thread.
const RETURNED: usize = 16;
// Otherwise all batches could wait to be returned, and both threads for each other.
const _: () = assert!(RETURNED < BATCHES);

/// Segments, and what is known with them.
#[derive(Default)]
struct Batch {
    /// The time of the first packet of the capture.
    begin: i64,
    /// The number of packets so far, now and then.
    packets: Option<u64>,
    segments: Vec<Segment>,
}

/// The way of segments to their connections.
pub(crate) struct Feed {
    duplicate_filter: DuplicateFilter,
    hashes: Hashes,
    /// Memory of this thread alone, and the number of segments in it. Written one by one to memory
    /// that the other thread has read, they would wait for a processor far away at each cache line;
    /// copied together they do not.
    own: Box<[Segment]>,
    count: usize,
    /// The time of the first packet, and the number of packets to report.
    begin: i64,
    packets: Option<u64>,
    full: SyncSender<Batch>,
    empty: Receiver<Vec<Batch>>,
    /// Empty batches at hand.
    free: Vec<Batch>,
    /// The number of batches in circulation.
    batches: usize,
}

impl Feed {
    /// Sets the number of interfaces known so far.
    #[inline]
    pub fn at_interfaces(&mut self, number: usize) {
        if number > 1 {
            self.duplicate_filter.expect_several_interfaces();
        }
    }

    /// The capture begins at this time.
    pub fn begin(&mut self, time: i64) {
        self.begin = time;
    }

    /// Adds the segment in an IP packet of `length` bytes behind its headers, captured at `time` on
    /// an interface, in a frame of `wire_bytes`. Returns the segment as added, if there is one.
    #[inline]
    pub fn add(
        &mut self,
        (time, interface, wire_bytes): (i64, u32, u32),
        ip: &Ip<'_>,
        (content, length): (&[u8], u32),
    ) -> Option<&Segment> {
        if self.count == BATCH {
            self.flush();
        }
        // Segments are written where they stay: a copy would wait for each of their small fields.
        let segment = &mut self.own[self.count];
        if !segment.tcp.fill(content, length) {
            return None;
        }
        (segment.time, segment.interface, segment.wire_bytes) = (time, interface, wire_bytes);
        (segment.from, segment.to) = (ip.from, ip.to);
        (segment.ecn, segment.id) = (ip.ecn, ip.id);
        segment.is_duplicate = self.duplicate_filter.is_duplicate(segment);
        segment.hash = self.hashes.of(segment.ends());
        self.count += 1;
        Some(segment)
    }

    /// Reports the number of packets so far. Returns whether to continue.
    pub fn report(&mut self, packets: u64) -> bool {
        self.packets = Some(packets);
        self.flush()
    }

    /// Hands over the segments so far. Returns whether they are wanted.
    fn flush(&mut self) -> bool {
        let count = std::mem::take(&mut self.count);
        let Some(mut batch) = self.next_batch() else {
            // The other thread has stopped; `read` learns it from its next report.
            return false;
        };
        (batch.begin, batch.packets) = (self.begin, self.packets.take());
        batch.segments.clear();
        batch.segments.extend_from_slice(&self.own[..count]);
        self.full.send(batch).is_ok()
    }

    /// An empty batch; none if the other thread has stopped.
    fn next_batch(&mut self) -> Option<Batch> {
        if self.free.is_empty() {
            match self.empty.try_recv() {
                Ok(batches) => self.free = batches,
                Err(_) if self.batches < BATCHES => {
                    self.batches += 1;
                    self.free.push(Batch::default());
                }
                Err(_) => self.free = self.empty.recv().ok()?,
            }
        }
        self.free.pop()
    }
}

/// Reads a capture in another thread; its segments go to `flows`. Returns what `read` returns, and
/// the connections; `None` if `goes_on`, called with the number of packets that `read` reports,
/// decides to stop.
///
/// Connections are followed in the calling thread: they take memory, of which the C library gives
/// other threads a page at a time.
pub(crate) fn follow<T: Send>(
    mut flows: Flows,
    goes_on: &mut dyn FnMut(u64) -> bool,
    read: impl FnOnce(&mut Feed) -> T + Send,
) -> Option<(T, FlowTables)> {
    let (full, batches) = sync_channel(BATCHES);
    let (back, empty) = channel();
    let (duplicate_filter, hashes) = (DuplicateFilter::default(), flows.hashes.clone());
    let mut feed = Feed {
        duplicate_filter,
        hashes,
        own: vec![Segment::default(); BATCH].into(),
        count: 0,
        begin: 0,
        packets: None,
        full,
        empty,
        free: Vec::new(),
        batches: 0,
    };
    thread::scope(move |scope| {
        let reader = scope.spawn(move || {
            let result = read(&mut feed);
            feed.flush();
            result
        });
        let mut used = Vec::new();
        for batch in batches {
            flows.begin(batch.begin);
            flows.add(&batch.segments);
            if batch.packets.is_some_and(|packets| !goes_on(packets)) {
                return None;
            }
            used.push(batch);
            if used.len() == RETURNED {
                back.send(std::mem::take(&mut used)).ok();
            }
        }
        let result = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        Some((result, flows.finish()))
    })
}
