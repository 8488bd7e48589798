//! The sending half: what may be sent, and what an ACK means for it.

use crate::bursts::Bursts;
use crate::ecn::{Marks, Report};
use crate::pacing::Pacing;
use crate::path_mtu::Path;
use crate::rack::Rack;
use crate::rate::{Delivery, Rates};
use crate::recovery::{Phase, Recovery, Seen};
use crate::reduction::Reduction;
use crate::rounds::Rounds;
use crate::rtt::{Progressed, Rtt};
use crate::scoreboard::{Arrival, Progress, Scoreboard};
use crate::segment::{self, Flags, SackBlock, Segment, clock};
use crate::sendbuf::SendBuffer;
use crate::seq::Origin;
use crate::settings::{AckCounting, Settings};
use crate::timer::{Kind, Timer};
use crate::tlp::{Sign, Tail};
use crate::undo::Undo;
use crate::usage::Usage;
use std::ops::{Deref, DerefMut, Range};
use std::sync::LazyLock;
use tcplab_cc::{Ack, CongestionControl, Control, FlowState, Round, Timestamps};
use tcplab_units::{Duration, Time};

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with data or FIN, repeated ones included.
    pub sent_segments: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Congestion episodes: loss recoveries begun, timeouts included.
    pub episodes: u64,
    /// Segments that the receiver reports to have come twice.
    pub duplicate_segments: u64,
}

/// What an acknowledgment answers.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// When the segment left, by our clock of timestamps.
    pub echoed: Option<u64>,
    /// What it says of marks, and what is known of them.
    pub report: Report,
    pub marks: &'a mut Marks,
}

impl Answer<'_> {
    /// Whether it brings marks, and where they are counted how many of the segments that it delivers have
    /// them; else it is all or none.
    #[inline]
    fn newly_marked(self, delivered: u64) -> (bool, Option<u64>) {
        if let Report::Echo(marked) = self.report {
            return (marked, None);
        }
        let counted = self.marks.newly_marked(self.report, delivered);
        (counted > 0, Some(counted))
    }
}

/// A report of something that came twice.
#[derive(Clone, Copy, Debug, Default)]
struct Dsack {
    found: bool,
    /// It was the probe of the tail.
    is_probe: bool,
}

/// Who decides how much may be in flight, and the rounds counted on its behalf.
#[derive(Debug)]
struct Steering {
    cc: Box<dyn CongestionControl>,
    hears_arrivals: bool,
    rounds: Rounds,
}

/// What is under way, what became of it, and what is made of that.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    pub board: Scoreboard,
    pub recovery: Recovery,
    pub rack: Rack,
    pub tail: Tail,
    pub undo: Undo,
    /// While the window is led to a smaller one.
    pub reduction: Option<Reduction>,
    pub usage: Usage,
    pub bursts: Bursts,
    pub pacing: Pacing,
}

/// A flight that is made when something is first changed in it: most connections of a large experiment
/// only receive, or wait.
#[derive(Debug, Default)]
pub(crate) struct OnDemand(Option<Box<Flight>>);

/// Windows for which a send buffer has room before there is a controller that says it.
const DEFAULT_WINDOWS: u64 = 2;

static NOTHING: LazyLock<Flight> = LazyLock::new(Flight::default);

impl Deref for OnDemand {
    type Target = Flight;

    #[inline]
    fn deref(&self) -> &Flight {
        self.0.as_deref().unwrap_or_else(|| &NOTHING)
    }
}

impl DerefMut for OnDemand {
    #[inline]
    fn deref_mut(&mut self) -> &mut Flight {
        self.0.get_or_insert_default()
    }
}

#[derive(Debug)]
pub(crate) struct Sender {
    pub origin: Origin,
    /// The oldest offset not acknowledged.
    pub una: u64,
    /// The next offset to be sent for the first time.
    pub nxt: u64,
    /// The end of what the application wrote.
    pub written: u64,
    /// The application will write no more.
    pub closed: bool,
    /// Bytes the peer takes beyond `una`.
    pub window: u64,
    pub largest_window: u64,
    /// Sequence and acknowledgment of the segment that last set the window (RFC 9293 §3.10.7.4).
    window_set_by: (u64, u64),
    pub peer_window_scale: u8,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u16,
    pub sack: bool,
    /// What is under way, and all that is known of it.
    pub flight: OnDemand,
    /// The peer is to be told that the window was made smaller (RFC 3168 §6.1.2).
    pub owes_cwr: bool,
    pub rtt: Rtt,
    /// The least RTT of the path, the handshake's included.
    pub min_rtt: Duration,
    /// Waits for what is outstanding.
    pub timer: Timer,
    /// The retransmission timer runs out then at the latest, for the user timeout.
    pub deadline: Time,
    /// None until there is data to send.
    steering: Option<Box<Steering>>,
    /// The controller's last decision; before there is one, the initial window.
    pub control: Control,
    /// How Linux holds what was written, once something was.
    pub buffer: Option<Box<SendBuffer>>,
    /// What is known of the path's size, if it is not what both ends say.
    pub path: Option<Box<Path>>,
    /// The next segment may be small: the persist timer ran out (RFC 9293 §3.8.6.2.1).
    pub overrides_silly_window: bool,
    pub last_sent: Time,
    pub delivered: u64,
    /// Segments found lost, each time they are.
    pub lost: u64,
    /// Bytes acknowledged and not yet counted as growth (RFC 3465).
    credit_bytes: u64,
    pub counters: SenderCounters,
}

fn said(timestamps: segment::Timestamps) -> Timestamps {
    Timestamps { sent: timestamps.value.into(), echoed: timestamps.echo.into() }
}

/// What an ACK says for itself.
#[inline]
fn in_words(segment: &Segment, echoed: Option<u64>) -> Ack {
    let timestamps = echoed.and(segment.timestamps()).map(said);
    Ack {
        one_way_delay: timestamps.map(Timestamps::one_way_delay),
        timestamps,
        is_predicted: segment.sack().is_empty(),
        ..Ack::default()
    }
}

impl Sender {
    pub fn new(origin: u32, settings: &Settings) -> Self {
        Self {
            origin: Origin(origin),
            una: 0,
            nxt: 0,
            written: 1,
            closed: false,
            window: 0,
            largest_window: 0,
            window_set_by: (0, 0),
            peer_window_scale: 0,
            mss: settings.mss,
            sack: false,
            flight: OnDemand::default(),
            owes_cwr: false,
            rtt: Rtt::new(settings),
            min_rtt: Duration::MAX,
            timer: Timer::OFF,
            deadline: Time::NEVER,
            steering: None,
            control: Control {
                cwnd: settings.initial_window,
                ssthresh: None,
                pacing: None,
                prr: false,
                least_burst: None,
            },
            buffer: None,
            path: None,
            overrides_silly_window: false,
            last_sent: Time::ZERO,
            delivered: 0,
            lost: 0,
            credit_bytes: 0,
            counters: SenderCounters::default(),
        }
    }

    /// There is data to send, or sent with the SYN, and no controller to say how much of it may leave.
    #[inline]
    pub fn needs_control(&self) -> bool {
        self.steering.is_none() && (self.is_stuck() || self.has_outstanding())
    }

    /// Data begins, under this controller.
    #[cold]
    pub fn begin(&mut self, now: Time, cc: Box<dyn CongestionControl>, settings: &Settings) {
        self.control = cc.control();
        let (hears_arrivals, samples_rate) = (cc.hears_arrivals(), cc.samples_rate());
        if samples_rate || settings.is_linux() {
            self.flight.board.rates = Some(Box::new(Rates::new(samples_rate)));
        }
        self.steering = Some(Box::new(Steering { cc, hears_arrivals, rounds: Rounds::default() }));
        if settings.buffers_as_linux() {
            // Nothing was there to send until now.
            self.mark_app_limited();
        }
        self.consult(now, |cc, flow| cc.on_begin(flow));
        let (cwnd, windows) = (self.control.cwnd, self.buffered_windows());
        if let Some(buffer) = &mut self.buffer {
            buffer.widen(cwnd, windows);
        }
    }

    /// Segments believed to be in the network.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.flight.board.in_flight().saturating_sub(self.flight.recovery.dup_delivered())
    }

    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.una < self.nxt
    }

    /// The FIN has been sent and acknowledged.
    pub fn is_fin_acked(&self) -> bool {
        self.closed && self.una == self.written + 1
    }

    /// The congestion controller, to look at.
    pub fn cc(&self) -> Option<&dyn CongestionControl> {
        self.steering.as_ref().map(|steering| &*steering.cc)
    }

    /// Segments that may be in flight.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.flight.reduction.map_or(self.control.cwnd, |reduction| reduction.cwnd)
    }

    fn flow(&self, now: Time) -> FlowState {
        FlowState {
            now,
            mss: u64::from(self.mss),
            in_flight: self.in_flight(),
            delivered: self.delivered,
            srtt: self.rtt.srtt(),
            min_rtt: self.min_rtt,
            rto: self.rtt.plain(),
            una: self.una,
            nxt: self.nxt,
            lost: self.lost,
            next_departure: self.flight.pacing.next(),
            app_limited: self.flight.board.rates.as_ref().is_some_and(|it| it.is_app_limited()),
            cwnd_limited: self.flight.usage.is_full(&self.control),
            phase: self.flight.recovery.phase,
        }
    }

    /// Tells the controller of an event and takes its new decision.
    pub fn consult(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn CongestionControl, &FlowState),
    ) {
        let flow = self.flow(now);
        if let Some(steering) = &mut self.steering {
            event(&mut *steering.cc, &flow);
            self.control = steering.cc.control();
            if let Some(rate) = self.control.pacing {
                self.flight.bursts.set_rate(rate);
            }
        }
    }

    /// Windows of data for which a send buffer that grows has room.
    pub fn buffered_windows(&self) -> u64 {
        self.cc().map_or(DEFAULT_WINDOWS, CongestionControl::buffered_windows)
    }

    /// Takes an acknowledgment of `ack`, which is not beyond `nxt`. Says whether new data was
    /// acknowledged.
    pub fn on_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        (seq, ack): (u64, u64),
        answer: Answer<'_>,
        settings: &Settings,
    ) -> bool {
        if let Some(buffer) = &mut self.buffer {
            buffer.look_again();
        }
        let (echoed, in_flight_before) = (answer.echoed, self.in_flight());
        let window_changed = self.update_window(segment, seq, ack);
        let acked_bytes = ack.saturating_sub(self.una);
        if ack < self.una && segment.sack().is_empty() {
            return false;
        }
        let mut progress = Progress {
            arrival: Arrival {
                too_late: Time::ZERO + now.since(Time::ZERO).saturating_sub(self.min_rtt),
                echoed,
                episode_end: self.flight.recovery.end,
                highest: self.flight.board.highest_sacked().unwrap_or(0),
            },
            ..Progress::default()
        };
        let mut dsack = Dsack::default();
        if self.sack && !segment.sack().is_empty() {
            dsack = self.take_sack(segment, ack, &mut progress);
        }
        if acked_bytes > 0 {
            self.advance(now, ack, &mut progress);
        }
        let duplicate = if self.sack {
            acked_bytes == 0 && progress.delivered > 0
        } else {
            ack == self.una
                && acked_bytes == 0
                && self.has_outstanding()
                && segment.sequence_length() == 0
                && !window_changed
        };
        let (marked, counted) = answer.newly_marked(progress.delivered);
        let is_news =
            acked_bytes > 0 || progress.delivered > 0 || duplicate || dsack.found || marked;
        let mut brought = in_words(segment, echoed);
        brought.in_flight_before = in_flight_before;
        brought.is_predicted &= !(window_changed || marked);
        if !is_news && self.flight.recovery.phase == Phase::Open && self.flight.tail.end.is_none() {
            self.announce(now, &brought);
            self.pass_on_nothing(now, in_flight_before, settings);
            return false;
        }
        let may_be_delayed = acked_bytes < u64::from(self.mss)
            && (progress.acked, progress.delivered) == (1, 1)
            && self.flight.board.sacked() == 0
            && !(progress.repairs_acked || dsack.found || marked);
        let seen = Seen { advanced: acked_bytes > 0, duplicate, echoed, marked };
        let (delivered, lost) = (progress.delivered, self.lost);
        self.count_duplicates(seen, &mut progress);
        let rtt = self.time(now, &progress, echoed, settings);
        if settings.rack && self.sack {
            self.follow_order(now, &progress, settings);
        }
        brought.acked = progress.acked;
        brought.delivered = progress.delivered;
        brought.ce = counted.unwrap_or(if marked { progress.delivered } else { 0 });
        brought.rtt = rtt;
        self.announce(now, &brought);
        let had_timer = self.timer;
        let is_news_of_then = progress.acked == 0 && self.is_older(now, &progress, settings);
        if self.flight.tail.end.is_some() {
            let is_plain = !is_news && segment.sequence_length() == 0 && !window_changed;
            let sign = Sign { dsack: dsack.is_probe, is_plain_duplicate: is_plain };
            if self.judge_probe(ack, sign) {
                self.reduce_for_probe(now, settings);
            }
        }
        let is_plain = acked_bytes > 0 && delivered == progress.delivered && progress.sacked == 0;
        if !is_plain || dsack.found || marked || self.flight.recovery.phase != Phase::Open {
            self.look_for_trouble(now, seen, &progress, settings);
        }
        let is_reorder_set = self.timer.kind == Kind::Reorder && self.timer.sets != had_timer.sets;
        if (progress.acked > 0 || is_news_of_then) && !is_reorder_set {
            self.wait_on(now, settings);
        }
        self.delivered += progress.delivered;
        let lost = self.lost - lost;
        if self.flight.recovery.is_reducing() && self.flight.reduction.is_some() {
            self.reduce(progress.delivered, lost, acked_bytes > 0);
        }
        brought.lost = lost;
        let delivery = Delivery { count: progress.delivered, is_delayed: may_be_delayed };
        brought.rate = self.sample_rate(now, delivery, settings);
        brought.round = self.end_round(now, &brought);
        brought.credit = self.credit(acked_bytes, &progress, settings);
        self.decide(now, &brought, settings);
        acked_bytes > 0
    }

    /// Tells the controller what an ACK brought, all in all, and does as it decides.
    #[inline]
    fn decide(&mut self, now: Time, brought: &Ack, settings: &Settings) {
        self.consult(now, |cc, flow| cc.on_ack(flow, brought));
        // Most controllers are of neither kind, and need not be asked.
        let samples_rate = self.flight.board.rates.as_ref().is_some_and(|it| it.has_listener());
        if samples_rate && self.cc().is_some_and(CongestionControl::is_holding_back) {
            self.mark_app_limited();
        }
        if brought.credit > 0 && !self.flight.recovery.is_reducing() {
            self.flight.usage.note_growth(now);
        }
        if self.steering.as_ref().is_some_and(|it| it.hears_arrivals && it.cc.wants_reduction())
            && self.flight.recovery.phase < Phase::Reduced
        {
            self.reduce_for_mark(now, settings);
        }
        self.update_rate(settings);
    }

    /// Tells a controller that samples the rate of an ACK that brought nothing: time has passed.
    fn pass_on_nothing(&mut self, now: Time, in_flight_before: u64, settings: &Settings) {
        let listens = self.flight.board.rates.as_ref().is_some_and(|it| it.has_listener());
        if listens && self.has_outstanding() {
            self.decide(now, &Ack { in_flight_before, ..Ack::default() }, settings);
        }
    }

    /// What comes before `ack` is acknowledged.
    #[inline]
    fn advance(&mut self, now: Time, ack: u64, progress: &mut Progress) {
        self.flight.board.acknowledge(ack, progress);
        self.una = ack;
        if let Some(buffer) = &mut self.buffer {
            buffer.acknowledge(ack);
        }
        if self.path.is_some() {
            self.judge_size_probe(now);
        }
    }

    /// Tells the controller of an ACK before losses are looked for, if it listens.
    #[inline]
    fn announce(&mut self, now: Time, brought: &Ack) {
        if self.steering.as_ref().is_some_and(|steering| steering.hears_arrivals) {
            self.tell_arrival(now, brought);
        }
    }

    #[inline(never)]
    fn tell_arrival(&mut self, now: Time, brought: &Ack) {
        let rates = self.flight.board.rates.as_ref();
        let delivered_at_send = rates.and_then(|rates| rates.delivered_at_send());
        let brought = Ack { delivered_at_send, ..*brought };
        self.consult(now, |cc, flow| cc.on_arrival(flow, &brought));
    }

    /// Ends the round trip in progress, if this ACK does.
    #[inline]
    fn end_round(&mut self, now: Time, brought: &Ack) -> Option<Round> {
        let (una, nxt) = (self.una, self.nxt);
        self.steering.as_mut()?.rounds.on_ack(now, una, nxt, brought)
    }

    /// Measures the path; gives the RTT of the newest segment that arrived.
    #[inline]
    fn time(
        &mut self,
        now: Time,
        progress: &Progress,
        echoed: Option<u64>,
        settings: &Settings,
    ) -> Option<Duration> {
        let at = Progressed { una: self.una, nxt: self.nxt };
        let mut newest = progress.newest().map(|sent| settings.elapsed(now, sent));
        let mut measured = progress.oldest().map(|sent| settings.elapsed(now, sent));
        if measured.is_none() && settings.is_linux() && progress.acked > 0 {
            // The echoed timestamp tells which of several it was that arrived.
            measured = echoed.map(|sent| Duration::from_millis((clock(now) - sent).max(1)));
            newest = measured;
        }
        if let Some(rtt) = measured {
            self.rtt.sample(rtt, at, settings);
        }
        if let Some(rtt) = newest {
            self.min_rtt = self.min_rtt.min(rtt);
            if !self.counts_by_rack(settings) {
                self.rtt.note(rtt);
            }
        }
        newest
    }

    /// Learns from the order in which segments arrived (RFC 8985 §6.2).
    #[inline]
    fn follow_order(&mut self, now: Time, progress: &Progress, settings: &Settings) {
        self.flight.rack.advance(now, progress);
        if let Some(lowest) = progress.overtaken {
            self.note_reordering(lowest, settings);
        }
        self.flight.rack.adapt(self.una, self.nxt);
        if self.counts_by_rack(settings) && progress.delivered > 0 {
            self.rtt.note(self.flight.rack.rtt);
        }
    }

    /// Whether RTTs are reported as they are seen in Linux: RACK's, one for each ACK that delivers
    /// something, and the one before where that was sent again and may be of either time.
    fn counts_by_rack(&self, settings: &Settings) -> bool {
        settings.is_linux() && settings.rack && self.sack
    }

    /// Waits for what is outstanding after data was acknowledged (RFC 6298 §5.2, §5.3).
    #[inline]
    fn wait_on(&mut self, now: Time, settings: &Settings) {
        if !self.has_outstanding() {
            self.timer.stop();
        } else if !self.schedule_probe(now, true, settings)
            && self.flight.recovery.moves_timer(settings, self.sack)
        {
            if settings.is_linux() {
                self.rearm(now, settings);
            } else {
                self.wait_for_answer(now, settings);
            }
        }
    }

    /// What was SACKed had left before the oldest segment did, which was sent again since: there is no
    /// answer to that one yet, and Linux waits a timeout more for it (`tcp_clean_rtx_queue`).
    #[inline]
    fn is_older(&self, now: Time, progress: &Progress, settings: &Settings) -> bool {
        let (Some((sacked, _)), Some(front)) = (progress.sacked_sent, self.flight.board.front())
        else {
            return false;
        };
        settings.is_linux() && settings.elapsed(now, sacked) > settings.elapsed(now, front.left_at)
    }

    /// Takes the window of the newest segment (RFC 9293 §3.10.7.4). Says whether it changed.
    #[inline]
    fn update_window(&mut self, segment: &Segment, seq: u64, ack: u64) -> bool {
        if ack < self.una || (seq, ack) < self.window_set_by {
            return false;
        }
        self.window_set_by = (seq, ack);
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.peer_window_scale };
        let window = u64::from(segment.window) << scale;
        let changed = window != self.window;
        self.window = window;
        self.largest_window = self.largest_window.max(window);
        changed
    }

    /// Takes the SACK blocks of an ACK of `ack`; the first may report a duplicate (RFC 2883).
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
                dsack = self.take_dsack(&first);
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
                if let Some(buffer) = &mut self.buffer {
                    buffer.arrived(&range);
                }
                self.flight.board.sack(range, progress);
            }
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.end_of_blocks();
        }
        dsack
    }

    fn take_dsack(&mut self, block: &Range<u64>) -> Dsack {
        let segments = (block.end - block.start).div_ceil(u64::from(self.mss));
        let is_probe = segments == 1 && self.flight.tail.end == Some(block.end);
        self.counters.duplicate_segments += segments;
        if self.counters.duplicate_segments > self.counters.retransmitted_segments {
            // The network made the copy.
            return Dsack { found: true, is_probe };
        }
        self.flight.undo.on_duplicates(segments, block.end);
        if !is_probe {
            self.flight.rack.note_duplicate();
        }
        Dsack { found: true, is_probe }
    }

    /// How many segments of growth an ACK is worth.
    #[inline]
    fn credit(&mut self, acked_bytes: u64, progress: &Progress, settings: &Settings) -> u64 {
        match settings.counting {
            _ if acked_bytes == 0 => 0,
            AckCounting::PerAck => 1,
            AckCounting::PerSegment => progress.delivered,
            AckCounting::PerByte { limit } => {
                let mss = u64::from(self.mss);
                let in_slow_start =
                    self.control.ssthresh.is_none_or(|ssthresh| self.control.cwnd < ssthresh);
                // RFC 3465 §2.3: after a timeout L is 1, and in congestion avoidance there is none.
                let counted = match (in_slow_start, self.flight.recovery.phase) {
                    (false, _) => acked_bytes,
                    (true, Phase::Loss) => acked_bytes.min(mss),
                    (true, _) => acked_bytes.min(u64::from(limit) * mss),
                };
                self.credit_bytes += counted;
                let segments = self.credit_bytes / mss;
                self.credit_bytes %= mss;
                segments
            }
        }
    }
}
