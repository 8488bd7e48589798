//! Intervals are contiguous within the measuring window, and add up to the flow's totals.

use crate::broken::{Broken, Law};
use crate::flows::is_rate;
use crate::path::{Names, hint};
use crate::rows::{Check, Known, Rows};
use crate::rtt::{CLOCK_MS, least_ms};
use crate::values;
use std::collections::BTreeMap;
use tcplab_model::{FlowPlan, Plan, TrafficPlan};
use tcplab_tables::{FlowRow, IntervalColumns, IntervalRow, Table};

/// Counters of both intervals and flows.
const COUNTS: [&str; 5] =
    ["bytes", "sent_segments", "retransmitted_segments", "timeouts", "loss_episodes"];

/// Sums over the intervals of a flow.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    counts: [i64; 5],
    begun: i64,
    /// The end of the last interval.
    until_s: f64,
}

/// The laws of intervals.
pub(crate) struct Intervals<'a> {
    plan: &'a Plan,
    planned: Names<'a>,
    flows: Known<Flow>,
}

/// A flow with intervals: the RTT of its path, if it is planned, and the sums so far.
struct Flow {
    least_ms: Option<f64>,
    sums: Sums,
}

impl<'a> Intervals<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, planned: Names::new(plan), flows: Known::new() }
    }

    /// Sums over the intervals of each flow, by name; `None` if no intervals are requested.
    pub fn sums(&self, table: &Table<IntervalRow>) -> Option<BTreeMap<String, Sums>> {
        self.plan.measured().every?;
        let known = self.flows.all();
        Some(
            known
                .filter_map(|(label, flow)| Some((table.text(label)?.to_owned(), flow.sums)))
                .collect(),
        )
    }
}

impl Check<IntervalRow> for Intervals<'_> {
    /// Checks rows by themselves, and sums them for each flow.
    fn check(&mut self, rows: &Rows<'_, IntervalRow>) -> Result<(), Box<Broken>> {
        let measured = self.plan.measured();
        if measured.every.is_none() {
            return Err(rows.broken(Law::Time, 0, "the experiment records no intervals"));
        }
        values::check(self.plan, rows)?;
        let (from_s, to_s) = (measured.from.as_secs_f64(), measured.to.as_secs_f64());
        let intervals = rows.columns();
        let IntervalColumns { rtt_min_ms: min, rtt_mean_ms: mean, rtt_max_ms: max, .. } = intervals;
        let counts = [
            intervals.bytes,
            intervals.sent_segments,
            intervals.retransmitted_segments,
            intervals.timeouts,
            intervals.loss_episodes,
        ];
        for row in 0..rows.len() {
            let label = intervals.flow[row];
            let flow = self.flows.get(label, || {
                let least_ms = least_ms(self.plan, &self.planned, rows.text(label), hint(label));
                Flow { least_ms, sums: Sums::default() }
            });
            let Some(least_ms) = flow.least_ms else {
                return Err(rows.broken(Law::Value, row, "the experiment has no such flow"));
            };
            let sum = &mut flow.sums;
            let (start, end) = (intervals.start_s[row], intervals.end_s[row]);
            let (law, what) = if !(from_s <= start && start < end && end <= to_s) {
                (Law::Time, "the interval does not lie within the measured part")
            } else if start < sum.until_s {
                (Law::Time, "the interval begins before the previous one ends")
            } else if !is_rate(intervals.goodput_mbit_s[row], counts[0][row], (start, end)) {
                (
                    Law::Outcome,
                    "`goodput_mbit_s` is not `bytes` over the time from `start_s` to `end_s`",
                )
            } else if min[row] < least_ms - CLOCK_MS {
                (Law::Rtt, "`rtt_min_ms` is less than the path takes")
            } else if min[row] > mean[row] + CLOCK_MS || mean[row] > max[row] + CLOCK_MS {
                (Law::Rtt, "the least, the mean and the greatest RTT are not in order")
            } else {
                for (sum, count) in sum.counts.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(count[row]);
                }
                sum.begun = sum.begun.saturating_add(intervals.transfers[row].max(0));
                sum.until_s = end;
                continue;
            };
            return Err(rows.broken(law, row, what));
        }
        Ok(())
    }
}

/// Checks that a flow's counters are the sums over its intervals. Programs may reuse a port: then
/// the table of flows only has the last connection from it.
pub(crate) fn check_flows(
    planned: &Names<'_>,
    rows: &Rows<'_, FlowRow>,
    sums: &BTreeMap<String, Sums>,
) -> Result<(), Box<Broken>> {
    let flows = rows.columns();
    let counts = [
        flows.bytes,
        flows.sent_segments,
        flows.retransmitted_segments,
        flows.timeouts,
        flows.loss_episodes,
    ];
    let is_of_programs = |flow: &FlowPlan| matches!(*flow.traffic, TrafficPlan::Command(_));
    for (row, &label) in flows.flow.iter().enumerate() {
        let name = rows.text(label).unwrap_or_default();
        if planned.flow(name, rows.number(row)).is_some_and(is_of_programs) {
            continue;
        }
        let sum = sums.get(name).copied().unwrap_or_default();
        let own = counts.map(|count| count[row]);
        if let Some(place) = (0..COUNTS.len()).find(|&place| own[place] != sum.counts[place]) {
            let (name, own, sum) = (COUNTS[place], own[place], sum.counts[place]);
            let what = format!("`{name}` is {own}, but its intervals add up to {sum}");
            return Err(rows.broken(Law::Bytes, row, what));
        }
        if flows.transfers[row].max(0) != sum.begun {
            let what = "`transfers` is not the number that began in its intervals";
            return Err(rows.broken(Law::Outcome, row, what));
        }
    }
    Ok(())
}
