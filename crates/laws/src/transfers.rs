//! A transfer's outcome agrees with its numbers, and a flow's numbers with those of its transfers.

use crate::broken::{Broken, Law};
use crate::flows::Flows;
use crate::path::{Names, hint};
use crate::rows::{Check, Known, Rows};
use crate::rtt::{CLOCK_MS, least_ms};
use crate::values;
use tcplab_model::{MeasurePlan, Plan};
use tcplab_tables::{FlowRow, Table, TransferColumns, TransferRow};

/// The relative rounding error of values computed from times and counts.
const ROUNDING: f64 = 1e-9;

/// The sums over a flow's transfers.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    /// Transfers that begin in the measured part.
    begun: i64,
    completed: i64,
    /// All transfers.
    bytes: i64,
}

/// The laws of transfers.
pub(crate) struct Transfers<'a> {
    plan: &'a Plan,
    planned: Names<'a>,
    end_s: f64,
    measured: MeasurePlan,
    flows: Known<Flow>,
}

/// A flow with transfers: the RTT of its path, if it is planned, and the sums so far.
struct Flow {
    least_ms: Option<f64>,
    sums: Sums,
}

impl<'a> Transfers<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let end_s = plan.duration.as_secs_f64();
        Self {
            plan,
            planned: Names::new(plan),
            end_s,
            measured: plan.measured(),
            flows: Known::new(),
        }
    }

    /// Sums over the transfers of each flow, by the flow's name.
    pub fn sums(&self, table: &Table<TransferRow>) -> impl Iterator<Item = (String, Sums)> {
        let known = self.flows.all();
        known.filter_map(|(label, flow)| Some((table.text(label)?.to_owned(), flow.sums)))
    }
}

impl Check<TransferRow> for Transfers<'_> {
    /// Checks rows by themselves, and sums them for each flow.
    fn check(&mut self, rows: &Rows<'_, TransferRow>) -> Result<(), Box<Broken>> {
        values::check(self.plan, rows)?;
        let (from_s, to_s) = (self.measured.from.as_secs_f64(), self.measured.to.as_secs_f64());
        let is_to_the_end = self.measured.to == self.plan.duration;
        let transfers = rows.columns();
        let TransferColumns { completion_s: completion, goodput_mbit_s: goodput, .. } = transfers;
        let TransferColumns { bytes, sent_segments: sent, rtt_min_ms: rtt, .. } = transfers;
        for row in 0..rows.len() {
            let label = transfers.flow[row];
            let flow = self.flows.get(label, || {
                let least_ms = least_ms(self.plan, &self.planned, rows.text(label), hint(label));
                Flow { least_ms, sums: Sums::default() }
            });
            let Some(least_ms) = flow.least_ms else {
                return Err(rows.broken(Law::Value, row, "the experiment has no such flow"));
            };
            let (start, end) = (transfers.start_s[row], transfers.end_s[row]);
            let elapsed = end - start;
            let is_complete = rows.text(transfers.outcome[row]) == Some("completed");
            let (law, what) = if !(0.0 <= start && start <= end && end <= self.end_s) {
                (Law::Time, "the transfer does not begin before its end, within the run")
            } else if is_complete == completion[row].is_nan() {
                (Law::Outcome, "a transfer has a completion time exactly if it completed")
            } else if is_complete && !is_close(completion[row], elapsed) {
                (Law::Outcome, "`completion_s` is not the time from `start_s` to `end_s`")
            } else if !goodput[row].is_nan()
                && !is_close(goodput[row] * elapsed / 8.0 * 1e6, bytes[row] as f64)
            {
                (
                    Law::Outcome,
                    "`goodput_mbit_s` is not `bytes` over the time from `start_s` to `end_s`",
                )
            } else if sent[row] != i64::MIN && transfers.retransmitted_segments[row] > sent[row] {
                (Law::Bytes, "more segments were retransmitted than were sent")
            } else if rtt[row] < least_ms - CLOCK_MS {
                (Law::Rtt, "`rtt_min_ms` is less than the path takes")
            } else {
                let sum = &mut flow.sums;
                if from_s <= start && (start < to_s || is_to_the_end) {
                    sum.begun += 1;
                    sum.completed += i64::from(is_complete);
                }
                sum.bytes = sum.bytes.saturating_add(bytes[row]);
                continue;
            };
            return Err(rows.broken(law, row, what));
        }
        Ok(())
    }
}

impl Flows<'_> {
    /// Checks that a flow's counters are the sums over its transfers.
    pub fn check_sums(&self, rows: &Rows<'_, FlowRow>) -> Result<(), Box<Broken>> {
        let flows = rows.columns();
        let (begun, completed) = (flows.transfers, flows.completed_transfers);
        let (p50, p95, p99) =
            (flows.completion_p50_s, flows.completion_p95_s, flows.completion_p99_s);
        let measured = self.plan.measured();
        let is_part = !measured.from.is_zero() || measured.to < self.plan.duration;
        for (row, &label) in flows.flow.iter().enumerate() {
            let sum = rows.text(label).and_then(|name| self.sums.get(name)).copied();
            if begun[row] == i64::MIN && sum.is_none() {
                continue;
            }
            let own =
                Sums { begun: begun[row], completed: completed[row], bytes: flows.bytes[row] };
            let mut sum = sum.unwrap_or_default();
            // In part of a run, bytes may belong to transfers that began before it.
            if is_part {
                sum.bytes = own.bytes.min(sum.bytes);
            }
            let what = if own != sum {
                "`transfers`, `completed_transfers` and `bytes` are not those of its transfers"
            } else if p50[row] > p95[row] || p95[row] > p99[row] {
                "its percentiles are not in order"
            } else {
                continue;
            };
            return Err(rows.broken(Law::Outcome, row, what));
        }
        Ok(())
    }
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}
