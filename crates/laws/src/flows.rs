//! What is received was sent, and a flow's outcome agrees with its numbers.

use crate::Slack;
use crate::broken::{Broken, Law};
use crate::capacity::Capacity;
use crate::path::Names;
use crate::view::{integers, labels, numbers};
use tcplab_model::{FlowPlan, Plan, TrafficPlan};
use tcplab_tables::Tables;

/// Of what is computed from times and counts.
const ROUNDING: f64 = 1e-9;

pub(crate) fn check(plan: &Plan, tables: &Tables, slack: Slack) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    let [names, outcomes, froms] = ["flow", "outcome", "from"].map(|name| labels(flows, name));
    let [starts, ends, completion, goodput, share, rtt] =
        ["start_s", "end_s", "completion_s", "goodput_mbit_s", "bottleneck_share", "rtt_min_ms"]
            .map(|name| numbers(flows, name));
    let [bytes, sent, again] =
        ["bytes", "sent_segments", "retransmitted_segments"].map(|name| integers(flows, name));
    let planned = Names::new(plan);
    for row in 0..flows.len() {
        let flow = flows.text(names[row]).and_then(|name| planned.flow(name, row));
        let Some(flow) = flow else {
            return Err(Broken::at(Law::Value, flows, row, "the experiment has no such flow"));
        };
        if again[row] > sent[row] {
            let what = "more segments were sent again than were sent";
            return Err(Broken::at(Law::Bytes, flows, row, what));
        }
        let elapsed = ends[row] - starts[row];
        let outcome = flows.text(outcomes[row]);
        let is_turned = flows.text(froms[row]) != Some(plan.nodes[flow.from].as_str());
        let what = match outcome {
            Some("completed") if completion[row].is_nan() => "it completed without a time",
            Some("completed") if !is_close(completion[row], elapsed) => {
                "`completion_s` is not the time from `start_s` to `end_s`"
            }
            Some("not started")
                if (bytes[row], sent[row]) != (0, 0)
                    || !(goodput[row].is_nan() && rtt[row].is_nan()) =>
            {
                "it has not started, and has sent or received"
            }
            Some("completed") => "",
            _ if !completion[row].is_nan() => "it has not completed, and has a time of completion",
            _ => "",
        };
        let what = if !what.is_empty() {
            what
        } else if goodput[row].is_nan() != share[row].is_nan() {
            "`goodput_mbit_s` and `bottleneck_share` are not there together"
        } else if goodput[row].is_nan() && bytes[row] > 0 && elapsed > 0.0 {
            "it has received data, and has no goodput"
        } else if !goodput[row].is_nan()
            && !is_close(goodput[row] * elapsed / 8.0 * 1e6, bytes[row] as f64)
        {
            "`goodput_mbit_s` is not `bytes` over the time from `start_s` to `end_s`"
        } else if !goodput[row].is_nan() && !is_close(share[row] * rate(plan, flow), goodput[row]) {
            "`bottleneck_share` is not `goodput_mbit_s` over the rate of the slowest link"
        } else {
            if outcome != Some("not started") {
                check_rate(plan, tables, row, (flow, is_turned), slack)?;
            }
            continue;
        };
        return Err(Broken::at(Law::Outcome, flows, row, what));
    }
    Ok(())
}

/// The rate of the slowest link, in Mbit/s.
fn rate(plan: &Plan, flow: &FlowPlan) -> f64 {
    plan.lanes[flow.bottleneck].rate.bits_per_second() as f64 / 1e6
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

/// What a flow received came over every link of its way. Connections of programs may go either way: such
/// a flow has twice the room.
fn check_rate(
    plan: &Plan,
    tables: &Tables,
    row: usize,
    (flow, is_turned): (&FlowPlan, bool),
    slack: Slack,
) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    let (start, end) = (numbers(flows, "start_s")[row], numbers(flows, "end_s")[row]);
    let bytes = integers(flows, "bytes")[row] as f64;
    let way = if is_turned { &flow.back } else { &flow.forward };
    for lane in way.iter().map(|&lane| &plan.lanes[lane]) {
        let capacity = Capacity::of(lane);
        let late = slack.late_s * capacity.most();
        let once = capacity.until(end) - capacity.until(start) + lane.mtu as f64 + late;
        let most = if matches!(*flow.traffic, TrafficPlan::Command(_)) { 2.0 * once } else { once };
        if bytes > most * (1.0 + ROUNDING) {
            let what = format!("it received {bytes} bytes, and {} takes {most:.0}", lane.name);
            return Err(Broken::at(Law::Rate, flows, row, what));
        }
    }
    Ok(())
}

/// What was counted at the sending end.
pub(crate) fn check_totals(tables: &Tables) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    if tables.totals.flows.len() != flows.len() {
        let what = "there is not one count for each row of the table of flows";
        return Err(Broken::in_all(Law::Bytes, what));
    }
    for (row, totals) in tables.totals.flows.iter().enumerate() {
        let Some(totals) = totals else { continue };
        let received = integers(flows, "bytes")[row].cast_unsigned();
        if received > totals.sent_bytes || totals.sent_bytes > totals.written_bytes {
            let what = format!(
                "{} bytes were written, {} sent and {received} received",
                totals.written_bytes, totals.sent_bytes
            );
            return Err(Broken::at(Law::Bytes, flows, row, what));
        }
    }
    Ok(())
}
