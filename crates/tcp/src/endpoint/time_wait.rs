//! The remains of an end of a connection that is over, which answer late segments: in TIME-WAIT
//! (RFC 9293 §3.10.7.4), in FIN-WAIT-2 once the application is gone, and in CLOSED (§3.10.7.1).
//!
//! As in Linux (`tcp_timewait_state_process`, `tcp_v4_timewait_ack`, `tcp_v4_send_reset`): it knows
//! no blocks of SACK and no marks, and repeats the last acknowledgment as often as it is asked for
//! it.

use crate::endpoint::{Ended, Endpoint, State};
use crate::segment::{Flags, Segment, Timestamps, clock};
use crate::seq::SeqNumber;
use crate::settings::Settings;
use crate::timer::waits_until;
use std::num::NonZeroU32;
use tcplab_transport::Clock;
use tcplab_units::{Duration, Time};

/// How often segments without data that are not acceptable are answered, and SYNs that come again
/// (`tcp_invalid_ratelimit`).
pub(crate) const UNACCEPTABLE_INTERVAL: Duration = Duration::from_millis(500);

/// The remains of one end.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    /// CLOSED from then on.
    until: Time,
    /// The next number to send, and the next one expected.
    seq: SeqNumber,
    ack: SeqNumber,
    /// Bytes of the window that it offered, and by how much that is scaled.
    window: u32,
    scale: u8,
    /// Which of the constants below hold. A million connections may be in TIME-WAIT: `bool`s would
    /// need eight bytes more for each.
    facts: u8,
    /// The clock by which the end waits.
    clock: Clock,
    /// The last timestamp of the peer.
    heard: u32,
    /// One more than the tick of the last answer to a segment without data, so that it is never 0.
    answered: Option<NonZeroU32>,
}

/// The remains are of FIN-WAIT-2: the peer has not finished.
const AWAITS_FIN: u8 = 1;
/// Segments without data are answered at most twice a second.
const LIMITS_ANSWERS: u8 = 2;
/// Timestamps are in use.
const HAS_TIMESTAMPS: u8 = 4;

impl TimeWait {
    /// The TIME-WAIT state of an end that is closed.
    pub const CLOSED: Self = Self {
        until: Time::ZERO,
        seq: SeqNumber(0),
        ack: SeqNumber(0),
        window: 0,
        scale: 0,
        facts: 0,
        clock: Clock::Exact,
        heard: 0,
        answered: None,
    };

    /// Whether it waits for nothing: what comes is answered by a reset.
    pub fn is_closed(&self) -> bool {
        self.until == Time::ZERO
    }

    /// A segment comes, maybe late: what answers it, if anything does. `time_wait`: how long
    /// TIME-WAIT lasts.
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
        let is_outdated = timestamps
            .is_some_and(|timestamps| self.heard.wrapping_sub(timestamps.value).cast_signed() > 0);
        let start = self.after(segment.seq);
        let end = start + segment.sequence_length() as i64;
        let is_reset = segment.flags.has(Flags::RST);
        if self.is(AWAITS_FIN) {
            if is_outdated || !self.is_in_window(start, end) {
                return self.acknowledge(now, segment);
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
                // Data for an application that is gone.
                self.until = Time::ZERO;
                return reset_for(segment);
            }
            self.facts &= !AWAITS_FIN;
            self.ack.0 = self.ack.0.wrapping_add(1);
            self.heard = timestamps.map_or(self.heard, |timestamps| timestamps.value);
            self.wait(now, time_wait);
            return Some(self.last_ack(now));
        }
        if !is_outdated && start == 0 && (is_reset || start == end) {
            if is_reset {
                // The peer is gone for good (RFC 1337 describes it).
                self.until = Time::ZERO;
            } else {
                self.wait(now, time_wait);
                self.heard = timestamps.map_or(self.heard, |timestamps| timestamps.value);
            }
            return None;
        }
        if is_reset {
            return None;
        }
        if is_outdated || segment.flags.has(Flags::ACK) {
            self.wait(now, time_wait);
        }
        self.acknowledge(now, segment)
    }

    fn is(&self, fact: u8) -> bool {
        self.facts & fact != 0
    }

    /// How far a number lies beyond the next expected one; negative if before it.
    fn after(&self, number: SeqNumber) -> i64 {
        number.0.wrapping_sub(self.ack.0).cast_signed().into()
    }

    /// `tcp_in_window`, in numbers relative to the next expected one.
    fn is_in_window(&self, start: i64, end: i64) -> bool {
        let edge = i64::from(self.window);
        start == 0 || end > 0 && start < edge || start == edge && start == end
    }

    /// TIME-WAIT begins, or begins anew.
    fn wait(&mut self, now: Time, time_wait: Duration) {
        self.until = waits_until(self.clock, now, time_wait);
    }

    /// The last acknowledgment once more, unless that would be too often.
    fn acknowledge(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let has_data = segment.sequence_length() > 0 && !segment.flags.has(Flags::SYN);
        if self.is(LIMITS_ANSWERS) && !has_data {
            let tick = clock(now) as u32;
            let since = self.answered.map(|answered| (tick + 1).wrapping_sub(answered.get()));
            let is_too_soon = |since| u64::from(since) < UNACCEPTABLE_INTERVAL.as_millis();
            if since.is_some_and(is_too_soon) {
                return None;
            }
            self.answered = NonZeroU32::new(tick.wrapping_add(1));
        }
        Some(self.last_ack(now))
    }

    fn last_ack(&self, now: Time) -> Segment {
        let window = (self.window >> self.scale) as u16;
        let ack = Segment::new(Flags::ACK, self.seq, self.ack).with_window(window);
        if !self.is(HAS_TIMESTAMPS) {
            return ack;
        }
        ack.with_timestamps(Timestamps::at(now, self.heard))
    }
}

impl Endpoint {
    /// The application closes both directions and reads nothing more. A FIN follows the data once
    /// the connection is established.
    ///
    /// Linux calls such a connection an orphan: when the FIN is acknowledged it keeps a minimal
    /// socket only, although the peer has not sent its FIN (`tcp_close`, `tcp_time_wait`).
    pub fn orphan(&mut self) {
        self.is_orphan = self.settings.behaviour.time_wait_before_peer_fin;
        self.close();
    }

    /// The remains of the end, if it is over.
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
            heard: self.recent_timestamp.0,
            answered: None,
        })
    }

    /// All that is owed to the peer is an answer to what it sends again.
    #[cold]
    pub(crate) fn wait_out(&mut self, now: Time) {
        let Settings { time_wait, .. } = *self.settings;
        self.state = State::TimeWait;
        self.time_wait_until = waits_until(self.settings.behaviour.clock, now, time_wait);
        self.drop_timers();
    }

    /// A segment comes when both sides have finished, or nobody is there for what the peer sends.
    #[cold]
    pub(crate) fn on_segment_when_over(&mut self, now: Time, segment: &Segment) {
        let mut remains = self.remains();
        self.owes_ack = remains.on_segment(now, segment, self.settings.time_wait).map(Box::new);
        self.time_wait_until = remains.until;
        if remains.until <= now {
            self.end(Ended::Normally);
        }
        self.time_wait = Some(Box::new(remains));
    }
}

/// The answer to a segment that is for no connection (RFC 9293 §3.10.7.1).
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
