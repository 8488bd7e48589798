//! Departure: which data leaves when.
//!
//! [`Departure`] owns the send buffer, TSO bursts, pacing, the small queue at the host's device and
//! the path MTU. Its fields are private to this folder, so no other file changes them. The sender's
//! coordinators pass in what the other owners allow ([`Window`]) and the sequence space
//! ([`Stream`]). This folder knows neither the scoreboard nor the controller.

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
pub(crate) use small_queue::Before;
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
    /// The burst in progress and pacing, once data is sent.
    bursts: OnDemand<Bursts>,
    /// The send buffer of Linux, once data was written.
    buffer: Option<Box<SendBuffer>>,
    /// The small queue at the host's device, if the device reports departures.
    small_queue: Option<Box<SmallQueue>>,
    /// The path MTU, if it may differ from the agreed MSS.
    path: Option<Box<PathMtu>>,
    /// The application writes from its own memory, not from a file.
    copies: bool,
    /// The next segment may be small: the persist timer ran out (RFC 9293 §3.8.6.2.1).
    overrides_silly_window: bool,
    /// When data, a SYN or a SYN-ACK last left (`tp->lsndtime`).
    last_data_sent: Time,
    /// When any segment last left, pure ACKs included (`tp->tcp_wstamp_ns`).
    last_segment_sent: Time,
}

/// The burst in progress, and the earliest time of the next one.
#[derive(Clone, Copy, Debug, Default)]
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

/// The byte stream of a sender: its sequence space and the peer's window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// SND.UNA, SND.NXT, and the end of the written data.
    pub una: u64,
    pub nxt: u64,
    pub written: u64,
    /// The application has closed the sending direction.
    pub closed: bool,
    /// SND.WND: bytes that the peer accepts beyond `una`; and the largest it ever was.
    pub window: u64,
    pub largest_window: u64,
    /// Payload bytes of a full segment.
    pub mss: u16,
}

impl Stream {
    /// Bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.nxt)
    }

    /// Bytes of new data that the peer's window allows.
    #[inline]
    pub fn usable(&self) -> u64 {
        (self.una + self.window).saturating_sub(self.nxt)
    }
}

/// The congestion window and the segments in flight.
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

    /// The segments of a burst of at most `most` that the window allows (`tcp_cwnd_test`).
    #[inline]
    fn quota(self, most: u64) -> u64 {
        (self.cwnd - self.in_flight).min((self.cwnd / 2).max(1)).min(most)
    }
}
