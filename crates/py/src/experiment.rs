//! Experiments, their plans, and running them.

use crate::batch::Watch;
use crate::errors;
use crate::frames::{Frame, frames};
use crate::python_cc;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::{panic, thread, time};
use tcplab_backends::{Access, Begun, Options, PlanError, Produced, elsewhere, find};
use tcplab_laws::Laws;
use tcplab_model::memory::Held;
use tcplab_model::{Mistakes, TrafficPlan, from_json, from_toml};
use tcplab_tables::Tables;

/// An experiment as written, with the name of its file for messages.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Document {
    written: Arc<tcplab_model::Document>,
    file: Option<String>,
    /// Whether the document differs from its file.
    is_changed: bool,
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

    /// The experiment with another value, as JSON, at a path.
    fn changed(&self, path: &str, value: &str) -> PyResult<Self> {
        let refused = |mistakes| errors::config(&mistakes, self.file.as_deref(), None);
        let value = serde_json::from_str(value)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(format!("{path}: {error}")))?;
        let mut written = (*self.written).clone();
        written.set(path, &value).map_err(refused)?;
        Ok(Self { written: Arc::new(written), file: self.file.clone(), is_changed: true })
    }

    fn to_json(&self) -> String {
        self.written.to_json()
    }

    /// The line of the value at a place, or of the nearest value around it.
    fn line(&self, at: &str) -> Option<usize> {
        self.written.line(at)
    }

    /// The experiment with the contents of the files that it names; `None` if it names none.
    fn contained(&self) -> Option<String> {
        self.written.contained()
    }

    #[pyo3(signature = (backend, kernel=None))]
    fn plans(&self, py: Python<'_>, backend: &str, kernel: Option<&str>) -> PyResult<Vec<Plan>> {
        let found =
            find(backend).map_err(|problem| errors::config(&problem.at("").into(), None, None))?;
        let options = Options { kernel: kernel.map(Into::into) };
        let written = Arc::clone(&self.written);
        let planned = interruptibly(py, move || {
            let planned = found.plans(&written, &options);
            planned.map_err(|error| match error {
                PlanError::Refused(mistakes) => {
                    // With an option of one backend, another backend is no alternative.
                    let elsewhere =
                        options.kernel.is_none().then(|| elsewhere(&written, found.name()));
                    Unplanned::Refused(mistakes, elsewhere.flatten())
                }
                PlanError::Options(mistakes) => Unplanned::Options(mistakes),
                PlanError::Unusable(error) => Unplanned::Unusable(error),
            })
        })?;
        let file = self.file.as_deref();
        // An experiment from a stream, or with changed values, cannot be run by the file's name
        // alone.
        let alone = file.filter(|file| !self.is_changed && Path::new(file).exists());
        let plans = planned.map_err(|error| match error {
            Unplanned::Refused(mistakes, elsewhere) => {
                errors::refused(&mistakes, file, elsewhere, alone)
            }
            Unplanned::Options(mistakes) => errors::config(&mistakes, None, None),
            Unplanned::Unusable(error) => errors::of_backend(&error),
        })?;
        let plans = plans.into_iter().map(|plan| {
            let lines = plan.warnings.iter().map(|warning| errors::line(warning, file));
            Plan { warnings: lines.collect(), plan: Arc::new(plan) }
        });
        Ok(plans.collect())
    }
}

impl Document {
    fn read(
        written: Result<tcplab_model::Document, Mistakes>,
        file: Option<String>,
    ) -> PyResult<Self> {
        match written {
            Ok(written) => {
                let folder = file.as_deref().and_then(|file| Path::new(file).parent());
                let written = written.in_folder(folder.unwrap_or(Path::new("")));
                Ok(Self { written: Arc::new(written), file, is_changed: false })
            }
            Err(mistakes) => Err(errors::config(&mistakes, file.as_deref(), None)),
        }
    }
}

/// The longest delay before Ctrl-C is noticed.
const TICK: time::Duration = time::Duration::from_millis(50);

/// Does work that may take seconds, and handles Ctrl-C meanwhile: the working thread is then left
/// to end by itself.
fn interruptibly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if python_cc::is_registered() {
        // The thread may call Python classes, and must not be in one when the interpreter ends.
        return Ok(py.detach(work));
    }
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let thread = thread::spawn(move || sender.send(work()).ok());
    loop {
        let message;
        (message, receiver) = py.detach(|| (receiver.recv_timeout(TICK), receiver));
        match message {
            Ok(done) => return Ok(done),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => panic::resume_unwind(
                thread.join().expect_err("a thread that gives nothing panicked"),
            ),
        }
    }
}

/// Why there are no plans, and another backend that runs the experiment.
enum Unplanned {
    Refused(Mistakes, Option<&'static str>),
    Options(Mistakes),
    Unusable(tcplab_backends::Error),
}

/// A command-line value as JSON.
#[pyfunction]
pub(crate) fn value(text: &str) -> String {
    tcplab_model::value(text).to_string()
}

/// The names of all backends, in ascending order of requirements.
#[pyfunction]
pub(crate) fn backends() -> Vec<&'static str> {
    tcplab_backends::names().collect()
}

/// One fully resolved run.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Plan {
    pub(crate) plan: Arc<tcplab_model::Plan>,
    /// Warnings with file name and line.
    warnings: Vec<String>,
}

#[pymethods]
impl Plan {
    /// Parses a plan from the output of `to_json`.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        let plan = py.detach(|| tcplab_model::Plan::from_json(text));
        let plan = plan.map_err(|error| errors::unreadable_plan(&error))?;
        Ok(Self { plan: Arc::new(plan), warnings: Vec::new() })
    }

    /// The same run under the name of another experiment: the id does not depend on names.
    fn named(&self, experiment: String, repetition: u64, swept: Vec<(String, String)>) -> Self {
        let plan = tcplab_model::Plan { experiment, repetition, swept, ..(*self.plan).clone() };
        Self { plan: Arc::new(plan), warnings: self.warnings.clone() }
    }

    /// The id computed from the plan's content.
    #[getter]
    fn derived_id(&self) -> String {
        self.plan.derived_id()
    }

    #[getter]
    fn version(&self) -> &str {
        &self.plan.version
    }

    #[getter]
    fn id(&self) -> &str {
        &self.plan.id
    }

    #[getter]
    fn experiment(&self) -> &str {
        &self.plan.experiment
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.plan.seed
    }

    #[getter]
    fn repetition(&self) -> u64 {
        self.plan.repetition
    }

    #[getter]
    fn swept(&self) -> Vec<(String, String)> {
        self.plan.swept.clone()
    }

    /// The precision that ends the repetitions: the share of the mean, the minimum and maximum
    /// number, and the column.
    #[getter]
    fn until(&self) -> Option<(f64, u64, u64, &'static str)> {
        let until = self.plan.until.as_ref()?;
        Some((until.until.0, until.at_least, until.at_most, until.of.column()))
    }

    #[getter]
    fn backend(&self) -> &str {
        &self.plan.backend
    }

    #[getter]
    fn kernel(&self) -> Option<&str> {
        self.plan.kernel.as_deref()
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.plan.duration.as_secs_f64()
    }

    /// The least memory that the run needs, in bytes.
    #[getter]
    fn memory(&self) -> u64 {
        least_memory(&self.plan).total()
    }

    /// Rejects a run that needs more memory than it may use.
    ///
    /// # Errors
    /// The run needs more.
    fn fit(&self, memory: u64) -> PyResult<()> {
        let held = least_memory(&self.plan);
        if held.total() > memory { Err(errors::too_large(&held, memory)) } else { Ok(()) }
    }

    /// The id of the part shared with runs that are equal until their change, if it has one.
    #[getter]
    fn beginning(&self) -> Option<String> {
        self.plan.beginning()
    }

    /// The names of the files that the run writes beside its tables.
    #[getter]
    fn files(&self) -> Vec<String> {
        tcplab_backends::of(&self.plan).files(&self.plan)
    }

    /// Whether the user's congestion control classes named in the plan are registered with the same
    /// versions.
    #[getter]
    fn has_classes(&self) -> bool {
        self.plan.backend != tcplab_sim::NAME
            || !self.plan.version.contains('+')
            || tcplab_sim::version(&self.plan) == self.plan.version
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The programs that the plan starts: flow, host, `server` or `client`, command line.
    #[getter]
    fn commands(&self) -> Vec<(String, String, &'static str, String)> {
        let programs = |flow: &tcplab_model::FlowPlan| {
            let TrafficPlan::Command(command) = &*flow.traffic else { return Vec::new() };
            let one = |node: usize, side, line: &String| {
                (flow.name.clone(), self.plan.nodes[node].clone(), side, line.clone())
            };
            vec![one(flow.from, "server", &command.server), one(flow.to, "client", &command.client)]
        };
        self.plan.flows.iter().flat_map(programs).collect()
    }

    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.plan)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }
}

fn least_memory(plan: &tcplab_model::Plan) -> Held {
    tcplab_backends::of(plan).least_memory(plan)
}

/// The confinements of a kernel's process that this machine lacks.
#[pyfunction]
pub(crate) fn missing_walls() -> Vec<&'static str> {
    tcplab_linux::missing_walls()
}

/// Runs a plan and checks its results. Its programs may read `reads` but see `hidden` as empty.
/// Returns the tables by name, their digest, and additional files by name.
#[pyfunction]
#[pyo3(signature = (plan, watch, reads=vec![], hidden=vec![]))]
pub(crate) fn run(
    py: Python<'_>,
    plan: &Plan,
    watch: &Watch,
    reads: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
) -> PyResult<Left> {
    let plan = Arc::clone(&plan.plan);
    py.detach(move || {
        watch.over(|watch| {
            let access = Access { reads, hidden };
            let ran = run_and_check((&plan, None), &mut Shared::default(), &access, watch);
            let ran = ran.map(|Produced { tables, files }| {
                let digest = tables.digest();
                (frames(tables), digest, files)
            });
            // Whatever error the run reports, memory is why it stopped.
            ran.map_err(|error| errors::out_of_memory(&plan, watch).unwrap_or(error))
        })
    })
}

/// The results of a run as Python objects.
type Left = (Vec<(&'static str, Frame)>, String, Vec<(String, Vec<u8>)>);

/// The common beginning of consecutive plans that are equal until their change.
#[derive(Default)]
pub(crate) struct Shared<'a>(Option<(String, Box<dyn Begun + 'a>)>);

impl Shared<'_> {
    /// Whether the next plan continues from the current state.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

/// Runs a plan and checks its results. `next` is the following plan: if both are equal until their
/// change, the common part is run once.
pub(crate) fn run_and_check<'a>(
    (plan, next): (&'a tcplab_model::Plan, Option<&tcplab_model::Plan>),
    shared: &mut Shared<'a>,
    access: &Access,
    watch: &Arc<tcplab_model::Watch>,
) -> PyResult<Produced> {
    let backend = tcplab_backends::of(plan);
    let seen = plan.with_steps();
    let mut laws = Laws::new(&seen);
    let beginning = plan.beginning();
    let begun = shared.0.take().filter(|(known, _)| Some(known) == beginning.as_ref());
    let goes_on = beginning.is_some() && next.is_some_and(|next| next.beginning() == beginning);
    let begun = match (begun, beginning) {
        (None, Some(beginning)) if goes_on => {
            let ran = python_cc::within(watch, || backend.begin(plan, watch))?;
            let ran = ran.map_err(|error| errors::of_backend(&error))?;
            ran.map(|begun| (beginning, begun))
        }
        (begun, _) => begun,
    };
    let ran = python_cc::within(watch, || match begun {
        None => backend.run(plan, access, watch, &mut |tables: &Tables| laws.look(tables)),
        Some((_, begun)) if !goes_on => begun.finish(plan, watch),
        Some((beginning, begun)) => {
            let ran = begun.go_on(plan, watch);
            shared.0 = Some((beginning, begun));
            ran
        }
    })?;
    let Produced { tables, files } = ran.map_err(|error| errors::of_backend(&error))?;
    // Each of these steps takes seconds for large tables.
    let going = || watch.reach(watch.reached()).map_err(errors::stopped);
    going()?;
    let checked = laws.finish(tables);
    let checked = checked.map_err(|broken| errors::internal(plan, &broken))?;
    going()?;
    Ok(Produced { tables: checked.into_tables(), files })
}
