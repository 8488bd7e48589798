//! Times are in order and within the run.

use crate::broken::{Broken, Law};
use crate::rows::Rows;
use tcplab_model::Plan;
use tcplab_tables::{FlowRow, Row};

/// Rows in order of time.
pub(crate) struct Times {
    end_s: f64,
    last_s: f64,
}

impl Times {
    pub fn new(plan: &Plan) -> Self {
        Self { end_s: plan.duration.as_secs_f64(), last_s: 0.0 }
    }

    /// Checks the next rows, with these times.
    pub fn check<R: Row>(&mut self, rows: &Rows<'_, R>, times: &[f64]) -> Result<(), Box<Broken>> {
        for (row, &time) in times.iter().enumerate() {
            if !(self.last_s..=self.end_s).contains(&time) {
                return Err(rows.broken(
                    Law::Time,
                    row,
                    out_of_order(time, self.last_s, self.end_s),
                ));
            }
            self.last_s = time;
        }
        Ok(())
    }
}

/// Why a time is wrong.
pub(crate) fn out_of_order(time: f64, last_s: f64, end_s: f64) -> String {
    if time < last_s {
        format!("`time_s` is {time}, before that of an earlier row, {last_s}")
    } else {
        format!("`time_s` is {time}, after the end of the run at {end_s}")
    }
}

/// Checks that a flow planned to begin after the end of the run neither begins nor ends in it.
pub(crate) fn check_flows(plan: &Plan, rows: &Rows<'_, FlowRow>) -> Result<(), Box<Broken>> {
    let flows = rows.columns();
    let end_s = plan.duration.as_secs_f64();
    for (row, (&start, &end)) in flows.start_s.iter().zip(flows.end_s).enumerate() {
        let has_begun = rows.text(flows.outcome[row]) != Some("not started");
        let what = if start < 0.0 || end > end_s {
            format!("the row lasts from {start} to {end}, but the run from 0 to {end_s}")
        } else if has_begun && start > end {
            format!("the row begins at {start}, after its end at {end}")
        } else {
            continue;
        };
        return Err(rows.broken(Law::Time, row, what));
    }
    Ok(())
}
