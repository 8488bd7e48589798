//! Experiments, their plans, and running them.

use crate::errors;
use crate::frames::{Frame, frame};
use crate::own;
use pyo3::prelude::*;
use std::sync::Arc;
use tcplab_linux::kernel::Error as KernelError;
use tcplab_linux::{Kernels, Outcome};
use tcplab_model::{Backend, Mistakes, Problem, Profile, from_json, from_toml};

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

    #[pyo3(signature = (backend, kernel=None))]
    fn plans(&self, py: Python<'_>, backend: &str, kernel: Option<&str>) -> PyResult<Vec<Plan>> {
        if !BACKENDS.contains(&backend) {
            let problem = Problem::unknown("backend", backend, BACKENDS);
            return Err(errors::config(&problem.at("").into(), None, None));
        }
        let planned = py.detach(|| {
            let planned = self.planned(backend, kernel)?;
            Ok(planned.map_err(|mistakes| (mistakes, self.runs_elsewhere(backend))))
        });
        match planned.map_err(|error| errors::kernel(&error))? {
            Ok(plans) => Ok(plans.into_iter().map(|plan| Plan(Arc::new(plan))).collect()),
            Err((mistakes, elsewhere)) => {
                Err(errors::config(&mistakes, self.file.as_deref(), elsewhere))
            }
        }
    }
}

impl Document {
    fn read(
        written: Result<tcplab_model::Document, Mistakes>,
        file: Option<String>,
    ) -> PyResult<Self> {
        match written {
            Ok(written) => Ok(Self { written, file }),
            Err(mistakes) => Err(errors::config(&mistakes, file.as_deref(), None)),
        }
    }

    /// The plans for a backend, or what is wrong with them.
    fn planned(&self, backend: &str, kernel: Option<&str>) -> Result<Planned, KernelError> {
        if backend == tcplab_linux::NAME {
            let kernels = Kernels::open(kernel)?;
            return Ok(plans_for_kernels(&self.written, &kernels));
        }
        Ok(self.written.plans(&tcplab_sim::backend()))
    }

    /// Another backend than this one that runs the whole experiment.
    fn runs_elsewhere(&self, backend: &str) -> Option<&'static str> {
        let runs = |other: &str| matches!(self.planned(other, None), Ok(Ok(_)));
        BACKENDS.into_iter().find(|other| *other != backend && runs(other))
    }
}

type Planned = Result<Vec<tcplab_model::Plan>, Mistakes>;

/// What runs experiments.
const BACKENDS: [&str; 2] = [tcplab_sim::NAME, tcplab_linux::NAME];

/// The plans of an experiment, each with the name of the kernel that it is for.
fn plans_for_kernels(
    document: &tcplab_model::Document,
    kernels: &Kernels,
) -> Result<Vec<tcplab_model::Plan>, Mistakes> {
    let backend = Backend {
        name: tcplab_linux::NAME,
        profile: Profile::Linux612,
        version: &|plan| kernels.version(plan),
        refuse: &|plan| kernels.refuse(plan),
    };
    let mut plans = document.plans(&backend)?;
    for plan in &mut plans {
        plan.kernel = Some(kernels.name_for(plan).into());
    }
    Ok(plans)
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
    fn backend(&self) -> &str {
        &self.0.backend
    }

    #[getter]
    fn kernel(&self) -> Option<&str> {
        self.0.kernel.as_deref()
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
pub(crate) struct Watch(Arc<tcplab_model::Watch>);

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

/// Runs a plan; gives its tables by name, the digest of them all, and further files by name.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "Python takes it apart at once")]
pub(crate) fn run(
    py: Python<'_>,
    plan: &Plan,
    watch: &Watch,
) -> PyResult<(Vec<(&'static str, Frame)>, String, Vec<(String, Vec<u8>)>)> {
    let (plan, watch) = (Arc::clone(&plan.0), Arc::clone(&watch.0));
    py.detach(move || {
        let Outcome { tables, files } = if plan.backend == tcplab_linux::NAME {
            run_on_linux(&plan, &watch)?
        } else {
            if tcplab_sim::version(&plan) != plan.version {
                return Err(errors::registered_anew());
            }
            let ran = own::within(&watch, || tcplab_sim::run(&plan, &watch))?;
            Outcome { tables: ran.map_err(errors::stopped)?, files: Vec::new() }
        };
        let frames = vec![
            ("runs", frame(&tables.runs)?),
            ("flows", frame(&tables.flows)?),
            ("samples", frame(&tables.samples)?),
            ("links", frame(&tables.links)?),
            ("drops", frame(&tables.drops)?),
        ];
        Ok((frames, tables.digest(), files))
    })
}

fn run_on_linux(plan: &tcplab_model::Plan, watch: &tcplab_model::Watch) -> PyResult<Outcome> {
    let kernels = Kernels::open(None).map_err(|error| errors::kernel(&error))?;
    let kernel = kernels.kernel_for(plan).filter(|_| kernels.version(plan) == plan.version);
    let kernel = kernel.ok_or_else(|| errors::kernel_changed(plan))?;
    tcplab_linux::run(plan, kernel, watch).map_err(|error| errors::run(&error))
}
