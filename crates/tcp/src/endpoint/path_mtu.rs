//! News of the path MTU: ICMP notices, other connections, timeouts.

use crate::context::Context;
use crate::endpoint::{Endpoint, State};
use crate::segment::TooLarge;
use tcplab_units::{Duration, Time};

/// A path is a black hole when nothing was answered for that long since the first repetition: three
/// more from 200 ms (`retransmits_timed_out` with `tcp_retries1`); or after so many (R1 of
/// RFC 9293 §3.8.3).
const SILENCE: Duration = Duration::from_secs(3);
const REPETITIONS: u32 = 3;

impl Endpoint {
    /// Sets the path MTU that the host has cached for the route, learned by another connection.
    pub fn set_cached_mtu(&mut self, mtu: u16) {
        let has_options = self.state.is_synchronized();
        self.send.take_mtu(mtu, if has_options { self.options() } else { 0 });
    }

    /// Another connection has learned a new path MTU: the next packet of this one looks the route
    /// up.
    pub fn on_route_mtu(&mut self, mtu: u16) {
        if matches!(self.state, State::Listen | State::SynReceived) {
            // Its route is looked up when the connection stands (`tcp_v4_syn_recv_sock`).
            return self.set_cached_mtu(mtu);
        }
        let options = if self.state.is_synchronized() { self.options() } else { 0 };
        self.send.note_route(mtu, options);
    }

    /// Sets the size of the next segments to that of the route, if it has been looked up. To be
    /// called when something happens, before [`Self::poll_transmit`]. Says whether that is to be
    /// called for this alone.
    #[inline]
    pub fn refresh_route(&mut self, now: Time) -> bool {
        self.send.departure().has_path()
            && self.send.refresh_route(Context { now, settings: &self.settings })
    }

    /// A packet that has failed at the host took the acknowledgment with it.
    #[cold]
    pub(crate) fn lose_acknowledgment(&mut self, now: Time) {
        let payload = self.send.take_failed();
        if payload > 0 {
            let flags = self.flags_of_ack().with(self.ecn.of_new_data(|| self.send.take_cwr()));
            self.segment_with_options(now, flags, self.send.nxt, payload);
        }
    }

    /// A router has no room for a packet that it says this of, and dropped it. Returns the size it
    /// names, if the notice can be meant (RFC 5927 §4.1).
    pub fn on_too_large(&mut self, now: Time, notice: &TooLarge) -> Option<u16> {
        let TooLarge { seq, mtu, .. } = *notice;
        // Nobody asks what remains of a connection, as in Linux (`tcp_v4_err`).
        let is_open = !matches!(self.state, State::Closed | State::Listen | State::TimeWait);
        let place = self.send.origin.offset(seq, self.send.una).filter(|_| is_open)?;
        if !(self.send.una..=self.send.nxt).contains(&place) {
            return None;
        }
        let is_opening = self.state == State::SynSent;
        if self.send.take_mtu(mtu, if is_opening { 0 } else { self.options() }) {
            if is_opening {
                // The SYN was too large with its data.
                self.owes_syn = true;
            } else {
                if self.settings.behaviour.notice_keeps_timestamp {
                    self.send.note_notice(now);
                }
                self.send.resend_larger(now, self.send.mss);
                self.send.update_rate(Context { now, settings: &self.settings });
            }
        }
        Some(mtu)
    }

    /// The largest payload that our packets may have, options included.
    pub(crate) fn own_mss(&self) -> u16 {
        self.send
            .departure()
            .path_mss()
            .map_or(self.settings.mss, |told| told.min(self.settings.mss))
    }

    /// The timer has run out for data. Where sizes may be searched for, that can be because of
    /// them.
    pub(crate) fn look_for_black_hole(&mut self, now: Time) {
        let is_silent = if self.settings.behaviour.black_hole_by_time {
            self.attempts > 0 && now.since(self.silent_since) >= SILENCE
        } else {
            self.attempts >= REPETITIONS
        };
        if is_silent {
            self.send.suspect_black_hole(now);
        }
    }
}
