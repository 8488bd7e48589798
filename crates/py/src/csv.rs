//! Rows as CSV, with the same bytes as polars' `write_csv`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch};
use arrow_schema::DataType;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

/// The least number of rows for a processor.
const LEAST: usize = 500;

/// The values of a column.
pub(crate) enum Values<'a> {
    Text(&'a LargeStringArray),
    Integer(&'a Int64Array),
    Number(&'a Float64Array),
}

/// A line for each row. Long tables are written by all processors.
pub(crate) fn lines(batch: &RecordBatch) -> String {
    let columns: Vec<Values<'_>> = batch.columns().iter().map(Values::of).collect();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = batch.num_rows().div_ceil(workers).max(LEAST);
    thread::scope(|scope| {
        let starts = (0..batch.num_rows()).step_by(share);
        let shares = starts.map(|from| from..batch.num_rows().min(from + share));
        let workers: Vec<_> = shares.map(|rows| scope.spawn(|| lines_of(&columns, rows))).collect();
        let texts = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        texts.collect()
    })
}

/// A line for each of these rows.
fn lines_of(columns: &[Values<'_>], rows: Range<usize>) -> String {
    let mut text = String::new();
    for row in rows {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            column.push(row, &mut text);
        }
        text.push('\n');
    }
    text
}

impl<'a> Values<'a> {
    pub fn of(column: &'a ArrayRef) -> Self {
        match column.data_type() {
            DataType::Int64 => Self::Integer(column.as_primitive::<Int64Type>()),
            DataType::Float64 => Self::Number(column.as_primitive::<Float64Type>()),
            _ => Self::Text(column.as_string::<i64>()),
        }
    }

    /// Appends the value of a row: nothing if it is missing.
    fn push(&self, row: usize, text: &mut String) {
        match self {
            Self::Text(values) if values.is_valid(row) => push_quoted(values.value(row), text),
            Self::Integer(values) if values.is_valid(row) => {
                text.push_str(itoa::Buffer::new().format(values.value(row)));
            }
            Self::Number(values) if values.is_valid(row) => {
                text.push_str(zmij::Buffer::new().format(values.value(row)));
            }
            _ => {}
        }
    }
}

/// Appends a text, in quotes where it needs them (RFC 4180 §2). Quotes also distinguish an empty
/// text from a missing one.
fn push_quoted(value: &str, text: &mut String) {
    if value.is_empty() || value.contains([',', '"', '\n', '\r']) {
        text.push('"');
        text.push_str(&value.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(value);
    }
}
