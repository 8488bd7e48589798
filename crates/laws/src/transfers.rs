//! A transfer's outcome agrees with its numbers, and those of a flow with those of its transfers.

use crate::broken::{Broken, Law};
use crate::path::{Names, hint, least_rtt};
use crate::rtt::CLOCK_MS;
use crate::values;
use crate::view::{Known, integers, labels, numbers};
use std::collections::BTreeMap;
use tcplab_model::Plan;
use tcplab_tables::{Table, Tables, TransferRow};

/// Of what is computed from times and counts.
const ROUNDING: f64 = 1e-9;

/// What the transfers of a flow have together.
#[derive(Clone, Copy, Default, PartialEq)]
struct Sums {
    begun: i64,
    completed: i64,
    bytes: i64,
}

pub(crate) fn check(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let mut sums = BTreeMap::new();
    let mut before = 0;
    for part in tables.transfers.parts() {
        let checked = values::check_whole(plan, &part);
        let checked = checked.and_then(|()| check_part(plan, &part, &mut sums));
        checked.map_err(|mut broken| {
            broken.row.iter_mut().for_each(|row| row.number += before);
            broken
        })?;
        before += part.len();
    }
    let with_name = |(&label, &sums): (&u32, &Sums)| Some((tables.transfers.text(label)?, sums));
    check_flows(tables, &sums.iter().filter_map(with_name).collect())
}

/// Checks rows by themselves, and adds them up by their flow's label.
fn check_part(
    plan: &Plan,
    transfers: &Table<TransferRow>,
    sums: &mut BTreeMap<u32, Sums>,
) -> Result<(), Box<Broken>> {
    let [names, outcomes] = ["flow", "outcome"].map(|name| labels(transfers, name));
    let [starts, ends, completion, goodput, rtt] =
        ["start_s", "end_s", "completion_s", "goodput_mbit_s", "rtt_min_ms"]
            .map(|name| numbers(transfers, name));
    let [bytes, sent, again] =
        ["bytes", "sent_segments", "retransmitted_segments"].map(|name| integers(transfers, name));
    let duration_s = plan.duration.as_secs_f64();
    let planned = Names::new(plan);
    let mut least = Known::new();
    for row in 0..transfers.len() {
        let label = names[row];
        let least_ms = least.get(label, || {
            let flow = transfers.text(label).and_then(|name| planned.flow(name, hint(label)));
            flow.map(|flow| least_rtt(plan, flow).as_millis_f64())
        });
        let Some(least_ms) = least_ms else {
            return Err(Broken::at(Law::Value, transfers, row, "the experiment has no such flow"));
        };
        let (start, end) = (starts[row], ends[row]);
        let elapsed = end - start;
        let is_complete = transfers.text(outcomes[row]) == Some("completed");
        let (law, what) = if !(0.0 <= start && start <= end && end <= duration_s) {
            (Law::Time, "it does not begin before it ends, within the run")
        } else if is_complete == completion[row].is_nan() {
            (Law::Outcome, "what has completed has a time of completion, and nothing else")
        } else if is_complete && !is_close(completion[row], elapsed) {
            (Law::Outcome, "`completion_s` is not the time from `start_s` to `end_s`")
        } else if !goodput[row].is_nan()
            && !is_close(goodput[row] * elapsed / 8.0 * 1e6, bytes[row] as f64)
        {
            (
                Law::Outcome,
                "`goodput_mbit_s` is not `bytes` over the time from `start_s` to `end_s`",
            )
        } else if sent[row] != i64::MIN && again[row] > sent[row] {
            (Law::Bytes, "more segments were sent again than were sent")
        } else if rtt[row] < least_ms - CLOCK_MS {
            (Law::Rtt, "`rtt_min_ms` is less than the path takes")
        } else {
            let sum = sums.entry(label).or_default();
            sum.begun += 1;
            sum.completed += i64::from(is_complete);
            sum.bytes = sum.bytes.saturating_add(bytes[row]);
            continue;
        };
        return Err(Broken::at(law, transfers, row, what));
    }
    Ok(())
}

/// What flows have of transfers is what these have together.
fn check_flows(tables: &Tables, sums: &BTreeMap<&str, Sums>) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    let names = labels(flows, "flow");
    let [begun, completed, bytes] =
        ["transfers", "completed_transfers", "bytes"].map(|name| integers(flows, name));
    let [p50, p95, p99] = ["completion_p50_s", "completion_p95_s", "completion_p99_s"]
        .map(|name| numbers(flows, name));
    for (row, &label) in names.iter().enumerate() {
        let sum = flows.text(label).and_then(|name| sums.get(name)).copied();
        if begun[row] == i64::MIN && sum.is_none() {
            continue;
        }
        let own = Sums { begun: begun[row], completed: completed[row], bytes: bytes[row] };
        let what = if own != sum.unwrap_or_default() {
            "`transfers`, `completed_transfers` and `bytes` are not those of its transfers"
        } else if p50[row] > p95[row] || p95[row] > p99[row] {
            "its percentiles are not in order"
        } else {
            continue;
        };
        return Err(Broken::at(Law::Outcome, flows, row, what));
    }
    Ok(())
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}
