//! How full a queue was between two looks at it: the most that waited, and the mean over time.

use tcplab_units::{Duration, Time};

/// What waited in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Packets that waited, times how long in picoseconds, since the start.
    pub packet_ps: u128,
    /// Their bytes, times how long in picoseconds, since the start.
    pub byte_ps: u128,
    /// The most packets that waited at once since the last interval began.
    pub max_packets: u64,
    /// The most bytes that waited at once since the last interval began.
    pub max_bytes: u64,
}

impl Occupancy {
    /// So many packets with so many bytes together wait for a time.
    #[inline]
    pub(crate) fn wait(&mut self, time: Duration, packets: u64, bytes: u64) {
        self.packet_ps += u128::from(packets) * u128::from(time.as_picos());
        self.byte_ps += u128::from(bytes) * u128::from(time.as_picos());
    }

    /// The queue has grown to this.
    #[inline]
    pub(crate) fn reach(&mut self, packets: u64, bytes: u64) {
        self.max_packets = self.max_packets.max(packets);
        self.max_bytes = self.max_bytes.max(bytes);
    }

    /// A new interval begins with this queue.
    pub(crate) fn begin_interval(&mut self, packets: u64, bytes: u64) {
        (self.max_packets, self.max_bytes) = (packets, bytes);
    }

    /// Takes off what was counted ahead: packets that are to wait from `now` on.
    pub(crate) fn without(mut self, now: Time, waiting: impl Iterator<Item = (Time, u32)>) -> Self {
        for (begins, bytes) in waiting {
            let ahead = u128::from(begins.since(now).as_picos());
            self.packet_ps -= ahead;
            self.byte_ps -= ahead * u128::from(bytes);
        }
        self
    }
}
