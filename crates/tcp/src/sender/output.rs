//! Transmission: the next segment with data, new or retransmitted.

use crate::context::Context;
use crate::departure::{Data, MtuProbe};
use crate::sender::Sender;
use crate::settings::WindowReduction;
use crate::timer::Kind;
use tcplab_cc::Phase;

impl Sender {
    /// The end of the data to be sent, the FIN included.
    #[inline]
    fn end_of_stream(&self) -> u64 {
        self.written + u64::from(self.closed)
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.nxt)
    }

    /// Whether nothing waits to be sent or acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.nxt == self.una && self.nxt >= self.end_of_stream()
    }

    /// The next segment with data that may leave; it counts as sent. New data leaves `options`
    /// bytes free for further options (RFC 6691).
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub fn next_data(&mut self, context: Context<'_>, options: u64) -> Option<Data> {
        let now = context.now;
        let in_flight = self.in_flight();
        let is_wakeup = self.departure.is_write_wakeup();
        let Some(mut data) = self.select_data(context, in_flight, options) else {
            if !context.settings.has_packet_buffer() {
                self.check_app_limited();
            }
            let has_more = self.nxt < self.end_of_stream()
                || !context.settings.behaviour.kernel_cwnd_validation;
            if has_more || self.congestion.has_sent_new_data() {
                let limited = self.departure.take_deferred() || in_flight >= self.cwnd();
                self.validate_cwnd(context, limited);
            }
            self.signal_write_space_after_ack(now, in_flight);
            return None;
        };
        let has_data = data.payload > 0;
        self.counters.sent_segments += u64::from(has_data);
        if in_flight == 0 {
            self.on_transmit_start(context);
        }
        self.pace(context, data);
        if self.departure.has_small_queue() && has_data {
            self.departure.note_queued(now, data);
        }
        if data.is_retransmission && !data.is_probe {
            self.note_retransmission_burst(now, (data.start, data.end()));
        }
        self.departure.note_data_sent(now);
        if !is_wakeup {
            self.congestion.on_sent();
        }
        if data.is_retransmission {
            self.counters.retransmitted_segments += u64::from(has_data);
            self.counters.retransmitted_fins += u64::from(!has_data);
            if data.is_probe {
                let last = self.loss.scoreboard().outstanding() as usize - 1;
                self.note_departure(self.departure.data_leaves_at(now), last, false);
                self.rearm_rto_after_probe(context);
            } else {
                data.push = self.note_retransmission(context, data, in_flight);
            }
        } else {
            self.note_new(context, data, is_wakeup);
        }
        Some(data)
    }

    /// Tells the controller that data leaves after nothing was in flight (`CA_EVENT_TX_START`).
    #[inline(never)]
    pub(crate) fn on_transmit_start(&mut self, context: Context<'_>) {
        let now = context.now;
        let idle = context.settings.behaviour.clock.idle(now, self.departure.last_data_sent());
        self.consult(now, |cc, flow| cc.on_transmit_start(flow, idle));
    }

    /// Records a retransmission. Returns whether the segment is pushed.
    #[inline(never)]
    fn note_retransmission(&mut self, context: Context<'_>, data: Data, in_flight: u64) -> bool {
        let now = context.now;
        let is_oldest = data.start == self.una;
        let (begins, is_for_timeout) = self.loss.take_pending_retransmission();
        let leaves_at = self.departure.data_leaves_at(now);
        let counted = self.departure.on_retransmit(now);
        let left_at = if counted == now { leaves_at } else { counted };
        let place = self.loss.resend(left_at, data.start);
        self.note_departure(leaves_at, place, false);
        let is_last = in_flight + 1 >= self.cwnd();
        let most = if is_last { 0 } else { self.burst_size() * u64::from(self.mss) };
        let range = data.start..data.start + u64::from(data.payload);
        let push = self.departure.note_retransmission(now, &range, most);
        // PRR has no separate fast retransmission, so every retransmission of the head restarts the
        // timer.
        let restarts = if context.settings.behaviour.head_retransmission_restarts_rto
            || context.settings.reduction == WindowReduction::Proportional
        {
            is_oldest && self.timer.kind != Kind::Reorder
        } else {
            begins
        };
        if restarts && is_for_timeout {
            self.arm_rto_after_timeout(context);
        } else if restarts && self.loss.is_reordering_over(now) {
            self.arm_rto_from_departure(context);
        } else if restarts {
            self.arm_rto(context);
        }
        push
    }

    /// Records new data. `is_wakeup`: the persist timer sends the data into the queue of the host
    /// (`tcp_write_wakeup`), which neither validates the window nor schedules a tail loss probe.
    #[expect(clippy::inline_always, reason = "every segment of new data passes here")]
    #[inline(always)]
    fn note_new(&mut self, context: Context<'_>, data: Data, is_wakeup: bool) {
        let had_outstanding = self.has_outstanding();
        let leaves_at = self.departure.data_leaves_at(context.now);
        let loss = &mut *self.loss;
        loss.send(leaves_at, data.start, data.payload + u16::from(data.fin));
        if !is_wakeup {
            self.congestion.note_new_data();
        }
        let is_probe = loss.is_probe_end(data.end());
        let place = loss.scoreboard().outstanding() as usize - 1;
        self.note_departure(leaves_at, place, !had_outstanding);
        self.nxt = data.end();
        self.departure.note_new(data);
        if !had_outstanding {
            self.arm_rto(context);
        } else if context.settings.behaviour.new_data_rearms_probe && self.timer.is_for_probe() {
            if !is_probe && self.is_timed_for_burst(context) {
                return;
            }
            // Whether or not another probe is wanted (`tcp_event_new_data_sent`).
            self.rearm_rto(context);
        }
        if is_probe {
            self.rearm_rto_after_probe(context);
        } else if !is_wakeup {
            self.schedule_probe(context, false);
        }
    }

    /// Whether the timer already runs for a tail loss probe from this moment: the previous segment
    /// of the same burst set it, with at least two segments outstanding.
    #[inline]
    fn is_timed_for_burst(&self, context: Context<'_>) -> bool {
        self.departure.continues_burst()
            && self.loss.scoreboard().outstanding() > 2
            && self.timer.slot.was_enqueued(context.now)
            && !self.is_paced(context)
    }

    /// The RTO after a tail loss probe runs from when the next packet may leave, if packets are
    /// paced (`tcp_send_loss_probe`, `tcp_pacing_delay`).
    fn rearm_rto_after_probe(&mut self, context: Context<'_>) {
        if context.settings.behaviour.timers_add_pacing_delay && self.is_paced(context) {
            self.rearm_rto(context);
        }
    }

    /// The data to send next: a tail loss probe, a retransmission or new data.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn select_data(&mut self, context: Context<'_>, in_flight: u64, options: u64) -> Option<Data> {
        let loss = &self.loss;
        let in_trouble = loss.recovery().is_recovering() || loss.is_tlp_pending();
        if in_trouble && let Some(data) = self.select_before_new_data(context, in_flight, options) {
            return Some(data);
        }
        if let Some(data) = self.new_data(context, in_flight, options) {
            return Some(data);
        }
        if in_trouble { self.select_without_new_data(context, in_flight) } else { None }
    }

    /// A tail loss probe, or a retransmission that precedes new data.
    #[inline(never)]
    fn select_before_new_data(
        &mut self,
        context: Context<'_>,
        in_flight: u64,
        options: u64,
    ) -> Option<Data> {
        let now = context.now;
        if self.loss.is_tlp_pending()
            && let Some(probe) = self.take_probe(context, in_flight, options)
        {
            return Some(probe);
        }
        let has_room = in_flight < self.cwnd();
        let may_repair = self.loss.recovery().is_recovering()
            && (has_room || self.loss.recovery().is_retransmission_pending());
        let is_owed = self.loss.recovery().is_retransmission_pending();
        if may_repair && self.departure.has_path_mtu() {
            self.reroute(context);
        }
        if may_repair
            && (is_owed || self.loss.recovery().may_retransmit(true))
            && let Some(lost) = self.next_lost(now)
            && (is_owed
                || self.departure.continues_retransmission(now, lost.start)
                || !(self.is_held_by_pacing(context)
                    || self.is_queue_full_for(context, (lost.start, lost.end()))))
            && !self.is_lost_at_device(context, lost.start)
        {
            return Some(self.retransmission(lost.start, lost.end()));
        }
        self.loss.clear_pending_retransmission();
        None
    }

    /// Whether the small queue holds a retransmission back until the device has transmitted.
    fn is_queue_full_for(&mut self, context: Context<'_>, range: (u64, u64)) -> bool {
        let is_paced = self.is_paced(context);
        self.departure.is_queue_full_for_retransmission(range, self.una, is_paced)
    }

    /// Whether the lost packet that begins here has yet to leave the device. Then nothing is sent
    /// again before the next ACK, or before the device has transmitted (`__tcp_retransmit_skb`,
    /// which says `-EBUSY`). The attempt counts for the undo of the episode.
    #[inline]
    fn is_lost_at_device(&mut self, context: Context<'_>, start: u64) -> bool {
        self.departure.has_small_queue() && self.finds_lost_at_device(context, start)
    }

    #[cold]
    fn finds_lost_at_device(&mut self, context: Context<'_>, start: u64) -> bool {
        if self.departure.continues_retransmission(context.now, start)
            || !self.departure.waits_for_device(start)
        {
            return false;
        }
        let end = self.departure.packet_end(start).unwrap_or(start);
        let segments = end.saturating_sub(start).div_ceil(self.mss.into()).max(1);
        self.loss.note_failed_retransmission(start, segments);
        self.loss.hold_retransmissions();
        if self.loss.recovery().answers_timeout() {
            self.arm_rto_after_timeout(context);
        }
        true
    }

    /// A lost or suspected segment, when no new data may leave.
    #[inline(never)]
    fn select_without_new_data(&mut self, context: Context<'_>, in_flight: u64) -> Option<Data> {
        let has_room = in_flight < self.cwnd();
        if self.departure.pacing().is_holding() || !has_room {
            return None;
        }
        if self.loss.recovery().may_retransmit(false) {
            self.loss.give_up_frto();
            if let Some(lost) = self.next_lost(context.now)
                && !self.is_lost_at_device(context, lost.start)
            {
                return Some(self.retransmission(lost.start, lost.end()));
            }
        }
        let suspects =
            self.sack && !context.settings.rack && context.settings.behaviour.has_next_seg_rule3;
        (suspects && self.loss.phase() == Phase::Recovery).then(|| self.suspect_data()).flatten()
    }

    /// A whole segment that has been sent before.
    pub(crate) fn retransmission(&self, start: u64, end: u64) -> Data {
        let fin = end > self.written;
        let payload = (end - start - u64::from(fin)) as u16;
        let push = self.departure.ends_pushed(end - u64::from(fin));
        Data { start, payload, fin, is_retransmission: true, is_probe: false, push }
    }

    /// Rules 3 and 4 of `NextSeg` (RFC 6675 §4): with nothing else to send, a segment that may be
    /// lost.
    fn suspect_data(&mut self) -> Option<Data> {
        self.loss.next_seg_rule3().map(|suspect| self.retransmission(suspect.start, suspect.end()))
    }

    /// The next segment of new data, if the peer's window, Nagle's algorithm and silly-window
    /// avoidance allow it to leave.
    #[inline]
    pub(crate) fn sendable_new_data(&self, context: Context<'_>, options: u64) -> Option<Data> {
        let data = self.new_data_in_window(options)?;
        let payload = u64::from(data.payload);
        let mss = u64::from(self.mss).saturating_sub(options).max(1);
        (payload >= mss || data.fin || self.may_send_small(context, payload)).then_some(data)
    }

    /// The next segment of new data that the peer's window allows, whatever its size.
    #[inline]
    pub(crate) fn new_data_in_window(&self, options: u64) -> Option<Data> {
        let mss = u64::from(self.mss).saturating_sub(options).max(1);
        let available = self.unsent();
        let usable = (self.una + self.window).saturating_sub(self.nxt);
        let payload = available.min(usable).min(mss).min(self.departure.left_to_small(self.nxt));
        // The FIN occupies window like data.
        let fin =
            self.closed && payload == available && payload < usable && self.nxt <= self.written;
        let push = self.closed && payload == available;
        let (start, payload) = (self.nxt, payload as u16);
        let data = Data { start, payload, fin, is_retransmission: false, is_probe: false, push };
        (data.payload > 0 || fin).then_some(data)
    }

    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn new_data(&mut self, context: Context<'_>, in_flight: u64, options: u64) -> Option<Data> {
        let settings = context.settings;
        let Some(mut data) = self.sendable_new_data(context, options) else {
            self.grow_next_packet(context, in_flight);
            return None;
        };
        // The idle restart comes before any decision by the window
        // (`tcp_slow_start_after_idle_check`); `tcp_write_wakeup` has none.
        if settings.restart_after_idle
            && self.una == self.nxt
            && self.counters.sent_segments > 0
            && !self.departure.is_write_wakeup()
        {
            self.cwnd_restart(context);
        }
        let mut room = self.cwnd();
        if !settings.limited_transmit && self.loss.recovery().is_in_disorder() {
            // Without limited transmit (RFC 3042), a segment reported out of order does not let a
            // new one leave yet.
            room = room.saturating_sub(self.loss.out_of_order());
        }
        let has_begun = self.departure.is_in_burst();
        if !has_begun && self.is_held_by_pacing(context) {
            return None;
        }
        if !has_begun && options == 0 && self.departure.has_path_mtu() {
            match self.mtu_probe(context, in_flight) {
                MtuProbe::No => {}
                MtuProbe::Wait => return None,
                MtuProbe::Yes(probe) => return Some(probe),
            }
        }
        if in_flight >= room || (settings.tso && !self.take_from_burst(context, in_flight)) {
            return None;
        }
        data.push |= settings.tso && self.departure.is_pushed();
        Some(data)
    }

    /// After an idle time of more than an RTO the window returns to its initial value (RFC 5681
    /// §4.1; `tcp_cwnd_restart`).
    #[inline(never)]
    fn cwnd_restart(&mut self, context: Context<'_>) {
        let Context { now, settings } = context;
        let idle = settings.behaviour.clock.idle(now, self.departure.last_data_sent());
        if idle > settings.behaviour.clock.in_jiffies(self.rtt.rto(&settings.rto_limits())) {
            self.consult(now, |cc, flow| cc.on_restart(flow, idle));
            self.congestion.restart_validation(now);
        }
    }

    /// Whether a segment below the MSS may leave: sender silly-window avoidance (RFC 9293
    /// §3.8.6.2.1) and Nagle's algorithm (§3.7.4).
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

    /// Whether data waits, the window lets none of it leave, and nothing is outstanding whose ACK
    /// could open the window.
    pub fn needs_window_probe(&self) -> bool {
        !self.has_outstanding() && self.nxt < self.end_of_stream()
    }
}
