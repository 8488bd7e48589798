//! Segments in (RFC 9293 §3.10.7), and closing.

use crate::context::Context;
use crate::delayed_ack::Arrived;
use crate::ecn::{Report, Said};
use crate::endpoint::time_wait::{UNACCEPTABLE_INTERVAL, reset_for};
use crate::endpoint::{Ended, Endpoint, State};
use crate::receiver::{OVERHEAD, Shape, Sized};
use crate::segment::{Flags, IP_HEADER, Segment, TCP_HEADER, clock};
use crate::sender::on_ack::AckContext;
use tcplab_units::{Duration, Time};

/// How long a timestamp is remembered for comparison (RFC 7323 §5.5).
const TIMESTAMP_LIFE: Duration = Duration::from_secs(24 * 24 * 3600);

impl Endpoint {
    /// A segment arrived.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::Closed => self.owes_reset = reset_for(segment).map(Box::new),
            State::Listen => self.on_segment_in_listen(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            State::TimeWait => self.on_segment_when_over(now, segment),
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
            // RFC 7323 §3.2: what lacks the timestamps agreed on is not of this connection.
            return;
        }
        if self.is_outdated(now, segment, start)
            || !self.receive.is_acceptable(start, segment.sequence_length())
        {
            return self.on_unacceptable(now, segment, start);
        }
        if segment.flags.has(Flags::RST) {
            // RFC 5961 §3: only a reset at the very next number counts.
            if start == self.receive.next {
                self.end(Ended::Reset);
            } else {
                self.delayed_ack.ack_now();
            }
            return;
        }
        if segment.flags.has(Flags::SYN) {
            // RFC 5961 §4: a challenge.
            return self.delayed_ack.ack_now();
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.note_timestamp(now, segment, start);
        if self.ecn.on_packet(segment) {
            self.delayed_ack.ack_now();
        }
        let is_pure = self.state == State::Established && segment.payload == 0;
        let predicted = segment.payload > 0 && self.predicts(segment, start);
        // Data taken before the acknowledgment sees the RTO of before.
        let rto = predicted.then(|| self.send.rtt.rto(&self.settings.rto_limits()));
        if self.take_ack(now, segment, start, predicted) {
            self.take_data(now, segment, start, rto);
        }
        if is_pure {
            self.receive.pass_echo(segment);
        }
    }

    /// Whether a segment with data is what was expected, and nothing else: Linux takes the data of
    /// such before the acknowledgment (`tcp_rcv_established`, `tcp_fast_path_on`), if it has memory
    /// for that.
    fn predicts(&self, segment: &Segment, start: u64) -> bool {
        if !self.settings.behaviour.header_prediction {
            return self.send.has_outstanding();
        }
        // Where all data is read at once, there is hardly ever memory left.
        self.has_left(u64::from(segment.payload) + OVERHEAD)
            && self.state == State::Established
            && start == self.receive.next
            && !self.receive.has_gap()
            && segment.sack().is_empty()
            && ![Flags::FIN, Flags::ECE, Flags::CWR].iter().any(|&flag| segment.flags.has(flag))
            && self.send.is_window(segment.window)
    }

    /// The time of what comes before the last ACK is the one to be echoed, if it is no older than
    /// the one that is (RFC 7323 §4.3; `tcp_replace_ts_recent`).
    #[inline]
    fn note_timestamp(&mut self, now: Time, segment: &Segment, start: u64) {
        if let Some(timestamps) = segment.timestamps()
            && self.has_timestamps
            && start <= self.last_ack_sent
            && self.older_by(now, timestamps.value).is_none()
        {
            self.recent_timestamp = (timestamps.value, now);
        }
    }

    /// The peer's SYN once more: our answer was lost. Or, opening simultaneously, its SYN-ACK.
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
        } else if !self.has_just_answered(now) {
            self.owes_syn = true;
        }
    }

    /// Whether something that is out of place was answered a short while ago. If not, this is
    /// (`__tcp_oow_rate_limited`).
    fn has_just_answered(&mut self, now: Time) -> bool {
        let has_just = self.settings.behaviour.limits_challenge_acks
            && self.answered_unacceptable.is_some_and(|answered| {
                self.settings.behaviour.clock.idle(now, answered) < UNACCEPTABLE_INTERVAL
            });
        if !has_just {
            self.answered_unacceptable = Some(now);
        }
        has_just
    }

    /// PAWS (RFC 7323 §5): older than what was heard before.
    #[inline]
    fn is_outdated(&self, now: Time, segment: &Segment, start: u64) -> bool {
        self.has_timestamps
            && !segment.flags.has(Flags::RST)
            && segment
                .timestamps()
                .and_then(|timestamps| self.older_by(now, timestamps.value))
                .is_some_and(|older| !self.is_tolerated(segment, start, older))
    }

    /// By how much a timestamp is older than the one that is echoed, if it is.
    #[inline]
    fn older_by(&self, now: Time, value: u32) -> Option<i32> {
        let (recent, heard) = self.recent_timestamp;
        let older = recent.wrapping_sub(value).cast_signed();
        (older > 0 && now.since(heard) < TIMESTAMP_LIFE).then_some(older)
    }

    /// Linux lets pass what is a tick older (`TCP_PAWS_WINDOW`), and an ACK that says nothing new
    /// (`tcp_disordered_ack`).
    #[cold]
    fn is_tolerated(&self, segment: &Segment, start: u64, older: i32) -> bool {
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
        // `tcp_tsval_replay`: an RTO of a clock that is a fifth faster.
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
        // Data is answered always, anything else now and then (`tcp_oow_rate_limited`).
        let is_empty = segment.sequence_length() == 0 || segment.flags.has(Flags::SYN);
        if !(is_empty && self.has_just_answered(now)) {
            self.delayed_ack.ack_now();
        }
        let end = start + u64::from(segment.payload);
        if segment.payload > 0 && start < self.receive.next {
            self.receive.note_duplicate(start..end.min(self.receive.next));
            if self.settings.behaviour.takes_acks_of_old_data {
                let window = self.receive.offered(self.last_ack_sent);
                let is_recent = end >= self.last_ack_sent;
                self.delayed_ack.on_old(is_recent, window, &self.settings);
                if is_recent && segment.flags.has(Flags::ACK) {
                    // `tcp_sequence` lets it pass: its data alone is of no use.
                    self.note_timestamp(now, segment, start);
                    self.take_ack(now, segment, start, false);
                    let echoed = self.first_echoed(now, segment);
                    self.receive.time_by_echo(now, echoed, segment.payload.into());
                }
            }
        }
        if segment.flags.has(Flags::FIN)
            && start < self.receive.next
            && matches!(self.state, State::CloseWait | State::Closing | State::LastAck)
        {
            // The FIN has a number, and came twice (`tcp_data_queue`).
            self.receive.note_duplicate(start..(end + 1).min(self.receive.next));
        }
        // RFC 9293 §3.10.7.4: with a closed window, what a segment acknowledges still counts.
        if self.receive.window() == 0
            && start == self.receive.next
            && segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::SYN)
        {
            self.take_ack(now, segment, start, false);
        }
    }

    /// Takes the acknowledgment. Says whether the rest of the segment counts.
    #[inline]
    fn take_ack(&mut self, now: Time, segment: &Segment, start: u64, is_predicted: bool) -> bool {
        let ack = self.send.origin.offset(segment.ack, self.send.una);
        let mut is_first = false;
        let opens = self.state == State::SynReceived;
        if opens {
            if !ack.is_some_and(|ack| (1..=self.send.nxt).contains(&ack)) {
                self.owes_reset =
                    Some(Box::new(Segment::new(Flags::RST, segment.ack, segment.ack)));
                return false;
            }
            self.establish(now, segment);
            self.ecn.on_first_ack(segment);
            is_first = segment.payload == 0;
        }
        // RFC 5961 §5: neither beyond what was sent nor older than the peer's windows can explain.
        let oldest = self.send.una.saturating_sub(self.send.largest_window);
        let Some(ack) = ack.filter(|ack| (oldest..=self.send.nxt).contains(ack)) else {
            self.delayed_ack.ack_now();
            return false;
        };
        if let Some(alive) = &mut self.keepalive {
            alive.on_segment_received(now);
        }
        if !self.send.has_outstanding() {
            // An answer to a probe: the peer lives (RFC 9293 §3.8.6.1).
            self.attempts = 0;
        }
        // The first ACK tells of the SYN-ACK alone.
        let report = if is_first { Report::Echo(false) } else { self.ecn.report(segment) };
        let echoed = self.echoed(now, segment);
        let answer = AckContext { echoed, report, ecn: &mut self.ecn, is_predicted };
        if self.send.on_ack(
            Context { now, settings: &self.settings },
            segment,
            (start, ack),
            answer,
        ) {
            self.attempts = 0;
            self.send.deadline = Time::NEVER;
            if self.send.is_fin_acked() {
                self.on_fin_acked(now, segment);
            }
        }
        if opens {
            // The congestion control begins behind the segment that opens, be it one with data
            // (`tcp_rcv_state_process`, `tcp_init_transfer`).
            self.send.forget_early_arrival();
        }
        self.state != State::Closed
    }

    /// When the segment left that this one answers, by our clock of timestamps.
    #[inline]
    pub(crate) fn echoed(&self, now: Time, segment: &Segment) -> Option<u64> {
        let echo = segment.timestamps().filter(|_| self.has_timestamps)?.echo;
        let ago = (clock(now) as u32).wrapping_sub(echo.wrapping_sub(1));
        clock(now).checked_sub(u64::from(ago)).filter(|_| echo != 0)
    }

    /// The same, of a segment with data, unless an ACK without any has answered that segment
    /// before: its round trip is not that of data (`tcp_rcv_rtt_measure_ts`).
    fn first_echoed(&self, now: Time, segment: &Segment) -> Option<u64> {
        self.echoed(now, segment).filter(|_| !self.receive.has_passed(segment))
    }

    /// Takes data and FIN.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn take_data(&mut self, now: Time, segment: &Segment, start: u64, rto: Option<Duration>) {
        let expects_data =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if segment.sequence_length() == 0 || !expects_data {
            return;
        }
        if self.memory.is_some()
            && start > self.receive.next
            && self.is_too_costly(segment.payload.into())
        {
            // `tcp_data_queue_ofo`: dropped, as if the network had lost it.
            return;
        }
        self.receive.prepare(&self.settings);
        self.receive.expect(segment);
        let fin = segment.flags.has(Flags::FIN);
        let end = start + u64::from(segment.payload) + u64::from(fin);
        let told = self.delayed_ack.note_segment(now) && self.receive.is_news(&(start..end));
        let changes = self.delayed_ack.is_waiting() && self.ecn.changes(segment, &self.settings);
        if self.settings.behaviour.adaptive_delayed_ack {
            self.receive.forget_duplicate();
        }
        if told {
            self.receive.announce(start..end);
        }
        // Earlier data with the other mark gets an ACK of its own (RFC 8257 §3.2).
        let before = changes.then(|| self.flags_of_ack());
        // Linux does so once the data is in the receive buffer, which is in the window of that ACK
        // (`dctcp_ece_ack_update` below `tcp_event_data_recv`).
        let is_late = changes
            && self.settings.behaviour.adaptive_delayed_ack
            && start <= self.receive.next
            && end > self.receive.next;
        let said = self.ecn.on_segment(segment, &self.settings);
        if told && said.marked {
            self.delayed_ack.on_mark(self.receive.offered(self.last_ack_sent));
        }
        if (told || changes) && !is_late {
            // The waiting ACK reports the state before this segment, with this segment's mark
            // (`tcp_data_queue_ofo`). The segment had asked for an ACK before: this is that ACK.
            let flags = before.unwrap_or_else(|| self.flags_of_ack());
            self.owes_ack = Some(Box::new(self.segment_without_data(now, flags, self.send.nxt)));
        }
        let (next, had_gap) = (self.receive.next, self.receive.has_gap());
        let reception = self.receive.receive(start, u64::from(segment.payload), fin);
        if let Some(flags) = before.filter(|_| is_late) {
            let mut ack = self.segment_without_data(now, flags, self.send.nxt);
            ack.ack = self.receive.origin.number(next);
            self.owes_ack = Some(Box::new(ack));
        }
        if told {
            self.receive.forget_duplicate();
        }
        if self.settings.behaviour.adaptive_delayed_ack {
            self.acknowledge_as_linux(now, segment, start, (next, had_gap), (told, said, rto));
        } else {
            self.delayed_ack.on_data(now, reception, segment.segments(), &self.settings);
            if said.changed {
                self.delayed_ack.ack_now();
            }
        }
        if self.receive.is_finished() {
            // Linux lets the FIN wait for what its side may still have to say (`tcp_fin`).
            if !self.settings.behaviour.delays_ack_of_fin || self.state != State::Established {
                self.delayed_ack.ack_now();
            }
            self.state = match self.state {
                State::Established => State::CloseWait,
                State::FinWait1 => State::Closing,
                _ => return self.wait_out(now),
            };
        }
    }

    /// Opens the window and decides on an ACK for data that was taken; before it, this offset was
    /// expected, and there was a gap or not. `told`: one was sent already; `said`: what the segment
    /// says of marks; `rto`: that of before, if the data comes before the acknowledgment.
    #[inline(never)]
    fn acknowledge_as_linux(
        &mut self,
        now: Time,
        segment: &Segment,
        start: u64,
        (next, had_gap): (u64, bool),
        (told, said, rto): (bool, Said, Option<Duration>),
    ) {
        let payload = u64::from(segment.payload);
        let end = start + payload;
        let in_order = start <= next && end > next;
        let echoed = self.first_echoed(now, segment);
        let may_grow = !self.is_pressed();
        let window_end = end + self.receive.offered(self.last_ack_sent);
        let has_sack = self.send.sack;
        let pushed = segment.flags.has(Flags::PUSH);
        let shape = Shape {
            payload: segment.segment_size().into(),
            options: u64::from(segment.header_bytes() - IP_HEADER - TCP_HEADER),
            usual_options: self.options().into(),
            ends: pushed || segment.flags.has(Flags::FIN),
        };
        let sized = Sized { shape, payload, in_order, echoed, end, window_end, may_grow, has_sack };
        let Some(tuned) = self.receive.tune(now, sized) else { return };
        let (holds, is_short) = self.receive.can_hold_window(self.last_ack_sent);
        let (is_finished, ends) = (self.receive.is_finished(), segment.flags.has(Flags::FIN));
        let arrived = Arrived {
            size: tuned.size,
            full: tuned.full,
            pushed,
            in_order,
            said,
            has_gap: self.receive.has_gap(),
            has_sack,
            told,
            // Where the segment itself ends all, what was out of order is dropped before
            // (`tcp_fin`).
            filled: had_gap && !self.receive.has_gap() && !(is_finished && ends),
            finished: is_finished,
            next: self.receive.next,
            acked: self.last_ack_sent,
            window: self.receive.offered(self.last_ack_sent),
            holds,
            opened: tuned.opened,
            is_short,
            since: self.receive.since(),
            srtt: self.send.rtt.srtt(),
            rtt: self.least_rtt(),
            rto: rto.unwrap_or_else(|| self.send.rtt.rto(&self.settings.rto_limits())),
        };
        self.delayed_ack.on_arrival(now, arrived, &self.settings);
    }

    /// The RTT as that half sees it for which it is shorter; nothing before the receiving half has
    /// seen one (`__tcp_ack_snd_check`).
    fn least_rtt(&self) -> Duration {
        let received = self.receive.rtt().unwrap_or_default();
        let sent = self.send.rtt.exact_srtt();
        if sent.is_zero() { received } else { received.min(sent) }
    }

    /// Our FIN is acknowledged.
    #[cold]
    fn on_fin_acked(&mut self, now: Time, segment: &Segment) {
        match self.state {
            // With a FIN that comes along, the whole connection is kept until that is taken
            // (`tcp_rcv_state_process`).
            State::FinWait1 if !self.is_orphan || segment.flags.has(Flags::FIN) => {
                self.state = State::FinWait2;
            }
            State::FinWait1 | State::Closing => {
                self.delayed_ack.on_sent();
                self.wait_out(now);
            }
            State::LastAck => self.end(Ended::Normally),
            _ => {}
        }
    }
}
