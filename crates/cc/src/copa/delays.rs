//! The RTTs that Copa compares: the long-term minimum, the current minimum, and the recent maximum
//! (§2.1, §2.2 of the paper).

use crate::FlowState;
use std::cmp::Ordering;
use std::collections::VecDeque;
use tcplab_units::{Duration, Time};

/// The window of the long-term minimum.
const LONG: Duration = Duration::from_secs(10);
/// The window of the maximum, in RTTs.
const GREATEST_OF: u64 = 4;
/// The number of RTTs within which a queue that only Copa fills is nearly empty at least once.
const EMPTIES_IN: u64 = 5;
/// A queue is nearly empty below the recent maximum over this.
const NEARLY: u64 = 10;

/// The delays of one flow.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    long: Extreme,
    standing: Extreme,
    greatest: Extreme,
    /// When the queue was last nearly empty.
    empty_at: Option<Time>,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            long: Extreme::of(Ordering::Less),
            standing: Extreme::of(Ordering::Less),
            greatest: Extreme::of(Ordering::Greater),
            empty_at: None,
        }
    }
}

impl Delays {
    /// Adds a sample, with a window of `cwnd`.
    pub fn take(&mut self, flow: &FlowState, rtt: Duration, cwnd: u64) {
        let srtt = if flow.srtt.is_zero() { rtt } else { flow.srtt };
        self.long.take(flow.now, rtt, LONG);
        self.standing.take(flow.now, rtt, srtt / 2);
        self.greatest.take(flow.now, rtt, srtt.saturating_mul(GREATEST_OF));
        let most = self.greatest.get().saturating_sub(self.least());
        // A window takes `RTTstanding`, so this is less than a segment of the flow's own.
        let segment = self.standing() / cwnd.max(1);
        if self.queueing() <= segment.max(most / NEARLY) {
            self.empty_at = Some(flow.now);
        }
    }

    /// `RTTmin`; zero before the first sample, like the other values.
    pub fn least(&self) -> Duration {
        self.long.get()
    }

    /// `RTTstanding`.
    pub fn standing(&self) -> Duration {
        self.standing.get()
    }

    /// `d_q`.
    pub fn queueing(&self) -> Duration {
        self.standing().saturating_sub(self.least())
    }

    /// Whether the queue was nearly empty in the last few RTTs, or nothing is known of it.
    pub fn empties(&self, flow: &FlowState) -> bool {
        self.empty_at.is_none_or(|at| flow.now.since(at) <= flow.srtt.saturating_mul(EMPTIES_IN))
    }
}

/// The minimum or maximum RTT of some time.
#[derive(Clone, Debug)]
struct Extreme {
    which: Ordering,
    /// Candidates, the oldest and most extreme first.
    kept: VecDeque<(Time, Duration)>,
}

impl Extreme {
    fn of(which: Ordering) -> Self {
        Self { which, kept: VecDeque::new() }
    }

    fn get(&self) -> Duration {
        self.kept.front().map_or(Duration::ZERO, |&(_, rtt)| rtt)
    }

    fn take(&mut self, now: Time, rtt: Duration, window: Duration) {
        while self.kept.back().is_some_and(|(_, last)| last.cmp(&rtt) != self.which) {
            self.kept.pop_back();
        }
        self.kept.push_back((now, rtt));
        while self.kept.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FLOW;

    const MS: Duration = Duration::from_millis(1);

    /// Delays after samples of an RTT at a time, both in milliseconds, with a smoothed RTT of 100
    /// ms.
    fn delays(samples: &[(u64, u64)]) -> (Delays, FlowState) {
        let mut delays = Delays::default();
        let mut flow = FlowState { srtt: MS * 100, ..FLOW };
        for &(at, rtt) in samples {
            flow.now = Time::ZERO + MS * at;
            delays.take(&flow, MS * rtt, 1000);
        }
        (delays, flow)
    }

    #[test]
    fn standing_rtt_is_the_minimum_over_half_an_srtt() {
        let (delays, _) = delays(&[(0, 100), (50, 130), (60, 120), (100, 140)]);
        assert_eq!(delays.standing(), MS * 120);
        assert_eq!((delays.least(), delays.queueing()), (MS * 100, MS * 20));
    }

    #[test]
    fn queue_below_one_own_segment_counts_as_empty() {
        // A window of ten in 110 ms: one segment in 11 ms.
        for (rtt, expected) in [(111, true), (112, false)] {
            let (mut delays, mut flow) = delays(&[(0, 100)]);
            flow.now = Time::ZERO + MS * 600;
            delays.take(&flow, MS * rtt, 10);
            assert_eq!(delays.empties(&flow), expected, "{rtt} ms");
        }
    }

    #[test]
    fn min_rtt_expires_after_ten_seconds() {
        for (at, least) in [(10_000, 100), (10_001, 110)] {
            assert_eq!(delays(&[(0, 100), (5_000, 110), (at, 120)]).0.least(), MS * least);
        }
    }

    #[test]
    fn queue_above_a_tenth_of_its_maximum_for_five_rtts_is_not_empty() {
        // Queues of 0 to 100 ms; at 300 ms one of 10 ms is left, or one of 11.
        for (least, expected) in [(10, true), (11, false)] {
            let (mut delays, mut flow) = delays(&[(0, 100), (200, 200), (300, 100 + least)]);
            for at in (350..=600).step_by(50) {
                flow.now = Time::ZERO + MS * at;
                delays.take(&flow, MS * 200, 1000);
            }
            assert_eq!(delays.empties(&flow), expected, "{least} ms");
        }
    }
}
