//! Finds the flow with the most bytes of all tins, which loses a packet when the queue is full.
//!
//! A heap, as in Linux, because the order among equals is that of the heap. It is built at the
//! first overflow and kept up to date until no packet has been dropped for a while. An entry that
//! has become smaller sinks by only one level at a time: `cake_heapify` continues its comparison
//! with the entry that rose.

/// The number of flows of all tins.
const ENTRIES: usize = super::QUEUES * super::MOST_TINS;
/// The number of packets dequeued without an overflow after which the heap is discarded.
const HEAP_TTL: u32 = 65_535;

/// The number of a flow among those of all tins.
pub(super) fn entry(tin: usize, flow: u16) -> u16 {
    (usize::from(flow) * super::MOST_TINS + tin) as u16
}

#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// Entries in heap order, and the position of each.
    heap: Vec<u16>,
    place: Vec<u16>,
    /// Packets that may be dequeued before the heap is discarded; at 0 the heap is not up to date.
    heap_ttl: u32,
}

impl Longest {
    pub fn new() -> Self {
        let all: Vec<u16> = (0..ENTRIES as u16).collect();
        Self { heap: all.clone(), place: all, heap_ttl: 0 }
    }

    /// The tin and the flow with the most bytes.
    pub fn first(&mut self, bytes: impl Fn(u16) -> u32) -> (usize, u16) {
        if self.heap_ttl == 0 {
            for place in (0..ENTRIES / 2).rev() {
                self.sink(place, &bytes);
            }
        }
        self.heap_ttl = HEAP_TTL;
        let first = usize::from(self.heap[0]);
        (first % super::MOST_TINS, (first / super::MOST_TINS) as u16)
    }

    /// The first entry was empty: the heap is discarded.
    pub fn discard_heap(&mut self) {
        self.heap_ttl = 0;
    }

    /// A packet was dequeued.
    pub fn on_dequeue(&mut self) {
        self.heap_ttl = self.heap_ttl.saturating_sub(1);
    }

    /// A flow has grown (`cake_heapify_up`).
    pub fn grown(&mut self, entry: u16, bytes: impl Fn(u16) -> u32) {
        if self.heap_ttl == 0 {
            return;
        }
        let mut place = usize::from(self.place[usize::from(entry)]);
        while place > 0 {
            let above = (place - 1) / 2;
            if bytes(self.heap[place]) <= bytes(self.heap[above]) {
                break;
            }
            self.swap(place, above);
            place = above;
        }
    }

    /// A flow has shrunk.
    pub fn shrunk(&mut self, entry: u16, bytes: impl Fn(u16) -> u32) {
        if self.heap_ttl > 0 {
            self.sink(usize::from(self.place[usize::from(entry)]), &bytes);
        }
    }

    fn sink(&mut self, mut place: usize, bytes: &impl Fn(u16) -> u32) {
        let mut most = bytes(self.heap[place]);
        loop {
            let mut greatest = place;
            for below in [2 * place + 1, 2 * place + 2] {
                if below < ENTRIES && bytes(self.heap[below]) > most {
                    greatest = below;
                    most = bytes(self.heap[below]);
                }
            }
            if greatest == place {
                return;
            }
            self.swap(place, greatest);
            place = greatest;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.place[usize::from(self.heap[place])] = place as u16;
        }
    }
}
