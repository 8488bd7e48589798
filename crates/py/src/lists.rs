//! What there is: algorithms, profiles, columns, the schema.

use crate::errors;
use pyo3::prelude::*;
use tcplab_model::{Mistakes, Problem, Profile};
use tcplab_tables::{Column, DropRow, FlowRow, LinkRow, Row, RunRow, SampleRow};

/// The congestion controls: name, year, summary, reference, and the parameters' defaults as JSON.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<(&'static str, u16, &'static str, &'static str, String)> {
    tcplab_cc::ALGORITHMS
        .iter()
        .map(|a| (a.name, a.year, a.summary, a.reference, (a.defaults)().to_string()))
        .collect()
}

/// The profiles: name and summary.
#[pyfunction]
pub(crate) fn profiles() -> Vec<(&'static str, &'static str)> {
    Profile::ALL.iter().map(|profile| (profile.word(), profile.meaning())).collect()
}

/// What a profile sets: option, value and source of each line.
#[pyfunction]
pub(crate) fn profile(name: &str) -> PyResult<Vec<(&'static str, String, &'static str)>> {
    let known = || Profile::ALL.iter().map(|profile| profile.word());
    let found = Profile::ALL
        .iter()
        .find(|profile| profile.word() == name)
        .ok_or_else(|| Problem::unknown("profile", name, known()))
        .map_err(|problem| errors::config(&Mistakes::from(problem.at("profile")), None))?;
    Ok(found.settings().into_iter().map(|line| (line.option, line.value, line.source)).collect())
}

/// The columns of the result tables: table, column, meaning.
#[pyfunction]
pub(crate) fn columns() -> Vec<(&'static str, &'static str, &'static str)> {
    fn of(
        table: &'static str,
        columns: &'static [Column],
    ) -> Vec<(&'static str, &'static str, &'static str)> {
        columns.iter().map(|column| (table, column.name, column.doc.trim())).collect()
    }
    [
        of(RunRow::TABLE, RunRow::COLUMNS),
        of(FlowRow::TABLE, FlowRow::COLUMNS),
        of(SampleRow::TABLE, SampleRow::COLUMNS),
        of(LinkRow::TABLE, LinkRow::COLUMNS),
        of(DropRow::TABLE, DropRow::COLUMNS),
    ]
    .concat()
}

/// The JSON Schema of an experiment, as JSON.
#[pyfunction]
pub(crate) fn schema() -> String {
    tcplab_model::schema().to_string()
}
