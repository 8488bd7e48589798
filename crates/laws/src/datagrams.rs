//! Datagrams arrive once, and none is faster than its path.

use crate::broken::{Broken, Law};
use crate::path::{Names, least_delay};
use crate::view::{integers, labels, numbers};
use tcplab_model::Plan;
use tcplab_tables::Tables;

/// Clocks count whole nanoseconds.
const CLOCK_MS: f64 = 1e-6;

pub(crate) fn check(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    let names = labels(flows, "flow");
    let [sent, lost, reordered] =
        ["sent_segments", "lost_packets", "reordered_packets"].map(|name| integers(flows, name));
    let [least, mean, p50, p95, p99] =
        ["delay_min_ms", "delay_mean_ms", "delay_p50_ms", "delay_p95_ms", "delay_p99_ms"]
            .map(|name| numbers(flows, name));
    let planned = Names::new(plan);
    for (row, &label) in names.iter().enumerate() {
        if lost[row] != i64::MIN && lost[row].saturating_add(reordered[row].max(0)) > sent[row] {
            let what = "more datagrams were lost or reordered than were sent";
            return Err(Broken::at(Law::Bytes, flows, row, what));
        }
        if least[row].is_nan() {
            continue;
        }
        let flow = flows.text(label).and_then(|name| planned.flow(name, row));
        let path = flow.map_or(0.0, |flow| least_delay(plan, flow).as_millis_f64());
        let what = if least[row] < path - CLOCK_MS {
            format!("`delay_min_ms` is {}, and the path takes {path} ms", least[row])
        } else if !(least[row] <= mean[row] + CLOCK_MS
            && least[row] <= p50[row]
            && p50[row] <= p95[row]
            && p95[row] <= p99[row])
        {
            "the least delay, the mean and the percentiles are not in order".into()
        } else {
            continue;
        };
        return Err(Broken::at(Law::Rtt, flows, row, what));
    }
    Ok(())
}
