//! Tables as Arrow, by the Arrow `PyCapsule` interface: polars and other libraries read them
//! without copying.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch, RecordBatchIterator,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;
use tcplab_tables::{Look, Part as Rows, Row, Table, Tables, Values, integer, number};

/// A result table. A long one is read part by part from its file.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Frame {
    schema: SchemaRef,
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
        Ok(Self { schema: batch.schema(), parts: vec![Box::new(move || Ok(batch.clone()))] })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer with only one schema to ignore the request.
        drop(requested_schema);
        let batches: Result<Vec<_>, _> = self.parts.iter().map(|part| part()).collect();
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

/// The Arrow form of all tables, by name.
pub(crate) fn frames(tables: &Tables) -> PyResult<Vec<(&'static str, Frame)>> {
    struct All(Vec<(&'static str, Frame)>);
    impl Look for All {
        type Error = PyErr;
        fn at<R: Row>(&mut self, table: &Table<R>) -> PyResult<()> {
            self.0.push((R::TABLE, frame(table)?));
            Ok(())
        }
    }
    let mut all = All(Vec::new());
    tables.each(&mut all)?;
    Ok(all.0)
}

/// The Arrow form of a table.
pub(crate) fn frame<R: Row>(table: &Table<R>) -> PyResult<Frame> {
    let number = table.number_of_parts();
    let parts: Parts = if number == 1 {
        let batch = batch(&table.part(0));
        let batch = batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        vec![Box::new(move || Ok(batch.clone()))]
    } else {
        let table = Arc::new(table.clone());
        let part = |number| -> Part {
            let table = Arc::clone(&table);
            Box::new(move || batch(&table.part(number)))
        };
        (0..number).map(part).collect()
    };
    Ok(Frame { schema: schema(&table.part(number - 1)), parts })
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
            Values::Integer(values) => Arc::new(values.iter().map(integer).collect::<Int64Array>()),
            Values::Number(values) => Arc::new(values.iter().map(number).collect::<Float64Array>()),
        }
    });
    RecordBatch::try_new(schema(rows), arrays.collect())
}
