//! Datagrams arrive once, and their delays are at least those of the path.

use crate::broken::{Broken, Law};
use crate::path::{Names, least_delay};
use crate::rows::Rows;
use tcplab_model::Plan;
use tcplab_tables::FlowRow;

/// Clocks have a resolution of a nanosecond.
const CLOCK_MS: f64 = 1e-6;

pub(crate) fn check(
    plan: &Plan,
    planned: &Names<'_>,
    rows: &Rows<'_, FlowRow>,
) -> Result<(), Box<Broken>> {
    let flows = rows.columns();
    for row in 0..rows.len() {
        let (lost, reordered) = (flows.lost_packets[row], flows.reordered_packets[row]);
        if lost != i64::MIN && lost.saturating_add(reordered.max(0)) > flows.sent_segments[row] {
            let what = "more datagrams were lost or reordered than were sent";
            return Err(rows.broken(Law::Bytes, row, what));
        }
        let (least, mean) = (flows.delay_min_ms[row], flows.delay_mean_ms[row]);
        let (p50, p95, p99) =
            (flows.delay_p50_ms[row], flows.delay_p95_ms[row], flows.delay_p99_ms[row]);
        if least.is_nan() {
            continue;
        }
        let flow = rows.text(flows.flow[row]);
        let flow = flow.and_then(|name| planned.flow(name, rows.number(row)));
        let path = flow.map_or(0.0, |flow| least_delay(plan, flow).as_millis_f64());
        let what = if least < path - CLOCK_MS {
            format!("`delay_min_ms` is {least}, and the path takes {path} ms")
        } else if !(least <= mean + CLOCK_MS && least <= p50 && p50 <= p95 && p95 <= p99) {
            "the least delay, the mean and the percentiles are not in order".into()
        } else {
            continue;
        };
        return Err(rows.broken(Law::Rtt, row, what));
    }
    Ok(())
}
