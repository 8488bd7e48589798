//! The changes of the scoreboard by one ACK.

use super::Sent;
use crate::segment::clock;
use tcplab_transport::Clock;
use tcplab_units::Time;

/// The state of the sender that interprets an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckState {
    /// A segment that was sent again after this cannot have been answered yet: the first answers.
    pub too_late: Time,
    /// When the segment left that the receiver answers, by the clock of its timestamp.
    pub echoed: Option<u64>,
    /// The recovery point of the last episode.
    pub episode_end: u64,
    /// The end of the highest block reported before.
    pub highest: u64,
    /// The clock by which departures are compared (`tcp_skb_sent_after`).
    pub clock: Clock,
}

impl AckState {
    /// When a segment left, as it is compared with others.
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

/// The changes by one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub ack_state: AckState,
    /// Segments cumulatively acknowledged.
    pub acked: u64,
    /// Segments delivered for the first time, cumulatively or by SACK.
    pub delivered: u64,
    /// Segments delivered by SACK.
    pub sacked: u64,
    /// When the first and the last segment were sent that was acknowledged just now and sent only
    /// once.
    pub acked_sent: Option<(Time, Time)>,
    /// First and last departure of the segments newly SACKed and sent only once.
    pub sacked_sent: Option<(Time, Time)>,
    /// One of those acknowledged was sent more than once.
    pub retransmissions_acked: bool,
    /// A segment of the episode was delivered that was sent only once.
    pub originals_delivered: bool,
    /// The lowest segment sent once that was delivered after higher ones.
    pub overtaken: Option<u64>,
    /// The latest sent of those delivered, by time and end, and when the last one counted had left.
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
            // The copy that arrived was sent before the last retransmission.
            return;
        }
        self.last_left = Some(segment.left_at);
        self.note_latest((self.ack_state.departure(segment.left_at), segment.end()));
    }

    /// Segments are acknowledged, one behind the other, of which each was sent once.
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

    /// When the segment left whose delivery times the path for the timeout.
    #[inline]
    pub fn oldest(&self) -> Option<Time> {
        let acked = self.acked_sent.filter(|_| !self.retransmissions_acked);
        Some(acked.or(self.sacked_sent)?.0)
    }

    /// When the segment left whose delivery says most of the path as it is.
    #[inline]
    pub fn newest(&self) -> Option<Time> {
        let acked = self.acked_sent.filter(|_| !self.retransmissions_acked);
        Some(self.sacked_sent.or(acked)?.1)
    }

    pub fn overtake(&mut self, start: u64) {
        self.overtaken = Some(self.overtaken.map_or(start, |lowest| lowest.min(start)));
    }
}

/// The first segments that an ACK acknowledges, as far as each was sent once: they are in the order
/// of time, so the first and the last of them tell all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    pub count: u64,
    pub start: u64,
    pub first_end: u64,
    pub first_left: Time,
    pub end: u64,
    pub last_left: Time,
}
