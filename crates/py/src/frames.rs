//! From tables to Arrow, by the Arrow `PyCapsule` interface: polars and others read it without
//! copying.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch, RecordBatchIterator,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;
use tcplab_tables::{Row, Table, Values, integer, number};

/// A table of results.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Frame(RecordBatch);

#[pymethods]
impl Frame {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer that has one schema only to ignore what is requested.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(batches)),
            c"arrow_array_stream",
        )
    }
}

/// The Arrow form of a table.
pub(crate) fn frame<R: Row>(table: &Table<R>) -> PyResult<Frame> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, values) in table.columns() {
        let (kind, array): (_, ArrayRef) = match &*values {
            Values::Text(values) => {
                let texts = values.iter().map(|label| table.text(*label));
                (DataType::LargeUtf8, Arc::new(texts.collect::<LargeStringArray>()))
            }
            Values::Integer(values) => {
                (DataType::Int64, Arc::new(values.iter().map(integer).collect::<Int64Array>()))
            }
            Values::Number(values) => {
                (DataType::Float64, Arc::new(values.iter().map(number).collect::<Float64Array>()))
            }
        };
        fields.push(Field::new(name, kind, true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map(Frame)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
