//! The effect of one ACK on the scoreboard.

use super::Sent;
use crate::segment::clock;
use tcplab_transport::Clock;
use tcplab_units::Time;

/// The sender's state by which an ACK is interpreted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckState {
    /// A retransmission that left after this cannot have been answered yet, so the ACK answers an
    /// earlier transmission.
    pub too_late: Time,
    /// When the segment left whose timestamp the ACK echoes, by the timestamp clock.
    pub echoed: Option<u64>,
    /// The recovery point of the last episode.
    pub episode_end: u64,
    /// The end of the highest SACK block before this ACK.
    pub highest: u64,
    /// The clock by which departures are compared (`tcp_skb_sent_after`).
    pub clock: Clock,
}

impl AckState {
    /// A departure time, as it is compared with others.
    #[inline]
    pub fn departure(&self, left_at: Time) -> Time {
        self.clock.departure(left_at)
    }
}

impl Default for AckState {
    fn default() -> Self {
        Self {
            too_late: Time::NEVER,
            echoed: None,
            episode_end: 0,
            highest: 0,
            clock: Clock::Exact,
        }
    }
}

/// The effect of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub ack_state: AckState,
    /// Segments cumulatively acknowledged.
    pub acked: u64,
    /// Segments delivered for the first time, cumulatively or by SACK.
    pub delivered: u64,
    /// Segments delivered by SACK.
    pub sacked: u64,
    /// Departure times of the first and the last segment that are newly acknowledged and were sent
    /// once.
    pub acked_sent: Option<(Time, Time)>,
    /// Departure times of the first and the last segment that are newly SACKed and were sent once.
    pub sacked_sent: Option<(Time, Time)>,
    /// A retransmitted segment was acknowledged.
    pub retransmissions_acked: bool,
    /// A segment of the episode that was sent once was delivered.
    pub originals_delivered: bool,
    /// The lowest segment, sent once, that was delivered after higher ones.
    pub overtaken: Option<u64>,
    /// Of the delivered segments, the one that left last, by time and end; and the departure time
    /// of the last one counted.
    pub latest: Option<(Time, u64)>,
    pub last_left: Option<Time>,
}

impl Progress {
    #[inline]
    pub(super) fn on_delivered(&mut self, segment: &Sent, by_sack: bool) {
        self.delivered += 1;
        self.sacked += u64::from(by_sack);
        let span = if by_sack { &mut self.sacked_sent } else { &mut self.acked_sent };
        if !segment.retransmitted {
            let first = span.map_or(segment.left_at, |span| span.0);
            *span = Some((first, segment.left_at));
            self.originals_delivered |= segment.end() <= self.ack_state.episode_end;
        } else if segment.left_at > self.ack_state.too_late
            || (!by_sack
                && self.ack_state.echoed.is_some_and(|echoed| echoed < clock(segment.left_at)))
        {
            // An earlier transmission than the last one was delivered.
            return;
        }
        self.last_left = Some(segment.left_at);
        self.note_latest((self.ack_state.departure(segment.left_at), segment.end()));
    }

    /// Consecutive segments are acknowledged, each of which was sent once.
    #[inline]
    pub(super) fn deliver_run(&mut self, run: &Run) {
        self.acked += run.count;
        self.delivered += run.count;
        self.acked_sent = Some((run.first_left, run.last_left));
        self.originals_delivered |= run.first_end <= self.ack_state.episode_end;
        if run.start < self.ack_state.highest {
            self.overtake(run.start);
        }
        self.last_left = Some(run.last_left);
        self.note_latest((self.ack_state.departure(run.last_left), run.end));
    }

    #[inline]
    fn note_latest(&mut self, sent: (Time, u64)) {
        if self.latest.is_none_or(|latest| latest < sent) {
            self.latest = Some(sent);
        }
    }

    /// The departure time of the segment whose RTT goes into the RTO.
    #[inline]
    pub fn oldest(&self) -> Option<Time> {
        let acked = self.acked_sent.filter(|_| !self.retransmissions_acked);
        Some(acked.or(self.sacked_sent)?.0)
    }

    /// The departure time of the newest delivered segment, whose RTT describes the path best.
    #[inline]
    pub fn newest(&self) -> Option<Time> {
        let acked = self.acked_sent.filter(|_| !self.retransmissions_acked);
        Some(self.sacked_sent.or(acked)?.1)
    }

    pub fn overtake(&mut self, start: u64) {
        self.overtaken = Some(self.overtaken.map_or(start, |lowest| lowest.min(start)));
    }
}

/// The leading segments that an ACK acknowledges and that were sent once. They are in the order of
/// departure, so the first and the last describe all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    pub count: u64,
    pub start: u64,
    pub first_end: u64,
    pub first_left: Time,
    pub end: u64,
    pub last_left: Time,
}
