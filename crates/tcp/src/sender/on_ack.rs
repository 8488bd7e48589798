//! On an ACK: what it delivers goes to the owners, and the controller decides.

use crate::context::Context;
use crate::ecn::{EcnState, Report};
use crate::loss::{Arrival, Progress, Seen, Sign};
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

/// The context of an acknowledgment.
#[derive(Debug)]
pub(crate) struct AckContext<'a> {
    /// When the segment left, by our clock of timestamps.
    pub echoed: Option<u64>,
    /// The ACK's report of marks, and the state of ECN.
    pub report: Report,
    pub ecn: &'a mut EcnState,
    /// A predicted data segment: Linux takes the data first, and only news from its acknowledgment
    /// (`tcp_rcv_established`).
    pub is_predicted: bool,
}

impl AckContext<'_> {
    /// Whether the ACK reports marks, and with accurate ECN how many of the `delivered` segments
    /// were marked; without, all or none were.
    #[inline]
    fn newly_marked(self, delivered: u64) -> (bool, Option<u64>) {
        if let Report::Echo(marked) = self.report {
            return (marked, None);
        }
        let counted = self.ecn.newly_marked(self.report, delivered);
        (counted > 0, Some(counted))
    }
}

/// News of the peer's window in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowNews {
    /// Nothing that counts.
    None,
    /// The window is the same, and the segment is newer than the last that set it.
    Same,
    /// Another window.
    Changed,
}

/// A report of something that came twice.
#[derive(Clone, Copy, Debug, Default)]
struct Dsack {
    found: bool,
    /// The tail loss probe was the duplicate.
    is_probe: bool,
    /// Segments that were sent again without need: they have been delivered all the same.
    delivered: u64,
}

fn said(timestamps: segment::Timestamps) -> Timestamps {
    Timestamps { sent: timestamps.value.into(), echoed: timestamps.echo.into() }
}

impl Sender {
    /// Takes an acknowledgment of `ack`, which is not beyond `nxt`. Says whether new data was
    /// acknowledged.
    #[inline]
    pub fn on_ack(
        &mut self,
        context: Context<'_>,
        segment: &Segment,
        (seq, ack): (u64, u64),
        answer: AckContext<'_>,
    ) -> bool {
        self.departure.look_again();
        let window = self.update_window(context, segment, (seq, ack));
        let acked_bytes = ack.saturating_sub(self.una);
        let has_blocks = !segment.sack().is_empty();
        if acked_bytes == 0 && !has_blocks && (ack < self.una || self.awaits_nothing(&answer)) {
            if !self.congestion.is_controlled() && !answer.is_predicted && segment.payload > 0 {
                self.congestion.note_early_arrival();
            }
            return false;
        }
        self.process_ack(context, segment, (ack, window), answer)
    }

    /// Processes an ACK that may acknowledge or report data, and not only move the window.
    #[inline(never)]
    fn process_ack(
        &mut self,
        context: Context<'_>,
        segment: &Segment,
        (ack, window): (u64, WindowNews),
        answer: AckContext<'_>,
    ) -> bool {
        let acked_bytes = ack.saturating_sub(self.una);
        let has_blocks = !segment.sack().is_empty();
        let (echoed, in_flight_before) = (answer.echoed, self.in_flight());
        let (has_data, is_idle) = (segment.payload > 0, !self.has_outstanding());
        let is_predicted_data = !has_data || answer.is_predicted;
        let mut progress =
            Progress { arrival: self.arrival(context, echoed), ..Progress::default() };
        let dsack = if self.sack && has_blocks {
            self.take_sack(segment, ack, &mut progress)
        } else {
            Dsack::default()
        };
        if acked_bytes > 0 {
            self.advance(context.now, ack, &mut progress);
        }
        // A bare ACK carries no data and leaves the window as it is.
        let is_bare = segment.sequence_length() == 0 && window == WindowNews::None;
        let duplicate = acked_bytes == 0
            && if self.sack {
                progress.delivered > 0
            } else {
                is_bare && ack == self.una && self.has_outstanding()
            };
        let (marked, counted) = answer.newly_marked(progress.delivered);
        let timestamps = echoed.and(segment.timestamps()).map(said);
        let is_predicted =
            !has_blocks && window != WindowNews::Changed && !marked && is_predicted_data;
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
        let is_news =
            acked_bytes > 0 || progress.delivered > 0 || duplicate || dsack.found || marked;
        if !is_news && self.is_calm() {
            // From other data segments Linux takes only the data, unless they acknowledge some.
            if !(has_data && is_predicted) {
                self.report_ack(context.now, &mut in_words(&progress, None));
            }
            self.report_idle_ack(context, in_flight_before);
            return false;
        }
        let may_be_delayed = acked_bytes < u64::from(self.mss)
            && (progress.acked, progress.delivered) == (1, 1)
            && self.loss.scoreboard().sacked() == 0
            && !(progress.repairs_acked || dsack.found || marked);
        let seen = Seen {
            advanced: acked_bytes > 0,
            before: self.una - acked_bytes,
            duplicate,
            reports: progress.sacked > 0,
            echoed,
            marked,
        };
        let (delivered, lost, times_set) = (progress.delivered, self.lost, self.timer.sets);
        self.count_duplicates(context, seen, &mut progress);
        let rtt = self.time(context, &progress, echoed);
        if self.sack {
            self.learn_reordering(context, &progress, dsack.delivered);
        }
        let mut brought = in_words(&progress, rtt);
        self.report_ack(context.now, &mut brought);
        let is_news_of_then = progress.acked == 0 && self.is_older(context, &progress);
        if self.loss.has_probe() {
            let sign = Sign { dsack: dsack.is_probe, is_plain_duplicate: !is_news && is_bare };
            self.on_ack_of_probe(context, ack, sign);
        }
        let is_plain = acked_bytes > 0 && delivered == progress.delivered && progress.sacked == 0;
        if !is_plain || dsack.found || marked || self.loss.phase() != Phase::Open {
            self.detect_loss_on_ack(context, seen, &progress);
        }
        let is_reorder_set = self.timer.kind == Kind::Reorder && self.timer.sets != times_set;
        if (progress.acked > 0 || is_news_of_then) && !is_reorder_set {
            self.wait_on(context);
        }
        progress.delivered +=
            if context.settings.behaviour.dsack_counts_as_delivered { dsack.delivered } else { 0 };
        self.delivered += progress.delivered;
        let lost = self.lost - lost;
        if self.congestion.is_reducing() && self.loss.recovery().is_reducing() {
            self.reduce(progress.delivered, lost, acked_bytes > 0);
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
        self.decide(context, &brought);
        acked_bytes > 0
    }

    /// Nothing was sent that an ACK without blocks and marks could tell of.
    #[inline]
    fn awaits_nothing(&self, answer: &AckContext<'_>) -> bool {
        !self.congestion.is_controlled()
            && !self.has_outstanding()
            && matches!(answer.report, Report::Echo(false))
    }

    /// The state of the sender that interprets an ACK.
    #[inline]
    fn arrival(&self, context: Context<'_>, echoed: Option<u64>) -> Arrival {
        let loss = &self.loss;
        Arrival {
            too_late: context.settings.behaviour.clock.before(context.now, self.rtt.min_rtt()),
            echoed,
            episode_end: loss.recovery().end(),
            highest: loss.scoreboard().highest_sacked().unwrap_or(0),
            clock: context.settings.behaviour.clock,
        }
    }

    /// Nothing is amiss, and no probe of the tail is under way.
    #[inline]
    fn is_calm(&self) -> bool {
        let loss = &self.loss;
        loss.phase() == Phase::Open && !loss.has_probe()
    }

    /// Tells the controller what an ACK brought, all in all, and does as it decides.
    #[expect(clippy::inline_always, reason = "every ACK passes here")]
    #[inline(always)]
    fn decide(&mut self, context: Context<'_>, brought: &Ack) {
        let now = context.now;
        self.consult(now, |cc, flow| cc.on_ack(flow, brought));
        // Most controllers are of neither kind, and need not be asked.
        let samples_rate = self.loss.rates().is_some_and(DeliveryRate::has_listener);
        if samples_rate && self.congestion.cc().is_some_and(CongestionControl::is_holding_back) {
            self.mark_app_limited();
        }
        if brought.credit > 0 && !self.loss.recovery().is_reducing() {
            self.congestion.note_decision(now);
        }
        if self.congestion.wants_reduction() && self.loss.phase() < Phase::Reduced {
            self.reduce_for_mark(context);
        }
        self.update_rate(context);
    }

    /// Reports an ACK without news to a controller that samples the delivery rate: the time
    /// matters.
    #[inline(never)]
    fn report_idle_ack(&mut self, context: Context<'_>, in_flight_before: u64) {
        let listens = self.loss.rates().is_some_and(DeliveryRate::has_listener);
        if listens && self.has_outstanding() {
            self.decide(context, &Ack { in_flight_before, ..Ack::default() });
        }
    }

    /// Data before `ack` is acknowledged.
    #[inline]
    fn advance(&mut self, now: Time, ack: u64, progress: &mut Progress) {
        self.loss.acknowledge(ack, progress);
        self.una = ack;
        let cut_off = self.departure.acknowledge(ack);
        if let (Some(packet_end), Some((_, end))) = (cut_off, &mut progress.latest)
            && *end == ack
        {
            // RACK takes a packet that is acknowledged in part for one that ends where it ends
            // (`tcp_clean_rtx_queue`).
            *end = packet_end;
        }
        if self.departure.has_path() {
            self.judge_size_probe(now);
        }
    }

    /// Reports an ACK to a controller that asks for that, before losses are detected.
    #[inline]
    fn report_ack(&mut self, now: Time, brought: &mut Ack) {
        if self.congestion.hears_arrivals() {
            self.report_arrival(now, brought);
        }
    }

    /// Reports the data segments that arrived before the controller was created. Linux has a
    /// controller from the start and calls it for the ACK of each data segment that finds no
    /// receive memory reserved: for the first one, and for all whose data is read at once
    /// (`tcp_rcv_established`, `tcp_in_ack_event`). Such an ACK acknowledges nothing.
    #[cold]
    pub(crate) fn report_early_arrivals(&mut self, now: Time) {
        for _ in 0..self.congestion.take_early_arrivals() {
            self.report_ack(now, &mut Ack { is_idle: true, ..Ack::default() });
        }
    }

    #[inline(never)]
    fn report_arrival(&mut self, now: Time, brought: &mut Ack) {
        let rates = self.loss.rates();
        brought.delivered_at_send = rates.and_then(DeliveryRate::delivered_at_send);
        self.consult(now, |cc, flow| cc.on_arrival(flow, brought));
        brought.delivered_at_send = None;
    }

    /// Ends the round trip in progress, if this ACK does.
    #[inline]
    fn end_round(&mut self, now: Time, brought: &Ack) -> Option<Round> {
        let (una, nxt) = (self.una, self.nxt);
        self.congestion.end_round(now, una, nxt, brought)
    }

    /// Measures the path; gives the RTT of the newest segment that arrived.
    #[inline]
    fn time(
        &mut self,
        context: Context<'_>,
        progress: &Progress,
        echoed: Option<u64>,
    ) -> Option<Duration> {
        let Context { now, settings } = context;
        let at = Progressed { una: self.una, nxt: self.nxt };
        let mut newest = progress.newest().map(|sent| settings.behaviour.clock.elapsed(now, sent));
        // Timestamps are too coarse for what is reported.
        if let Some(rtt) = newest {
            self.rtt.note(rtt);
        }
        let mut measured =
            progress.oldest().map(|sent| settings.behaviour.clock.elapsed(now, sent));
        if measured.is_none()
            && settings.behaviour.timestamp_times_retransmissions
            && progress.acked > 0
        {
            // The echoed timestamp tells which of several it was that arrived.
            measured = echoed.map(|sent| Duration::from_millis((clock(now) - sent).max(1)));
            newest = measured;
        }
        if let Some(rtt) = measured {
            self.rtt.sample(rtt, at, &settings.rto_limits());
        }
        if let Some(rtt) = newest {
            self.rtt.note_path(rtt);
        }
        newest
    }

    /// Learns how much the path reorders from the order in which segments arrived (RFC 8985 §6.2).
    #[inline(never)]
    fn learn_reordering(&mut self, context: Context<'_>, progress: &Progress, twice: u64) {
        let settings = context.settings;
        if settings.rack {
            self.loss.follow_departures(context.now, progress, settings);
        }
        if let Some(lowest) = progress.overtaken {
            self.note_reordering(context, lowest);
        }
        if !settings.rack {
            return;
        }
        if !settings.behaviour.rack_rounds_by_delivered {
            return self.loss.adapt_reordering_window(self.una, self.nxt);
        }
        // A round trip is over when a segment is delivered that left after it began
        // (`tcp_rack_update_reo_wnd`).
        let rates = self.loss.rates();
        if let Some(before) = rates.and_then(DeliveryRate::delivered_at_send) {
            self.loss.adapt_reordering_window(before, self.delivered + progress.delivered + twice);
        }
    }

    /// Waits for what is outstanding after data was acknowledged (RFC 6298 §5.2, §5.3).
    #[inline]
    fn wait_on(&mut self, context: Context<'_>) {
        if !self.has_outstanding() {
            self.timer.stop();
        } else if !self.schedule_probe(context, true)
            && self.loss.recovery().moves_timer(context.settings, self.sack)
        {
            if context.settings.behaviour.rto_restarts_from_head {
                self.rearm(context);
            } else {
                self.wait_for_answer(context);
            }
        }
    }

    /// Whether the segments SACKed had left before the head did, which was retransmitted since. The
    /// head has no answer yet, and Linux waits another RTO for it (`tcp_clean_rtx_queue`).
    #[inline]
    fn is_older(&self, context: Context<'_>, progress: &Progress) -> bool {
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

    /// Takes the window of the newest segment (RFC 9293 §3.10.7.4).
    #[inline]
    fn update_window(
        &mut self,
        context: Context<'_>,
        segment: &Segment,
        (seq, ack): (u64, u64),
    ) -> WindowNews {
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.peer_window_scale };
        let window = u64::from(segment.window) << scale;
        let changed = window != self.window;
        let set_by = self.window_set_by;
        let is_newer = if context.settings.behaviour.window_update_must_grow {
            // `tcp_may_update_window`: of what is as new as the last, only a larger one, or none.
            let is_other = window > self.window || window == 0;
            ack > self.una || seq > set_by.0 || (seq == set_by.0 && is_other)
        } else {
            (seq, ack) >= set_by
        };
        if ack < self.una || !is_newer {
            return WindowNews::None;
        }
        self.window_set_by = (seq, ack);
        self.window = window;
        self.largest_window = self.largest_window.max(window);
        match (changed, context.settings.behaviour.window_update_must_grow) {
            (true, _) => WindowNews::Changed,
            // A newer segment is no duplicate (`FLAG_WIN_UPDATE`).
            (false, true) => WindowNews::Same,
            (false, false) => WindowNews::None,
        }
    }

    /// Whether a header with this window offers what is offered now.
    pub fn is_window(&self, field: u16) -> bool {
        u64::from(field) << self.peer_window_scale == self.window
    }

    /// Takes the SACK blocks of an ACK of `ack`; the first may report a duplicate (RFC 2883).
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
        // From the lowest up: what is delivered below another was overtaken by it.
        let mut lowest = 0;
        let rest = &blocks[usize::from(dsack.found)..];
        for _ in rest {
            let above = |range: &Range<u64>| range.start >= lowest && range.start < range.end;
            let next = rest.iter().filter_map(range).filter(above).min_by_key(|range| range.start);
            let Some(range) = next else { break };
            lowest = range.end;
            // Blocks of what is acknowledged or was never sent say nothing (RFC 2018 §5).
            if range.end > self.una && range.end <= self.nxt {
                let range = range.start.max(self.una)..range.end;
                self.departure.arrived(&range);
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
            // The network made the copy.
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

    /// How many segments of growth an ACK is worth.
    #[inline]
    fn credit(&mut self, context: Context<'_>, acked_bytes: u64, progress: &Progress) -> u64 {
        let settings = context.settings;
        match settings.counting {
            // `tcp_may_raise_cwnd`: where much comes late, what is reported counts when it is.
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
                // RFC 3465 §2.3: after a timeout L is 1, and in congestion avoidance there is none.
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
