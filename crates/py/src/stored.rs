//! Tables that were stored, back in the form in which a run leaves them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use tcplab_tables::{StoredColumn, Tables};

use crate::experiment::Plan;

/// The tables of a stored run, filled part by part.
#[pyclass(module = "tcplab._core")]
#[derive(Default)]
pub(crate) struct StoredTables {
    tables: Vec<(String, Vec<(String, StoredColumn)>)>,
}

/// A part of a column, as Python has it.
#[derive(FromPyObject)]
enum Part {
    #[pyo3(transparent)]
    Integers(Vec<Option<i64>>),
    #[pyo3(transparent)]
    Numbers(Vec<Option<f64>>),
    #[pyo3(transparent)]
    Texts(Vec<Option<String>>),
}

#[pymethods]
impl StoredTables {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds rows to a column of a table, which is made if it is not there: of `text`, `integer` or
    /// `number`.
    fn extend(
        &mut self,
        table: &str,
        column: &str,
        kind: &str,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let part = match kind {
            "text" => Part::Texts(values.extract()?),
            "integer" => Part::Integers(values.extract()?),
            "number" => Part::Numbers(values.extract()?),
            _ => return Err(PyValueError::new_err(format!("no column holds {kind}"))),
        };
        let table = place(&mut self.tables, table, Vec::new);
        let column = place(table, column, || match kind {
            "text" => StoredColumn::Text(Vec::new()),
            "integer" => StoredColumn::Integer(Vec::new()),
            _ => StoredColumn::Number(Vec::new()),
        });
        match (column, part) {
            (StoredColumn::Text(column), Part::Texts(part)) => column.extend(part),
            (StoredColumn::Integer(column), Part::Integers(part)) => column.extend(part),
            (StoredColumn::Number(column), Part::Numbers(part)) => column.extend(part),
            _ => return Err(PyValueError::new_err("the parts of a column are of several kinds")),
        }
        Ok(())
    }

    /// The digest of these tables, and the law that they break, if they break one. Nothing is left in
    /// here then.
    ///
    /// # Errors
    /// A table or a column is missing or is not what it should be.
    fn check(&mut self, py: Python<'_>, plan: &Plan) -> PyResult<(String, Option<String>)> {
        let (tables, plan) = (std::mem::take(&mut self.tables), Arc::clone(&plan.plan));
        py.detach(move || {
            let tables = Tables::restore(tables).map_err(PyValueError::new_err)?;
            let broken = tcplab_laws::check_stored(&plan, &tables).err();
            Ok((tables.digest(), broken.map(|broken| broken.to_string())))
        })
    }
}

/// The value of this name, which is added if it is not there.
fn place<'a, T>(list: &'a mut Vec<(String, T)>, name: &str, make: impl FnOnce() -> T) -> &'a mut T {
    let found = list.iter().position(|(known, _)| known == name);
    let found = found.unwrap_or_else(|| {
        list.push((name.into(), make()));
        list.len() - 1
    });
    &mut list[found].1
}
