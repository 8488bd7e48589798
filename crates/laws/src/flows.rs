//! Received data was sent, and a flow's outcome agrees with its numbers.

use crate::broken::{Broken, Law};
use crate::capacity::Capacities;
use crate::path::Names;
use crate::rows::{Check, Rows};
use crate::transfers::Sums;
use crate::{Slack, datagrams, intervals, order, rtt, values};
use std::collections::BTreeMap;
use tcplab_model::{FlowPlan, Plan, TrafficPlan};
use tcplab_tables::{FlowColumns, FlowRow, FlowTotals, Tables};

/// The relative rounding error of values computed from times and counts.
const ROUNDING: f64 = 1e-9;

/// The laws of flows.
pub(crate) struct Flows<'a> {
    pub plan: &'a Plan,
    planned: Names<'a>,
    capacities: Capacities<'a>,
    slack: Slack,
    /// Sums over the transfers of each flow.
    pub sums: BTreeMap<String, Sums>,
    /// Sums over the intervals of each flow, if there are any.
    pub intervals: Option<BTreeMap<String, intervals::Sums>>,
}

impl<'a> Flows<'a> {
    pub fn new(plan: &'a Plan, slack: Slack) -> Self {
        let (planned, capacities) = (Names::new(plan), Capacities::new(plan));
        Self { plan, planned, capacities, slack, sums: BTreeMap::new(), intervals: None }
    }
}

impl Check<FlowRow> for Flows<'_> {
    fn check(&mut self, rows: &Rows<'_, FlowRow>) -> Result<(), Box<Broken>> {
        values::check(self.plan, rows)?;
        order::check_flows(self.plan, rows)?;
        rtt::check(self.plan, &self.planned, rows)?;
        check(self.plan, &self.planned, rows, (&self.capacities, self.slack))?;
        datagrams::check(self.plan, &self.planned, rows)?;
        self.check_sums(rows)?;
        match &self.intervals {
            Some(sums) => intervals::check_flows(&self.planned, rows, sums),
            None => Ok(()),
        }
    }
}

fn check(
    plan: &Plan,
    planned: &Names<'_>,
    rows: &Rows<'_, FlowRow>,
    (capacities, slack): (&Capacities<'_>, Slack),
) -> Result<(), Box<Broken>> {
    let flows = rows.columns();
    let FlowColumns { bytes, completion_s: completion, goodput_mbit_s: goodput, .. } = flows;
    let FlowColumns { sent_segments: sent, bottleneck_share: share, .. } = flows;
    let measured = plan.measured();
    let (begin_s, until_s) = (measured.from.as_secs_f64(), measured.to.as_secs_f64());
    for row in 0..rows.len() {
        let name = rows.text(flows.flow[row]);
        let flow = name.and_then(|name| planned.flow(name, rows.number(row)));
        let Some(flow) = flow else {
            return Err(rows.broken(Law::Value, row, "the experiment has no such flow"));
        };
        if flows.retransmitted_segments[row] > sent[row] {
            let what = "more segments were retransmitted than were sent";
            return Err(rows.broken(Law::Bytes, row, what));
        }
        let elapsed = flows.end_s[row] - flows.start_s[row];
        // The time in which the flow ran, within the measured part.
        let running = flows.end_s[row].min(until_s) - flows.start_s[row].max(begin_s);
        let outcome = rows.text(flows.outcome[row]);
        let is_turned = rows.text(flows.from[row]) != Some(plan.nodes[flow.from].as_str());
        let what = match outcome {
            Some("completed") if completion[row].is_nan() => {
                "the flow completed without a completion time"
            }
            Some("completed") if !is_close(completion[row], elapsed) => {
                "`completion_s` is not the time from `start_s` to `end_s`"
            }
            Some("not started")
                if (bytes[row], sent[row]) != (0, 0)
                    || !(goodput[row].is_nan() && flows.rtt_min_ms[row].is_nan()) =>
            {
                "the flow has not started, but has sent or received"
            }
            Some("completed") => "",
            _ if !completion[row].is_nan() => {
                "the flow has not completed, but has a completion time"
            }
            _ => "",
        };
        let what = if !what.is_empty() {
            what
        } else if goodput[row].is_nan() != share[row].is_nan() {
            "only one of `goodput_mbit_s` and `bottleneck_share` has a value"
        } else if goodput[row].is_nan() && bytes[row] > 0 && running > 0.0 {
            "the flow has received data, but has no goodput"
        } else if !goodput[row].is_nan()
            && !is_rate(
                goodput[row],
                bytes[row],
                (flows.start_s[row].max(begin_s), flows.end_s[row].min(until_s)),
            )
        {
            "`goodput_mbit_s` is not `bytes` over the measured part of the time from `start_s` to \
             `end_s`"
        } else if !goodput[row].is_nan() && !is_close(share[row] * rate(plan, flow), goodput[row]) {
            "`bottleneck_share` is not `goodput_mbit_s` over the rate of the bottleneck"
        } else {
            if outcome != Some("not started") {
                check_rate(plan, rows, row, (flow, is_turned), (capacities, slack))?;
            }
            continue;
        };
        return Err(rows.broken(Law::Outcome, row, what));
    }
    Ok(())
}

/// The rate of the bottleneck, in Mbit/s.
fn rate(plan: &Plan, flow: &FlowPlan) -> f64 {
    plan.lanes[flow.bottleneck].lasting_rate().bits_per_second() as f64 / 1e6
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

/// Whether `mbit_s` is the rate of so many bytes from `start` to `end`. Times in seconds are
/// rounded.
pub(crate) fn is_rate(mbit_s: f64, bytes: i64, (start, end): (f64, f64)) -> bool {
    let (carried, bytes) = (mbit_s * (end - start) / 8.0 * 1e6, bytes as f64);
    is_close(carried, bytes)
        || (carried - bytes).abs() <= 2.0 * f64::EPSILON * end / (end - start) * bytes
}

/// Bytes received by the end of the window must fit the capacity of every link on the path since
/// the flow began: data that arrives in a window may have left a link long before. Connections of
/// programs may send in either direction: such a flow has twice the capacity.
fn check_rate(
    plan: &Plan,
    rows: &Rows<'_, FlowRow>,
    row: usize,
    (flow, is_turned): (&FlowPlan, bool),
    (capacities, slack): (&Capacities<'_>, Slack),
) -> Result<(), Box<Broken>> {
    let flows = rows.columns();
    let (start, end, bytes) = (flows.start_s[row], flows.end_s[row], flows.bytes[row] as f64);
    let end = end.min(plan.measured().to.as_secs_f64()).max(start);
    let way = if is_turned { &flow.back } else { &flow.forward };
    for &number in way {
        let (link, capacity) = (&plan.lanes[number], capacities.of(number));
        let late = capacity.most_in(slack.late_s);
        let once = capacity.until(end) - capacity.until(start) + link.mtu as f64 + late;
        let most = if matches!(*flow.traffic, TrafficPlan::Command(_)) { 2.0 * once } else { once };
        if bytes > most * (1.0 + ROUNDING) {
            let what = format!(
                "the flow received {bytes} bytes, and {} carries at most {most:.0}",
                link.name
            );
            return Err(rows.broken(Law::Rate, row, what));
        }
    }
    Ok(())
}

/// Checks the counters of the sending end.
pub(crate) fn check_totals(tables: &Tables) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    if tables.totals.flows.len() != flows.len() {
        let what = "the number of counts differs from the rows of the table of flows";
        return Err(Broken::in_all(Law::Bytes, what));
    }
    flows.parts().try_for_each(|part| {
        let rows = Rows::of(&part);
        let totals = &tables.totals.flows[part.first()..];
        check_counted(&rows, totals)
    })
}

fn check_counted(
    rows: &Rows<'_, FlowRow>,
    totals: &[Option<FlowTotals>],
) -> Result<(), Box<Broken>> {
    let counted = totals.iter().zip(rows.columns().bytes).enumerate();
    for (row, (totals, received)) in counted {
        let Some(totals) = totals else { continue };
        let received = received.cast_unsigned();
        if received > totals.sent_bytes || totals.sent_bytes > totals.written_bytes {
            let what = format!(
                "{} bytes were written, {} sent and {received} received",
                totals.written_bytes, totals.sent_bytes
            );
            return Err(rows.broken(Law::Bytes, row, what));
        }
    }
    Ok(())
}
