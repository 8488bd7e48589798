//! Transmission: the next segment with data, new or retransmitted.

use crate::context::Context;
use crate::departure::{Data, SizeProbe};
use crate::sender::Sender;
use crate::settings::WindowReduction;
use crate::timer::Kind;
use tcplab_cc::Phase;

impl Sender {
    /// Offsets up to which data exists to be sent, the FIN included.
    #[inline]
    fn end_of_stream(&self) -> u64 {
        self.written + u64::from(self.closed)
    }

    /// Bytes written and never sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.nxt)
    }

    /// Nothing waits to be sent, nor to be acknowledged.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        self.nxt == self.una && self.nxt >= self.end_of_stream()
    }

    /// The next segment with data, if there is one and it may leave; it counts as sent. New data
    /// leaves room for this many bytes of further options (RFC 6691).
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub fn next_data(&mut self, context: Context<'_>, options: u64) -> Option<Data> {
        let now = context.now;
        let in_flight = self.in_flight();
        let Some(mut data) = self.choose(context, in_flight, options) else {
            if !context.settings.has_packet_buffer() {
                self.check_app_limited();
            }
            let has_more = self.nxt < self.end_of_stream()
                || !context.settings.behaviour.kernel_cwnd_validation;
            if has_more || self.congestion.has_sent_data() {
                let limited = self.departure.take_deferred() || in_flight >= self.cwnd();
                self.note_use_of_window(context, limited);
            }
            self.signal_write_space_after_ack(now, in_flight);
            return None;
        };
        let has_data = data.payload > 0;
        self.counters.sent_segments += u64::from(has_data);
        if in_flight == 0 {
            self.on_tx_start(context);
        }
        self.pace(context, data);
        if self.departure.has_small_queue() && has_data {
            self.departure.note_queued(now, data);
        }
        if data.again && !data.is_probe {
            self.note_repair(now, (data.start, data.end()));
        }
        self.departure.note_data_sent(now);
        self.congestion.on_sent();
        if data.again {
            self.counters.retransmitted_segments += u64::from(has_data);
            self.counters.retransmitted_fins += u64::from(!has_data);
            if data.is_probe {
                let last = self.loss.scoreboard().outstanding() as usize - 1;
                self.note_departure(self.departure.data_leaves_at(now), last, false);
                self.wait_behind_probe(context);
            } else {
                data.push = self.note_again(context, data, in_flight);
            }
        } else {
            self.note_new(context, data);
        }
        Some(data)
    }

    /// The first segment after a time with nothing in flight leaves (`CA_EVENT_TX_START`).
    #[inline(never)]
    pub(crate) fn on_tx_start(&mut self, context: Context<'_>) {
        let now = context.now;
        let idle = context.settings.behaviour.clock.idle(now, self.departure.last_sent());
        self.consult(now, |cc, flow| cc.on_transmit_start(flow, idle));
    }

    /// Says whether the receiver's application is to hear of its end at once.
    #[inline(never)]
    fn note_again(&mut self, context: Context<'_>, data: Data, in_flight: u64) -> bool {
        let now = context.now;
        let is_oldest = data.start == self.una;
        let (begins, is_for_timeout) = self.loss.take_owed_retransmission();
        let leaves_at = self.departure.data_leaves_at(now);
        let counted = self.departure.on_retransmit(now);
        let left_at = if counted == now { leaves_at } else { counted };
        let place = self.loss.resend(left_at, data.start);
        self.note_departure(leaves_at, place, false);
        let is_last = in_flight + 1 >= self.cwnd();
        let most = if is_last { 0 } else { self.burst_size() * u64::from(self.mss) };
        let range = data.start..data.start + u64::from(data.payload);
        let push = self.departure.note_again(now, &range, most);
        // With PRR no retransmission is owed that could be told from the others as the first.
        let restarts = if context.settings.behaviour.head_retransmission_restarts_rto
            || context.settings.reduction == WindowReduction::Proportional
        {
            is_oldest && self.timer.kind != Kind::Reorder
        } else {
            begins
        };
        if restarts && is_for_timeout {
            self.wait_after_timeout(context);
        } else if restarts && self.loss.is_reordering_over(now) {
            self.wait_from_departure(context);
        } else if restarts {
            self.wait_for_answer(context);
        }
        push
    }

    #[inline]
    fn note_new(&mut self, context: Context<'_>, data: Data) {
        let had_outstanding = self.has_outstanding();
        let leaves_at = self.departure.data_leaves_at(context.now);
        let loss = &mut *self.loss;
        loss.send(leaves_at, data.start, data.payload + u16::from(data.fin));
        self.congestion.note_new_data();
        let is_probe = loss.is_probe_end(data.end());
        let place = loss.scoreboard().outstanding() as usize - 1;
        self.note_departure(leaves_at, place, !had_outstanding);
        self.nxt = data.end();
        self.departure.note_new(data);
        if !had_outstanding {
            self.wait_for_answer(context);
        } else if context.settings.behaviour.new_data_rearms_probe && self.timer.is_for_probe() {
            if !is_probe && self.is_timed_for_burst(context) {
                return;
            }
            // Whether or not another probe is wanted (`tcp_event_new_data_sent`).
            self.rearm(context);
        }
        if is_probe {
            self.wait_behind_probe(context);
        } else {
            self.schedule_probe(context, false);
        }
    }

    /// Whether the timer waits for a probe as if it were set for the segment that has just left: it
    /// was set now, for the one before in the same burst, when at least two were under way.
    #[inline]
    fn is_timed_for_burst(&self, context: Context<'_>) -> bool {
        self.departure.is_going_on()
            && self.loss.scoreboard().outstanding() > 2
            && self.timer.place.was_entered(context.now)
            && !self.is_paced(context)
    }

    /// The RTO behind a probe of the tail runs from when the next packet may leave, if packets are
    /// paced (`tcp_send_loss_probe`, `tcp_pacing_delay`).
    fn wait_behind_probe(&mut self, context: Context<'_>) {
        if context.settings.behaviour.timers_add_pacing_delay && self.is_paced(context) {
            self.rearm(context);
        }
    }

    #[inline]
    fn choose(&mut self, context: Context<'_>, in_flight: u64, options: u64) -> Option<Data> {
        let loss = &self.loss;
        let in_trouble = loss.recovery().is_repairing() || loss.owes_probe();
        if in_trouble && let Some(data) = self.before_new_data(context, in_flight, options) {
            return Some(data);
        }
        if let Some(data) = self.new_data(context, in_flight, options) {
            return Some(data);
        }
        if in_trouble { self.without_new_data(context, in_flight) } else { None }
    }

    /// A probe of the tail, or what is lost.
    #[inline(never)]
    fn before_new_data(
        &mut self,
        context: Context<'_>,
        in_flight: u64,
        options: u64,
    ) -> Option<Data> {
        let now = context.now;
        if self.loss.owes_probe()
            && let Some(probe) = self.take_probe(context, in_flight, options)
        {
            return Some(probe);
        }
        let has_room = in_flight < self.cwnd();
        let may_repair = self.loss.recovery().is_repairing()
            && (has_room || self.loss.recovery().owes_retransmission());
        let is_owed = self.loss.recovery().owes_retransmission();
        if may_repair && self.departure.has_path() {
            self.route_again(context);
        }
        if may_repair
            && (is_owed || self.loss.recovery().may_repair(true))
            && let Some(lost) = self.next_lost(now)
            && (is_owed
                || self.departure.repairs_on(now, lost.start)
                || !(self.is_held_back(context)
                    || self.is_queue_full_for(context, (lost.start, lost.end()))))
            && !self.is_repair_at_device(context, lost.start)
        {
            return Some(self.again(lost.start, lost.end()));
        }
        self.loss.clear_forced_retransmission();
        None
    }

    /// Whether a repair must wait until something has left the device.
    fn is_queue_full_for(&mut self, context: Context<'_>, range: (u64, u64)) -> bool {
        let is_paced = self.is_paced(context);
        self.departure.is_queue_full_for_repair(range, self.una, is_paced)
    }

    /// Whether the lost packet that begins here has yet to leave the device. Then nothing is sent
    /// again before the next ACK, or before the device has transmitted (`__tcp_retransmit_skb`,
    /// which says `-EBUSY`). The attempt counts for the undo of the episode.
    #[inline]
    fn is_repair_at_device(&mut self, context: Context<'_>, start: u64) -> bool {
        self.departure.has_small_queue() && self.finds_repair_at_device(context, start)
    }

    #[cold]
    fn finds_repair_at_device(&mut self, context: Context<'_>, start: u64) -> bool {
        if self.departure.repairs_on(context.now, start) || !self.departure.waits_for_device(start)
        {
            return false;
        }
        let end = self.departure.packet_end(start).unwrap_or(start);
        let segments = end.saturating_sub(start).div_ceil(self.mss.into()).max(1);
        self.loss.note_failed_repair(start, segments);
        self.loss.hold_retransmissions();
        if self.loss.recovery().answers_timeout() {
            self.wait_after_timeout(context);
        }
        true
    }

    /// A lost or suspected segment, when no new data may leave.
    #[inline(never)]
    fn without_new_data(&mut self, context: Context<'_>, in_flight: u64) -> Option<Data> {
        let has_room = in_flight < self.cwnd();
        if self.departure.pacing().holds() || !has_room {
            return None;
        }
        if self.loss.recovery().may_repair(false) {
            self.loss.give_up_new_data();
            if let Some(lost) = self.next_lost(context.now)
                && !self.is_repair_at_device(context, lost.start)
            {
                return Some(self.again(lost.start, lost.end()));
            }
        }
        let suspects =
            self.sack && !context.settings.rack && context.settings.behaviour.resends_suspects;
        (suspects && self.loss.phase() == Phase::Recovery)
            .then(|| self.next_seg_rule_3_or_4())
            .flatten()
    }

    /// A segment sent before, whole.
    pub(crate) fn again(&self, start: u64, end: u64) -> Data {
        let fin = end > self.written;
        let payload = (end - start - u64::from(fin)) as u16;
        let push = self.departure.ends_pushed(end - u64::from(fin));
        Data { start, payload, fin, again: true, is_probe: false, push }
    }

    /// Rules 3 and 4 of `NextSeg` (RFC 6675 §4): with nothing else to send, what might be lost.
    fn next_seg_rule_3_or_4(&mut self) -> Option<Data> {
        self.loss.next_suspect().map(|suspect| self.again(suspect.start, suspect.end()))
    }

    /// New data as far as there is some and the peer takes it, if it may leave as it is.
    #[inline]
    pub(crate) fn chunk(&self, context: Context<'_>, options: u64) -> Option<Data> {
        let data = self.any_chunk(options)?;
        let payload = u64::from(data.payload);
        let mss = u64::from(self.mss).saturating_sub(options).max(1);
        (payload >= mss || data.fin || self.may_send_small(context, payload)).then_some(data)
    }

    /// New data as far as the peer's window takes it, whether it may leave or not.
    #[inline]
    pub(crate) fn any_chunk(&self, options: u64) -> Option<Data> {
        let mss = u64::from(self.mss).saturating_sub(options).max(1);
        let available = self.unsent();
        let usable = (self.una + self.window).saturating_sub(self.nxt);
        let payload = available.min(usable).min(mss).min(self.departure.left_to_small(self.nxt));
        // The FIN needs a place in the window like data.
        let fin =
            self.closed && payload == available && payload < usable && self.nxt <= self.written;
        let push = self.closed && payload == available;
        let (start, payload) = (self.nxt, payload as u16);
        let data = Data { start, payload, fin, again: false, is_probe: false, push };
        (data.payload > 0 || fin).then_some(data)
    }

    #[inline]
    fn new_data(&mut self, context: Context<'_>, in_flight: u64, options: u64) -> Option<Data> {
        let settings = context.settings;
        let Some(mut data) = self.chunk(context, options) else {
            self.fill_packet(context, in_flight);
            return None;
        };
        // Before anything is decided by the window (`tcp_slow_start_after_idle_check`).
        if settings.restart_after_idle && self.una == self.nxt && self.counters.sent_segments > 0 {
            self.restart(context);
        }
        let mut room = self.cwnd();
        if !settings.limited_transmit && self.loss.recovery().has_dup_acks() {
            // RFC 3042 is off: what left the network out of order makes no room yet.
            room = room.saturating_sub(self.loss.out_of_order());
        }
        let has_begun = self.departure.has_begun();
        if !has_begun && self.is_held_back(context) {
            return None;
        }
        if !has_begun && options == 0 && self.departure.has_path() {
            match self.size_probe(context, in_flight) {
                SizeProbe::No => {}
                SizeProbe::Wait => return None,
                SizeProbe::Yes(probe) => return Some(probe),
            }
        }
        if in_flight >= room || (settings.tso && !self.may_go_in_burst(context, in_flight)) {
            return None;
        }
        data.push |= settings.tso && self.departure.is_pushed();
        Some(data)
    }

    /// After a pause that was long enough, the window is as at the beginning (RFC 5681 §4.1).
    #[inline(never)]
    fn restart(&mut self, context: Context<'_>) {
        let Context { now, settings } = context;
        let idle = settings.behaviour.clock.idle(now, self.departure.last_sent());
        if idle > settings.behaviour.clock.in_jiffies(self.rtt.rto(&settings.rto_limits())) {
            self.consult(now, |cc, flow| cc.on_restart(flow, idle));
            self.congestion.validate_anew(now);
        }
    }

    /// Avoids small segments: sender's silly-window avoidance (RFC 9293 §3.8.6.2.1) and Nagle.
    #[inline(never)]
    fn may_send_small(&self, context: Context<'_>, payload: u64) -> bool {
        if self.departure.is_small_due(self.nxt, payload) {
            return true;
        }
        if payload == self.unsent() {
            return !context.settings.nagle
                || !self.has_outstanding()
                || self.departure.may_end_buffer_small(self.una, context.settings.nagle);
        }
        payload * 2 >= self.largest_window
    }

    /// Data waits and the window lets none of it go, with nothing under way that would open it.
    pub fn is_stuck(&self) -> bool {
        !self.has_outstanding() && self.nxt < self.end_of_stream()
    }
}
