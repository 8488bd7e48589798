//! One end of a connection: its state, the application's calls, its timers, and the segments that
//! it sends.
//!
//! The endpoint does no I/O and reads no clock. `now` is an argument, segments go in by
//! [`Endpoint::on_segment`] and come out of [`Endpoint::poll_transmit`], and
//! [`Endpoint::next_timer`] gives the time of the next call of [`Endpoint::on_timer`]. The endpoint
//! moves counts of bytes, not bytes.

use crate::context::Context;
use crate::delayed_ack::DelayedAck;
use crate::departure::Data;
use crate::departure::min_limit;
use crate::ecn::EcnState;
use crate::endpoint::fast_open::FastOpen;
use crate::endpoint::keepalive::KeepaliveTimer;
use crate::endpoint::memory_pressure::Memory;
use crate::endpoint::time_wait::TimeWait;
use crate::pages::Pages;
use crate::receiver::Receiver;
use crate::segment::{
    Flags, IP_HEADER, SackBlock, Segment, TCP_HEADER, TIMESTAMPS_OPTION, Timestamps,
};
use crate::sender::Sender;
use crate::settings::Settings;
use crate::timer::{ExpiryOrder, Kind, Wheel};
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
pub(crate) mod small_queue;
pub(crate) mod snapshot;
pub(crate) mod time_wait;

/// `TCP_INIT_CWND`: the congestion window before a controller exists.
const INIT_CWND: u64 = 10;

/// Bytes of a SACK option with three blocks, padding included.
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
    /// Whether both ends have agreed on the options.
    pub(crate) fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent)
    }

    /// Whether the application's data, or its FIN, may be outstanding.
    #[inline]
    fn carries_data(self) -> bool {
        use State::{CloseWait, Closing, Established, FinWait1, LastAck};
        matches!(self, Established | FinWait1 | CloseWait | Closing | LastAck)
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Both sides closed.
    Normally,
    /// One side sent a reset.
    Reset,
    /// Too many retransmissions or probes had no answer, or the user timeout passed.
    TimedOut,
}

/// Parameters for a new congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// Initial congestion window in segments.
    pub initial_window: u64,
    /// Seed for congestion controls that randomize.
    pub seed: u64,
}

/// Builds the congestion controller when the first data is sent. An end that only receives has
/// none.
pub type BuildControl = Arc<dyn Fn(Start) -> Box<dyn CongestionControl> + Send + Sync>;

/// What distinguishes an endpoint from others with the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Initial sequence number (ISN).
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
    /// Whether timestamps are in use. In SYN-SENT: whether they are offered.
    pub(crate) has_timestamps: bool,
    /// Whether the peer's SYN had the window-scale option.
    pub(crate) peer_offers_scaling: bool,
    /// `TS.Recent` of RFC 7323, and when it was received.
    pub(crate) ts_recent: (u32, Time),
    /// When an out-of-window segment without data, or a repeated SYN, was last answered
    /// (`last_oow_ack_time`).
    pub(crate) last_oow_ack: Option<Time>,
    pub(crate) last_ack_sent: u64,
    pub(crate) time_wait_until: Time,
    /// The application has closed both directions (`sk_orphan`).
    pub(crate) is_orphaned: bool,
    /// The TIME-WAIT state, once a segment has arrived in it.
    pub(crate) time_wait: Option<Box<TimeWait>>,
    /// Timeouts in a row without progress (`icsk_retransmits`).
    pub(crate) retransmits: u32,
    /// Zero-window probes sent since data last left (`icsk_probes_out`).
    probes_out: u32,
    pub(crate) keepalive: Option<Box<KeepaliveTimer>>,
    pub(crate) fast_open: Option<Box<FastOpen>>,
    pub(crate) memory: Option<Box<Memory>>,
    /// Start of the user timeout, once the retransmission timer has expired.
    pub(crate) unanswered_since: Time,
    /// The peer opened the connection.
    pub(crate) is_passive: bool,
    pub(crate) syns_sent: u32,
    /// When the first SYN or SYN-ACK left.
    pub(crate) first_syn: Time,
    /// The SYN, or the SYN-ACK, timed out and was retransmitted.
    pub(crate) was_syn_retransmitted: bool,
    pub(crate) syn_pending: bool,
    /// The ACK of the SYN-ACK leaves before data.
    pub(crate) handshake_ack_pending: bool,
    pub(crate) window_probe_pending: bool,
    pub(crate) pending_reset: Option<Box<Segment>>,
    /// An ACK of the state before the last segment.
    pub(crate) pending_ack: Option<Box<Segment>>,
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
            peer_offers_scaling: false,
            ts_recent: (0, Time::ZERO),
            last_oow_ack: None,
            last_ack_sent: 0,
            time_wait_until: Time::NEVER,
            is_orphaned: false,
            time_wait: None,
            retransmits: 0,
            probes_out: 0,
            keepalive: None,
            fast_open: None,
            memory: None,
            unanswered_since: Time::ZERO,
            is_passive: false,
            syns_sent: 0,
            first_syn: Time::ZERO,
            was_syn_retransmitted: false,
            syn_pending: false,
            handshake_ack_pending: false,
            window_probe_pending: false,
            pending_reset: None,
            pending_ack: None,
            settings,
            build_control,
        }
    }

    /// Active open: sends a SYN.
    pub fn connect(&mut self) {
        self.state = State::SynSent;
        self.syn_pending = true;
        self.send.nxt = 1;
    }

    /// Passive open: waits for a SYN.
    pub fn listen(&mut self) {
        self.state = State::Listen;
    }

    /// The application writes; returns how many bytes the send buffer took.
    #[inline]
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.write_with_lowat(bytes, None)
    }

    /// The application writes, with at most `most` unsent bytes in the buffer
    /// (`TCP_NOTSENT_LOWAT`), so that it can stop early. It continues when half of them have left.
    #[inline]
    pub fn write_with_lowat(&mut self, bytes: u64, most: Option<u64>) -> u64 {
        if self.state == State::SynSent && self.is_syn_deferred() {
            return self.write_into_syn(bytes);
        }
        let bytes = if self.memory.is_some() { self.limit_by_memory(bytes) } else { bytes };
        if self.settings.has_packet_buffer() {
            return if self.may_send_data() && !self.send.closed {
                let is_above_low = self.is_above_low();
                self.send.write_as_linux(bytes, most, is_above_low, &self.settings)
            } else {
                0
            };
        }
        let ahead = match min_limit(most, self.settings.most_unsent)
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

    /// The application writes from its own memory, not from a file: one call with `bytes`, or the
    /// rest of one.
    #[cold]
    pub fn write_copied(&mut self, bytes: u64) -> u64 {
        self.send.expect_copied_writes();
        self.write_with_lowat(bytes, None)
    }

    /// The peer's application writes from its own memory, not from a file.
    pub fn expect_copied_data(&mut self) {
        self.receive.pages = Pages::OfCopies;
    }

    /// The application waits for data in a call that also checks for buffer space (`poll`).
    pub fn on_poll(&mut self) {
        self.send.on_poll();
    }

    /// The application writes next, without a signal of buffer space.
    pub fn wake_writer(&mut self) {
        self.send.wake_writer();
    }

    /// Whether the send buffer blocks the application by itself. If so, the application may write
    /// everything in as many calls as it takes, each followed by [`Self::poll_transmit`].
    #[inline]
    pub fn blocks_writer(&self) -> bool {
        self.settings.has_packet_buffer()
    }

    /// The application reads; returns how many bytes it got.
    #[expect(clippy::inline_always, reason = "every segment with data passes here")]
    #[inline(always)]
    pub fn read(&mut self, now: Time, most: u64) -> u64 {
        let bytes = self.receive.read(most);
        if bytes > 0 {
            self.receive.on_application_read(now);
            let holds_nothing = self.receive.readable() == 0 && !self.receive.has_gap();
            self.delayed_ack.on_read(self.receive.next, self.last_ack_sent, holds_nothing);
            if self.receive.should_send_window_update() {
                self.delayed_ack.ack_now();
            }
        }
        bytes
    }

    /// The application closes the sending direction (`SHUT_WR`): a FIN follows the data, once the
    /// connection is established.
    #[inline(never)]
    pub fn close(&mut self) {
        match self.state {
            State::Closed | State::Listen => self.end(Ended::Normally),
            _ => {
                self.send.closed = true;
                if self.is_syn_deferred() {
                    self.write_into_syn(0);
                }
            }
        }
    }

    /// The application aborts the connection: sends a reset and drops all data.
    pub fn abort(&mut self) {
        self.reset();
        self.end(Ended::Reset);
    }

    /// Sends a reset, in states in which the peer expects one.
    pub(crate) fn reset(&mut self) {
        if !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait) {
            let seq = self.send.origin.number(self.send.nxt);
            let ack = self.receive.origin.number(self.receive.next);
            self.pending_reset =
                Some(Box::new(Segment::new(Flags::RST.with(Flags::ACK), seq, ack)));
        }
    }

    /// Bytes in order that the application has not read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receive.readable()
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.send.unsent()
    }

    /// Whether the peer has closed and all its data has arrived.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.receive.is_finished()
    }

    /// The state.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, once it has.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// When [`Self::on_timer`] is to be called; `Time::NEVER` if nothing is pending.
    #[inline]
    pub fn next_timer(&self) -> Time {
        let alive = self.keepalive.as_ref().map_or(Time::NEVER, |alive| alive.due);
        let paced = self.send.departure().paced_until();
        let sends = self.send.timer.at.min(self.delayed_ack.due()).min(paced);
        // A timer whose purpose is over still expires in the kernel's wheel.
        let silent = self.send.timer.slot.pending().min(self.delayed_ack.pending());
        sends.min(silent).min(self.time_wait_until).min(alive)
    }

    /// A timer of this kernel, of this connection or another, expired in this tick.
    #[inline]
    pub fn note_timer_expiry(&mut self, now: Time) {
        self.send.timer.slot.note_expiry(now);
        if let Some(place) = self.delayed_ack.slot() {
            place.note_expiry(now);
        }
    }

    /// The position of this end among the ends whose timers expire in this tick. None if no timer
    /// of this end does.
    pub fn expiry_order(&self, now: Time) -> Option<ExpiryOrder> {
        let sends = self.send.timer.slot.expiry_order(now);
        let answers = self.delayed_ack.expiry_order(now);
        // If both timers expire, the position of the active one counts.
        let first = if self.send.timer.at <= now { sends.or(answers) } else { answers.or(sends) };
        first.map(|turn| (self.wheel(), turn))
    }

    /// The timer wheel that holds the timers of this end.
    #[inline]
    pub fn wheel(&self) -> Wheel {
        if self.state == State::SynReceived { Wheel::Requests } else { Wheel::Connections }
    }

    /// Whether a timer of this end expires in the kernel's wheel.
    fn take_timer_expiry(&mut self, now: Time) -> bool {
        let sends = self.send.timer.slot.take_expiry(now);
        self.delayed_ack.slot().is_some_and(|place| place.take_expiry(now)) | sends
    }

    /// The earliest time at which the compressed ACK may leave, if there is one. Its
    /// high-resolution timer has slack: it expires with the next timer of that kind
    /// ([`Self::is_hrtimer_due`]) on the host, of whichever connection.
    #[inline]
    pub fn compressed_ack_from(&self) -> Option<Time> {
        self.delayed_ack.compressed_ack_from()
    }

    /// Whether a high-resolution timer of this end (ACK compression or pacing) is due. The kernel
    /// runs all due ones from one softirq (`HRTIMER_SOFTIRQ`), so compressed ACKs of other ends
    /// leave with it.
    pub fn is_hrtimer_due(&self, now: Time) -> bool {
        self.delayed_ack.compressed_ack_until().is_some_and(|until| until <= now)
            || self.paced_until() <= now
    }

    /// The latest time at which the compressed ACK leaves.
    pub fn compressed_ack_until(&self) -> Option<Time> {
        self.delayed_ack.compressed_ack_until()
    }

    /// When the pacing timer expires; `Time::NEVER` if it is off.
    pub fn paced_until(&self) -> Time {
        self.send.departure().paced_until()
    }

    /// Sends the compressed ACK (`tcp_compressed_ack_kick`).
    pub fn send_compressed_ack(&mut self) {
        self.delayed_ack.ack_now();
    }

    /// Handles every timer that is due. Returns whether one of the kernel's timer wheel was.
    pub fn on_timer(&mut self, now: Time) -> bool {
        let turns = self.take_timer_expiry(now);
        if turns {
            self.note_timer_expiry(now);
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
        let is_first = if is_probe { self.probes_out == 0 } else { self.retransmits == 0 };
        if is_first {
            self.start_user_timeout(now);
        }
        // With a limit of 0 retransmissions, one probe is still sent.
        if self.has_user_timeout_passed(now) || self.retransmits >= most + u32::from(is_probe) {
            self.end(Ended::TimedOut);
            return;
        }
        self.retransmits += 1;
        if is_opening {
            self.syn_pending = true;
            if self.state == State::SynSent && self.settings.behaviour.syn_timeout_is_loss {
                self.send.on_syn_timeout(Context { now, settings: &self.settings });
            }
            let is_linear = self.retransmits <= self.settings.syn_linear_timeouts;
            if self.state == State::SynReceived || !is_linear {
                self.send.rtt.back_off();
            }
        } else if self.send.has_outstanding() {
            if self.send.departure().has_path_mtu() {
                self.detect_black_hole(now);
            }
            self.send.on_timeout(Context { now, settings: &self.settings });
            self.arm_retransmission(now);
        } else if self.send.needs_window_probe() {
            // Zero-window probe: the persist timer (RFC 9293 §3.8.6.1) expired. It has a backoff of
            // its own, because probes are no losses.
            self.probes_out += 1;
            self.window_probe_pending = true;
            self.send.probe_closed_window();
            let wait = self.send.rtt.backed_off(self.probes_out, &self.settings.rto_limits());
            let wait = self.within_user_timeout(now, wait);
            let context = Context { now, settings: &self.settings };
            self.send.timer.set(context, Kind::Retransmit, wait);
        }
    }

    #[inline]
    pub(crate) fn arm_retransmission(&mut self, now: Time) {
        self.send.arm_rto(Context { now, settings: &self.settings });
    }

    /// The next segment that leaves now, if there is one. To be called until it returns none: after
    /// every other call that passes `now`, and after the application's calls.
    #[expect(
        clippy::inline_always,
        reason = "every segment passes here, and is built in its place"
    )]
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.has_nothing_to_send(now) {
            return None;
        }
        if self.state.carries_data() && !self.has_pending_control() {
            self.poll_data(now)
        } else {
            self.poll_control(now)
        }
    }

    #[inline]
    fn has_pending_control(&self) -> bool {
        self.handshake_ack_pending || self.pending_ack.is_some() || self.pending_reset.is_some()
    }

    /// Whether nothing leaves now, whatever the state. Most calls of [`Self::poll_transmit`] find
    /// this.
    #[inline]
    pub fn has_nothing_to_send(&self, now: Time) -> bool {
        self.delayed_ack.due() > now
            && self.send.is_idle()
            && !(self.syn_pending || self.window_probe_pending || self.has_pending_control())
    }

    /// A segment that leaves before data, or without any.
    #[inline(never)]
    fn poll_control(&mut self, now: Time) -> Option<Segment> {
        if let Some(reset) = self.pending_reset.take() {
            return Some(*reset);
        }
        if let Some(ack) = self.pending_ack.take() {
            return Some(*ack);
        }
        match self.state {
            State::SynSent | State::SynReceived if self.syn_pending => {
                self.syn_pending = false;
                Some(self.syn(now))
            }
            State::Closed | State::Listen | State::SynSent => None,
            State::SynReceived if self.may_send_before_handshake() => {
                self.poll_before_handshake(now)
            }
            State::SynReceived | State::FinWait2 | State::TimeWait => self.poll_ack(now),
            _ => {
                self.handshake_ack_pending = false;
                self.ensure_congestion_control(now);
                self.poll_ack(now)
            }
        }
    }

    /// The next segment with data, or else an ACK that is due.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub(crate) fn poll_data(&mut self, now: Time) -> Option<Segment> {
        let data = if self.send.is_idle() { None } else { self.next_data(now) };
        let (flags, start, payload) = match data {
            Some(data) => (self.data_flags(data), data.start, data.payload),
            None => (self.ack_flags(), self.start_of_due_ack(now)?, 0),
        };
        Some(self.segment_with_options(now, flags, start, payload))
    }

    /// The data of the next segment, if any may leave.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    fn next_data(&mut self, now: Time) -> Option<Data> {
        self.ensure_congestion_control(now);
        let options = if self.receive.has_gap() && self.send.sack { SACK_ROOM } else { 0 };
        let data = self.send.next_data(Context { now, settings: &self.settings }, options);
        if data.is_none() && self.send.departure().has_path_mtu() {
            self.on_local_drop(now);
        }
        let data = data?;
        self.probes_out = 0;
        self.window_probe_pending = false;
        Some(data)
    }

    /// Replaces the congestion control, as `setsockopt` with `TCP_CONGESTION` does
    /// (`tcp_reinit_congestion_control`). Without one, `build_control` builds the first.
    #[cold]
    pub fn set_congestion_control(&mut self, now: Time, build_control: BuildControl) {
        self.build_control = build_control;
        if self.settings.behaviour.stays_paced && self.send.congestion().pacing().is_some() {
            // A socket that has been paced stays paced (`sk_pacing_status`).
            self.settings = Arc::new(Settings { pacing: true, ..(*self.settings).clone() });
        }
        let (mss, seed) = (u64::from(self.send.mss), self.seed);
        let build = |initial_window| (self.build_control)(Start { mss, initial_window, seed });
        self.send.replace_congestion_control(Context { now, settings: &self.settings }, build);
    }

    /// Builds the congestion control once there is data to send.
    #[inline]
    fn ensure_congestion_control(&mut self, now: Time) {
        if self.send.needs_control() {
            self.begin_congestion_control(now);
        }
    }

    #[cold]
    fn begin_congestion_control(&mut self, now: Time) {
        let mss = u64::from(self.send.mss);
        let initial_window = self.send.congestion().controller_cwnd();
        let start = Start { mss, initial_window, seed: self.seed };
        // In Linux it exists from establishment on (`tcp_init_transfer`).
        let since = if self.settings.behaviour.controls_from_establishment {
            self.receive.established_at().min(now)
        } else {
            now
        };
        self.send.begin(since, (self.build_control)(start), &self.settings);
        // An end that only sends a FIN needs no window.
        if self.settings.behaviour.controls_from_establishment && self.send.unsent() > 0 {
            self.send.replay_in_ack_events(now);
        }
        // In Linux the SYN-ACK sets the pacing rate, from the window before the initial window
        // is applied (`tcp_finish_connect`). After a SYN timeout, spurious or not, that window
        // is one segment (`tcp_enter_loss`). At a passive end the ACK of the SYN-ACK sets the
        // rate, after the initial window is applied (`tcp_rcv_state_process`).
        let is_early = self.settings.behaviour.controls_from_establishment && !self.is_passive;
        let cwnd = if self.was_syn_retransmitted { 1 } else { INIT_CWND };
        let (cwnd, ssthresh) = match self.send.cc().filter(|_| is_early) {
            Some(cc) => cc.opening(cwnd),
            None => (initial_window, self.send.congestion().ssthresh()),
        };
        self.send.set_rate_for(Context { now, settings: &self.settings }, cwnd, ssthresh);
    }

    /// Whether replies to an event leave before the application is woken: Linux replies
    /// first and then wakes the application (`sk_data_ready`). If so, [`Self::poll_transmit`] is to
    /// be called before the application acts, too.
    #[inline]
    pub fn replies_before_wakeup(&self) -> bool {
        self.settings.behaviour.replies_before_wakeup
    }

    /// A segment without data, if one is due.
    fn poll_ack(&mut self, now: Time) -> Option<Segment> {
        let start = self.start_of_due_ack(now)?;
        let flags = self.ack_flags();
        Some(self.segment_without_data(now, flags, start))
    }

    /// The sequence offset of a segment without data: of an ACK that is due, or of a zero-window
    /// probe.
    #[inline]
    fn start_of_due_ack(&mut self, now: Time) -> Option<u64> {
        if self.send.timer.at == Time::NEVER
            && self.send.needs_window_probe()
            && self.may_send_data()
        {
            self.send.arm_persist_timer(Context { now, settings: &self.settings });
        }
        if std::mem::take(&mut self.window_probe_pending) {
            // One below SND.UNA: an out-of-window segment that the peer must answer
            // (`tcp_xmit_probe_skb`).
            return Some(self.send.una - 1);
        }
        (self.delayed_ack.due() <= now).then_some(self.send.nxt)
    }

    /// Builds a segment without data.
    pub(crate) fn segment_without_data(&mut self, now: Time, flags: Flags, start: u64) -> Segment {
        self.segment_with_options(now, flags, start, 0)
    }

    #[inline]
    pub(crate) fn ack_flags(&self) -> Flags {
        Flags::ACK.with(self.ecn.ack_flags(&self.settings))
    }

    fn may_send_data(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
            || self.may_send_before_handshake()
    }

    /// The flags of a segment with this data. The state follows a FIN.
    #[inline]
    fn data_flags(&mut self, data: Data) -> Flags {
        let mut flags = Flags::ACK.with(self.ecn.segment_flags(&self.settings));
        if !data.is_retransmission && data.payload > 0 {
            flags = flags.with(self.ecn.new_data_flags(|| self.send.take_cwr()));
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

    /// Builds a segment after the handshake, with acknowledgment, window and options
    /// (`tcp_established_options`), and records that it leaves.
    #[expect(clippy::inline_always, reason = "every segment passes here")]
    #[inline(always)]
    pub(crate) fn segment_with_options(
        &mut self,
        now: Time,
        flags: Flags,
        start: u64,
        payload: u16,
    ) -> Segment {
        if self.send.departure().has_path_mtu() {
            self.send.on_route_lookup();
        }
        let scale = self.receive.window_scale;
        let (window, is_short) = self.receive.select_window(scale);
        if is_short {
            self.delayed_ack.end_quickack();
        }
        let seq = self.send.origin.number(start);
        let ack = self.receive.origin.number(self.receive.next);
        let mut segment = Segment::new(flags, seq, ack).with_window(window).with_payload(payload);
        if self.has_timestamps {
            let mut stamp = self.delayed_ack.timestamp_clock(now);
            if self.send.departure().has_path_mtu() {
                stamp = self.send.departure().timestamp_clock(now, stamp);
            }
            if self.send.departure().is_paced_by_device() {
                stamp = self.send.departure().paced_timestamp(stamp, payload > 0);
            }
            segment = segment.with_timestamps(self.timestamps(stamp));
        }
        if self.receive.has_sack_blocks() && self.send.sack {
            let (blocks, count) = self.sack_option(segment.wire_bytes());
            segment = segment.with_sack_option(blocks, count);
        }
        self.last_ack_sent = self.receive.next;
        self.send.note_segment_sent(now);
        self.delayed_ack.on_ack_sent();
        if payload > 0 {
            self.delayed_ack.on_data_sent(now);
        }
        self.ecn.on_segment_sent();
        segment
    }

    /// The SACK blocks that fit into a segment of this size without them, and their number: with
    /// timestamps at most three (RFC 2018 §3). A retransmitted segment keeps its size, so there may
    /// be room for none.
    #[inline(never)]
    fn sack_option(&mut self, wire_bytes: u32) -> ([SackBlock; 4], usize) {
        let most = u32::from(self.own_mss()) + IP_HEADER + TCP_HEADER;
        let room = most.saturating_sub(wire_bytes + 4) / 8;
        let most = if self.has_timestamps { 3 } else { 4 };
        self.receive.sack_blocks(room.min(most) as usize)
    }

    /// The timestamps option of a segment that leaves at `now`.
    #[inline]
    pub(crate) fn timestamps(&self, now: Time) -> Timestamps {
        Timestamps::at(now, self.ts_recent.0)
    }

    /// Bytes of options in every segment.
    pub(crate) fn options(&self) -> u16 {
        if self.has_timestamps { TIMESTAMPS_OPTION as u16 } else { 0 }
    }

    /// Payload bytes of a full segment to a peer with the MSS option `offered`.
    pub(crate) fn segment_size(&self, offered: u16) -> u16 {
        let options = self.options();
        // 65,495 bytes of payload fill the largest IPv4 packet.
        self.settings.mss.min(offered).min(65_495).saturating_sub(options).max(1)
    }

    #[cold]
    pub(crate) fn end(&mut self, how: Ended) {
        self.state = State::Closed;
        self.ended.get_or_insert(how);
        self.time_wait_until = Time::NEVER;
        self.clear_xmit_timers();
        self.delayed_ack.on_ack_sent();
    }

    /// Stops all timers of the connection (`tcp_clear_xmit_timers`).
    pub(crate) fn clear_xmit_timers(&mut self) {
        self.send.timer.stop();
        self.send.timer.slot.cancel();
        if let Some(place) = self.delayed_ack.slot() {
            place.cancel();
        }
        self.keepalive = None;
    }
}
