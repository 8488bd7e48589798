//! Listings: algorithms, profiles, columns, the schema.

use crate::errors;
use pyo3::prelude::*;
use tcplab_model::support::{FEATURES, Feature, heading};
use tcplab_model::{Mistakes, Problem, Profile};
use tcplab_tables::{Column, DECLARED, Kind};

/// A congestion control, as shown in listings.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Algorithm {
    name: &'static str,
    kind: &'static str,
    year: u16,
    summary: &'static str,
    reference: &'static str,
    /// In Markdown.
    explanation: String,
    /// Name, default as JSON, description.
    parameters: Vec<(String, String, String)>,
    /// Name, description.
    probes: Vec<(String, String)>,
    /// Name, summary, source, parameters as JSON.
    presets: Vec<(&'static str, &'static str, &'static str, &'static str)>,
}

/// The congestion controls of `sim`.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Algorithm> {
    let parameters = |algorithm: &tcplab_cc::Algorithm| {
        let parameters = algorithm.parameters().into_iter();
        parameters.map(|it| (it.name, it.default.to_string(), it.meaning)).collect()
    };
    let probes = |algorithm: &tcplab_cc::Algorithm| {
        algorithm.probes().into_iter().map(|it| (it.name, it.meaning)).collect()
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
        probes: probes(algorithm),
        presets: presets(algorithm),
    };
    tcplab_cc::ALGORITHMS.iter().map(describe).collect()
}

/// The profiles: name and summary.
#[pyfunction]
pub(crate) fn profiles() -> Vec<(&'static str, &'static str)> {
    Profile::ALL.iter().map(|profile| (profile.word(), profile.meaning())).collect()
}

/// The settings of a profile: option, value and source of each line.
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

/// The columns of the result tables: table, column, description.
#[pyfunction]
pub(crate) fn columns() -> Vec<(&'static str, &'static str, &'static str)> {
    let rows = |&(table, columns): &(&'static str, &'static [Column])| {
        columns.iter().map(move |column| (table, column.name, column.doc.trim()))
    };
    DECLARED.iter().flat_map(rows).collect()
}

/// The types of the result tables' columns: table, column, kind, whether values may be missing.
#[pyfunction]
pub(crate) fn column_kinds() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    let word = |kind| match kind {
        Kind::Text => "text",
        Kind::Integer => "integer",
        Kind::Number => "number",
    };
    let rows = |&(table, columns): &(&'static str, &'static [Column])| {
        columns.iter().map(move |it| (table, it.name, word(it.kind), it.is_optional))
    };
    DECLARED.iter().flat_map(rows).collect()
}

/// The names of the result tables.
#[pyfunction]
pub(crate) fn tables() -> Vec<&'static str> {
    DECLARED.iter().map(|(table, _)| *table).collect()
}

/// Features that some backend lacks, with their alternatives: key, heading of the list, name,
/// backends.
#[pyfunction]
pub(crate) fn support() -> Vec<(&'static str, Option<&'static str>, &'static str, Vec<&'static str>)>
{
    let line = |it: &Feature| (it.key, heading(it.key), it.name, it.on.to_vec());
    FEATURES.iter().map(line).collect()
}

/// The JSON Schema of an experiment, as JSON.
#[pyfunction]
pub(crate) fn schema() -> String {
    tcplab_model::schema().to_string()
}

/// The JSON Schema without parameters in place of values.
#[pyfunction]
pub(crate) fn schema_of_values() -> String {
    tcplab_model::schema_of_values().to_string()
}

/// Text in a form safe to show, with invisible characters spelled out.
#[pyfunction]
pub(crate) fn printable(text: &Bound<'_, pyo3::types::PyString>) -> String {
    // File names may have bytes that are not valid text.
    tcplab_model::printable(&text.to_string_lossy()).into_owned()
}
