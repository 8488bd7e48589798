//! Stored tables, restored to the form in which a run produces them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use tcplab_tables::{Restored, StoredColumn};

use crate::experiment::Plan;

/// The tables of a stored run, filled part by part.
#[pyclass(module = "tcplab._core")]
#[derive(Default)]
pub(crate) struct StoredTables {
    tables: Restored,
}

#[pymethods]
impl StoredTables {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds rows to a table: the values of each column by name, with their kind, `text`, `integer`
    /// or `number`.
    ///
    /// # Errors
    /// A column is missing or invalid.
    fn add(
        &mut self,
        table: &str,
        columns: Vec<(String, String, Bound<'_, PyAny>)>,
    ) -> PyResult<()> {
        let columns = columns.into_iter().map(|(name, kind, values)| {
            let column = match &*kind {
                "text" => StoredColumn::Text(values.extract()?),
                "integer" => StoredColumn::Integer(values.extract()?),
                "number" => StoredColumn::Number(values.extract()?),
                _ => return Err(PyValueError::new_err(format!("no column holds {kind}"))),
            };
            Ok((name, column))
        });
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        self.tables.add(table, columns).map_err(PyValueError::new_err)
    }

    /// The digest of the tables, and the law that they break, if any. Takes the tables out of this
    /// object.
    ///
    /// # Errors
    /// A table is missing.
    fn check(&mut self, py: Python<'_>, plan: &Plan) -> PyResult<(String, Option<String>)> {
        let (tables, plan) = (std::mem::take(&mut self.tables), Arc::clone(&plan.plan));
        py.detach(move || {
            let tables = tables.finish().map_err(PyValueError::new_err)?;
            let broken = tcplab_laws::check_stored(&plan, &tables).err();
            Ok((tables.digest(), broken.map(|broken| broken.to_string())))
        })
    }
}
