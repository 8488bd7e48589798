//! Departure: what leaves when.
//!
//! [`Departure`] owns the send buffer, the bursts for segmentation offload, pacing, the queue at
//! the host's device and the path MTU. Its fields are private to this folder: no other file changes
//! them. The sender's coordinators say what the other owners allow ([`Window`]) and where the
//! stream stands ([`Stream`]); this folder knows neither the scoreboard nor the controller.

mod calls;
mod data;
mod pacing;
mod path_mtu;
mod send_buffer;
mod small_queue;
mod tso;

pub(crate) use calls::WriteCall;
pub(crate) use data::Data;
pub(crate) use path_mtu::{MtuProbe, ProbeConditions};
pub(crate) use tso::{BurstRequest, BurstSizing, NextBurst, min_limit};

use crate::on_demand::{AtRest, OnDemand};
use path_mtu::PathMtu;
use send_buffer::SendBuffer;
use small_queue::SmallQueue;
use std::sync::LazyLock;
use tcplab_transport::Pacing;
use tcplab_units::Time;
use tso::Tso;

/// The departures of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departure {
    /// Bursts as they leave, once data is sent.
    bursts: OnDemand<Bursts>,
    /// How Linux holds what was written, once something was.
    buffer: Option<Box<SendBuffer>>,
    /// The queue at the host's own device, if the device reports departures.
    small_queue: Option<Box<SmallQueue>>,
    /// The path MTU, if it is not what both ends say.
    path: Option<Box<PathMtu>>,
    /// The application writes from its own memory, not from a file.
    copies: bool,
    /// The next segment may be small: the persist timer ran out (RFC 9293 §3.8.6.2.1).
    overrides_silly_window: bool,
    /// When data, a SYN or a SYN-ACK last left.
    last_data_sent: Time,
    /// When anything left, ACKs too (`tcp_wstamp_ns`).
    last_segment_sent: Time,
}

/// The burst that is leaving, and when the next one may.
#[derive(Clone, Debug, Default)]
struct Bursts {
    tso: Tso,
    pacing: Pacing,
}

impl AtRest for Bursts {
    fn at_rest() -> &'static Self {
        static AT_REST: LazyLock<Bursts> = LazyLock::new(Bursts::default);
        &AT_REST
    }
}

/// The stream as it is sent: its sequence space, and the room that the peer has for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// The oldest offset not acknowledged, the next one to be sent, and the end of what is written.
    pub una: u64,
    pub nxt: u64,
    pub written: u64,
    /// The application will write no more.
    pub closed: bool,
    /// Bytes the peer takes beyond `una`, and the most it ever took.
    pub window: u64,
    pub largest_window: u64,
    /// Payload bytes of a full segment.
    pub mss: u16,
}

impl Stream {
    /// Bytes written and never sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.nxt)
    }

    /// Bytes of new data that the peer has room for.
    #[inline]
    pub fn usable(&self) -> u64 {
        (self.una + self.window).saturating_sub(self.nxt)
    }
}

/// How much may be in flight, and how much is, in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub cwnd: u64,
    pub in_flight: u64,
}

impl Window {
    /// Whether another segment may leave.
    #[inline]
    pub fn has_room(self) -> bool {
        self.in_flight < self.cwnd
    }

    /// The segments of a burst of at most `most` that the window lets go.
    #[inline]
    fn quota(self, most: u64) -> u64 {
        (self.cwnd - self.in_flight).min((self.cwnd / 2).max(1)).min(most)
    }
}
