//! Tail loss probes: when ACKs stay out, a packet asks for them before the timer does
//! (RFC 8985 §7).

use crate::context::Context;
use crate::departure::Data;
use crate::loss::Sign;
use crate::sender::Sender;
use crate::timer::Kind;
use tcplab_cc::Phase;
use tcplab_units::Duration;

impl Sender {
    /// Waits until a probe is due (RFC 8985 §7.2). `advancing`: an ACK has just begun a new RTO.
    /// Says whether one is wanted.
    #[inline]
    pub(crate) fn schedule_probe(&mut self, context: Context<'_>, advancing: bool) -> bool {
        context.settings.tlp
            && self.sack
            && self.has_outstanding()
            && self.set_probe_timer(context, advancing)
    }

    #[inline(never)]
    fn set_probe_timer(&mut self, context: Context<'_>, advancing: bool) -> bool {
        let Context { now, settings } = context;
        let calm = matches!(self.loss.phase(), Phase::Open | Phase::Reduced);
        if !calm {
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
            self.left_of_rto(context)
        };
        if !rto.is_zero() {
            wait = wait.min(rto);
        }
        let wait = wait + self.pacing_delay(context);
        self.timer.set(Kind::Probe, now, wait, settings);
        true
    }

    /// The probe timer ran out (RFC 8985 §7.3).
    pub(crate) fn on_probe_timer(&mut self, context: Context<'_>) {
        if self.loss.owe_probe() {
            self.timer.stop();
        }
        self.rearm(context);
    }

    /// The probe, if one is to leave, or more of it: new data if there is some that the peer takes,
    /// or the last segment again.
    #[inline(never)]
    pub(crate) fn take_probe(
        &mut self,
        context: Context<'_>,
        in_flight: u64,
        options: u64,
    ) -> Option<Data> {
        let now = context.now;
        if !self.loss.take_owed_probe() {
            return self.take_more_of_probe(options);
        }
        let data = if let Some(mut data) = self.new_for_probe(context, options) {
            let Some((segments, push)) = self.take_probe_packet(context, in_flight) else {
                self.wait_without_probe(context);
                return None;
            };
            self.loss.set_probe_size(segments, push);
            data.push |= push && segments == 1;
            data
        } else {
            let tail = self.loss.scoreboard().back().map_or(self.una, |tail| tail.start);
            if self.departure.waits_for_device(tail) {
                self.wait_without_probe(context);
                return None;
            }
            let leaves_at = self.departure.leaves_at(now);
            let last = self.loss.probe_last(leaves_at)?;
            // The segment becomes a packet by itself.
            self.departure.note_again(now, &(last.start..last.end().min(self.written)), 0);
            Data { is_probe: true, ..self.again(last.start, last.end()) }
        };
        let end = if data.again { self.nxt } else { data.end() };
        self.loss.note_probe(end, data.again);
        Some(data)
    }

    /// No probe could leave: the RTO runs from when the oldest segment left, and not from now
    /// (`tcp_send_loss_probe` leaves `icsk_pending` as it is for `tcp_rearm_rto`).
    #[cold]
    fn wait_without_probe(&mut self, context: Context<'_>) {
        let rto = self.left_of_rto(context).max(Duration::from_micros(1));
        let wait = rto + self.pacing_delay(context);
        self.timer.set(Kind::Retransmit, context.now, wait, context.settings);
    }

    fn take_more_of_probe(&mut self, options: u64) -> Option<Data> {
        let mut more = self.any_chunk(options);
        let is_full = more.is_some_and(|more| more.payload == self.mss);
        let is_pushed = self.loss.note_more_of_probe(more.map(|more| more.end()), is_full);
        if let Some(more) = &mut more {
            more.push |= is_pushed;
        }
        more
    }

    /// New data that is not cut short by the peer's window (`tcp_snd_wnd_test`). Linux does not
    /// wait until it is worth a segment (`TCP_NAGLE_OFF`).
    fn new_for_probe(&self, context: Context<'_>, options: u64) -> Option<Data> {
        if !context.settings.behaviour.probe_ignores_nagle {
            return self.chunk(context, options);
        }
        let usable = (self.una + self.window).saturating_sub(self.nxt);
        let wanted = self.unsent().min(self.mss.into());
        self.any_chunk(options).filter(|_| wanted <= usable)
    }

    /// Handles an ACK that arrives while a tail loss probe is outstanding.
    #[inline(never)]
    pub(crate) fn on_ack_of_probe(&mut self, context: Context<'_>, una: u64, sign: Sign) {
        if self.loss.judge_probe(una, sign) {
            self.reduce_for_probe(context);
        }
    }
}
