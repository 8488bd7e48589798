//! Activity of flows between marks, for results of part of a run and for the table of intervals.
//!
//! The kernel reports connections at each mark. The guest reports datagrams at the next event after
//! a mark. For programs it is known only at the end which of their ends sends: until then a mark is
//! pending.

use super::flows::{counters, rtt};
use super::{Recorder, Reported};
use crate::records::{Occasion, Summary, Unreadable};
use std::collections::{BTreeMap, VecDeque};
use tcplab_guest::job::{Job, Traffic};
use tcplab_model::Plan;
use tcplab_tables::{Activity, Counters, FlowFacts, Meters, Window};
use tcplab_units::{Duration, Time};
use tcplab_workload::accounts;

/// Activity of flows since the last mark, and at pending marks.
pub(super) struct Marks {
    window: Window,
    meters: Meters,
    /// The last mark reported by the kernel.
    last: Time,
    /// For each flow, the activity since then.
    done: Vec<Activity>,
    waiting: VecDeque<(Time, Vec<Activity>)>,
    /// For each socket, its counters at the last report.
    counted: BTreeMap<u32, (u64, Counters)>,
    /// For each datagram flow, the activity up to each pending mark.
    datagrams: BTreeMap<usize, VecDeque<Activity>>,
    has_programs: bool,
}

/// Activity of a program's connection up to a mark: if its client sends, and if its server does.
type Ways = [Activity; 2];

/// The same, with the number of the mark.
pub(super) type Undecided = Vec<(usize, Ways)>;

impl Marks {
    pub fn new(plan: &Plan, job: &Job) -> Option<Self> {
        let window = job.record.window?;
        let flows = job.flows.iter().zip(plan.flows.iter());
        let flows = flows.map(|(flow, planned)| (time(flow.start), accounts::work(planned)));
        let traffic = || job.flows.iter().map(|flow| &flow.traffic).enumerate();
        let datagrams = traffic().filter(|(_, it)| matches!(it, Traffic::Udp { .. }));
        Some(Self {
            window,
            meters: Meters::new(window, flows),
            last: Time::ZERO,
            done: vec![Activity::default(); job.flows.len()],
            waiting: VecDeque::new(),
            counted: BTreeMap::new(),
            datagrams: datagrams.map(|(flow, _)| (flow, VecDeque::new())).collect(),
            has_programs: traffic().any(|(_, it)| matches!(it, Traffic::Command { .. })),
        })
    }

    /// The number of pending rows of flows.
    pub fn waiting(&self) -> usize {
        self.waiting.len() * self.done.len()
    }

    /// The guest reports the activity of a datagram flow up to the next mark.
    pub fn datagrams(&mut self, flow: usize, done: Activity) -> Result<(), Unreadable> {
        let known = self.datagrams.get_mut(&flow).ok_or_else(|| {
            Unreadable::forged(format!("marks of flow {flow}, which has no datagrams"))
        })?;
        known.push_back(done);
        Ok(())
    }

    /// The index of a time among the pending marks; the end has an index after them.
    fn number_of(&self, at: Time) -> usize {
        self.waiting.partition_point(|(mark, _)| *mark <= at)
    }

    /// The activity of a flow up to the mark with this index.
    fn done_by(&mut self, number: usize, flow: usize) -> &mut Activity {
        match self.waiting.get_mut(number) {
            Some((_, done)) => &mut done[flow],
            None => &mut self.done[flow],
        }
    }

    /// Restricts the facts of a flow to the measuring window.
    pub fn narrow(&self, flow: usize, facts: &mut FlowFacts<'_>) {
        self.meters.narrow(flow, facts);
    }
}

impl Recorder<'_> {
    /// Adds the new part of a connection's counters to its flow.
    pub(super) fn note_done(
        &mut self,
        (id, is_client): (u32, bool),
        key: (usize, usize),
        summary: &Summary,
    ) {
        let is_of_programs = self.is_of_programs(key.0);
        let is_sender = is_client == (is_of_programs || self.client_sends(key));
        let Some(marks) = &mut self.marks else { return };
        let counted = (summary.received_bytes, counters(summary));
        let (received, before) = marks.counted.remove(&id).unwrap_or_default();
        // The counters of a session start at zero again.
        if summary.occasion == Occasion::Marked {
            marks.counted.insert(id, counted);
        }
        let sent = counted.1.since(&before);
        let sent = Activity { counters: sent, rtt: rtt(summary), ..Activity::default() };
        let bytes = counted.0.saturating_sub(received);
        let received = Activity { bytes, ..Activity::default() };
        if is_of_programs {
            let undecided = &mut self.connections.entry(key).or_default().undecided;
            let number = marks.waiting.len();
            if undecided.last().is_none_or(|(last, _)| *last != number) {
                undecided.push((number, Ways::default()));
            }
            if let Some((_, ways)) = undecided.last_mut() {
                ways[usize::from(!is_sender)].add(&sent);
                ways[usize::from(is_sender)].add(&received);
            }
        } else {
            marks.done[key.0].add(if is_sender { &sent } else { &received });
        }
    }

    /// A transfer has begun, or completed.
    pub(super) fn note_transfer(&mut self, flow: usize, begun: u64, completed: u64) {
        let is_counted = self.has_transfers(flow) && !self.is_of_programs(flow);
        if let Some(marks) = self.marks.as_mut().filter(|_| is_counted) {
            marks.done[flow].add(&Activity { begun, completed, ..Activity::default() });
        }
    }

    /// All connections have been reported at a mark.
    ///
    /// # Errors
    /// No snapshot is scheduled at this time.
    pub(super) fn mark(&mut self, after: u64) -> Result<(), Unreadable> {
        let at = time(after);
        let expected = self.marks.as_ref().and_then(|marks| marks.window.next_mark(marks.last));
        let Some(marks) = self.marks.as_mut().filter(|_| expected == Some(at)) else {
            return Err(Unreadable::forged(format!(
                "a snapshot record at {after} that was not scheduled"
            )));
        };
        marks.last = at;
        let none = vec![Activity::default(); marks.done.len()];
        marks.waiting.push_back((at, std::mem::replace(&mut marks.done, none)));
        while self.is_next_known() {
            self.write_mark();
        }
        Ok(())
    }

    /// Whether everything is known about the next pending mark.
    fn is_next_known(&self) -> bool {
        let Some(marks) = self.marks.as_ref().filter(|marks| !marks.has_programs) else {
            return false;
        };
        let Some((at, _)) = marks.waiting.front() else { return false };
        marks.datagrams.iter().all(|(flow, known)| {
            let reported = self.connections.get(&(*flow, 0)).and_then(|it| it.reported.as_ref());
            !known.is_empty() || reported.is_some() || self.has_not_begun(*flow, *at)
        })
    }

    fn has_not_begun(&self, flow: usize, at: Time) -> bool {
        time(self.job.flows[flow].start) >= at
    }

    /// Writes the rows of the next pending mark, or else those of the end.
    fn write_mark(&mut self) {
        let (plan, job) = (self.plan, self.job);
        let Some(marks) = &mut self.marks else { return };
        let end = time(job.duration);
        let (at, mut done) =
            marks.waiting.pop_front().unwrap_or_else(|| (end, std::mem::take(&mut marks.done)));
        for (flow, known) in &mut marks.datagrams {
            if time(job.flows[*flow].start) < at
                && let Some(known) = known.pop_front()
            {
                done[*flow].add(&known);
            }
        }
        let identity = |flow: usize| accounts::identity(plan, &plan.flows[flow]);
        marks.meters.read(at, done, (&mut self.tables, &plan.id), identity);
    }

    /// Decides which end of a program's connection sends.
    pub(super) fn decide(
        &mut self,
        flow: usize,
        undecided: &[(usize, Ways)],
        client_sends: bool,
        (start, completed): (u64, Option<u64>),
    ) {
        let Some(marks) = &mut self.marks else { return };
        for (number, ways) in undecided {
            marks.done_by(*number, flow).add(&ways[usize::from(!client_sends)]);
        }
        let number = marks.number_of(time(start));
        marks.done_by(number, flow).begun += 1;
        if let Some(number) = completed.map(|at| marks.number_of(time(at))) {
            marks.done_by(number, flow).completed += 1;
        }
    }

    /// Writes all pending rows at the end of the experiment.
    pub(super) fn finish_marks(&mut self) {
        while self.marks.as_ref().is_some_and(|marks| !marks.done.is_empty()) {
            self.write_mark();
        }
    }
}

/// The activity of a datagram flow, from the guest's counters.
pub(super) fn of_datagrams(sent: u64, arrived: u64, bytes: u64) -> Activity {
    let counters = Counters { sent_segments: sent, ..Counters::default() };
    Activity { bytes, counters, arrived, ..Activity::default() }
}

impl Reported {
    /// When all had arrived, if before the end of the experiment.
    pub fn completed(&self, duration: u64) -> Option<u64> {
        self.complete.filter(|&at| at <= duration)
    }
}

/// A time from nanoseconds after the start. A forged record may hold any number.
fn time(nanos: u64) -> Time {
    Time::ZERO + Duration::from_picos(nanos.saturating_mul(1000))
}
