//! A captured TCP segment, as connections see it.

use super::connection::End;
use crate::decode::{Address, Tcp};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// A captured segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// The capture time, in nanoseconds after the epoch of the capture.
    pub time: i64,
    /// The number of the interface.
    pub interface: u32,
    /// The length of the frame.
    pub wire_bytes: u32,
    /// The source and destination addresses.
    pub from: Address,
    pub to: Address,
    /// The ECN field of IP.
    pub ecn: u8,
    /// The identification field of IPv4.
    pub id: Option<u16>,
    /// The hash of the endpoints.
    pub hash: u64,
    /// Whether the packet was captured before.
    pub is_duplicate: bool,
    pub tcp: Tcp,
}

impl Segment {
    /// The endpoints: source and destination.
    #[inline]
    pub fn ends(&self) -> [End; 2] {
        [(self.from, self.tcp.from), (self.to, self.tcp.to)]
    }
}

/// Hashes of connections' endpoints. They differ in each run, so that no capture can be crafted
/// whose connections all collide.
#[derive(Clone, Default)]
pub(super) struct Hashes(RandomState);

impl Hashes {
    /// The hash of a connection between these endpoints, in either order.
    #[inline]
    pub fn of(&self, ends: [End; 2]) -> u64 {
        let [from, to] = ends.map(|(address, port)| address.0 ^ u128::from(port) << 64);
        self.0.hash_one((from ^ to, from.wrapping_add(to)))
    }
}
