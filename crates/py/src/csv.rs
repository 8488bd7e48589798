//! Rows as CSV, with the same bytes as polars' `write_csv`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch};
use arrow_schema::DataType;

/// The values of a column.
pub(crate) enum Values<'a> {
    Text(&'a LargeStringArray),
    Integer(&'a Int64Array),
    Number(&'a Float64Array),
}

/// A line for each row.
pub(crate) fn lines(batch: &RecordBatch) -> String {
    let columns: Vec<Values<'_>> = batch.columns().iter().map(Values::of).collect();
    let mut text = String::new();
    for row in 0..batch.num_rows() {
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
