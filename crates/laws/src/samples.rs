//! The table of samples.

use crate::PART;
use crate::broken::Broken;
use crate::order::{Counts, Times};
use crate::rtt::Smoothed;
use crate::values;
use tcplab_model::Plan;
use tcplab_tables::Tables;

pub(crate) fn check(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let samples = &tables.samples;
    let mut times = Times::new(samples, Some("flow"), plan.duration.as_secs_f64());
    let mut counts = Counts::new(samples, "flow", "acked_bytes");
    let mut smoothed = Smoothed::new(plan, samples);
    for start in (0..samples.len()).step_by(PART) {
        let rows = start..samples.len().min(start + PART);
        values::check_rows(plan, samples, rows.clone())?;
        times.check(rows.clone())?;
        counts.check(rows.clone())?;
        smoothed.check(rows)?;
    }
    Ok(())
}
