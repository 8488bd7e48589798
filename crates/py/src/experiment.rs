//! Experiments, their plans, and running them.

use crate::errors;
use crate::frames::{Frame, frame};
use pyo3::prelude::*;
use std::sync::Arc;
use tcplab_model::{Backend, Mistakes, Problem, from_json, from_toml};

/// An experiment as it was written, and the name of its file for messages.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Document {
    written: tcplab_model::Document,
    file: Option<String>,
}

#[pymethods]
impl Document {
    #[staticmethod]
    #[pyo3(signature = (text, file=None))]
    fn from_toml(text: &str, file: Option<String>) -> PyResult<Self> {
        Self::read(from_toml(text), file)
    }

    #[staticmethod]
    #[pyo3(signature = (text, file=None))]
    fn from_json(text: &str, file: Option<String>) -> PyResult<Self> {
        Self::read(from_json(text), file)
    }

    #[getter]
    fn name(&self) -> &str {
        self.written.name()
    }

    fn to_json(&self) -> String {
        self.written.to_json()
    }

    fn plans(&self, py: Python<'_>, backend: &str) -> PyResult<Vec<Plan>> {
        let backend = backend_called(backend)?;
        let plans = py.detach(|| self.written.plans(&backend));
        let plans = plans.map_err(|mistakes| errors::config(&mistakes, self.file.as_deref()))?;
        Ok(plans.into_iter().map(|plan| Plan(Arc::new(plan))).collect())
    }
}

impl Document {
    fn read(
        written: Result<tcplab_model::Document, Mistakes>,
        file: Option<String>,
    ) -> PyResult<Self> {
        match written {
            Ok(written) => Ok(Self { written, file }),
            Err(mistakes) => Err(errors::config(&mistakes, file.as_deref())),
        }
    }
}

/// The backends there are; later ones are added here.
fn backend_called(name: &str) -> PyResult<Backend<'static>> {
    let known = [tcplab_sim::backend()];
    known.into_iter().find(|backend| backend.name == name).ok_or_else(|| {
        let problem = Problem::unknown("backend", name, [tcplab_sim::NAME]);
        errors::config(&problem.at("").into(), None)
    })
}

/// One run with nothing left open.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Plan(Arc<tcplab_model::Plan>);

#[pymethods]
impl Plan {
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    #[getter]
    fn experiment(&self) -> &str {
        &self.0.experiment
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn repetition(&self) -> u64 {
        self.0.repetition
    }

    #[getter]
    fn swept(&self) -> Vec<(String, String)> {
        self.0.swept.clone()
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.duration.as_secs_f64()
    }

    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.0)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }
}

/// How far a run is; and the means to stop it.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Watch(Arc<tcplab_sim::Watch>);

#[pymethods]
impl Watch {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    #[getter]
    fn reached_s(&self) -> f64 {
        self.0.reached().as_secs_f64()
    }

    fn stop(&self) {
        self.0.stop();
    }
}

/// Runs a plan; gives its tables by name, and the digest of them all.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    plan: &Plan,
    watch: &Watch,
) -> PyResult<(Vec<(&'static str, Frame)>, String)> {
    let (plan, watch) = (Arc::clone(&plan.0), Arc::clone(&watch.0));
    py.detach(move || {
        let tables = tcplab_sim::run(&plan, &watch).map_err(errors::stopped)?;
        let frames = vec![
            ("runs", frame(&tables.runs)?),
            ("flows", frame(&tables.flows)?),
            ("samples", frame(&tables.samples)?),
            ("links", frame(&tables.links)?),
        ];
        Ok((frames, tables.digest()))
    })
}
