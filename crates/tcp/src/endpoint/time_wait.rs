//! TIME-WAIT and what else is left of an end after its connection (`inet_timewait_sock`). It
//! answers late segments in TIME-WAIT (RFC 9293 §3.10.7.4), in FIN-WAIT-2 of an orphaned
//! connection, and in CLOSED (§3.10.7.1).
//!
//! As in Linux (`tcp_timewait_state_process`, `tcp_v4_timewait_ack`, `tcp_v4_send_reset`), these
//! answers have neither SACK blocks nor ECN marks, and the last acknowledgment is repeated for
//! every segment that calls for it.

use crate::endpoint::{Ended, Endpoint, State};
use crate::segment::{Flags, Segment, Timestamps, clock};
use crate::seq::SeqNumber;
use crate::settings::Settings;
use crate::timer::waits_until;
use std::num::NonZeroU32;
use tcplab_transport::Clock;
use tcplab_units::{Duration, Time};

/// Minimum interval between answers to out-of-window segments without data, and to repeated SYNs
/// (`tcp_invalid_ratelimit`).
pub(crate) const UNACCEPTABLE_INTERVAL: Duration = Duration::from_millis(500);

/// The state kept of an end after its connection.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    /// When the state becomes CLOSED.
    until: Time,
    /// SND.NXT and RCV.NXT.
    seq: SeqNumber,
    ack: SeqNumber,
    /// The window last offered, in bytes, and its scale.
    window: u32,
    scale: u8,
    /// A bit set of the constants below. A million connections may be in TIME-WAIT; `bool` fields
    /// would add eight bytes to each.
    facts: u8,
    /// The clock of the TIME-WAIT timer.
    clock: Clock,
    /// `TS.Recent`.
    ts_recent: u32,
    /// Tick of the last answer to a segment without data, plus one so that it is never 0.
    last_oow_ack: Option<NonZeroU32>,
}

/// FIN-WAIT-2: the peer's FIN has not arrived.
const AWAITS_FIN: u8 = 1;
/// Answers to segments without data are rate-limited.
const LIMITS_ANSWERS: u8 = 2;
/// Timestamps are in use.
const HAS_TIMESTAMPS: u8 = 4;

impl TimeWait {
    /// An end in CLOSED.
    pub const CLOSED: Self = Self {
        until: Time::ZERO,
        seq: SeqNumber(0),
        ack: SeqNumber(0),
        window: 0,
        scale: 0,
        facts: 0,
        clock: Clock::Exact,
        ts_recent: 0,
        last_oow_ack: None,
    };

    /// Whether the end is in CLOSED and answers every segment by a reset.
    pub fn is_closed(&self) -> bool {
        self.until == Time::ZERO
    }

    /// A segment arrives. Returns the answer, if there is one. `time_wait`: the length of
    /// TIME-WAIT.
    pub fn on_segment(
        &mut self,
        now: Time,
        segment: &Segment,
        time_wait: Duration,
    ) -> Option<Segment> {
        if self.until <= now {
            return reset_for(segment);
        }
        let timestamps = segment.timestamps().filter(|_| self.is(HAS_TIMESTAMPS));
        let fails_paws = timestamps.is_some_and(|timestamps| {
            self.ts_recent.wrapping_sub(timestamps.value).cast_signed() > 0
        });
        let start = self.offset_of(segment.seq);
        let end = start + segment.sequence_length() as i64;
        let is_reset = segment.flags.has(Flags::RST);
        if self.is(AWAITS_FIN) {
            if fails_paws || !self.is_in_window(start, end) {
                return self.repeat_ack(now, segment);
            }
            let is_syn = segment.flags.has(Flags::SYN);
            if is_reset || is_syn && start >= 0 {
                self.until = Time::ZERO;
                return reset_for(segment);
            }
            if !segment.flags.has(Flags::ACK) || end <= 0 || start == end {
                return None;
            }
            if !segment.flags.has(Flags::FIN) || end != 1 {
                // Data for a closed application.
                self.until = Time::ZERO;
                return reset_for(segment);
            }
            self.facts &= !AWAITS_FIN;
            self.ack.0 = self.ack.0.wrapping_add(1);
            self.ts_recent = timestamps.map_or(self.ts_recent, |timestamps| timestamps.value);
            self.restart(now, time_wait);
            return Some(self.last_ack(now));
        }
        if !fails_paws && start == 0 && (is_reset || start == end) {
            if is_reset {
                // TIME-WAIT assassination (RFC 1337): Linux accepts the reset.
                self.until = Time::ZERO;
            } else {
                self.restart(now, time_wait);
                self.ts_recent = timestamps.map_or(self.ts_recent, |timestamps| timestamps.value);
            }
            return None;
        }
        if is_reset {
            return None;
        }
        if fails_paws || segment.flags.has(Flags::ACK) {
            self.restart(now, time_wait);
        }
        self.repeat_ack(now, segment)
    }

    fn is(&self, fact: u8) -> bool {
        self.facts & fact != 0
    }

    /// The distance of a sequence number from RCV.NXT; negative below it.
    fn offset_of(&self, number: SeqNumber) -> i64 {
        number.0.wrapping_sub(self.ack.0).cast_signed().into()
    }

    /// `tcp_in_window`, with offsets from RCV.NXT.
    fn is_in_window(&self, start: i64, end: i64) -> bool {
        let edge = i64::from(self.window);
        start == 0 || end > 0 && start < edge || start == edge && start == end
    }

    /// Starts the TIME-WAIT timer, or starts it again.
    fn restart(&mut self, now: Time, time_wait: Duration) {
        self.until = waits_until(self.clock, now, time_wait);
    }

    /// The last acknowledgment, unless rate-limited.
    fn repeat_ack(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let has_data = segment.sequence_length() > 0 && !segment.flags.has(Flags::SYN);
        if self.is(LIMITS_ANSWERS) && !has_data {
            let tick = clock(now) as u32;
            let since =
                self.last_oow_ack.map(|last_oow_ack| (tick + 1).wrapping_sub(last_oow_ack.get()));
            let is_too_soon = |since| u64::from(since) < UNACCEPTABLE_INTERVAL.as_millis();
            if since.is_some_and(is_too_soon) {
                return None;
            }
            self.last_oow_ack = NonZeroU32::new(tick.wrapping_add(1));
        }
        Some(self.last_ack(now))
    }

    fn last_ack(&self, now: Time) -> Segment {
        let window = (self.window >> self.scale) as u16;
        let ack = Segment::new(Flags::ACK, self.seq, self.ack).with_window(window);
        if !self.is(HAS_TIMESTAMPS) {
            return ack;
        }
        ack.with_timestamps(Timestamps::at(now, self.ts_recent))
    }
}

impl Endpoint {
    /// The application closes both directions (`close`): a FIN follows the data once the connection
    /// is established, and later data of the peer has no reader.
    ///
    /// Once all data and the FIN are acknowledged, Linux keeps only the TIME-WAIT state of such a
    /// connection, even before the peer's FIN (`tcp_close`, `tcp_time_wait`).
    pub fn orphan(&mut self) {
        self.is_orphaned = self.settings.behaviour.time_wait_before_peer_fin;
        self.close();
    }

    /// The TIME-WAIT state of an end whose connection is over; of others CLOSED.
    pub fn remains(&self) -> TimeWait {
        if self.state != State::TimeWait {
            return TimeWait::CLOSED;
        }
        let fact = |holds, fact| if holds { fact } else { 0 };
        let limits = self.settings.behaviour.limits_challenge_acks;
        let facts = fact(!self.receive.is_finished(), AWAITS_FIN)
            | fact(limits, LIMITS_ANSWERS)
            | fact(self.has_timestamps, HAS_TIMESTAMPS);
        self.time_wait.as_deref().copied().unwrap_or_else(|| TimeWait {
            until: self.time_wait_until,
            seq: self.send.origin.number(self.send.nxt),
            ack: self.receive.origin.number(self.receive.next),
            window: self.receive.window() as u32,
            scale: self.receive.window_scale,
            facts,
            clock: self.settings.behaviour.clock,
            ts_recent: self.ts_recent.0,
            last_oow_ack: None,
        })
    }

    /// Enters TIME-WAIT: only segments that the peer repeats are still answered.
    #[cold]
    pub(crate) fn enter_time_wait(&mut self, now: Time) {
        let Settings { time_wait, .. } = *self.settings;
        self.state = State::TimeWait;
        self.time_wait_until = waits_until(self.settings.behaviour.clock, now, time_wait);
        self.clear_xmit_timers();
    }

    /// A segment arrives in TIME-WAIT, or in FIN-WAIT-2 of an orphaned connection.
    #[cold]
    pub(crate) fn on_segment_in_time_wait(&mut self, now: Time, segment: &Segment) {
        let mut remains = self.remains();
        self.pending_ack = remains.on_segment(now, segment, self.settings.time_wait).map(Box::new);
        self.time_wait_until = remains.until;
        if remains.until <= now {
            self.end(Ended::Normally);
        }
        self.time_wait = Some(Box::new(remains));
    }
}

/// The answer to a segment for which there is no connection (RFC 9293 §3.10.7.1).
#[cold]
pub(crate) fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.flags.has(Flags::RST) {
        return None;
    }
    Some(if segment.flags.has(Flags::ACK) {
        Segment::new(Flags::RST, segment.ack, segment.ack)
    } else {
        let mut ack = segment.seq;
        ack.0 = ack.0.wrapping_add(segment.sequence_length() as u32);
        Segment::new(Flags::RST.with(Flags::ACK), SeqNumber(0), ack)
    })
}
