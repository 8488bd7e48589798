//! Processing of an ACK (`tcp_ack`): deliveries go to the owners, and the controller decides.

use crate::context::Context;
use crate::ecn::{EcnState, Report};
use crate::loss::{AckSigns, AckState, ProbeSigns, Progress};
use crate::segment::{self, Flags, SackBlock, Segment, clock};
use crate::sender::Sender;
use crate::settings::AckCounting;
use crate::timer::Kind;
use std::ops::Range;
use tcplab_cc::{Ack, CongestionControl, Phase, Round, Timestamps};
use tcplab_transport::Delivery;
use tcplab_transport::DeliveryRate;
use tcplab_transport::Progressed;
use tcplab_units::{Duration, Time};

/// What the endpoint knows of an acknowledgment.
#[derive(Debug)]
pub(crate) struct AckContext<'a> {
    /// When the segment left whose timestamp the ACK echoes, by our timestamp clock.
    pub echoed: Option<u64>,
    /// The ACK's ECN feedback, and the state of ECN.
    pub report: Report,
    pub ecn: &'a mut EcnState,
    /// Header prediction: Linux processes the segment's data first, and its acknowledgment only if
    /// it is new (`tcp_rcv_established`).
    pub is_predicted: bool,
}

impl AckContext<'_> {
    /// Whether the ACK reports marks and, with accurate ECN, how many of the `delivered` segments
    /// were marked. Without accurate ECN all or none were.
    #[inline]
    fn newly_marked(self, delivered: u64) -> (bool, Option<u64>) {
        if let Report::Echo(marked) = self.report {
            return (marked, None);
        }
        let counted = self.ecn.newly_marked(self.report, delivered);
        (counted > 0, Some(counted))
    }
}

/// The effect of a segment on the send window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowUpdate {
    /// No update.
    None,
    /// The window is unchanged, and the segment is newer than the one that last set it.
    Same,
    /// The window has changed.
    Changed,
}

/// The DSACK of an ACK (RFC 2883).
#[derive(Clone, Copy, Debug, Default)]
struct Dsack {
    found: bool,
    /// The duplicate is the tail loss probe.
    is_probe: bool,
    /// Spurious retransmissions. They were delivered all the same.
    delivered: u64,
}

fn cc_timestamps(timestamps: segment::Timestamps) -> Timestamps {
    Timestamps { sent: timestamps.value.into(), echoed: timestamps.echo.into() }
}

impl Sender {
    /// Processes an acknowledgment of `ack`, which is at most `nxt`. Returns whether new data was
    /// acknowledged.
    #[inline]
    pub fn on_ack(
        &mut self,
        context: Context<'_>,
        segment: &Segment,
        (seq, ack): (u64, u64),
        answer: AckContext<'_>,
    ) -> bool {
        self.departure.on_ack_received();
        let window = self.update_window(context, segment, (seq, ack));
        let acked_bytes = ack.saturating_sub(self.una);
        let has_blocks = !segment.sack().is_empty();
        if acked_bytes == 0 && !has_blocks && (ack < self.una || self.expects_no_ack(&answer)) {
            if !self.congestion.is_controlled() && !answer.is_predicted && segment.payload > 0 {
                self.congestion.note_early_arrival();
            }
            return false;
        }
        self.process_ack(context, segment, (ack, window), answer)
    }

    /// Processes an acknowledgment that may carry more than a window update. Out of line: for an
    /// end that only receives, most ACKs do not get here.
    #[inline(never)]
    fn process_ack(
        &mut self,
        context: Context<'_>,
        segment: &Segment,
        (ack, window): (u64, WindowUpdate),
        answer: AckContext<'_>,
    ) -> bool {
        let acked_bytes = ack.saturating_sub(self.una);
        let has_blocks = !segment.sack().is_empty();
        let (echoed, in_flight_before) = (answer.echoed, self.in_flight());
        let (has_data, is_idle) = (segment.payload > 0, !self.has_outstanding());
        let is_predicted_data = !has_data || answer.is_predicted;
        let mut progress =
            Progress { ack_state: self.ack_state(context, echoed), ..Progress::default() };
        let dsack = if self.sack && has_blocks {
            self.take_sack(segment, ack, &mut progress)
        } else {
            Dsack::default()
        };
        if acked_bytes > 0 {
            self.advance_una(context.now, ack, &mut progress);
        }
        // RFC 5681 §2: a duplicate ACK has no data and does not change the window.
        let is_bare = segment.sequence_length() == 0 && window == WindowUpdate::None;
        let duplicate = acked_bytes == 0
            && if self.sack {
                progress.delivered > 0
            } else {
                is_bare && ack == self.una && self.has_outstanding()
            };
        let (marked, counted) = answer.newly_marked(progress.delivered);
        let timestamps = echoed.and(segment.timestamps()).map(cc_timestamps);
        let is_predicted =
            !has_blocks && window != WindowUpdate::Changed && !marked && is_predicted_data;
        let ce = |delivered| counted.unwrap_or(if marked { delivered } else { 0 });
        let in_words = |progress: &Progress, rtt| Ack {
            acked: progress.acked,
            delivered: progress.delivered,
            ce: ce(progress.delivered),
            rtt,
            one_way_delay: timestamps.map(Timestamps::one_way_delay),
            timestamps,
            is_idle,
            is_predicted,
            in_flight_before,
            ..Ack::default()
        };
        let is_news = acked_bytes + progress.delivered > 0 || duplicate || dsack.found || marked;
        if !is_news && self.is_open_without_probe() {
            // Of a predicted data segment that acknowledges nothing, Linux does not process the
            // acknowledgment.
            if !(has_data && is_predicted) {
                self.in_ack_event(context.now, &mut in_words(&progress, None));
            }
            self.consult_on_empty_ack(context, in_flight_before);
            return false;
        }
        let may_be_delayed = acked_bytes < u64::from(self.mss)
            && (progress.acked, progress.delivered) == (1, 1)
            && self.loss.scoreboard().sacked() == 0
            && !(progress.retransmissions_acked || dsack.found || marked);
        let seen = AckSigns {
            advanced: acked_bytes > 0,
            before: self.una - acked_bytes,
            duplicate,
            reports: progress.sacked > 0,
            echoed,
            marked,
        };
        let (delivered, lost, times_set) = (progress.delivered, self.lost, self.timer.sets);
        self.count_dup_acks(context, seen, &mut progress);
        let rtt = self.sample_rtt(context, &progress, echoed);
        if self.sack {
            self.update_reordering(context, &progress, dsack.delivered);
        }
        let mut brought = in_words(&progress, rtt);
        self.in_ack_event(context.now, &mut brought);
        let is_news_of_then = progress.acked == 0 && self.is_sacked_before_head(context, &progress);
        if self.loss.has_probe() {
            let sign =
                ProbeSigns { dsack: dsack.is_probe, is_plain_duplicate: !is_news && is_bare };
            self.process_tlp_ack(context, ack, sign);
        }
        let is_plain = acked_bytes > 0 && delivered == progress.delivered && progress.sacked == 0;
        if !is_plain || dsack.found || marked || self.loss.phase() != Phase::Open {
            self.fastretrans_alert(context, seen, &progress);
        }
        let is_reorder_set = self.timer.kind == Kind::Reorder && self.timer.sets != times_set;
        if (progress.acked > 0 || is_news_of_then) && !is_reorder_set {
            self.rearm_after_ack(context);
        }
        progress.delivered +=
            if context.settings.behaviour.dsack_counts_as_delivered { dsack.delivered } else { 0 };
        self.delivered += progress.delivered;
        let lost = self.lost - lost;
        if self.congestion.is_reducing() && self.loss.recovery().is_reducing() {
            self.update_reduction(progress.delivered, lost, acked_bytes > 0);
        }
        let delivery = Delivery { count: progress.delivered, is_delayed: may_be_delayed };
        (brought.delivered, brought.ce) = (progress.delivered, ce(progress.delivered));
        brought.lost = lost;
        // Most ACKs have neither a sample nor the end of a round.
        if let Some(rate) = self.sample_rate(context, delivery) {
            brought.rate = Some(rate);
        }
        if let Some(round) = self.end_round(context.now, &brought) {
            brought.round = Some(round);
        }
        brought.credit = self.credit(context, acked_bytes, &progress);
        self.consult_on_ack(context, &brought);
        acked_bytes > 0
    }

    /// Whether nothing was sent that an ACK without SACK blocks and ECN marks could acknowledge.
    #[inline]
    fn expects_no_ack(&self, answer: &AckContext<'_>) -> bool {
        !self.congestion.is_controlled()
            && !self.has_outstanding()
            && matches!(answer.report, Report::Echo(false))
    }

    /// The sender's state by which an ACK is interpreted.
    #[inline]
    fn ack_state(&self, context: Context<'_>, echoed: Option<u64>) -> AckState {
        let loss = &self.loss;
        AckState {
            too_late: context.settings.behaviour.clock.before(context.now, self.rtt.min_rtt()),
            echoed,
            episode_end: loss.recovery().end(),
            highest: loss.scoreboard().highest_sacked().unwrap_or(0),
            clock: context.settings.behaviour.clock,
        }
    }

    /// Whether the phase is `Open` and no tail loss probe is outstanding.
    #[inline]
    fn is_open_without_probe(&self) -> bool {
        let loss = &self.loss;
        loss.phase() == Phase::Open && !loss.has_probe()
    }

    /// Tells the controller the total effect of an ACK, and applies its decision.
    #[expect(clippy::inline_always, reason = "every ACK passes here")]
    #[inline(always)]
    fn consult_on_ack(&mut self, context: Context<'_>, brought: &Ack) {
        let now = context.now;
        self.consult(now, |cc, flow| cc.on_ack(flow, brought));
        // Most controllers neither sample the rate nor hold back.
        let samples_rate = self.loss.rates().is_some_and(DeliveryRate::has_listener);
        if samples_rate && self.congestion.cc().is_some_and(CongestionControl::is_holding_back) {
            self.mark_app_limited();
        }
        if brought.credit > 0 && !self.loss.recovery().is_reducing() {
            self.congestion.stamp_cwnd(now);
        }
        if self.congestion.wants_reduction() && self.loss.phase() < Phase::Reduced {
            self.reduce_for_mark(context);
        }
        self.update_rate(context);
    }

    /// An ACK without any effect: a controller that samples the rate runs nevertheless, since time
    /// has passed.
    #[inline(never)]
    fn consult_on_empty_ack(&mut self, context: Context<'_>, in_flight_before: u64) {
        let listens = self.loss.rates().is_some_and(DeliveryRate::has_listener);
        if listens && self.has_outstanding() {
            self.consult_on_ack(context, &Ack { in_flight_before, ..Ack::default() });
        }
    }

    /// Data below `ack` is acknowledged (`tcp_clean_rtx_queue`).
    #[inline]
    fn advance_una(&mut self, now: Time, ack: u64, progress: &mut Progress) {
        self.loss.acknowledge(ack, progress);
        self.una = ack;
        let cut_off = self.departure.acknowledge(ack);
        if let (Some(packet_end), Some((_, end))) = (cut_off, &mut progress.latest)
            && *end == ack
        {
            // RACK compares packets: a packet that is partly acknowledged counts with its full end
            // (`tcp_clean_rtx_queue`).
            *end = packet_end;
        }
        if self.departure.has_path_mtu() {
            self.on_mtu_probe_acked(now);
        }
    }

    /// Calls the controller's hook for an ACK before loss detection, if there is one
    /// (`tcp_in_ack_event`).
    #[inline]
    fn in_ack_event(&mut self, now: Time, brought: &mut Ack) {
        if self.congestion.wants_in_ack_event() {
            self.call_in_ack_event(now, brought);
        }
    }

    /// Data arrived before there was a controller. In Linux there is one from establishment on, and
    /// its `in_ack_event` runs for the ACK of every data segment for which the socket has no memory
    /// allocated: the first, and all where the application reads at once (`tcp_rcv_established`).
    #[cold]
    pub(crate) fn replay_in_ack_events(&mut self, now: Time) {
        for _ in 0..self.congestion.take_segments_before_controller() {
            self.in_ack_event(now, &mut Ack { is_idle: true, ..Ack::default() });
        }
    }

    #[inline(never)]
    fn call_in_ack_event(&mut self, now: Time, brought: &mut Ack) {
        let rates = self.loss.rates();
        brought.delivered_at_send = rates.and_then(DeliveryRate::delivered_at_send);
        self.consult(now, |cc, flow| cc.on_arrival(flow, brought));
        brought.delivered_at_send = None;
    }

    /// Ends the present round trip, if this ACK does.
    #[inline]
    fn end_round(&mut self, now: Time, brought: &Ack) -> Option<Round> {
        let (una, nxt) = (self.una, self.nxt);
        self.congestion.end_round(now, una, nxt, brought)
    }

    /// Takes RTT samples (`tcp_ack_update_rtt`). Returns the RTT of the newest segment delivered.
    #[inline]
    fn sample_rtt(
        &mut self,
        context: Context<'_>,
        progress: &Progress,
        echoed: Option<u64>,
    ) -> Option<Duration> {
        let Context { now, settings } = context;
        let at = Progressed { una: self.una, nxt: self.nxt };
        let mut newest = progress.newest().map(|sent| settings.behaviour.clock.elapsed(now, sent));
        // The RTT statistics exclude RTTs by timestamp, which are coarse.
        if let Some(rtt) = newest {
            self.rtt.record(rtt);
        }
        let mut measured =
            progress.oldest().map(|sent| settings.behaviour.clock.elapsed(now, sent));
        if measured.is_none()
            && settings.behaviour.timestamp_times_retransmissions
            && progress.acked > 0
        {
            // The echoed timestamp tells which transmission was delivered.
            measured = echoed.map(|sent| Duration::from_millis((clock(now) - sent).max(1)));
            newest = measured;
        }
        if let Some(rtt) = measured {
            self.rtt.sample(rtt, at, &settings.rto_limits());
        }
        if let Some(rtt) = newest {
            self.rtt.update_min_rtt(rtt);
        }
        newest
    }

    /// Updates RACK and the reordering degree from the order of deliveries (RFC 8985 §6.2).
    #[inline(never)]
    fn update_reordering(&mut self, context: Context<'_>, progress: &Progress, twice: u64) {
        let settings = context.settings;
        if settings.rack {
            self.loss.rack_advance(context, progress);
        }
        if let Some(lowest) = progress.overtaken {
            self.note_reordering(context, lowest);
        }
        if !settings.rack {
            return;
        }
        if !settings.behaviour.rack_rounds_by_delivered {
            return self.loss.rack_update_reo_wnd(self.una, self.nxt);
        }
        // A round trip ends with the delivery of a segment that left after its start
        // (`tcp_rack_update_reo_wnd`).
        let rates = self.loss.rates();
        if let Some(before) = rates.and_then(DeliveryRate::delivered_at_send) {
            self.loss.rack_update_reo_wnd(before, self.delivered + progress.delivered + twice);
        }
    }

    /// Restarts the timer after data was acknowledged (RFC 6298 §5.2, §5.3).
    #[inline]
    fn rearm_after_ack(&mut self, context: Context<'_>) {
        if !self.has_outstanding() {
            self.timer.stop();
        } else if !self.schedule_probe(context, true)
            && self.loss.recovery().moves_timer(context.settings, self.sack)
        {
            if context.settings.behaviour.rto_restarts_from_head {
                self.rearm_rto(context);
            } else {
                self.arm_rto(context);
            }
        }
    }

    /// Whether the SACKed segments had left before the last transmission of the head. Then Linux
    /// restarts the RTO for the head (`tcp_clean_rtx_queue`).
    #[inline]
    fn is_sacked_before_head(&self, context: Context<'_>, progress: &Progress) -> bool {
        let Context { now, settings } = context;
        let (Some((sacked, _)), Some(front)) =
            (progress.sacked_sent, self.loss.scoreboard().front())
        else {
            return false;
        };
        settings.behaviour.older_sacks_restart_rto
            && settings.behaviour.clock.elapsed(now, sacked)
                > settings.behaviour.clock.elapsed(now, front.left_at)
    }

    /// Takes the send window from the newest segment (RFC 9293 §3.10.7.4; `tcp_ack_update_window`).
    #[inline]
    fn update_window(
        &mut self,
        context: Context<'_>,
        segment: &Segment,
        (seq, ack): (u64, u64),
    ) -> WindowUpdate {
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.peer_window_scale };
        let window = u64::from(segment.window) << scale;
        let changed = window != self.window;
        let set_by = self.window_set_by;
        let is_newer = if context.settings.behaviour.window_update_must_grow {
            // `tcp_may_update_window`: a segment as new as the last one updates the window only if
            // the window grows or closes.
            let is_other = window > self.window || window == 0;
            ack > self.una || seq > set_by.0 || (seq == set_by.0 && is_other)
        } else {
            (seq, ack) >= set_by
        };
        if ack < self.una || !is_newer {
            return WindowUpdate::None;
        }
        self.window_set_by = (seq, ack);
        self.window = window;
        self.largest_window = self.largest_window.max(window);
        match (changed, context.settings.behaviour.window_update_must_grow) {
            (true, _) => WindowUpdate::Changed,
            // `FLAG_WIN_UPDATE`: an ACK that updates the window is no duplicate.
            (false, true) => WindowUpdate::Same,
            (false, false) => WindowUpdate::None,
        }
    }

    /// Whether a header's window field states the present send window.
    pub fn is_window(&self, field: u16) -> bool {
        u64::from(field) << self.peer_window_scale == self.window
    }

    /// Processes the SACK blocks of an ACK of `ack` (`tcp_sacktag_write_queue`). The first block
    /// may be a DSACK (RFC 2883).
    #[inline(never)]
    fn take_sack(&mut self, segment: &Segment, ack: u64, progress: &mut Progress) -> Dsack {
        let blocks = segment.sack();
        let (origin, una) = (self.origin, self.una);
        let range =
            |block: &SackBlock| Some(origin.offset(block.0, una)?..origin.offset(block.1, una)?);
        let mut dsack = Dsack::default();
        if let Some(first) = range(&blocks[0]).filter(|first| first.start < first.end) {
            let second = blocks.get(1).and_then(range);
            let is_within =
                second.is_some_and(|second| second.start <= first.start && first.end <= second.end);
            if first.end <= ack || is_within {
                dsack = self.take_dsack(&first, progress);
            }
        }
        // In ascending order, so that a delivery below an earlier-reported block counts as
        // reordering.
        let mut lowest = 0;
        let rest = &blocks[usize::from(dsack.found)..];
        for _ in rest {
            let above = |range: &Range<u64>| range.start >= lowest && range.start < range.end;
            let next = rest.iter().filter_map(range).filter(above).min_by_key(|range| range.start);
            let Some(range) = next else { break };
            lowest = range.end;
            // Blocks below `una` or above `nxt` are invalid (RFC 2018 §5).
            if range.end > self.una && range.end <= self.nxt {
                let range = range.start.max(self.una)..range.end;
                self.departure.on_sack_block(&range);
                self.loss.sack(range, progress);
            }
        }
        self.departure.end_of_blocks();
        dsack
    }

    fn take_dsack(&mut self, block: &Range<u64>, progress: &mut Progress) -> Dsack {
        let segments = (block.end - block.start).div_ceil(u64::from(self.mss));
        let is_probe = segments == 1 && self.loss.is_probe_end(block.end);
        self.counters.duplicate_segments += segments;
        let repeated = self.counters.retransmitted_segments + self.counters.retransmitted_fins;
        if self.counters.duplicate_segments > repeated {
            // More duplicates than retransmissions: the network duplicated a segment.
            return Dsack { found: true, is_probe, delivered: 0 };
        }
        let departure = &self.departure;
        let in_repair = |place| departure.was_retransmitted(place);
        let counts = (segments, self.una);
        let marks_late = departure.has_packets();
        self.loss.take_duplicates(block, counts, in_repair, marks_late, progress);
        if !is_probe {
            self.loss.note_duplicate();
        }
        Dsack { found: true, is_probe, delivered: segments }
    }

    /// The window growth that an ACK is worth, in segments.
    #[inline]
    fn credit(&mut self, context: Context<'_>, acked_bytes: u64, progress: &Progress) -> u64 {
        let settings = context.settings;
        match settings.counting {
            // `tcp_may_raise_cwnd`: with a high degree of reordering, SACKed segments count when
            // they are reported.
            AckCounting::PerSegment
                if progress.sacked > 0 && self.loss.reordering(settings) > settings.dup_thresh =>
            {
                progress.delivered
            }
            _ if acked_bytes == 0 => 0,
            AckCounting::PerAck => 1,
            AckCounting::PerSegment => progress.delivered,
            AckCounting::PerByte { limit } => {
                let mss = u64::from(self.mss);
                let in_slow_start = self.congestion.is_in_slow_start();
                // RFC 3465 §2.3: L is 1 after a timeout, and has no effect in congestion avoidance.
                let counted = match (in_slow_start, self.loss.phase()) {
                    (false, _) => acked_bytes,
                    (true, Phase::Loss) => acked_bytes.min(mss),
                    (true, _) => acked_bytes.min(u64::from(limit) * mss),
                };
                self.congestion.credit(counted, mss)
            }
        }
    }
}
