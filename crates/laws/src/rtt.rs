//! RTTs are at least those of the path.

use crate::broken::{Broken, Law};
use crate::path::{Names, least_rtt};
use crate::rows::Rows;
use tcplab_model::Plan;
use tcplab_tables::FlowRow;

/// Stacks measure in whole microseconds.
pub(crate) const CLOCK_MS: f64 = 1e-3;

/// The minimum RTT of the path of the flow of this name, if it is planned.
pub(crate) fn least_ms(
    plan: &Plan,
    names: &Names<'_>,
    name: Option<&str>,
    hint: usize,
) -> Option<f64> {
    let flow = names.flow(name?, hint)?;
    Some(least_rtt(plan, flow).as_millis_f64())
}

pub(crate) fn check(
    plan: &Plan,
    planned: &Names<'_>,
    rows: &Rows<'_, FlowRow>,
) -> Result<(), Box<Broken>> {
    let flows = rows.columns();
    for row in 0..rows.len() {
        let (min, mean, max) =
            (flows.rtt_min_ms[row], flows.rtt_mean_ms[row], flows.rtt_max_ms[row]);
        if min.is_nan() && mean.is_nan() && max.is_nan() {
            continue;
        }
        let least =
            least_ms(plan, planned, rows.text(flows.flow[row]), rows.number(row)).unwrap_or(0.0);
        let what = if min < least - CLOCK_MS {
            format!("`rtt_min_ms` is {min}, and the path takes {least} ms")
        } else if !(min <= mean + CLOCK_MS && mean <= max + CLOCK_MS) {
            "the least, the mean and the greatest RTT are not in order".into()
        } else {
            continue;
        };
        return Err(rows.broken(Law::Rtt, row, what));
    }
    Ok(())
}
