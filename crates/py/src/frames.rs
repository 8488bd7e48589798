//! Tables as Arrow, by the Arrow `PyCapsule` interface: polars and other libraries read them
//! without copying. Commands that only print rows take them as CSV or dictionaries, since polars
//! takes long to load.

use crate::csv::{self, Values as Cells};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch, RecordBatchIterator,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::convert::Infallible;
use std::sync::Arc;
use tcplab_tables::{Change, Part as Rows, Row, Table, Tables, Values, integer, number};

/// A result table. It is converted on request: a long one part by part, read from its file.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Frame {
    schema: SchemaRef,
    rows: usize,
    parts: Parts,
}

/// The rows of a table.
type Parts = Vec<Part>;

/// Part of the rows, converted on request.
type Part = Box<dyn Fn() -> Result<RecordBatch, ArrowError> + Send + Sync>;

#[pymethods]
impl Frame {
    /// The number of parts, at least one.
    #[getter]
    fn parts(&self) -> usize {
        self.parts.len()
    }

    /// One of the parts.
    fn part(&self, py: Python<'_>, number: usize) -> PyResult<Self> {
        let part = self.parts.get(number).ok_or_else(|| PyIndexError::new_err(number))?;
        let batch = py.detach(part).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Self {
            schema: batch.schema(),
            rows: batch.num_rows(),
            parts: vec![Box::new(move || Ok(batch.clone()))],
        })
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.rows
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// At most `most` rows from `first` on, as lines of CSV.
    fn csv(&self, py: Python<'_>, first: usize, most: usize) -> PyResult<String> {
        py.detach(|| Ok(self.batches(first, most)?.iter().map(csv::lines).collect()))
    }

    /// The same rows as dictionaries.
    fn dicts<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        most: usize,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut dicts = Vec::new();
        for batch in self.batches(first, most)? {
            for row in 0..batch.num_rows() {
                let dict = PyDict::new(py);
                for (name, column) in self.columns().into_iter().zip(batch.columns()) {
                    match Cells::of(column) {
                        _ if column.is_null(row) => dict.set_item(name, py.None())?,
                        Cells::Text(values) => dict.set_item(name, values.value(row))?,
                        Cells::Integer(values) => dict.set_item(name, values.value(row))?,
                        Cells::Number(values) => dict.set_item(name, values.value(row))?,
                    }
                }
                dicts.push(dict);
            }
        }
        Ok(dicts)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer with only one schema to ignore the request.
        drop(requested_schema);
        let batches: Result<Vec<_>, _> =
            py.detach(|| self.parts.iter().map(|part| part()).collect());
        let batches = batches.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let batches = batches.into_iter().map(Ok);
        let batches = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(batches)),
            c"arrow_array_stream",
        )
    }
}

impl Frame {
    /// At most `most` rows from `first` on.
    fn batches(&self, mut first: usize, mut most: usize) -> PyResult<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for part in &self.parts {
            if most == 0 {
                break;
            }
            let batch = part().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            let rows = batch.num_rows().saturating_sub(first).min(most);
            if rows > 0 {
                batches.push(batch.slice(first, rows));
            }
            first = first.saturating_sub(batch.num_rows());
            most -= rows;
        }
        Ok(batches)
    }
}

/// All tables by name.
pub(crate) fn frames(mut tables: Tables) -> Vec<(&'static str, Frame)> {
    struct All(Vec<(&'static str, Frame)>);
    impl Change for All {
        type Error = Infallible;
        fn to<R: Row>(&mut self, table: &mut Table<R>) -> Result<(), Infallible> {
            self.0.push((R::TABLE, frame(std::mem::take(table))));
            Ok(())
        }
    }
    let mut all = All(Vec::new());
    let Ok(()) = tables.each_mut(&mut all);
    all.0
}

/// A table as Python receives it.
pub(crate) fn frame<R: Row>(table: Table<R>) -> Frame {
    let table = Arc::new(table);
    let (number, rows) = (table.number_of_parts(), table.len());
    let schema = schema(&table.part(number - 1));
    let part = |number| -> Part {
        let table = Arc::clone(&table);
        Box::new(move || batch(&table.part(number)))
    };
    Frame { schema, rows, parts: (0..number).map(part).collect() }
}

fn schema<R: Row>(rows: &Rows<'_, R>) -> SchemaRef {
    let fields = rows.columns().map(|(name, values)| {
        let kind = match &*values {
            Values::Text(_) => DataType::LargeUtf8,
            Values::Integer(_) => DataType::Int64,
            Values::Number(_) => DataType::Float64,
        };
        Field::new(name, kind, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The Arrow form of rows.
fn batch<R: Row>(rows: &Rows<'_, R>) -> Result<RecordBatch, ArrowError> {
    let arrays = rows.columns().map(|(_, values)| -> ArrayRef {
        match &*values {
            Values::Text(values) => {
                let texts = values.iter().map(|label| rows.text(*label));
                Arc::new(texts.collect::<LargeStringArray>())
            }
            Values::Integer(values) => {
                let nulls = nulls(values, |value| integer(value).is_some());
                Arc::new(Int64Array::new(values.clone().into(), nulls))
            }
            Values::Number(values) => {
                let nulls = nulls(values, |value| number(value).is_some());
                Arc::new(Float64Array::new(values.clone().into(), nulls))
            }
        }
    });
    RecordBatch::try_new(schema(rows), arrays.collect())
}

/// Which values are missing; `None` if none is.
fn nulls<T>(values: &[T], is_set: impl Fn(&T) -> bool) -> Option<NullBuffer> {
    if values.iter().all(&is_set) {
        return None;
    }
    Some(BooleanBuffer::collect_bool(values.len(), |row| is_set(&values[row])).into())
}
