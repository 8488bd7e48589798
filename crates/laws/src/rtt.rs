//! Nothing is faster than its path.

use crate::broken::{Broken, Law};
use crate::path::{Names, hint, least_rtt};
use crate::view::{Known, labels, numbers};
use std::ops::Range;
use tcplab_model::Plan;
use tcplab_tables::{SampleRow, Table, Tables};

/// Stacks measure in whole microseconds.
pub(crate) const CLOCK_MS: f64 = 1e-3;
/// Linux has 32 bits for eighths of a microsecond.
const MOST_SMOOTHED_MS: f64 = (u32::MAX >> 3) as f64 * 1e-3;
/// A smoothed RTT may hold measurements by timestamps, whose clock shows whole milliseconds.
const TIMESTAMPS_MS: f64 = 1.0;

fn least_ms(plan: &Plan, names: &Names<'_>, name: Option<&str>, hint: usize) -> f64 {
    let flow = name.and_then(|name| names.flow(name, hint));
    flow.map_or(0.0, |flow| least_rtt(plan, flow).as_millis_f64())
}

pub(crate) fn check(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    let names = labels(flows, "flow");
    let [min, mean, max] =
        ["rtt_min_ms", "rtt_mean_ms", "rtt_max_ms"].map(|name| numbers(flows, name));
    let mut known = Known::new();
    let planned = Names::new(plan);
    for (row, &label) in names.iter().enumerate() {
        if min[row].is_nan() && mean[row].is_nan() && max[row].is_nan() {
            continue;
        }
        let least = known.get(label, || least_ms(plan, &planned, flows.text(label), row));
        let what = if min[row] < least - CLOCK_MS {
            format!("`rtt_min_ms` is {}, and the path takes {least} ms", min[row])
        } else if !(min[row] <= mean[row] + CLOCK_MS && mean[row] <= max[row] + CLOCK_MS) {
            "the least, the mean and the greatest RTT are not in order".into()
        } else {
            continue;
        };
        return Err(Broken::at(Law::Rtt, flows, row, what));
    }
    Ok(())
}

/// Smoothed RTTs.
pub(crate) struct Smoothed<'a> {
    plan: &'a Plan,
    samples: &'a Table<SampleRow>,
    names: &'a [u32],
    srtt: &'a [f64],
    planned: Names<'a>,
    known: Known<f64>,
}

impl<'a> Smoothed<'a> {
    pub fn new(plan: &'a Plan, samples: &'a Table<SampleRow>) -> Self {
        let (names, srtt) = (labels(samples, "flow"), numbers(samples, "srtt_ms"));
        Self { plan, samples, names, srtt, planned: Names::new(plan), known: Known::new() }
    }

    /// Checks the next rows.
    pub fn check(&mut self, rows: Range<usize>) -> Result<(), Box<Broken>> {
        for row in rows {
            let (label, srtt) = (self.names[row], self.srtt[row]);
            let least = self.known.get(label, || {
                least_ms(self.plan, &self.planned, self.samples.text(label), hint(label))
            });
            if srtt < least.min(MOST_SMOOTHED_MS) - TIMESTAMPS_MS - CLOCK_MS {
                let what = format!("`srtt_ms` is {srtt}, and the path takes {least} ms");
                return Err(Broken::at(Law::Rtt, self.samples, row, what));
            }
        }
        Ok(())
    }
}
