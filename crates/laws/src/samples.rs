//! The samples of a flow are in order of time, their acknowledged bytes do not decrease, and no RTT
//! is shorter than the path's.

use crate::broken::{Broken, Law};
use crate::order::out_of_order;
use crate::path::{Names, hint};
use crate::rows::{Check, Known, Rows};
use crate::rtt::{CLOCK_MS, least_ms};
use crate::values;
use tcplab_model::Plan;
use tcplab_tables::SampleRow;

/// Linux stores eighths of a microsecond in 32 bits.
const MOST_SMOOTHED_MS: f64 = (u32::MAX >> 3) as f64 * 1e-3;
/// A smoothed RTT may include samples by timestamps, whose resolution is a millisecond.
const TIMESTAMPS_MS: f64 = 1.0;

/// The laws of samples.
pub(crate) struct Samples<'a> {
    plan: &'a Plan,
    planned: Names<'a>,
    end_s: f64,
    flows: Known<Flow>,
}

/// The state of a flow at its last sample.
struct Flow {
    /// The RTT of its path, and the minimum of smoothed RTTs.
    path_ms: f64,
    least_ms: f64,
    time_s: f64,
    acked_bytes: i64,
}

impl<'a> Samples<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let end_s = plan.duration.as_secs_f64();
        Self { plan, planned: Names::new(plan), end_s, flows: Known::new() }
    }
}

impl Check<SampleRow> for Samples<'_> {
    fn check(&mut self, rows: &Rows<'_, SampleRow>) -> Result<(), Box<Broken>> {
        values::check(self.plan, rows)?;
        let samples = rows.columns();
        for row in 0..rows.len() {
            let label = samples.flow[row];
            let flow = self.flows.get(label, || {
                let path_ms = least_ms(self.plan, &self.planned, rows.text(label), hint(label))
                    .unwrap_or(0.0);
                let least_ms = path_ms.min(MOST_SMOOTHED_MS) - TIMESTAMPS_MS - CLOCK_MS;
                Flow { path_ms, least_ms, time_s: 0.0, acked_bytes: 0 }
            });
            let (time, acked) = (samples.time_s[row], samples.acked_bytes[row]);
            let (rtt, srtt) = (samples.rtt_ms[row], samples.srtt_ms[row]);
            let (law, what) = if !(flow.time_s..=self.end_s).contains(&time) {
                (Law::Time, out_of_order(time, flow.time_s, self.end_s))
            } else if acked < flow.acked_bytes {
                (Law::Time, format!("`acked_bytes` is {acked}, after {}", flow.acked_bytes))
            } else if rtt < flow.path_ms - CLOCK_MS {
                (Law::Rtt, format!("`rtt_ms` is {rtt}, and the path takes {} ms", flow.path_ms))
            } else if srtt < flow.least_ms {
                (Law::Rtt, format!("`srtt_ms` is {srtt}, and the path takes {} ms", flow.path_ms))
            } else {
                (flow.time_s, flow.acked_bytes) = (time, acked);
                continue;
            };
            return Err(rows.broken(law, row, what));
        }
        Ok(())
    }
}
