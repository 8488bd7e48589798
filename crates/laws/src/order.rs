//! Times are in order and within the run, and what is counted never gets less.

use crate::broken::{Broken, Law};
use crate::view::{integers, labels, numbers};
use std::ops::Range;
use tcplab_model::Plan;
use tcplab_tables::{Row, Table, Tables};

/// All tables but those of samples and of links: see `samples` and `links`.
pub(crate) fn check(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let end_s = plan.duration.as_secs_f64();
    let (drops, packets) = (&tables.drops, &tables.packets);
    Times::new(drops, None, end_s).check(0..drops.len())?;
    Times::new(packets, None, end_s).check(0..packets.len())?;
    check_flows(tables, end_s)
}

/// The last value of each flow or link.
struct Last<T>(Vec<T>);

impl<T: Copy + Default> Last<T> {
    #[inline]
    fn of(&mut self, label: u32) -> &mut T {
        let place = label as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, T::default());
        }
        &mut self.0[place]
    }
}

/// The rows of each flow or link follow each other in time; without a column of these, all rows do.
pub(crate) struct Times<'a, R> {
    table: &'a Table<R>,
    at: &'a [f64],
    labels: Option<&'a [u32]>,
    end_s: f64,
    last: Last<f64>,
}

impl<'a, R: Row> Times<'a, R> {
    pub fn new(table: &'a Table<R>, of: Option<&str>, end_s: f64) -> Self {
        let labels = of.map(|of| labels(table, of));
        Self { table, at: numbers(table, "time_s"), labels, end_s, last: Last(Vec::new()) }
    }

    /// Checks the next rows.
    pub fn check(&mut self, rows: Range<usize>) -> Result<(), Box<Broken>> {
        for row in rows {
            let time = self.at[row];
            let last = self.last.of(self.labels.map_or(0, |labels| labels[row]));
            if time < *last || time > self.end_s {
                let what = if time < *last {
                    format!("`time_s` is {time}, before that of an earlier row, {last}")
                } else {
                    format!("`time_s` is {time}, after the end of the run at {}", self.end_s)
                };
                return Err(Broken::at(Law::Time, self.table, row, what));
            }
            *last = time;
        }
        Ok(())
    }
}

/// What is counted of each flow or link never gets less.
pub(crate) struct Counts<'a, R> {
    table: &'a Table<R>,
    name: &'a str,
    values: &'a [i64],
    labels: &'a [u32],
    last: Last<i64>,
}

impl<'a, R: Row> Counts<'a, R> {
    pub fn new(table: &'a Table<R>, of: &str, name: &'a str) -> Self {
        let values = integers(table, name);
        Self { table, name, values, labels: labels(table, of), last: Last(Vec::new()) }
    }

    /// Checks the next rows.
    pub fn check(&mut self, rows: Range<usize>) -> Result<(), Box<Broken>> {
        for row in rows {
            let count = self.values[row];
            let last = self.last.of(self.labels[row]);
            if count < *last {
                let what = format!("`{}` is {count}, after {last}", self.name);
                return Err(Broken::at(Law::Time, self.table, row, what));
            }
            *last = count;
        }
        Ok(())
    }
}

/// A flow that is to begin after the end of the run does neither begin nor end in it.
fn check_flows(tables: &Tables, end_s: f64) -> Result<(), Box<Broken>> {
    let flows = &tables.flows;
    let (began, ended) = (numbers(flows, "start_s"), numbers(flows, "end_s"));
    let outcomes = labels(flows, "outcome");
    for (row, (&start, &end)) in began.iter().zip(ended).enumerate() {
        let has_begun = flows.text(outcomes[row]) != Some("not started");
        let what = if start < 0.0 || end > end_s {
            format!("it lasts from {start} to {end}, and the run from 0 to {end_s}")
        } else if has_begun && start > end {
            format!("it begins at {start}, after its end at {end}")
        } else {
            continue;
        };
        return Err(Broken::at(Law::Time, flows, row, what));
    }
    Ok(())
}
