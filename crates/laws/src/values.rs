//! Every column holds valid numbers.

use crate::broken::{Broken, Law};
use crate::rows::Rows;
use tcplab_model::Plan;
use tcplab_tables::{Row, Values};

/// Checks that rows are of this run, and hold valid numbers.
pub(crate) fn check<R: Row>(plan: &Plan, rows: &Rows<'_, R>) -> Result<(), Box<Broken>> {
    check_run(plan, rows)?;
    for (number, (name, values, part)) in rows.filled().enumerate() {
        // A column that only this run has is empty where nothing was set.
        let is_optional = R::COLUMNS.get(number).is_none_or(|column| column.is_optional);
        let wrong = match values {
            Values::Number(values) if is_optional => position(&values[part], f64::is_infinite),
            Values::Number(values) => position(&values[part], |it| !it.is_finite()),
            Values::Integer(values) if is_optional => {
                position(&values[part], |it| it < 0 && it != i64::MIN)
            }
            Values::Integer(values) => position(&values[part], |it| it < 0),
            Values::Text(values) if !is_optional => position(&values[part], |it| it == u32::MAX),
            Values::Text(_) => None,
        };
        if let Some(row) = wrong {
            let what = format!("`{name}` is {}", described(rows, name, row));
            return Err(rows.broken(Law::Value, row, what));
        }
    }
    Ok(())
}

/// Checks that all rows are of this run.
pub(crate) fn check_run<R: Row>(plan: &Plan, rows: &Rows<'_, R>) -> Result<(), Box<Broken>> {
    let runs = rows.labels("run");
    let Some(&first) = runs.first() else { return Ok(()) };
    let is_own = rows.text(first) == Some(plan.id.as_str());
    match position(runs, |run| run != first || !is_own) {
        Some(row) => Err(rows.broken(Law::Value, row, "the row is of another run")),
        None => Ok(()),
    }
}

/// The index of the first wrong value.
fn position<T: Copy>(values: &[T], is_wrong: impl Fn(T) -> bool) -> Option<usize> {
    // Branch-free, so that compilers vectorize it.
    let has_wrong = values.iter().fold(false, |found, &it| found | is_wrong(it));
    if has_wrong { values.iter().position(|&it| is_wrong(it)) } else { None }
}

fn described<R: Row>(rows: &Rows<'_, R>, name: &str, row: usize) -> &'static str {
    let (_, values, part) = rows
        .filled()
        .find(|column| column.0 == name)
        .unwrap_or_else(|| unreachable!("it is there"));
    match values {
        Values::Number(values) if values[part.start + row].is_infinite() => "infinite",
        Values::Integer(values) if values[part.start + row] != i64::MIN => "below zero",
        _ => "missing",
    }
}
