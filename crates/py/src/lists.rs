//! What there is: algorithms, profiles, columns, the schema.

use crate::errors;
use pyo3::prelude::*;
use tcplab_model::{Mistakes, Problem, Profile};
use tcplab_tables::{Column, DropRow, FlowRow, LinkRow, Row, RunRow, SampleRow};

/// A congestion control, as listings show it.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Algorithm {
    name: &'static str,
    kind: &'static str,
    year: u16,
    summary: &'static str,
    reference: &'static str,
    /// In Markdown.
    explanation: String,
    /// Name, default as JSON, meaning.
    parameters: Vec<(String, String, String)>,
    /// Name, summary, source, parameters as JSON.
    presets: Vec<(&'static str, &'static str, &'static str, &'static str)>,
}

/// The congestion controls that `sim` has.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Algorithm> {
    let parameters = |algorithm: &tcplab_cc::Algorithm| {
        let parameters = algorithm.parameters().into_iter();
        parameters.map(|it| (it.name, it.default.to_string(), it.meaning)).collect()
    };
    let presets = |algorithm: &tcplab_cc::Algorithm| {
        let presets = algorithm.presets.iter();
        presets.map(|it| (it.name, it.summary, it.source, it.params)).collect()
    };
    let describe = |algorithm: &tcplab_cc::Algorithm| Algorithm {
        name: algorithm.name,
        kind: algorithm.kind.word(),
        year: algorithm.year,
        summary: algorithm.summary,
        reference: algorithm.reference,
        explanation: algorithm.explanation(),
        parameters: parameters(algorithm),
        presets: presets(algorithm),
    };
    tcplab_cc::ALGORITHMS.iter().map(describe).collect()
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
        .map_err(|problem| errors::config(&Mistakes::from(problem.at("profile")), None, None))?;
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

/// Text as it may be shown, with everything spelled out that a reader cannot see.
#[pyfunction]
pub(crate) fn printable(text: &Bound<'_, pyo3::types::PyString>) -> String {
    // Names of files may have bytes that are no text.
    tcplab_model::printable(&text.to_string_lossy()).into_owned()
}
