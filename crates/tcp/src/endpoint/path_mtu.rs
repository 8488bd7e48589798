//! Path MTU discovery of an endpoint: ICMP notices, the host's route cache, and black holes.

use crate::context::Context;
use crate::endpoint::{Endpoint, State};
use crate::segment::FragNeeded;
use tcplab_units::{Duration, Time};

/// A path is suspected to be a black hole after this time since the first retransmission without
/// any answer: three more retransmissions from 200 ms (`retransmits_timed_out` with
/// `tcp_retries1`). Without `black_hole_by_time`: after this many retransmissions (R1 of RFC 9293
/// §3.8.3).
const SILENCE: Duration = Duration::from_secs(3);
const REPETITIONS: u32 = 3;

impl Endpoint {
    /// Sets the path MTU that the host's route cache holds for the peer.
    pub fn set_cached_mtu(&mut self, mtu: u16) {
        let has_options = self.state.is_synchronized();
        self.send.reduce_mtu(mtu, if has_options { self.options() } else { 0 });
    }

    /// The host's route cache got a smaller MTU from another connection. The next packet of this
    /// connection looks the route up.
    pub fn on_route_mtu(&mut self, mtu: u16) {
        if matches!(self.state, State::Listen | State::SynReceived) {
            // The route is looked up at establishment (`tcp_v4_syn_recv_sock`).
            return self.set_cached_mtu(mtu);
        }
        let options = if self.state.is_synchronized() { self.options() } else { 0 };
        self.send.note_route_mtu(mtu, options);
    }

    /// Adopts the route's MTU, once a packet has looked the route up (`tcp_sync_mss`). To be called
    /// on every event before [`Self::poll_transmit`]. Returns whether that is to be called for this
    /// alone.
    #[inline]
    pub fn sync_mss(&mut self, now: Time) -> bool {
        self.send.departure().has_path_mtu()
            && self.send.sync_mss(Context { now, settings: &self.settings })
    }

    /// Accounts for a packet that the host dropped as too large: its acknowledgment is lost with
    /// it.
    #[cold]
    pub(crate) fn on_local_drop(&mut self, now: Time) {
        let payload = self.send.take_local_drop();
        if payload > 0 {
            let flags = self.ack_flags().with(self.ecn.new_data_flags(|| self.send.take_cwr()));
            self.segment_with_options(now, flags, self.send.nxt, payload);
        }
    }

    /// An ICMP "fragmentation needed" notice: a router dropped a packet. Returns the MTU that the
    /// notice names, if the notice belongs to this connection (RFC 5927 §4.1).
    pub fn on_frag_needed(&mut self, now: Time, notice: &FragNeeded) -> Option<u16> {
        let FragNeeded { seq, mtu, .. } = *notice;
        // TIME-WAIT ignores notices, as in Linux (`tcp_v4_err`).
        let is_open = !matches!(self.state, State::Closed | State::Listen | State::TimeWait);
        let place = self.send.origin.offset(seq, self.send.una).filter(|_| is_open)?;
        if !(self.send.una..=self.send.nxt).contains(&place) {
            return None;
        }
        let is_opening = self.state == State::SynSent;
        if self.send.reduce_mtu(mtu, if is_opening { 0 } else { self.options() }) {
            if is_opening {
                // A SYN with data was too large.
                self.syn_pending = true;
            } else {
                if self.settings.behaviour.notice_keeps_timestamp {
                    self.send.note_icmp_notice(now);
                }
                self.send.simple_retransmit(now, self.send.mss);
                self.send.update_rate(Context { now, settings: &self.settings });
            }
        }
        Some(mtu)
    }

    /// The largest payload of our packets, options included.
    pub(crate) fn own_mss(&self) -> u16 {
        self.send
            .departure()
            .path_mss()
            .map_or(self.settings.mss, |told| told.min(self.settings.mss))
    }

    /// The retransmission timer expired for data: with path MTU probing, a packet that is too large
    /// may be the cause (`tcp_mtu_probing`).
    pub(crate) fn detect_black_hole(&mut self, now: Time) {
        let is_silent = if self.settings.behaviour.black_hole_by_time {
            self.retransmits > 0 && now.since(self.unanswered_since) >= SILENCE
        } else {
            self.retransmits >= REPETITIONS
        };
        if is_silent {
            self.send.suspect_black_hole(now);
        }
    }
}
