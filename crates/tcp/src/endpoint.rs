//! One end of a connection: its state, the application's calls, its timers, and what it sends.
//!
//! No I/O and no clock: `now` is an argument, segments go in by [`Endpoint::on_segment`] and come
//! out of [`Endpoint::poll_transmit`], and [`Endpoint::next_timer`] tells when to call
//! [`Endpoint::on_timer`]. It moves counts of bytes, not bytes.

use crate::context::Context;
use crate::delayed_ack::DelayedAck;
use crate::departure::Data;
use crate::departure::least;
use crate::ecn::EcnState;
use crate::endpoint::fast_open::FastOpen;
use crate::endpoint::keepalive::KeepaliveTimer;
use crate::endpoint::memory_pressure::Memory;
use crate::endpoint::time_wait::TimeWait;
use crate::pages::Pages;
use crate::receiver::Receiver;
use crate::segment::{Flags, IP_HEADER, Segment, TCP_HEADER, TIMESTAMPS_OPTION, Timestamps};
use crate::sender::Sender;
use crate::settings::Settings;
use crate::timer::{Kind, Turn, Wheel};
use std::fmt;
use std::sync::Arc;
use tcplab_cc::CongestionControl;
use tcplab_units::Time;

pub(crate) mod fast_open;
mod handshake;
mod input;
mod keepalive;
pub(crate) mod memory_pressure;
mod path_mtu;
mod small_queue;
pub(crate) mod snapshot;
pub(crate) mod time_wait;

/// `TCP_INIT_CWND`: the window of a connection that has none yet.
const INIT_CWND: u64 = 10;

/// Bytes of a SACK option with three blocks and its padding.
const SACK_ROOM: u64 = 4 + 3 * 8;

/// The states of RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the RFC's own names")]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    /// The options are agreed on.
    pub(crate) fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent)
    }

    /// The application's data may be under way, or its FIN.
    #[inline]
    fn carries_data(self) -> bool {
        use State::{CloseWait, Closing, Established, FinWait1, LastAck};
        matches!(self, Established | FinWait1 | CloseWait | Closing | LastAck)
    }
}

/// Why a connection is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Both sides closed.
    Normally,
    /// One side sent a reset.
    Reset,
    /// Too many repetitions stayed without an answer.
    TimedOut,
}

/// The start of a congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// Segments of the first window.
    pub initial_window: u64,
    /// The endpoint's seed.
    pub seed: u64,
}

/// Builds the congestion controller, when the first data is sent: a side that only receives needs
/// none.
pub type BuildControl = Arc<dyn Fn(Start) -> Box<dyn CongestionControl> + Send + Sync>;

/// The differences of an endpoint from others with the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its own data is numbered from here.
    pub initial_sequence: u32,
    /// For a congestion control that randomizes.
    pub seed: u64,
}

/// One end of one connection.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) settings: Arc<Settings>,
    build_control: BuildControl,
    seed: u64,
    pub(crate) state: State,
    pub(crate) ended: Option<Ended>,
    pub(crate) send: Sender,
    pub(crate) receive: Receiver,
    pub(crate) delayed_ack: DelayedAck,
    pub(crate) ecn: EcnState,
    /// Whether timestamps are in use; while connecting, whether they are offered.
    pub(crate) has_timestamps: bool,
    /// Whether the peer's SYN had the window-scale option.
    pub(crate) peer_scales: bool,
    /// `TS.Recent` of RFC 7323, and when it was heard.
    pub(crate) recent_timestamp: (u32, Time),
    /// When a segment without data that is not acceptable, or a SYN that came again, was answered
    /// last.
    pub(crate) answered_unacceptable: Option<Time>,
    pub(crate) last_ack_sent: u64,
    pub(crate) time_wait_until: Time,
    /// Its application is gone.
    pub(crate) is_orphan: bool,
    /// The remains of the end, once a late segment has come for them.
    pub(crate) time_wait: Option<Box<TimeWait>>,
    /// Repetitions since the peer was last heard to make progress.
    pub(crate) attempts: u32,
    /// Probes of a closed window since data last left.
    probes: u32,
    pub(crate) keepalive: Option<Box<KeepaliveTimer>>,
    pub(crate) fast_open: Option<Box<FastOpen>>,
    pub(crate) memory: Option<Box<Memory>>,
    /// Since when there was no answer, once the timer has run out.
    pub(crate) silent_since: Time,
    /// The peer opened the connection.
    pub(crate) was_called: bool,
    pub(crate) syns_sent: u32,
    /// When the first of them left.
    pub(crate) first_syn: Time,
    /// The SYN, or the SYN-ACK, timed out and was sent again.
    pub(crate) was_syn_repeated: bool,
    pub(crate) owes_syn: bool,
    /// The acknowledgment of the handshake leaves before data.
    pub(crate) owes_ack_first: bool,
    pub(crate) owes_probe: bool,
    pub(crate) owes_reset: Option<Box<Segment>>,
    /// An ACK that tells of what was before the last segment.
    pub(crate) owes_ack: Option<Box<Segment>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("state", &self.state)
            .field("send", &self.send)
            .field("receive", &self.receive)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint in CLOSED.
    pub fn new(settings: Arc<Settings>, build_control: BuildControl, identity: Identity) -> Self {
        Self {
            seed: identity.seed,
            state: State::Closed,
            ended: None,
            send: Sender::new(identity.initial_sequence, &settings),
            receive: Receiver::new(&settings),
            delayed_ack: DelayedAck::new(&settings),
            ecn: EcnState::default(),
            has_timestamps: settings.timestamps,
            peer_scales: false,
            recent_timestamp: (0, Time::ZERO),
            answered_unacceptable: None,
            last_ack_sent: 0,
            time_wait_until: Time::NEVER,
            is_orphan: false,
            time_wait: None,
            attempts: 0,
            probes: 0,
            keepalive: None,
            fast_open: None,
            memory: None,
            silent_since: Time::ZERO,
            was_called: false,
            syns_sent: 0,
            first_syn: Time::ZERO,
            was_syn_repeated: false,
            owes_syn: false,
            owes_ack_first: false,
            owes_probe: false,
            owes_reset: None,
            owes_ack: None,
            settings,
            build_control,
        }
    }

    /// Opens actively: a SYN is to be sent.
    pub fn connect(&mut self) {
        self.state = State::SynSent;
        self.owes_syn = true;
        self.send.nxt = 1;
    }

    /// Opens passively: waits for a SYN.
    pub fn listen(&mut self) {
        self.state = State::Listen;
    }

    /// The application writes; returns how many bytes the send buffer took.
    #[inline]
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.write_ahead(bytes, None)
    }

    /// The application writes, but no further ahead than `most` unsent bytes (`TCP_NOTSENT_LOWAT`),
    /// so that it can stop; it goes on when half of them have left.
    #[inline]
    pub fn write_ahead(&mut self, bytes: u64, most: Option<u64>) -> u64 {
        if self.state == State::SynSent && self.is_syn_put_off() {
            return self.write_into_syn(bytes);
        }
        let bytes = if self.memory.is_some() { self.affordable(bytes) } else { bytes };
        if self.settings.has_packet_buffer() {
            return if self.may_send_data() && !self.send.closed {
                let is_tight = self.is_tight();
                self.send.write_as_linux(bytes, most, is_tight, &self.settings)
            } else {
                0
            };
        }
        let ahead = match least(most, self.settings.most_unsent)
            .map(|most| (most, most.saturating_sub(self.unsent())))
        {
            None => u64::MAX,
            Some((most, room)) if room > most / 2 => room,
            Some(_) => 0,
        };
        let used = self.send.written - self.send.una.max(1).min(self.send.written);
        let room = self.settings.send_buffer.saturating_sub(used);
        let taken = if self.send.closed { 0 } else { bytes.min(room).min(ahead) };
        self.send.written += taken;
        taken
    }

    /// The application writes from its own memory: a call for so many bytes, or for the rest of
    /// them.
    #[cold]
    pub fn write_copied(&mut self, bytes: u64) -> u64 {
        self.send.expect_copied_writes();
        self.write_ahead(bytes, None)
    }

    /// The peer's application writes from its own memory.
    pub fn expect_copies(&mut self) {
        self.receive.pages = Pages::OfCopies;
    }

    /// The application waits for data, in a call that looks for room as well (`poll`).
    pub fn look(&mut self) {
        self.send.look_for_room();
    }

    /// The application writes next without having been told that there is room.
    pub fn try_to_write(&mut self) {
        self.send.try_to_write();
    }

    /// Whether the send buffer holds an application back by itself: then it can write all it has,
    /// in as many calls as it takes, each followed by [`Self::poll_transmit`].
    #[inline]
    pub fn paces_writer(&self) -> bool {
        self.settings.has_packet_buffer()
    }

    /// The application reads; returns how many bytes it got.
    #[expect(clippy::inline_always, reason = "every segment with data passes here")]
    #[inline(always)]
    pub fn read(&mut self, now: Time, most: u64) -> u64 {
        let bytes = self.receive.read(most);
        if bytes > 0 {
            self.receive.tune_to_reader(now);
            let holds_nothing = self.receive.readable() == 0 && !self.receive.has_gap();
            self.delayed_ack.on_read(self.receive.next, self.last_ack_sent, holds_nothing);
            if self.receive.should_update() {
                self.delayed_ack.ack_now();
            }
        }
        bytes
    }

    /// The application has no more to write: a FIN follows the data, once the connection stands.
    #[inline(never)]
    pub fn close(&mut self) {
        match self.state {
            State::Closed | State::Listen => self.end(Ended::Normally),
            _ => {
                self.send.closed = true;
                if self.is_syn_put_off() {
                    self.write_into_syn(0);
                }
            }
        }
    }

    /// The application gives up the connection: a reset is sent, data is dropped.
    pub fn abort(&mut self) {
        self.reset();
        self.end(Ended::Reset);
    }

    /// The peer is to hear that the connection is no more.
    pub(crate) fn reset(&mut self) {
        if !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait) {
            let seq = self.send.origin.number(self.send.nxt);
            let ack = self.receive.origin.number(self.receive.next);
            self.owes_reset = Some(Box::new(Segment::new(Flags::RST.with(Flags::ACK), seq, ack)));
        }
    }

    /// Bytes in order that wait for the application.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receive.readable()
    }

    /// Bytes written and never sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.send.unsent()
    }

    /// Whether the peer has closed and all its data arrived.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.receive.is_finished()
    }

    /// The state.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection is no more, once it is.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// When [`Self::on_timer`] is to be called; `Time::NEVER` if nothing is pending.
    #[inline]
    pub fn next_timer(&self) -> Time {
        let alive = self.keepalive.as_ref().map_or(Time::NEVER, |alive| alive.due);
        let paced = self.send.departure().paced_until();
        let sends = self.send.timer.at.min(self.delayed_ack.due()).min(paced);
        // A timer that nobody waits for any more turns the kernel's wheel all the same.
        let silent = self.send.timer.place.pending().min(self.delayed_ack.pending());
        sends.min(silent).min(self.time_wait_until).min(alive)
    }

    /// A timer of the kernel ran out in this tick, of this connection or another one.
    #[inline]
    pub fn turn_wheel(&mut self, now: Time) {
        self.send.timer.place.turn(now);
        if let Some(place) = self.delayed_ack.place() {
            place.turn(now);
        }
    }

    /// The turn of this end among those whose timers run out in this tick; nothing if none of its
    /// own does.
    pub fn turn_at(&self, now: Time) -> Option<Turn> {
        let sends = self.send.timer.place.turn_at(now);
        let answers = self.delayed_ack.turn_at(now);
        // If both timers run out, the one that somebody waits for counts.
        let first = if self.send.timer.at <= now { sends.or(answers) } else { answers.or(sends) };
        first.map(|turn| (self.wheel(), turn))
    }

    /// The wheel that its timers are in.
    #[inline]
    pub fn wheel(&self) -> Wheel {
        if self.state == State::SynReceived { Wheel::Requests } else { Wheel::Connections }
    }

    /// Whether a timer in the kernel's wheel runs out.
    fn wheel_runs_out(&mut self, now: Time) -> bool {
        let sends = self.send.timer.place.runs_out(now);
        self.delayed_ack.place().is_some_and(|place| place.runs_out(now)) | sends
    }

    /// From when on an ACK that is held back may leave early, if there is one. The kernel's timer
    /// for it has some slack: it runs out with the next timer of its kind (`Self::is_soft_due`),
    /// whosever that is.
    #[inline]
    pub fn held_from(&self) -> Option<Time> {
        self.delayed_ack.held_from()
    }

    /// Whether a timer of this end is due that lets ACKs go which other ends hold back: the kernel
    /// runs both from one softirq (`HRTIMER_SOFTIRQ`).
    pub fn is_soft_due(&self, now: Time) -> bool {
        self.delayed_ack.held_until().is_some_and(|until| until <= now) || self.paced_until() <= now
    }

    /// When the ACK that is held back leaves whatever happens.
    pub fn held_until(&self) -> Option<Time> {
        self.delayed_ack.held_until()
    }

    /// When the pacing timer runs out; `Time::NEVER` if it does not run.
    pub fn paced_until(&self) -> Time {
        self.send.departure().paced_until()
    }

    /// Sends the ACK that ACK compression holds back.
    pub fn send_held_ack(&mut self) {
        self.delayed_ack.ack_now();
    }

    /// Runs all timers that have expired. Returns whether the kernel's timer wheel was among them.
    pub fn on_timer(&mut self, now: Time) -> bool {
        let turns = self.wheel_runs_out(now);
        if turns {
            self.turn_wheel(now);
        }
        if self.time_wait_until <= now {
            self.end(Ended::Normally);
        }
        self.send.on_timers(Context { now, settings: &self.settings });
        if self.keepalive.as_ref().is_some_and(|alive| alive.due <= now) {
            self.on_keepalive_timer(now);
        }
        self.delayed_ack.on_timer(now, self.send.rtt.rto(&self.settings.rto_limits()));
        if self.send.timer.at <= now {
            match self.send.timer.kind {
                Kind::Retransmit => {
                    self.send.timer.stop();
                    self.on_retransmission_timer(now);
                }
                Kind::Reorder => {
                    self.send.on_reordering_timer(Context { now, settings: &self.settings });
                }
                Kind::Probe => self.send.on_probe_timer(Context { now, settings: &self.settings }),
            }
        }
        turns
    }

    fn on_retransmission_timer(&mut self, now: Time) {
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        let settings = &self.settings;
        let most = match self.state {
            State::SynSent => settings.syn_retries + settings.syn_linear_timeouts,
            State::SynReceived => settings.syn_ack_retries,
            _ if settings.user_timeout.is_some() => u32::MAX - 1,
            _ => settings.retries,
        };
        let is_probe = !is_opening && !self.send.has_outstanding();
        let is_first = if is_probe { self.probes == 0 } else { self.attempts == 0 };
        if is_first {
            self.start_user_timeout(now);
        }
        // Without retries, one probe is still due.
        if self.is_given_up(now) || self.attempts >= most + u32::from(is_probe) {
            self.end(Ended::TimedOut);
            return;
        }
        self.attempts += 1;
        if is_opening {
            self.owes_syn = true;
            if self.state == State::SynSent && self.settings.behaviour.syn_timeout_is_loss {
                self.send.on_syn_timeout(Context { now, settings: &self.settings });
            }
            let is_linear = self.attempts <= self.settings.syn_linear_timeouts;
            if self.state == State::SynReceived || !is_linear {
                self.send.rtt.back_off();
            }
        } else if self.send.has_outstanding() {
            if self.send.departure().has_path() {
                self.look_for_black_hole(now);
            }
            self.send.on_timeout(Context { now, settings: &self.settings });
            self.arm_retransmission(now);
        } else if self.send.is_stuck() {
            // The persist timer (RFC 9293 §3.8.6.1). It backs off on its own: probes are no losses.
            self.probes += 1;
            self.owes_probe = true;
            self.send.probe_closed_window();
            let wait = self.send.rtt.backed_off(self.probes, &self.settings.rto_limits());
            let wait = self.within_user_timeout(now, wait);
            self.send.timer.set(Kind::Retransmit, now, wait, &self.settings);
        }
    }

    #[inline]
    pub(crate) fn arm_retransmission(&mut self, now: Time) {
        self.send.wait_for_answer(Context { now, settings: &self.settings });
    }

    /// The next segment to leave, if one is to leave now. To be called until there is none, after
    /// every other call that passes `now`, and after the application's calls.
    #[expect(
        clippy::inline_always,
        reason = "every segment passes here, and is built in its place"
    )]
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.is_silent(now) {
            return None;
        }
        if self.state.carries_data() && !self.owes_before_data() {
            self.poll_data(now)
        } else {
            self.poll_control(now)
        }
    }

    #[inline]
    fn owes_before_data(&self) -> bool {
        self.owes_ack_first || self.owes_ack.is_some() || self.owes_reset.is_some()
    }

    /// Nothing is to leave, whatever the state, as most calls of [`Self::poll_transmit`] find it.
    #[inline]
    pub fn is_silent(&self, now: Time) -> bool {
        self.delayed_ack.due() > now
            && self.send.is_at_rest()
            && !(self.owes_syn || self.owes_probe || self.owes_before_data())
    }

    /// The next segment without new data: a handshake segment, a probe, or an ACK.
    #[inline(never)]
    fn poll_control(&mut self, now: Time) -> Option<Segment> {
        if let Some(reset) = self.owes_reset.take() {
            return Some(*reset);
        }
        if let Some(ack) = self.owes_ack.take() {
            return Some(*ack);
        }
        match self.state {
            State::SynSent | State::SynReceived if self.owes_syn => {
                self.owes_syn = false;
                Some(self.syn(now))
            }
            State::Closed | State::Listen | State::SynSent => None,
            State::SynReceived if self.is_open_early() => self.poll_early(now),
            State::SynReceived | State::FinWait2 | State::TimeWait => self.poll_ack(now),
            _ => {
                self.owes_ack_first = false;
                self.begin_data(now);
                self.poll_ack(now)
            }
        }
    }

    /// The next segment with data that may leave, or else an ACK.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub(crate) fn poll_data(&mut self, now: Time) -> Option<Segment> {
        let data = if self.send.is_at_rest() { None } else { self.next_data(now) };
        let (flags, start, payload) = match data {
            Some(data) => (self.flags_of(data), data.start, data.payload),
            None => (self.flags_of_ack(), self.due_ack(now)?, 0),
        };
        Some(self.segment_with_options(now, flags, start, payload))
    }

    /// The data of the next segment, if one may leave.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn next_data(&mut self, now: Time) -> Option<Data> {
        self.begin_data(now);
        let options = if self.receive.has_gap() && self.send.sack { SACK_ROOM } else { 0 };
        let data = self.send.next_data(Context { now, settings: &self.settings }, options);
        if data.is_none() && self.send.departure().has_path() {
            self.lose_acknowledgment(now);
        }
        let data = data?;
        self.probes = 0;
        self.owes_probe = false;
        Some(data)
    }

    /// From now on this builds the congestion control, or if there is one already, another takes
    /// its place, as with `setsockopt` of `TCP_CONGESTION` (`tcp_reinit_congestion_control`).
    #[cold]
    pub fn adopt(&mut self, now: Time, build_control: BuildControl) {
        self.build_control = build_control;
        if self.settings.behaviour.stays_paced && self.send.congestion().pacing().is_some() {
            // A socket that was paced once is paced for good (`sk_pacing_status`).
            self.settings = Arc::new(Settings { pacing: true, ..(*self.settings).clone() });
        }
        let (mss, seed) = (u64::from(self.send.mss), self.seed);
        let build = |initial_window| (self.build_control)(Start { mss, initial_window, seed });
        self.send.adopt(Context { now, settings: &self.settings }, build);
    }

    /// Once there is data to send, there is a congestion control.
    #[inline]
    fn begin_data(&mut self, now: Time) {
        if self.send.needs_control() {
            let mss = u64::from(self.send.mss);
            let initial_window = self.send.congestion().decided();
            let start = Start { mss, initial_window, seed: self.seed };
            // Linux has it from the moment when the connection stands (`tcp_init_transfer`).
            let since = if self.settings.behaviour.controls_from_establishment {
                self.receive.since().min(now)
            } else {
                now
            };
            self.send.begin(since, (self.build_control)(start), &self.settings);
            // An end that only closes has nothing that a window would decide.
            if self.settings.behaviour.controls_from_establishment && self.send.unsent() > 0 {
                self.send.report_early_arrivals(now);
            }
            // In Linux the SYN-ACK sets the rate, before the window that was asked for does
            // (`tcp_finish_connect`): if the SYN timed out, by the one segment that this left
            // (`tcp_enter_loss`), be the timeout spurious or not. At the end that was called, the
            // ACK of its SYN-ACK sets the rate after that (`tcp_rcv_state_process`).
            let is_early = self.settings.behaviour.controls_from_establishment && !self.was_called;
            let cwnd = if self.was_syn_repeated { 1 } else { INIT_CWND };
            let (cwnd, ssthresh) = match self.send.cc().filter(|_| is_early) {
                Some(cc) => cc.opening(cwnd),
                None => (initial_window, self.send.congestion().ssthresh()),
            };
            self.send.set_rate_for(Context { now, settings: &self.settings }, cwnd, ssthresh);
        }
    }

    /// Whether what answers an event leaves before the application hears of it: Linux answers
    /// first, and then wakes it. Then [`Self::poll_transmit`] is to be called before the
    /// application acts, too.
    #[inline]
    pub fn answers_first(&self) -> bool {
        self.settings.behaviour.answers_before_application
    }

    /// A segment without data, if one is due.
    fn poll_ack(&mut self, now: Time) -> Option<Segment> {
        let start = self.due_ack(now)?;
        let flags = self.flags_of_ack();
        Some(self.segment_without_data(now, flags, start))
    }

    /// Where a segment without data begins: an ACK that is due, or a probe of a closed window.
    #[inline]
    fn due_ack(&mut self, now: Time) -> Option<u64> {
        if self.send.timer.at == Time::NEVER && self.send.is_stuck() && self.may_send_data() {
            self.send.wait_to_probe(Context { now, settings: &self.settings });
        }
        if std::mem::take(&mut self.owes_probe) {
            // One before the window: whoever receives it must answer (as Linux probes).
            return Some(self.send.una - 1);
        }
        (self.delayed_ack.due() <= now).then_some(self.send.nxt)
    }

    /// A segment without data.
    pub(crate) fn segment_without_data(&mut self, now: Time, flags: Flags, start: u64) -> Segment {
        self.segment_with_options(now, flags, start, 0)
    }

    #[inline]
    pub(crate) fn flags_of_ack(&self) -> Flags {
        Flags::ACK.with(self.ecn.of_ack(&self.settings))
    }

    fn may_send_data(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait) || self.is_open_early()
    }

    /// The flags of a segment with this data, which leaves.
    #[inline]
    fn flags_of(&mut self, data: Data) -> Flags {
        let mut flags = Flags::ACK.with(self.ecn.of_any(&self.settings));
        if !data.again && data.payload > 0 {
            flags = flags.with(self.ecn.of_new_data(|| self.send.take_cwr()));
        }
        if data.push && data.payload > 0 {
            flags = flags.with(Flags::PUSH);
        }
        if data.fin {
            flags = flags.with(Flags::FIN);
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
        flags
    }

    /// A segment with the acknowledgment, the window and the options that every segment after the
    /// handshake has.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub(crate) fn segment_with_options(
        &mut self,
        now: Time,
        flags: Flags,
        start: u64,
        payload: u16,
    ) -> Segment {
        if self.send.departure().has_path() {
            self.send.look_route_up();
        }
        let scale = self.receive.window_scale;
        let (window, is_short) = self.receive.offer(scale);
        if is_short {
            self.delayed_ack.end_quickack();
        }
        let seq = self.send.origin.number(start);
        let ack = self.receive.origin.number(self.receive.next);
        let mut segment = Segment::new(flags, seq, ack).with_window(window).with_payload(payload);
        if self.has_timestamps {
            let mut stamp = self.delayed_ack.stamp(now);
            if self.send.departure().has_path() {
                stamp = self.send.departure().stamp(now, stamp);
            }
            if self.send.departure().is_paced_by_device() {
                stamp = self.send.departure().departs(stamp, payload > 0);
            }
            segment = segment.with_timestamps(self.timestamps(stamp));
        }
        if self.receive.has_report() && self.send.sack {
            segment = self.with_report(segment);
        }
        self.last_ack_sent = self.receive.next;
        self.send.note_left(now);
        self.delayed_ack.on_sent();
        if payload > 0 {
            self.delayed_ack.on_data_sent(now);
        }
        self.ecn.on_sent();
        segment
    }

    /// With what the receiving half has to report. A segment sent again keeps its size: then there
    /// may be no room.
    #[inline(never)]
    fn with_report(&mut self, segment: Segment) -> Segment {
        let most = u32::from(self.own_mss()) + IP_HEADER + TCP_HEADER;
        let room = most.saturating_sub(segment.wire_bytes() + 4) / 8;
        self.receive.with_sack(segment, room as usize)
    }

    /// Our clock, and the peer's as last heard.
    #[inline]
    pub(crate) fn timestamps(&self, now: Time) -> Timestamps {
        Timestamps::at(now, self.recent_timestamp.0)
    }

    /// Bytes of options that every segment has.
    pub(crate) fn options(&self) -> u16 {
        if self.has_timestamps { TIMESTAMPS_OPTION as u16 } else { 0 }
    }

    /// Payload bytes of a full segment to a peer that takes `offered`.
    pub(crate) fn segment_size(&self, offered: u16) -> u16 {
        let options = self.options();
        // The payload that fits the largest packet.
        self.settings.mss.min(offered).min(65_495).saturating_sub(options).max(1)
    }

    #[cold]
    pub(crate) fn end(&mut self, how: Ended) {
        self.state = State::Closed;
        self.ended.get_or_insert(how);
        self.time_wait_until = Time::NEVER;
        self.drop_timers();
        self.delayed_ack.on_sent();
    }

    /// None of the connection's timers is needed any more (`tcp_clear_xmit_timers`).
    pub(crate) fn drop_timers(&mut self) {
        self.send.timer.stop();
        self.send.timer.place.stop();
        if let Some(place) = self.delayed_ack.place() {
            place.stop();
        }
        self.keepalive = None;
    }
}
