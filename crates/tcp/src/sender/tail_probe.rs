//! Tail loss probes (TLP, RFC 8985 §7): a packet that asks for an ACK before the RTO expires.

use crate::context::Context;
use crate::departure::Data;
use crate::loss::ProbeSigns;
use crate::sender::Sender;
use crate::timer::Kind;
use tcplab_cc::Phase;
use tcplab_units::Duration;

impl Sender {
    /// Sets the timer for a tail loss probe (RFC 8985 §7.2; `tcp_schedule_loss_probe`).
    /// `advancing`: an ACK has just restarted the RTO. Returns whether a probe is scheduled.
    #[inline]
    pub(crate) fn schedule_probe(&mut self, context: Context<'_>, advancing: bool) -> bool {
        context.settings.tlp
            && self.sack
            && self.has_outstanding()
            && self.set_probe_timer(context, advancing)
    }

    #[inline(never)]
    fn set_probe_timer(&mut self, context: Context<'_>, advancing: bool) -> bool {
        let settings = context.settings;
        let is_open_or_cwr = matches!(self.loss.phase(), Phase::Open | Phase::Reduced);
        if !is_open_or_cwr {
            return false;
        }
        let srtt = self.rtt.srtt();
        let is_lone = self.loss.scoreboard().outstanding() == 1;
        let behaviour = &settings.behaviour;
        let mut wait = if srtt.is_zero() {
            settings.initial_rto
        } else if is_lone {
            srtt * 2 + behaviour.tlp_max_ack_delay.unwrap_or(settings.min_rto)
        } else {
            srtt * 2 + behaviour.timeout_min
        };
        let rto = if advancing {
            self.rtt.rto(&settings.rto_limits())
        } else {
            self.remaining_rto(context)
        };
        if !rto.is_zero() {
            wait = wait.min(rto);
        }
        let wait = wait + self.pacing_delay(context);
        self.timer.set(context, Kind::Probe, wait);
        true
    }

    /// The probe timer expired (RFC 8985 §7.3).
    pub(crate) fn on_probe_timer(&mut self, context: Context<'_>) {
        if self.loss.request_probe() {
            self.timer.stop();
        }
        self.rearm_rto(context);
    }

    /// The probe that is due, or its next segment: new data that the peer's window allows, or else
    /// the last segment again (`tcp_send_loss_probe`).
    #[inline(never)]
    pub(crate) fn take_probe(
        &mut self,
        context: Context<'_>,
        in_flight: u64,
        options: u64,
    ) -> Option<Data> {
        let now = context.now;
        if !self.loss.take_pending_probe() {
            return self.next_probe_segment(options);
        }
        let data = if let Some(mut data) = self.new_data_for_probe(context, options) {
            let Some((segments, push)) = self.take_probe_packet(context, in_flight) else {
                self.arm_rto_without_probe(context);
                return None;
            };
            self.loss.set_probe_size(segments, push);
            data.push |= push && segments == 1;
            data
        } else {
            let tail = self.loss.scoreboard().back().map_or(self.una, |tail| tail.start);
            if self.departure.waits_for_device(tail) {
                self.arm_rto_without_probe(context);
                return None;
            }
            let leaves_at = self.departure.leaves_at(now);
            let last = self.loss.resend_last_as_probe(leaves_at)?;
            // The segment becomes a packet of its own.
            self.departure.note_retransmission(now, &(last.start..last.end().min(self.written)), 0);
            Data { is_probe: true, ..self.retransmission(last.start, last.end()) }
        };
        let end = if data.is_retransmission { self.nxt } else { data.end() };
        self.loss.note_probe(end, data.is_retransmission);
        Some(data)
    }

    /// No probe could leave: the RTO runs from when the oldest segment left, and not from now
    /// (`tcp_send_loss_probe` leaves `icsk_pending` as it is for `tcp_rearm_rto`).
    #[cold]
    pub(crate) fn arm_rto_without_probe(&mut self, context: Context<'_>) {
        let rto = self.remaining_rto(context).max(Duration::from_micros(1));
        let wait = rto + self.pacing_delay(context);
        self.timer.set(context, Kind::Retransmit, wait);
    }

    fn next_probe_segment(&mut self, options: u64) -> Option<Data> {
        let mut more = self.new_data_in_window(options);
        let is_full = more.is_some_and(|more| more.payload == self.mss);
        let is_pushed = self.loss.note_probe_segment(more.map(|more| more.end()), is_full);
        if let Some(more) = &mut more {
            more.push |= is_pushed;
        }
        more
    }

    /// New data for a probe, not cut short by the peer's window (`tcp_snd_wnd_test`). Linux ignores
    /// Nagle's algorithm here (`TCP_NAGLE_OFF`).
    fn new_data_for_probe(&self, context: Context<'_>, options: u64) -> Option<Data> {
        if !context.settings.behaviour.probe_ignores_nagle {
            return self.sendable_new_data(context, options);
        }
        let usable = (self.una + self.window).saturating_sub(self.nxt);
        let wanted = self.unsent().min(self.mss.into());
        self.new_data_in_window(options).filter(|_| wanted <= usable)
    }

    /// An ACK arrives while a probe is outstanding (`tcp_process_tlp_ack`).
    #[inline(never)]
    pub(crate) fn process_tlp_ack(&mut self, context: Context<'_>, una: u64, sign: ProbeSigns) {
        if self.loss.process_tlp_ack(una, sign) {
            self.reduce_for_probe(context);
        }
    }
}
