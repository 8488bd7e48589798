//! The measuring window of a run, and the activity of flows in it and in its intervals.
//!
//! Counters of flows are read at marks: at the beginning and end of the window and of intervals.
//! Results are differences between two readings. Events at the exact time of a mark come after it,
//! so parts of a run are half-open; the end of the run belongs to its last part.

use crate::Tables;
use crate::facts::{Counters, FlowFacts, FlowIdentity, RoundTrips};
use crate::rows::IntervalRow;
use serde::{Deserialize, Serialize};
use tcplab_units::{Duration, Time};

/// The measuring window: the part of a run that results cover. Times are from the start of the
/// experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    from: Duration,
    to: Duration,
    every: Option<Duration>,
    end: Duration,
}

impl Window {
    /// The window from `from` to `to` of a run that lasts until `end`; `every`: the length of its
    /// intervals, if these have rows.
    pub fn new(from: Duration, to: Duration, every: Option<Duration>, end: Duration) -> Self {
        Self { from, to: to.min(end), every, end }
    }

    /// The whole run.
    pub fn whole(end: Duration) -> Self {
        Self::new(Duration::ZERO, end, None, end)
    }

    /// The beginning.
    pub fn from(&self) -> Time {
        Time::ZERO + self.from
    }

    /// The end.
    pub fn to(&self) -> Time {
        Time::ZERO + self.to
    }

    /// The length of the intervals, if there are any.
    pub fn every(&self) -> Option<Duration> {
        self.every
    }

    /// Whether the window is the whole run.
    pub fn is_whole(&self) -> bool {
        self.from.is_zero() && self.to == self.end
    }

    /// Whether a time is in the window.
    pub fn holds(&self, at: Time) -> bool {
        self.from() <= at && (at < self.to() || self.to == self.end)
    }

    /// The next mark after a time. The end of the run is not a mark.
    pub fn next_mark(&self, after: Time) -> Option<Time> {
        if after >= self.to() {
            return None;
        }
        let next = if after < self.from() {
            self.from()
        } else if let Some(every) = self.every {
            let passed = after.since(self.from()).as_picos() / every.as_picos();
            self.from() + every.saturating_mul(passed + 1)
        } else {
            self.to()
        };
        Some(next.min(self.to())).filter(|next| *next < Time::ZERO + self.end)
    }
}

/// The activity of a flow in the whole run or part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Bytes that reached the application.
    pub bytes: u64,
    /// Counters of its senders.
    pub counters: Counters,
    /// The RTTs of its senders, if they took any.
    pub rtt: Option<RoundTrips>,
    /// Datagrams that arrived.
    pub arrived: u64,
    /// Transfers that began.
    pub begun: u64,
    /// Transfers that completed.
    pub completed: u64,
}

impl Activity {
    /// Adds further activity.
    pub fn add(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.counters.add(&other.counters);
        self.rtt = other.rtt.map(|rtt| rtt.and(self.rtt)).or(self.rtt);
        self.arrived = self.arrived.saturating_add(other.arrived);
        self.begun = self.begun.saturating_add(other.begun);
        self.completed = self.completed.saturating_add(other.completed);
    }

    /// The activity since `before`. RTTs are left unchanged.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            counters: self.counters.since(&before.counters),
            rtt: self.rtt,
            arrived: self.arrived.saturating_sub(before.arrived),
            begun: self.begun.saturating_sub(before.begun),
            completed: self.completed.saturating_sub(before.completed),
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The work of a flow, with its amount; `None` if it has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// One connection, and its bytes.
    Bytes(Option<u64>),
    /// Datagrams.
    Datagrams(Option<u64>),
    /// Transfers.
    Transfers(Option<u64>),
}

impl Work {
    fn is_done(self, total: &Activity) -> bool {
        let (all, done) = match self {
            Self::Bytes(all) => (all, total.bytes),
            Self::Datagrams(all) => (all, total.arrived),
            Self::Transfers(all) => (all, total.completed),
        };
        all.is_some_and(|all| done >= all)
    }
}

/// Tracks the activity of each flow between marks.
#[derive(Clone, Debug)]
pub struct Meters {
    window: Window,
    /// The last mark.
    since: Time,
    flows: Vec<Meter>,
}

#[derive(Clone, Debug)]
struct Meter {
    start: Time,
    work: Work,
    /// The activity up to the last mark.
    total: Activity,
    /// The activity in the window.
    measured: Activity,
}

impl Meters {
    /// For flows with these starts and work.
    pub fn new(window: Window, flows: impl Iterator<Item = (Time, Work)>) -> Self {
        let none = Activity::default();
        let meter = |(start, work)| Meter { start, work, total: none, measured: none };
        Self { window, since: Time::ZERO, flows: flows.map(meter).collect() }
    }

    /// The next mark.
    pub fn next_mark(&self) -> Option<Time> {
        self.window.next_mark(self.since)
    }

    /// Adds the activity of each flow from the last mark to this one, or to the end of the run.
    /// Adds the rows of a completed interval.
    pub fn read<'a>(
        &mut self,
        at: Time,
        done: impl IntoIterator<Item = Activity>,
        (tables, run): (&mut Tables, &str),
        identity: impl Fn(usize) -> FlowIdentity<'a>,
    ) {
        let (since, window) = (std::mem::replace(&mut self.since, at), self.window);
        let is_measured = since >= window.from() && at <= window.to();
        for (number, (meter, done)) in self.flows.iter_mut().zip(done).enumerate() {
            // A completed flow may still receive and send.
            let is_there = meter.start < at && !meter.work.is_done(&meter.total);
            meter.total.add(&done);
            if is_measured {
                meter.measured.add(&done);
                if window.every.is_some() && (is_there || !done.is_nothing()) {
                    tables.add_interval(run, &identity(number), (since, at), meter.work, &done);
                }
            }
        }
    }

    /// Restricts the facts of a flow to the window.
    pub fn narrow(&self, flow: usize, facts: &mut FlowFacts<'_>) {
        if !self.window.is_whole() {
            let Activity { bytes, counters, rtt, .. } = self.flows[flow].measured;
            (facts.bytes, facts.counters, facts.rtt) = (bytes, counters, rtt);
            facts.window = self.window;
        }
    }
}

impl Tables {
    fn add_interval(
        &mut self,
        run: &str,
        flow: &FlowIdentity<'_>,
        (start, end): (Time, Time),
        work: Work,
        done: &Activity,
    ) {
        let table = &mut self.intervals;
        let elapsed = end.since(start).as_secs_f64();
        let millis = |value: Option<Duration>| value.map(Duration::as_millis_f64);
        let has_transfers = matches!(work, Work::Transfers(_));
        let row = IntervalRow {
            run: table.label(run),
            flow: table.label(flow.name),
            class: table.label(flow.class),
            start_s: start.as_secs_f64(),
            end_s: end.as_secs_f64(),
            bytes: done.bytes,
            goodput_mbit_s: done.bytes as f64 * 8.0 / elapsed / 1e6,
            sent_segments: done.counters.sent_segments,
            retransmitted_segments: done.counters.retransmitted_segments,
            timeouts: done.counters.timeouts,
            loss_episodes: done.counters.loss_episodes,
            rtt_min_ms: millis(done.rtt.map(|rtt| rtt.min)),
            rtt_mean_ms: millis(done.rtt.map(|rtt| rtt.mean())),
            rtt_max_ms: millis(done.rtt.map(|rtt| rtt.max)),
            arrived_packets: matches!(work, Work::Datagrams(_)).then_some(done.arrived),
            transfers: has_transfers.then_some(done.begun),
            completed_transfers: has_transfers.then_some(done.completed),
        };
        table.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + s(seconds)
    }

    fn marks(window: Window) -> Vec<Time> {
        std::iter::successors(window.next_mark(Time::ZERO), |mark| window.next_mark(*mark))
            .collect()
    }

    #[test]
    fn marks_are_where_the_window_and_its_intervals_begin_and_end() {
        let window =
            |from, to, every: Option<u64>| Window::new(s(from), s(to), every.map(s), s(10));
        assert_eq!(marks(window(0, 10, None)), []);
        assert_eq!(marks(window(2, 10, None)), [at(2)]);
        assert_eq!(marks(window(0, 7, None)), [at(7)]);
        assert_eq!(marks(window(2, 7, Some(2))), [at(2), at(4), at(6), at(7)]);
        assert_eq!(marks(window(3, 10, Some(3))), [at(3), at(6), at(9)]);
        assert_eq!(marks(window(0, 10, Some(5))), [at(5)]);
        assert_eq!(marks(window(0, 10, Some(50))), []);
    }

    #[test]
    fn a_window_is_half_open_except_at_the_end_of_the_run() {
        let part = Window::new(s(2), s(7), None, s(10));
        assert_eq!([1, 2, 6, 7].map(|time| part.holds(at(time))), [false, true, true, false]);
        assert!(Window::new(s(2), s(10), None, s(10)).holds(at(10)));
        assert!(!part.is_whole() && Window::whole(s(10)).is_whole());
    }

    /// Flows that carry 1000 bytes each second from their start until all are carried.
    fn total(start: u64, all: Option<u64>, now: u64) -> Activity {
        let bytes = 1000 * now.saturating_sub(start);
        Activity { bytes: bytes.min(all.unwrap_or(u64::MAX)), ..Activity::default() }
    }

    #[test]
    fn interval_rows_exist_for_active_flows_and_add_up() {
        let flows = [(0, None), (5, None), (0, Some(3500)), (20, None)];
        let window = Window::new(s(2), s(7), Some(s(2)), s(10));
        let work = flows.iter().map(|&(start, all)| (at(start), Work::Bytes(all)));
        let mut meters = Meters::new(window, work);
        let mut tables = Tables::default();
        let names = ["long", "late", "short", "never"];
        for (since, mark) in [(0, 2), (2, 4), (4, 6), (6, 7), (7, 10)] {
            assert_eq!(meters.next_mark(), (mark < 10).then_some(at(mark)));
            let total = |now| flows.map(move |(start, all)| total(start, all, now));
            let done = total(mark).into_iter().zip(total(since)).map(|(all, old)| all.since(&old));
            let identity = |flow: usize| FlowIdentity::named(names[flow]);
            meters.read(at(mark), done, (&mut tables, "r"), identity);
        }
        let found = &tables.intervals;
        let names: Vec<_> = found.texts("flow").unwrap().into_iter().flatten().collect();
        assert_eq!(names, ["long", "short", "long", "late", "long", "late"]);
        let starts: Vec<_> = found.numbers("start_s").unwrap().into_iter().flatten().collect();
        assert_eq!(starts, [2.0, 2.0, 4.0, 4.0, 6.0, 6.0]);
        let bytes: Vec<_> = found.integers("bytes").unwrap().into_iter().flatten().collect();
        // The short flow had carried 2000 bytes before, and completes after 3.5 s.
        assert_eq!(bytes, [2000, 1500, 2000, 1000, 1000, 1000]);
        let rates: Vec<_> =
            found.numbers("goodput_mbit_s").unwrap().into_iter().flatten().collect();
        assert_eq!(rates, [0.008, 0.006, 0.008, 0.004, 0.008, 0.008]);
        let measured = |flow: usize| meters.flows[flow].measured.bytes;
        assert_eq!([0, 1, 2, 3].map(measured), [5000, 2000, 1500, 0]);
    }
}
