//! Queue occupancy between two samples: the maximum, and the mean over time.

use tcplab_units::{Duration, Time};

/// The occupancy of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packet count integrated over time since the start, in packet-picoseconds.
    pub packet_ps: u128,
    /// Byte count integrated over time since the start, in byte-picoseconds.
    pub byte_ps: u128,
    /// The most packets in the queue since the last interval began.
    pub max_packets: u64,
    /// The most bytes in the queue since the last interval began.
    pub max_bytes: u64,
}

impl Occupancy {
    /// Adds so many packets with so many bytes in total that wait for a time.
    #[inline]
    pub(crate) fn wait(&mut self, time: Duration, packets: u64, bytes: u64) {
        self.packet_ps += u128::from(packets) * u128::from(time.as_picos());
        self.byte_ps += u128::from(bytes) * u128::from(time.as_picos());
    }

    /// Raises the maxima to this occupancy. Inlined, it would load both numbers as one vector right
    /// after each was stored, and the processor waits for such a load.
    #[inline(never)]
    pub(crate) fn reach(&mut self, packets: u64, bytes: u64) {
        self.max_packets = self.max_packets.max(packets);
        self.max_bytes = self.max_bytes.max(bytes);
    }

    /// Begins a new interval at this occupancy.
    pub(crate) fn begin_interval(&mut self, packets: u64, bytes: u64) {
        (self.max_packets, self.max_bytes) = (packets, bytes);
    }

    /// Subtracts what was counted ahead for packets that are to wait from `now` on.
    pub(crate) fn without(mut self, now: Time, waiting: impl Iterator<Item = (Time, u32)>) -> Self {
        for (begins, bytes) in waiting {
            let ahead = u128::from(begins.since(now).as_picos());
            self.packet_ps -= ahead;
            self.byte_ps -= ahead * u128::from(bytes);
        }
        self
    }
}
