//! Runs several plans one after the other, so that the interpreter is called once for many.

use crate::errors::{self, InternalError, RunError, TooLargeError};
use crate::experiment::{Plan, Shared, run_and_check};
use crate::frames::{Frame, frames};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustix::time::{ClockId, clock_gettime};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tcplab_backends::{Access, Produced};
use tcplab_tables::{Gathered, Look, Row, Table, Tables};

/// The approximate table size at which a group is closed, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// The progress of consecutive runs, and the means to stop them.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Watch {
    /// The memory limit of each run, in bytes.
    memory: Option<u64>,
    is_stopped: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The total of simulated seconds of completed runs.
    finished_s: f64,
    current: Option<Arc<tcplab_model::Watch>>,
}

#[pymethods]
impl Watch {
    /// `memory` is the limit of each run in bytes.
    #[new]
    #[pyo3(signature = (memory=None))]
    fn new(memory: Option<u64>) -> Self {
        Self { memory, is_stopped: AtomicBool::new(false), state: Mutex::default() }
    }

    #[getter]
    fn reached_s(&self) -> f64 {
        let state = self.state();
        let now_s = state.current.as_ref().map(|current| current.reached().as_secs_f64());
        state.finished_s + now_s.unwrap_or_default()
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        if let Some(current) = &self.state().current {
            current.stop();
        }
    }
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a plan under a watch.
    pub(crate) fn over<T>(&self, run: impl FnOnce(&Arc<tcplab_model::Watch>) -> T) -> T {
        let watch = Arc::new(tcplab_model::Watch::with_memory(self.memory));
        self.state().current = Some(Arc::clone(&watch));
        // A stop request either sees the new watch, or is seen here.
        if self.is_stopped.load(Ordering::SeqCst) {
            watch.stop();
        }
        let left = run(&watch);
        let mut state = self.state();
        state.finished_s += watch.reached().as_secs_f64();
        state.current = None;
        left
    }
}

/// The outcome of plans that ran one after the other.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Batch {
    /// The number of plans tried, from the first.
    tried: usize,
    /// The tables of completed runs, usually in one group.
    groups: Vec<Py<Group>>,
    /// The failures, by place among the plans.
    failed: Vec<(usize, Py<PyAny>)>,
    /// The error due to which no other plan can run.
    end: Option<Py<PyAny>>,
    /// The CPU time that the runs took on their thread, in seconds.
    cpu_s: f64,
}

/// Runs with joint tables.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Group {
    frames: Vec<(&'static str, Py<Frame>)>,
    runs: Vec<Py<Ran>>,
}

/// A completed run.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Ran {
    /// The run's place among the plans.
    place: usize,
    digest: String,
    wall_s: f64,
    /// The number of its rows in each table, in the order of tables.
    rows: Vec<usize>,
    /// The columns that not every run has, by table.
    further: Vec<(&'static str, Vec<String>)>,
    /// Additional files by name.
    files: Vec<(String, Vec<u8>)>,
}

/// Runs plans one after the other, at least one, until a time limit in seconds or a size limit is
/// reached. Consecutive plans that are equal until their change all run, from one state. Their
/// programs may read `reads` but see `hidden` as empty.
#[pyfunction]
#[pyo3(signature = (plans, watch, seconds, reads=vec![], hidden=vec![]))]
pub(crate) fn run_batch(
    py: Python<'_>,
    plans: &Bound<'_, PyList>,
    watch: &Watch,
    seconds: f64,
    reads: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
) -> PyResult<Batch> {
    let plans = plans.iter().map(|plan| Ok(Arc::clone(&plan.cast::<Plan>()?.get().plan)));
    let plans = plans.collect::<PyResult<Vec<_>>>()?;
    let work = Work { access: Access { reads, hidden }, watch, groups: Vec::new() };
    let most = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let done = py.detach(move || work.run(&plans, most));
    done.into_python(py)
}

/// Completed runs and their joint tables.
#[derive(Default)]
struct Gathering {
    tables: Gathered,
    runs: Vec<Ran>,
}

/// The joint tables of runs by name, and the runs.
type Together = (Vec<(&'static str, Frame)>, Vec<Ran>);

struct Work<'a> {
    access: Access,
    watch: &'a Watch,
    groups: Vec<Together>,
}

struct Done {
    tried: usize,
    groups: Vec<Together>,
    failed: Vec<(usize, PyErr)>,
    end: Option<PyErr>,
    cpu: Duration,
}

impl Work<'_> {
    fn run(mut self, plans: &[Arc<tcplab_model::Plan>], most: Duration) -> Done {
        let began = now();
        let mut now_open = Gathering::default();
        let (mut tried, mut failed, mut end) = (0, Vec::new(), None);
        let (mut shared, mut cpu) = (Shared::default(), Duration::ZERO);
        for (place, plan) in plans.iter().enumerate() {
            let is_full = now_open.tables.bytes() >= MOST_BYTES;
            if place > 0 && !shared.is_open() && (began.elapsed() >= most || is_full) {
                break;
            }
            if is_full {
                self.close(&mut now_open);
            }
            let next = plans.get(place + 1).map(|next| &**next);
            let (started, cpu_before) = (now(), thread_cpu());
            let ran = self.watch.over(|watch| {
                let ran = run_and_check((plan, next), &mut shared, &self.access, watch);
                ran.map_err(|error| errors::out_of_memory(plan, watch).unwrap_or(error))
                    .map(|produced| (produced.tables.digest(), produced))
            });
            cpu += thread_cpu().saturating_sub(cpu_before);
            match ran {
                Ok((digest, Produced { tables, files })) => {
                    let wall_s = started.elapsed().as_secs_f64();
                    let (rows, further) = shape(&tables);
                    let ran = Ran { place, digest, wall_s, rows, further, files };
                    self.keep(&mut now_open, tables, ran);
                    tried = place + 1;
                }
                Err(error) if is_of_one(&error) => {
                    failed.push((place, error));
                    tried = place + 1;
                }
                Err(error) => {
                    end = Some(error);
                    break;
                }
            }
        }
        self.close(&mut now_open);
        Done { tried, groups: self.groups, failed, end, cpu }
    }

    /// Adds a run to the open group, or gives it a group of its own.
    fn keep(&mut self, open: &mut Gathering, tables: Tables, ran: Ran) {
        if !open.tables.takes(&tables) {
            self.close(open);
            if !open.tables.takes(&tables) {
                self.groups.push((frames(tables), vec![ran]));
                return;
            }
        }
        open.tables.add(&tables);
        open.runs.push(ran);
    }

    fn close(&mut self, open: &mut Gathering) {
        let Gathering { tables, runs } = std::mem::take(open);
        if !runs.is_empty() {
            self.groups.push((frames(tables.into_tables()), runs));
        }
    }
}

/// Whether the error is of one run only, so that others can still run.
fn is_of_one(error: &PyErr) -> bool {
    Python::attach(|py| {
        error.is_instance_of::<RunError>(py)
            || error.is_instance_of::<InternalError>(py)
            || error.is_instance_of::<TooLargeError>(py)
    })
}

/// The number of rows in each table, and the columns that not every run has.
fn shape(tables: &Tables) -> (Vec<usize>, Vec<(&'static str, Vec<String>)>) {
    struct Shape(Vec<usize>, Vec<(&'static str, Vec<String>)>);
    impl Look for Shape {
        type Error = Infallible;
        fn at<R: Row>(&mut self, table: &Table<R>) -> Result<(), Infallible> {
            self.0.push(table.len());
            let names: Vec<_> = table.further().map(|(name, _)| name.to_owned()).collect();
            if !names.is_empty() {
                self.1.push((R::TABLE, names));
            }
            Ok(())
        }
    }
    let mut shape = Shape(Vec::new(), Vec::new());
    let Ok(()) = tables.each(&mut shape);
    (shape.0, shape.1)
}

impl Done {
    fn into_python(self, py: Python<'_>) -> PyResult<Batch> {
        let groups = self.groups.into_iter().map(|(frames, runs)| {
            let frames = frames.into_iter().map(|(name, frame)| Ok((name, Py::new(py, frame)?)));
            let runs = runs.into_iter().map(|ran| Py::new(py, ran));
            let group = Group {
                frames: frames.collect::<PyResult<_>>()?,
                runs: runs.collect::<PyResult<_>>()?,
            };
            Py::new(py, group)
        });
        let groups = groups.collect::<PyResult<_>>()?;
        let error = |error: PyErr| error.into_value(py).into_any();
        let failed = self.failed.into_iter().map(|(place, failure)| (place, error(failure)));
        Ok(Batch {
            tried: self.tried,
            groups,
            failed: failed.collect(),
            end: self.end.map(error),
            cpu_s: self.cpu.as_secs_f64(),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "elapsed time is told apart from results")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The CPU time of this thread so far.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
