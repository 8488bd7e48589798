//! Opening a connection: SYN, SYN-ACK, and the options they agree on (RFC 9293 §3.5, RFC 7323,
//! RFC 2018). Simultaneous opening included.

use crate::context::Context;
use crate::ecn::EcnState;
use crate::endpoint::keepalive::KeepaliveTimer;
use crate::endpoint::{Ended, Endpoint, State};
use crate::segment::{Flags, Segment, SynOptions, clock};
use crate::seq::Origin;
use tcplab_transport::Progressed;
use tcplab_units::{Duration, Time};

impl Endpoint {
    /// The SYN, or in answer to the peer's the SYN-ACK, with only the options the peer offered too.
    #[cold]
    pub(crate) fn syn(&mut self, now: Time) -> Segment {
        let is_answer = self.state == State::SynReceived;
        let flags = if is_answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN };
        let flags = flags.with(if is_answer {
            self.ecn.of_answer(&self.settings)
        } else {
            EcnState::of_syn(&self.settings, self.syns_sent)
        });
        let ack = self.receive.origin.number(self.receive.next);
        let seq = self.send.origin.number(0);
        let mut segment = Segment::new(flags, seq, ack).with_window(self.receive.offer(0).0);
        if self.has_timestamps {
            segment = segment.with_timestamps(self.timestamps(now));
        }
        let is_first = self.syns_sent == 0;
        let scaling = self.settings.window_scaling && (!is_answer || self.peer_scales);
        if is_first {
            self.first_syn = now;
        }
        self.syns_sent += 1;
        self.send.note_syn_sent(now);
        self.last_ack_sent = self.receive.next;
        self.arm_retransmission(now);
        let segment = segment.with_syn_options(SynOptions {
            // The size that this end can take, whatever the path to the other one carries (RFC 9293
            // §3.7.1, `ipv4_default_advmss`).
            mss: self.settings.mss,
            window_scale: scaling.then_some(self.receive.window_scale),
            sack_permitted: if is_answer { self.send.sack } else { self.settings.sack },
        });
        if is_first { self.with_fast_open(now, segment, is_answer) } else { segment }
    }

    /// LISTEN: a SYN opens, an ACK is answered by a reset (RFC 9293 §3.10.7.2).
    #[cold]
    pub(crate) fn on_segment_in_listen(&mut self, now: Time, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            self.owes_reset = Some(Box::new(Segment::new(Flags::RST, segment.ack, segment.ack)));
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.take_syn(now, segment);
            self.receive.open_for(self.segment_size(u16::MAX), &self.settings);
            self.send.nxt = 1;
            self.state = State::SynReceived;
            self.was_called = true;
            self.owes_syn = true;
            self.take_fast_open(now, segment);
        }
    }

    /// SYN-SENT: a SYN-ACK establishes, a SYN alone opens simultaneously (RFC 9293 §3.10.7.3).
    #[cold]
    pub(crate) fn on_segment_in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let has_ack = segment.flags.has(Flags::ACK);
        let acked = self.send.origin.offset(segment.ack, 0).unwrap_or(0);
        if has_ack && !(1..=self.send.nxt).contains(&acked) {
            if !segment.flags.has(Flags::RST) {
                self.owes_reset =
                    Some(Box::new(Segment::new(Flags::RST, segment.ack, segment.ack)));
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            if has_ack {
                self.end(Ended::Reset);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        self.receive.set_advertised_mss(self.segment_size(u16::MAX));
        if has_ack {
            self.establish(now, segment);
            self.delayed_ack.ack_now();
            self.owes_ack_first = self.settings.behaviour.handshake_ack_leaves_first;
            self.end_fast_open(now, segment, acked);
        } else {
            self.state = State::SynReceived;
            self.attempts = 0;
            self.owes_syn = true;
        }
    }

    /// Takes the peer's initial sequence number and settles the options.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        self.receive.origin = Origin(segment.seq.0);
        self.receive.next = 1;
        let offered = segment.syn_options().expect("only segments with SYN are passed");
        self.has_timestamps &= segment.timestamps().is_some();
        if let Some(timestamps) = segment.timestamps() {
            self.recent_timestamp = (timestamps.value, now);
        }
        self.ecn.on_syn(segment, &self.settings);
        self.send.sack = self.settings.sack && offered.sack_permitted;
        match offered.window_scale.filter(|_| self.settings.window_scaling) {
            // RFC 7323 §2.3: a scale above 14 counts as 14.
            Some(scale) => {
                self.peer_scales = true;
                self.send.peer_window_scale = scale.min(14);
            }
            None => self.receive.without_scaling(),
        }
        // RFC 9293 §3.7.1: without the option the peer takes 536 bytes.
        self.send.mss = self.segment_size(if offered.mss == 0 { 536 } else { offered.mss });
        self.send.agreed_mss = self.send.mss + self.options();
        self.send.set_options_size(self.options());
        self.send.window = u64::from(segment.window);
        self.send.largest_window = self.send.window;
    }

    /// Our SYN is acknowledged.
    #[cold]
    pub(crate) fn establish(&mut self, now: Time, segment: &Segment) {
        self.state = State::Established;
        self.send.una = 1;
        self.send.window = u64::from(segment.window);
        if !segment.flags.has(Flags::SYN) {
            self.send.window <<= self.send.peer_window_scale;
        }
        self.send.largest_window = self.send.window;
        self.send.timer.stop();
        self.receive.begin(now);
        self.keepalive = KeepaliveTimer::new(now, &self.settings);
        self.send.deadline = Time::NEVER;
        self.send.begin_search(Context { now, settings: &self.settings }, self.options());
        let rtt = self.time_handshake(now, segment);
        if let Some(rtt) = rtt {
            let at = Progressed { una: 1, nxt: self.send.nxt };
            self.send.rtt.sample(rtt, at, &self.settings.rto_limits());
            self.send.rtt.note_path(rtt);
        }
        if rtt.is_none() && (self.attempts > 0 || self.settings.behaviour.unsampled_rto_fallback) {
            self.send.rtt.after_syn_timeout(&self.settings.rto_limits());
        }
        // RFC 5681 §3.1: after a lost SYN the first window is one segment.
        if self.attempts > 0 && !self.is_syn_forgiven(now, segment) {
            self.send.begin_with_one();
        }
        self.was_syn_repeated = self.attempts > 0;
        self.attempts = 0;
        self.answered_unacceptable = None;
        if self.send.has_outstanding() {
            // Data left before the handshake ended (`tcp_rcv_synrecv_state_fastopen`).
            self.arm_retransmission(now);
        }
    }

    /// Whether a timeout of the handshake leaves the window as it is. Linux lets one repetition
    /// pass: the timeout may have been too short (`tcp_init_transfer`). A SYN-ACK is repeated when
    /// a SYN comes again, too (`inet_rtx_syn_ack`).
    fn is_syn_forgiven(&self, now: Time, segment: &Segment) -> bool {
        self.settings.behaviour.forgives_syn_timeout
            && (self.syns_sent <= 2 || self.is_syn_late(now, segment))
    }

    /// Whether the answer is to the first SYN, so that later ones were not needed
    /// (`tcp_try_undo_spurious_syn`).
    fn is_syn_late(&self, now: Time, segment: &Segment) -> bool {
        self.settings.undo && self.echoed(now, segment) == Some(clock(self.first_syn))
    }

    /// The RTT of the handshake, of the SYN itself: with Fast Open data may have left after it
    /// (`tcp_synack_rtt_meas`). If a SYN was repeated, Linux asks the timestamp which one was
    /// answered (`tcp_ack_update_rtt`).
    fn time_handshake(&self, now: Time, segment: &Segment) -> Option<Duration> {
        if self.syns_sent == 1 {
            return Some(self.settings.behaviour.clock.elapsed(now, self.first_syn));
        }
        let echoed = self
            .echoed(now, segment)
            .filter(|_| self.settings.behaviour.timestamp_times_retransmissions)?;
        Some(Duration::from_millis((clock(now) - echoed).max(1)))
    }
}
