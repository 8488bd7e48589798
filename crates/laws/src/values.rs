//! Every column holds numbers.

use crate::broken::{Broken, Law};
use crate::view::labels;
use std::ops::Range;
use tcplab_model::Plan;
use tcplab_tables::{Row, Table, Tables, Values};

/// All tables but those of samples, links and transfers, which have the most rows: see `samples`,
/// `links` and `transfers`.
pub(crate) fn check(plan: &Plan, tables: &Tables) -> Result<(), Box<Broken>> {
    let Tables { runs, flows, drops, packets, .. } = tables;
    check_whole(plan, runs)?;
    check_whole(plan, flows)?;
    check_whole(plan, drops)?;
    check_whole(plan, packets)?;
    if runs.len() != 1 {
        let what = format!("the table of runs has {} rows", runs.len());
        return Err(Broken::in_all(Law::Value, what));
    }
    Ok(())
}

pub(crate) fn check_whole<R: Row>(plan: &Plan, table: &Table<R>) -> Result<(), Box<Broken>> {
    check_rows(plan, table, 0..table.len())?;
    for (name, values) in table.filled() {
        let Values::Integer(values) = values else { continue };
        let declared = R::COLUMNS.iter().find(|column| column.name == name);
        let is_optional = declared.is_none_or(|column| column.is_optional);
        if let Some(row) = values.iter().position(|&it| it < 0 && !(is_optional && it == i64::MIN))
        {
            let what = if values[row] == i64::MIN { "missing" } else { "below zero" };
            return Err(Broken::at(Law::Value, table, row, format!("`{name}` is {what}")));
        }
    }
    Ok(())
}

/// These rows of a table: they are of this run, and hold numbers. What is counted is not looked at here.
pub(crate) fn check_rows<R: Row>(
    plan: &Plan,
    table: &Table<R>,
    rows: Range<usize>,
) -> Result<(), Box<Broken>> {
    check_run(plan, table, rows.clone())?;
    for (number, (name, values)) in table.filled().enumerate() {
        // What only this run has is empty where nothing was set.
        let is_optional = R::COLUMNS.get(number).is_none_or(|column| column.is_optional);
        let wrong = match values {
            Values::Number(values) if is_optional => {
                position(part(values, &rows), f64::is_infinite)
            }
            Values::Number(values) => position(part(values, &rows), |it| !it.is_finite()),
            Values::Text(values) if !is_optional => {
                position(part(values, &rows), |it| it == u32::MAX)
            }
            Values::Text(_) | Values::Integer(_) => None,
        };
        if let Some(row) = wrong.map(|row| rows.start + row) {
            let what = format!("`{name}` is {}", described(values, row));
            return Err(Broken::at(Law::Value, table, row, what));
        }
    }
    Ok(())
}

/// These rows of a column, as far as it goes.
fn part<'a, T>(values: &'a [T], rows: &Range<usize>) -> &'a [T] {
    &values[rows.start.min(values.len())..rows.end.min(values.len())]
}

/// All rows are of this run.
fn check_run<R: Row>(plan: &Plan, table: &Table<R>, rows: Range<usize>) -> Result<(), Box<Broken>> {
    let runs = &labels(table, "run")[rows.clone()];
    let Some(&first) = runs.first() else { return Ok(()) };
    let is_own = table.text(first) == Some(plan.id.as_str());
    match position(runs, |run| run != first || !is_own) {
        Some(row) => Err(Broken::at(Law::Value, table, rows.start + row, "it is of another run")),
        None => Ok(()),
    }
}

/// The first of the values that is wrong.
fn position<T: Copy>(values: &[T], is_wrong: impl Fn(T) -> bool) -> Option<usize> {
    // Without a branch for each value, which compilers turn into few instructions for many.
    let has_wrong = values.iter().fold(false, |found, &it| found | is_wrong(it));
    if has_wrong { values.iter().position(|&it| is_wrong(it)) } else { None }
}

fn described(values: &Values, row: usize) -> &'static str {
    match values {
        Values::Number(values) if values[row].is_infinite() => "infinite",
        _ => "missing",
    }
}
