//! Received segments (RFC 9293 §3.10.7), and closing.

use crate::context::Context;
use crate::delayed_ack::Arrived;
use crate::ecn::{EcnSigns, Report};
use crate::endpoint::time_wait::{UNACCEPTABLE_INTERVAL, reset_for};
use crate::endpoint::{Ended, Endpoint, State};
use crate::receiver::{OVERHEAD, ReceivedData, SegmentShape};
use crate::segment::{Flags, IP_HEADER, Segment, TCP_HEADER, clock};
use crate::sender::on_ack::AckContext;
use tcplab_units::{Duration, Time};

/// `TS.Recent` older than this is not compared (RFC 7323 §5.5).
const TIMESTAMP_LIFE: Duration = Duration::from_secs(24 * 24 * 3600);

impl Endpoint {
    /// A segment arrived.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::Closed => self.pending_reset = reset_for(segment).map(Box::new),
            State::Listen => self.on_segment_in_listen(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            State::TimeWait => self.on_segment_in_time_wait(now, segment),
            _ => self.on_segment_in_connection(now, segment),
        }
    }

    #[inline]
    fn on_segment_in_connection(&mut self, now: Time, segment: &Segment) {
        let Some(start) = self.receive.origin.offset(segment.seq, self.receive.next) else {
            return self.delayed_ack.ack_now();
        };
        if segment.flags.has(Flags::SYN) && self.state == State::SynReceived && start == 0 {
            return self.on_syn_again(now, segment);
        }
        if self.has_timestamps && segment.timestamps().is_none() && !segment.flags.has(Flags::RST) {
            // RFC 7323 §3.2: a segment without the agreed timestamps option is dropped.
            return;
        }
        if self.fails_paws(now, segment, start)
            || !self.receive.is_acceptable(start, segment.sequence_length())
        {
            return self.on_unacceptable(now, segment, start);
        }
        if segment.flags.has(Flags::RST) {
            // RFC 5961 §3: only a reset at exactly RCV.NXT is accepted; others in the window are
            // challenged.
            if start == self.receive.next {
                self.end(Ended::Reset);
            } else {
                self.delayed_ack.ack_now();
            }
            return;
        }
        if segment.flags.has(Flags::SYN) {
            // RFC 5961 §4: a challenge ACK.
            return self.delayed_ack.ack_now();
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.update_ts_recent(now, segment, start);
        if self.ecn.on_packet(segment) {
            self.delayed_ack.ack_now();
        }
        let is_pure = self.state == State::Established && segment.payload == 0;
        let predicted = segment.payload > 0 && self.is_predicted(segment, start);
        // With header prediction the data is processed before the acknowledgment, so its ACK
        // decision uses the RTO before this segment.
        let rto = predicted.then(|| self.send.rtt.rto(&self.settings.rto_limits()));
        if self.process_ack(now, segment, start, predicted) {
            self.process_data(now, segment, start, rto);
        }
        if is_pure {
            self.receive.note_pure_ack(segment);
        }
    }

    /// Header prediction: whether a data segment is exactly the expected one. Linux processes the
    /// data of such a segment before its acknowledgment (`tcp_rcv_established`,
    /// `tcp_fast_path_on`), if the socket has memory allocated ahead.
    fn is_predicted(&self, segment: &Segment, start: u64) -> bool {
        if !self.settings.behaviour.header_prediction {
            return self.send.has_outstanding();
        }
        // Where the application reads data at once, hardly any forward-allocated memory is left.
        self.has_forward_alloc(u64::from(segment.payload) + OVERHEAD)
            && self.state == State::Established
            && start == self.receive.next
            && !self.receive.has_gap()
            && segment.sack().is_empty()
            && ![Flags::FIN, Flags::ECE, Flags::CWR].iter().any(|&flag| segment.flags.has(flag))
            && self.send.is_window(segment.window)
    }

    /// Updates `TS.Recent` from a segment that starts at or below the last ACK sent and is not
    /// older (RFC 7323 §4.3; `tcp_replace_ts_recent`).
    #[inline]
    fn update_ts_recent(&mut self, now: Time, segment: &Segment, start: u64) {
        if let Some(timestamps) = segment.timestamps()
            && self.has_timestamps
            && start <= self.last_ack_sent
            && self.timestamp_age(now, timestamps.value).is_none()
        {
            self.ts_recent = (timestamps.value, now);
        }
    }

    /// The peer's SYN in SYN-RECEIVED: the SYN-ACK was lost and is sent again. In a simultaneous
    /// open, the peer's SYN-ACK.
    #[cold]
    fn on_syn_again(&mut self, now: Time, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let acks_ours =
            segment.flags.has(Flags::ACK) && self.send.origin.offset(segment.ack, 0) == Some(1);
        if acks_ours {
            self.establish(now, segment);
            self.delayed_ack.ack_now();
        } else if !self.is_rate_limited(now) {
            self.syn_pending = true;
        }
    }

    /// Whether the answer to an out-of-window segment is suppressed, because another was answered
    /// within 500 ms (`__tcp_oow_rate_limited`). If not, this counts as the last answer.
    fn is_rate_limited(&mut self, now: Time) -> bool {
        let has_just = self.settings.behaviour.limits_challenge_acks
            && self.last_oow_ack.is_some_and(|answered| {
                self.settings.behaviour.clock.idle(now, answered) < UNACCEPTABLE_INTERVAL
            });
        if !has_just {
            self.last_oow_ack = Some(now);
        }
        has_just
    }

    /// PAWS (RFC 7323 §5): the timestamp is older than `TS.Recent`.
    #[inline]
    fn fails_paws(&self, now: Time, segment: &Segment, start: u64) -> bool {
        self.has_timestamps
            && !segment.flags.has(Flags::RST)
            && segment
                .timestamps()
                .and_then(|timestamps| self.timestamp_age(now, timestamps.value))
                .is_some_and(|older| !self.is_disordered_ack(segment, start, older))
    }

    /// By how much a timestamp is older than `TS.Recent`; none if it is not.
    #[inline]
    fn timestamp_age(&self, now: Time, value: u32) -> Option<i32> {
        let (recent, heard) = self.ts_recent;
        let older = recent.wrapping_sub(value).cast_signed();
        (older > 0 && now.since(heard) < TIMESTAMP_LIFE).then_some(older)
    }

    /// Linux accepts a timestamp that is one tick older (`TCP_PAWS_WINDOW`), and an old one in a
    /// plain duplicate ACK (`tcp_disordered_ack`).
    #[cold]
    fn is_disordered_ack(&self, segment: &Segment, start: u64, older: i32) -> bool {
        if !self.settings.behaviour.accepts_disordered_acks {
            return false;
        }
        let is_duplicate = || {
            segment.flags.has(Flags::ACK)
                && segment.sequence_length() == 0
                && start == self.receive.next
                && self.send.origin.offset(segment.ack, self.send.una) == Some(self.send.una)
        };
        let sets_window = || {
            let window = u64::from(segment.window) << self.send.peer_window_scale;
            let set_by = self.send.window_set_by.0;
            start > set_by || start == set_by && (window > self.send.window || window == 0)
        };
        // `tcp_tsval_replay`: 1.2 RTOs, for a peer's clock that is a fifth faster.
        let replay = || self.send.rtt.rto(&self.settings.rto_limits()).as_millis() * 1200 / 1000;
        older == 1
            || is_duplicate() && !sets_window() && u64::from(older.unsigned_abs()) <= replay()
    }

    #[cold]
    fn on_unacceptable(&mut self, now: Time, segment: &Segment, start: u64) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.send.ignore_discarded();
        // Data is always answered; other segments are rate-limited (`tcp_oow_rate_limited`).
        let is_empty = segment.sequence_length() == 0 || segment.flags.has(Flags::SYN);
        if !(is_empty && self.is_rate_limited(now)) {
            self.delayed_ack.ack_now();
        }
        let end = start + u64::from(segment.payload);
        if segment.payload > 0 && start < self.receive.next {
            self.receive.note_duplicate(start..end.min(self.receive.next));
            if self.settings.behaviour.takes_acks_of_old_data {
                let window = self.receive.offered_window(self.last_ack_sent);
                let is_recent = end >= self.last_ack_sent;
                self.delayed_ack.on_old_data(is_recent, window, &self.settings);
                if is_recent && segment.flags.has(Flags::ACK) {
                    // `tcp_sequence` accepts the segment, though its data is old.
                    self.update_ts_recent(now, segment, start);
                    self.process_ack(now, segment, start, false);
                    let echoed = self.first_echoed(now, segment);
                    self.receive.measure_rtt_by_timestamp(now, echoed, segment.payload.into());
                }
            }
        }
        if segment.flags.has(Flags::FIN)
            && start < self.receive.next
            && matches!(self.state, State::CloseWait | State::Closing | State::LastAck)
        {
            // A FIN has a sequence number: a repeated FIN is a duplicate (`tcp_data_queue`).
            self.receive.note_duplicate(start..(end + 1).min(self.receive.next));
        }
        // RFC 9293 §3.10.7.4: with a zero window, acknowledgments are still processed.
        if self.receive.window() == 0
            && start == self.receive.next
            && segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::SYN)
        {
            self.process_ack(now, segment, start, false);
        }
    }

    /// Processes the acknowledgment (`tcp_ack`). Returns whether the rest of the segment is
    /// processed.
    #[inline]
    fn process_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        start: u64,
        is_predicted: bool,
    ) -> bool {
        let ack = self.send.origin.offset(segment.ack, self.send.una);
        let mut is_first = false;
        let opens = self.state == State::SynReceived;
        if opens {
            if !ack.is_some_and(|ack| (1..=self.send.nxt).contains(&ack)) {
                self.pending_reset =
                    Some(Box::new(Segment::new(Flags::RST, segment.ack, segment.ack)));
                return false;
            }
            self.establish(now, segment);
            self.ecn.on_first_ack(segment);
            is_first = segment.payload == 0;
        }
        // RFC 5961 §5: an acknowledgment above SND.NXT, or below SND.UNA by more than the largest
        // window, is answered and dropped.
        let oldest = self.send.una.saturating_sub(self.send.largest_window);
        let Some(ack) = ack.filter(|ack| (oldest..=self.send.nxt).contains(ack)) else {
            self.delayed_ack.ack_now();
            return false;
        };
        if let Some(alive) = &mut self.keepalive {
            alive.on_heard(now);
        }
        if !self.send.has_outstanding() {
            // An answer to a zero-window probe: the peer is alive (RFC 9293 §3.8.6.1).
            self.retransmits = 0;
        }
        // The ACK that completes the handshake reports the marks of the SYN-ACK alone.
        let report = if is_first { Report::Echo(false) } else { self.ecn.report(segment) };
        let echoed = self.echoed(now, segment);
        let answer = AckContext { echoed, report, ecn: &mut self.ecn, is_predicted };
        if self.send.on_ack(
            Context { now, settings: &self.settings },
            segment,
            (start, ack),
            answer,
        ) {
            self.retransmits = 0;
            self.send.deadline = Time::NEVER;
            if self.send.is_fin_acked() {
                self.on_fin_acked(now, segment);
            }
        }
        if opens {
            // The congestion control begins after the segment that completes the handshake, even if
            // that carries data (`tcp_rcv_state_process`, `tcp_init_transfer`).
            self.send.forget_early_arrivals();
        }
        self.state != State::Closed
    }

    /// When the segment left whose timestamp this one echoes, by our timestamp clock.
    #[inline]
    pub(crate) fn echoed(&self, now: Time, segment: &Segment) -> Option<u64> {
        let echo = segment.timestamps().filter(|_| self.has_timestamps)?.echo;
        let ago = (clock(now) as u32).wrapping_sub(echo.wrapping_sub(1));
        clock(now).checked_sub(u64::from(ago)).filter(|_| echo != 0)
    }

    /// As [`Self::echoed`], for the receiver's RTT. None if a pure ACK has echoed the same
    /// timestamp: that is not the round trip of data (`tcp_rcv_rtt_measure_ts`).
    fn first_echoed(&self, now: Time, segment: &Segment) -> Option<u64> {
        self.echoed(now, segment).filter(|_| !self.receive.is_echo_of_pure_ack(segment))
    }

    /// Processes data and FIN (`tcp_data_queue`).
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn process_data(&mut self, now: Time, segment: &Segment, start: u64, rto: Option<Duration>) {
        let expects_data =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if segment.sequence_length() == 0 || !expects_data {
            return;
        }
        if self.memory.is_some()
            && start > self.receive.next
            && self.exceeds_memory(segment.payload.into())
        {
            // `tcp_data_queue_ofo`: no memory, so the segment is dropped, as if the network had
            // lost it.
            return;
        }
        self.receive.init_autotuning(&self.settings);
        self.receive.set_gro_segment(segment);
        let fin = segment.flags.has(Flags::FIN);
        let end = start + u64::from(segment.payload) + u64::from(fin);
        let flushed_ack =
            self.delayed_ack.on_segment(now) && self.receive.flushes_compressed_ack(&(start..end));
        let changes =
            self.delayed_ack.is_waiting() && self.ecn.ce_state_changes(segment, &self.settings);
        if self.settings.behaviour.adaptive_delayed_ack {
            self.receive.forget_duplicate();
        }
        if flushed_ack {
            self.receive.extend_sack_block(start..end);
        }
        // A change of CE marks acknowledges the data before it separately (RFC 8257 §3.2).
        let before = changes.then(|| self.ack_flags());
        // Linux sends that ACK once the new data is in the receive buffer, so its window already
        // excludes the data (`dctcp_ece_ack_update` below `tcp_event_data_recv`).
        let is_late = changes
            && self.settings.behaviour.adaptive_delayed_ack
            && start <= self.receive.next
            && end > self.receive.next;
        let ecn_signs = self.ecn.on_segment(segment, &self.settings);
        if flushed_ack && ecn_signs.marked {
            self.delayed_ack.on_ce_mark(self.receive.offered_window(self.last_ack_sent));
        }
        if (flushed_ack || changes) && !is_late {
            // The compressed ACK reports the state before this segment, with this segment's mark
            // (`tcp_data_queue_ofo`). The segment had scheduled an ACK before that; this ACK
            // fulfils it.
            let flags = before.unwrap_or_else(|| self.ack_flags());
            self.pending_ack = Some(Box::new(self.segment_without_data(now, flags, self.send.nxt)));
        }
        let (next, had_gap) = (self.receive.next, self.receive.has_gap());
        let reception = self.receive.receive(start, u64::from(segment.payload), fin);
        if let Some(flags) = before.filter(|_| is_late) {
            let mut ack = self.segment_without_data(now, flags, self.send.nxt);
            ack.ack = self.receive.origin.number(next);
            self.pending_ack = Some(Box::new(ack));
        }
        if flushed_ack {
            self.receive.forget_duplicate();
        }
        if self.settings.behaviour.adaptive_delayed_ack {
            self.schedule_ack_as_linux(
                now,
                segment,
                start,
                (next, had_gap),
                (flushed_ack, ecn_signs, rto),
            );
        } else {
            let context = Context { now, settings: &self.settings };
            self.delayed_ack.on_data(context, reception, segment.segments());
            if ecn_signs.changed {
                self.delayed_ack.ack_now();
            }
        }
        if self.receive.is_finished() {
            // Linux delays the ACK of a FIN that half-closes the connection, since this end may
            // still send (`tcp_fin`).
            if !self.settings.behaviour.delays_ack_of_fin || self.state != State::Established {
                self.delayed_ack.ack_now();
            }
            self.state = match self.state {
                State::Established => State::CloseWait,
                State::FinWait1 => State::Closing,
                _ => return self.enter_time_wait(now),
            };
        }
    }

    /// Grows the window and decides on an ACK for received data, as Linux does. Before the data,
    /// `next` was the next expected offset and `had_gap` says whether data was missing.
    /// `flushed_ack`: a compressed ACK was sent for this segment. `ecn_signs`: the segment's ECN
    /// flags. `rto`: the RTO before this segment, where the data is processed before the
    /// acknowledgment.
    #[inline(never)]
    fn schedule_ack_as_linux(
        &mut self,
        now: Time,
        segment: &Segment,
        start: u64,
        (next, had_gap): (u64, bool),
        (flushed_ack, ecn_signs, rto): (bool, EcnSigns, Option<Duration>),
    ) {
        let payload = u64::from(segment.payload);
        let end = start + payload;
        let in_order = start <= next && end > next;
        let echoed = self.first_echoed(now, segment);
        let may_grow = !self.is_under_pressure();
        let window_end = end + self.receive.offered_window(self.last_ack_sent);
        let has_sack = self.send.sack;
        let pushed = segment.flags.has(Flags::PUSH);
        let shape = SegmentShape {
            payload: segment.segment_size().into(),
            options: u64::from(segment.header_bytes() - IP_HEADER - TCP_HEADER),
            usual_options: self.options().into(),
            ends: pushed || segment.flags.has(Flags::FIN),
        };
        let received =
            ReceivedData { shape, payload, in_order, echoed, end, window_end, may_grow, has_sack };
        let Some(tuned) = self.receive.grow_window(now, received) else { return };
        let (can_repeat_window, is_short) = self.receive.can_repeat_window(self.last_ack_sent);
        let (is_finished, ends) = (self.receive.is_finished(), segment.flags.has(Flags::FIN));
        let arrived = Arrived {
            size: tuned.size,
            full: tuned.full,
            pushed,
            in_order,
            ecn_signs,
            has_gap: self.receive.has_gap(),
            has_sack,
            flushed_ack,
            // A FIN purges the out-of-order queue before the gap is checked (`tcp_fin`).
            fills_gap: had_gap && !self.receive.has_gap() && !(is_finished && ends),
            finished: is_finished,
            next: self.receive.next,
            acked: self.last_ack_sent,
            window: self.receive.offered_window(self.last_ack_sent),
            can_repeat_window,
            opened: tuned.opened,
            is_short,
            since: self.receive.established_at(),
            srtt: self.send.rtt.srtt(),
            rtt: self.min_rtt_of_halves(),
            rto: rto.unwrap_or_else(|| self.send.rtt.rto(&self.settings.rto_limits())),
        };
        self.delayed_ack.on_arrival(Context { now, settings: &self.settings }, arrived);
    }

    /// The smaller of the RTTs that the sending and the receiving half measured; zero until the
    /// receiving half has a measurement (`__tcp_ack_snd_check`).
    fn min_rtt_of_halves(&self) -> Duration {
        let received = self.receive.rtt().unwrap_or_default();
        let sent = self.send.rtt.exact_srtt();
        if sent.is_zero() { received } else { received.min(sent) }
    }

    /// Our FIN is acknowledged.
    #[cold]
    fn on_fin_acked(&mut self, now: Time, segment: &Segment) {
        match self.state {
            // An orphaned connection is kept until a FIN that arrives with the ACK is processed
            // (`tcp_rcv_state_process`).
            State::FinWait1 if !self.is_orphaned || segment.flags.has(Flags::FIN) => {
                self.state = State::FinWait2;
            }
            State::FinWait1 | State::Closing => {
                self.delayed_ack.on_ack_sent();
                self.enter_time_wait(now);
            }
            State::LastAck => self.end(Ended::Normally),
            _ => {}
        }
    }
}
