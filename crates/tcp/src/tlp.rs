//! Tail loss probes: when ACKs stay out, a packet asks for them before the timer does
//! (RFC 8985 §7).

use crate::output::Data;
use crate::recovery::Phase;
use crate::sender::Sender;
use crate::settings::Settings;
use crate::timer::Kind;
use tcplab_units::Time;

/// The probe under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// `TLP.end_seq`: what had been sent with the last probe ends here.
    pub end: Option<u64>,
    /// The probe was a retransmission.
    pub is_again: bool,
    /// Segments outstanding when it left.
    pub flight: u64,
    /// A probe is to leave.
    owed: bool,
    /// Segments of new data that it may have beside those that left.
    left: u64,
    /// The last of these is marked as pushed.
    push: bool,
}

impl TailProbe {
    /// Whether a probe is to leave, or more of one.
    #[inline]
    pub fn owes_probe(&self) -> bool {
        self.owed || self.left > 0
    }
}

impl Sender {
    /// Waits until a probe is due (RFC 8985 §7.2). `advancing`: an ACK has just begun a new RTO.
    /// Says whether one is wanted.
    #[inline]
    pub(crate) fn schedule_probe(
        &mut self,
        now: Time,
        advancing: bool,
        settings: &Settings,
    ) -> bool {
        settings.tlp
            && self.sack
            && self.has_outstanding()
            && self.set_probe_timer(now, advancing, settings)
    }

    #[inline(never)]
    fn set_probe_timer(&mut self, now: Time, advancing: bool, settings: &Settings) -> bool {
        let calm = matches!(self.flight.recovery.phase, Phase::Open | Phase::Reduced);
        if !calm {
            return false;
        }
        let srtt = self.rtt.srtt();
        let is_lone = self.flight.board.outstanding() == 1;
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
            self.left_of_rto(now, settings)
        };
        if !rto.is_zero() {
            wait = wait.min(rto);
        }
        let wait = wait + self.pacing_delay(now, settings);
        self.timer.set(Kind::Probe, now, wait, settings);
        true
    }

    /// It is time for a probe (RFC 8985 §7.3).
    pub(crate) fn on_probe_timer(&mut self, now: Time, settings: &Settings) {
        if self.flight.tlp.end.is_none() {
            self.flight.tlp.owed = true;
            self.timer.stop();
        }
        self.rearm(now, settings);
    }

    /// The probe, if one is to leave, or more of it: new data if there is some that the peer takes, or the
    /// last segment again.
    #[inline(never)]
    pub(crate) fn take_probe(
        &mut self,
        now: Time,
        in_flight: u64,
        settings: &Settings,
        options: u64,
    ) -> Option<Data> {
        if !std::mem::take(&mut self.flight.tlp.owed) {
            return self.take_more_of_probe(options);
        }
        let data = if let Some(mut data) = self.new_for_probe(settings, options) {
            let (segments, push) = self.take_probe_packet(now, in_flight, settings)?;
            (self.flight.tlp.left, self.flight.tlp.push) = (segments - 1, push);
            data.push |= push && segments == 1;
            data
        } else {
            if self.waits_for_device() {
                return None;
            }
            let leaves_at = self.leaves_at(now);
            let last = self.flight.board.probe_last(leaves_at)?;
            if let Some(buffer) = &mut self.buffer {
                // The segment becomes a packet by itself.
                buffer.again(now, &(last.start..last.end().min(self.written)), 0);
            }
            Data { is_probe: true, ..self.again(last.start, last.end()) }
        };
        self.flight.tlp.is_again = data.again;
        self.flight.tlp.flight = self.flight.board.outstanding();
        self.flight.tlp.end = Some(if data.again { self.nxt } else { data.end() });
        Some(data)
    }

    fn take_more_of_probe(&mut self, options: u64) -> Option<Data> {
        let mut more = self.any_chunk(options);
        let is_full = more.is_some_and(|more| more.payload == self.mss);
        let left = self.flight.tlp.left - 1;
        self.flight.tlp.left = if is_full { left } else { 0 };
        if let Some(more) = more.as_mut().filter(|_| self.flight.tlp.left == 0) {
            more.push |= self.flight.tlp.push;
        }
        self.flight.tlp.end = more.map(|more| more.end()).or(self.flight.tlp.end);
        more
    }

    /// New data that is not cut short by the peer's window (`tcp_snd_wnd_test`). Linux does not wait until it
    /// is worth a segment (`TCP_NAGLE_OFF`).
    fn new_for_probe(&self, settings: &Settings, options: u64) -> Option<Data> {
        if !settings.behaviour.probe_ignores_nagle {
            return self.chunk(settings, options);
        }
        let usable = (self.una + self.window).saturating_sub(self.nxt);
        let wanted = self.unsent().min(self.mss.into());
        self.any_chunk(options).filter(|_| wanted <= usable)
    }

    /// An ACK comes while a probe is under way.
    #[inline(never)]
    pub(crate) fn heed_probe(&mut self, now: Time, una: u64, sign: Sign, settings: &Settings) {
        if self.judge_probe(una, sign) {
            self.reduce_for_probe(now, settings);
        }
    }

    /// What an ACK says of the probe (RFC 8985 §7.4.2). Says whether the probe repaired a loss, which
    /// was a sign of congestion like others.
    fn judge_probe(&mut self, una: u64, sign: Sign) -> bool {
        let Some(end) = self.flight.tlp.end.filter(|&end| una >= end) else { return false };
        let repaired = self.flight.tlp.is_again && !sign.dsack && una > end;
        // A plain duplicate: both copies arrived.
        if !self.flight.tlp.is_again || sign.dsack || una > end || sign.is_plain_duplicate {
            self.flight.tlp.end = None;
        }
        repaired
    }
}

/// What an ACK was, as far as a probe is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    /// It reports that the probe came twice.
    pub dsack: bool,
    pub is_plain_duplicate: bool,
}
