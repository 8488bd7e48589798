//! Congestion controls as Python classes.
//!
//! A class has the methods of the interface. Its arguments are plain objects with times in seconds,
//! and its answer is a `Control`. An exception that it raises ends the run.

use crate::errors;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::types::PyTuple;
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tcplab_cc as cc;
use tcplab_cc::{BuildError, CongestionControl, Factory, Params};
use tcplab_model::Watch;
use tcplab_units::{Duration, Rate, Time};

/// Registers a Python class as a congestion control. `version` distinguishes it from others of that
/// name.
#[pyfunction]
#[pyo3(signature = (name, class_, version))]
pub(crate) fn register(name: &str, class_: Py<PyAny>, version: String) -> PyResult<()> {
    REGISTERED.store(true, Ordering::Relaxed);
    cc::register(name, Arc::new(Class { class: class_, version }))
        .map_err(|error| errors::ConfigError::new_err(error.to_string()))
}

static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Whether any class was registered, even unsuccessfully.
pub(crate) fn is_registered() -> bool {
    REGISTERED.load(Ordering::Relaxed)
}

thread_local! {
    /// The run of this thread, and the exception raised in it by a class.
    static RUN: RefCell<Option<(Arc<Watch>, Option<PyErr>)>> = const { RefCell::new(None) };
}

/// Calls `run` such that an exception of a class ends the run.
pub(crate) fn within<T>(watch: &Arc<Watch>, run: impl FnOnce() -> T) -> Result<T, PyErr> {
    RUN.set(Some((Arc::clone(watch), None)));
    let outcome = run();
    match RUN.take() {
        Some((_, Some(raised))) => Err(raised),
        _ => Ok(outcome),
    }
}

/// Ends the run of this thread with an exception. Returns whether there is a run.
fn fail(raised: PyErr) -> bool {
    RUN.with_borrow_mut(|run| {
        let Some((watch, failure)) = run else { return false };
        watch.stop();
        failure.get_or_insert(raised);
        true
    })
}

struct Class {
    class: Py<PyAny>,
    version: String,
}

impl Factory for Class {
    fn build(
        &self,
        init: &cc::Init,
        params: &Params,
    ) -> Result<Box<dyn CongestionControl>, BuildError> {
        Python::attach(|py| match self.start(py, init, params) {
            Ok(own) => Ok(Box::new(own) as Box<dyn CongestionControl>),
            Err(raised) => {
                let problem = with_place(py, &raised);
                if fail(raised) {
                    return Ok(Box::new(Own::failed(py)) as Box<dyn CongestionControl>);
                }
                let name = self.class.bind(py).getattr("__name__").map(|name| name.to_string());
                Err(BuildError::WrongValue { name: name.unwrap_or_default(), problem })
            }
        })
    }

    fn version(&self) -> &str {
        &self.version
    }
}

impl Class {
    fn start(&self, py: Python<'_>, init: &cc::Init, params: &Params) -> PyResult<Own> {
        let values = PyDict::new(py);
        for (name, value) in params.0.as_object().into_iter().flatten() {
            values.set_item(name, plain(py, value)?)?;
        }
        let object = self.class.bind(py).call((Init::from(init),), Some(&values))?;
        let mut names = Vec::new();
        if object.hasattr("probe")? {
            let said = object.call_method0("probe")?;
            let said = said.cast_into::<PyDict>().map_err(|error| {
                PyTypeError::new_err(format!("probe() gives a dict, not {:?}", error.into_inner()))
            })?;
            for name in said.keys() {
                let name: String = name.extract()?;
                if name.is_empty()
                    || !name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
                {
                    return Err(PyValueError::new_err(format!(
                        "probe() names a column {name:?}; names have ASCII letters, digits and `_`"
                    )));
                }
                // The names are those of columns for the lifetime of the process.
                names.push(&*String::leak(name));
            }
        }
        let wants_in_ack_event = object.hasattr("on_arrival")?;
        let control = control_of(&object)?;
        Ok(Own { object: object.unbind(), control, names, wants_in_ack_event })
    }
}

/// The exception with its line in the class, if it was raised there.
fn with_place(py: Python<'_>, raised: &PyErr) -> String {
    let place = || -> PyResult<String> {
        let frames = py.import("traceback")?.call_method1("extract_tb", (raised.traceback(py),))?;
        let last = frames.get_item(-1)?;
        Ok(format!("{raised} ({}, line {})", last.getattr("filename")?, last.getattr("lineno")?))
    };
    place().unwrap_or_else(|_| raised.to_string())
}

fn plain(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    let read = py.import("json")?.call_method1("loads", (value.to_string(),))?;
    Ok(read.unbind())
}

/// A clone has a copy of the object (`copy.deepcopy`).
impl Clone for Own {
    fn clone(&self) -> Self {
        Python::attach(|py| {
            let copy = || -> PyResult<Py<PyAny>> {
                let deepcopy = py.import("copy")?.getattr("deepcopy")?;
                Ok(deepcopy.call1((self.object.bind(py),))?.unbind())
            };
            let object = copy().unwrap_or_else(|raised| {
                fail(raised);
                py.None()
            });
            let (control, names) = (self.control, self.names.clone());
            Self { object, control, names, wants_in_ack_event: self.wants_in_ack_event }
        })
    }
}

/// One flow's object of a Python class.
struct Own {
    object: Py<PyAny>,
    control: cc::Control,
    /// The names of its probes.
    names: Vec<&'static str>,
    wants_in_ack_event: bool,
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {:?}", self.object, self.control)
    }
}

const NOTHING_KNOWN: cc::Control = cc::Control {
    cwnd: 1,
    ssthresh: None,
    pacing: None,
    prr: false,
    least_burst: None,
    longest_burst: None,
};

impl Own {
    fn failed(py: Python<'_>) -> Self {
        let (control, names) = (NOTHING_KNOWN, Vec::new());
        Self { object: py.None(), control, names, wants_in_ack_event: false }
    }

    /// Calls a method, if the class has it, and asks for the new decision.
    fn tell<'py>(
        &mut self,
        py: Python<'py>,
        method: &str,
        words: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
        is_required: bool,
    ) {
        let object = self.object.bind(py);
        if object.is_none() {
            return;
        }
        let told = (|| {
            if is_required || object.hasattr(method)? {
                object.call_method1(method, words.into_pyobject(py)?)?;
            }
            control_of(object)
        })();
        match told {
            Ok(control) => self.control = control,
            Err(raised) => {
                fail(raised);
                self.object = py.None();
            }
        }
    }
}

fn control_of(object: &Bound<'_, PyAny>) -> PyResult<cc::Control> {
    let said = object.call_method0("control")?;
    let control = said.cast::<Control>().map_err(|_| {
        PyTypeError::new_err(format!("control() gives a tcplab.cc.Control, not {said:?}"))
    })?;
    Ok(control.get().0)
}

impl CongestionControl for Own {
    fn on_ack(&mut self, flow: &cc::FlowState, ack: &cc::Ack) {
        Python::attach(|py| self.tell(py, "on_ack", (FlowState(*flow), Ack(*ack)), true));
    }

    fn on_congestion(&mut self, flow: &cc::FlowState, event: cc::Congestion) {
        let words = (FlowState(*flow), Congestion(event));
        Python::attach(|py| self.tell(py, "on_congestion", words, true));
    }

    fn control(&self) -> cc::Control {
        self.control
    }

    fn on_arrival(&mut self, flow: &cc::FlowState, ack: &cc::Ack) {
        Python::attach(|py| self.tell(py, "on_arrival", (FlowState(*flow), Ack(*ack)), false));
    }

    fn wants_in_ack_event(&self) -> bool {
        self.wants_in_ack_event
    }

    fn on_recovered(&mut self, flow: &cc::FlowState) {
        Python::attach(|py| self.tell(py, "on_recovered", (FlowState(*flow),), false));
    }

    fn on_undo(&mut self, flow: &cc::FlowState) {
        Python::attach(|py| self.tell(py, "on_undo", (FlowState(*flow),), false));
    }

    fn on_restart(&mut self, flow: &cc::FlowState, idle: Duration) {
        let words = (FlowState(*flow), idle.as_secs_f64());
        Python::attach(|py| self.tell(py, "on_restart", words, false));
    }

    fn probe(&self, record: &mut dyn FnMut(&'static str, f64)) {
        if self.names.is_empty() {
            return;
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            if object.is_none() {
                return;
            }
            let said = object.call_method0("probe").and_then(|said| {
                let values = said.cast_into::<PyDict>()?;
                let value = |name: &&'static str| match values.get_item(name)? {
                    Some(value) => match value.extract::<f64>()? {
                        value if value.is_infinite() => {
                            let what = format!("probe() says that `{name}` is infinite");
                            Err(PyValueError::new_err(what))
                        }
                        value => Ok((*name, value)),
                    },
                    None => Err(PyValueError::new_err(format!("probe() says nothing of `{name}`"))),
                };
                self.names.iter().map(value).collect::<PyResult<Vec<_>>>()
            });
            match said {
                Ok(values) => values.into_iter().for_each(|(name, value)| record(name, value)),
                Err(raised) => {
                    fail(raised);
                }
            }
        });
    }
}

/// The initial parameters of a flow.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Init {
    /// Payload bytes of a full segment.
    mss: u64,
    /// The initial window in segments.
    initial_window: u64,
    /// The seed of randomized algorithms, derived from the run and the flow.
    seed: u64,
}

impl From<&cc::Init> for Init {
    fn from(init: &cc::Init) -> Self {
        Self { mss: init.mss, initial_window: init.initial_window, seed: init.seed }
    }
}

/// The state of the sender.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct FlowState(cc::FlowState);

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

#[pymethods]
impl FlowState {
    /// The current time, since the start of the experiment.
    #[getter]
    fn now_s(&self) -> f64 {
        seconds(self.0.now)
    }

    /// Payload bytes of a full segment.
    #[getter]
    fn mss(&self) -> u64 {
        self.0.mss
    }

    /// Segments sent and neither delivered nor marked lost.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    /// Segments delivered since the connection began.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// Segments marked lost since the connection began.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    /// Smoothed RTT, after the first sample.
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        (!self.0.srtt.is_zero()).then(|| self.0.srtt.as_secs_f64())
    }

    /// Minimum RTT of the connection, after the first sample.
    #[getter]
    fn min_rtt_s(&self) -> Option<f64> {
        (self.0.min_rtt != Duration::MAX).then(|| self.0.min_rtt.as_secs_f64())
    }

    /// The retransmission timeout.
    #[getter]
    fn rto_s(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }

    /// The first unacknowledged byte.
    #[getter]
    fn una(&self) -> u64 {
        self.0.una
    }

    /// The next new byte.
    #[getter]
    fn nxt(&self) -> u64 {
        self.0.nxt
    }

    /// Whether the window was the limit, not the application or the peer.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }

    /// Whether a loss or a mark is being handled, between `on_congestion` and its end: windows do
    /// not grow.
    #[getter]
    fn is_recovering(&self) -> bool {
        self.0.is_recovering()
    }
}

/// The information of one ACK.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Ack(cc::Ack);

#[pymethods]
impl Ack {
    /// Segments newly acknowledged.
    #[getter]
    fn acked(&self) -> u64 {
        self.0.acked
    }

    /// Segments of growth, by the stack's way of counting.
    #[getter]
    fn credit(&self) -> u64 {
        self.0.credit
    }

    /// Segments acknowledged or SACKed for the first time.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// Segments newly marked lost.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    /// Segments newly reported as marked (ECN).
    #[getter]
    fn marked(&self) -> u64 {
        self.0.ce
    }

    /// RTT of the newest delivered segment, if unambiguous.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs_f64)
    }

    /// The delivery rate, where the sender measures it.
    #[getter]
    fn rate_mbit_s(&self) -> Option<f64> {
        self.0.rate.map(|sample| sample.rate.bits_per_second() as f64 / 1e6)
    }

    /// Minimum RTT of the round trip that this ACK ends.
    #[getter]
    fn round_min_rtt_s(&self) -> Option<f64> {
        self.0.round.and_then(|round| round.min_rtt).map(Duration::as_secs_f64)
    }

    /// Whether this ACK ends a round trip.
    #[getter]
    fn ends_round(&self) -> bool {
        self.0.round.is_some()
    }
}

/// The start of a congestion episode.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Congestion(cc::Congestion);

#[pymethods]
impl Congestion {
    /// The cause: `loss`, `ecn` or `timeout`.
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.cause {
            cc::Cause::Loss => "loss",
            cc::Cause::Ecn => "ecn",
            cc::Cause::Timeout => "timeout",
        }
    }

    /// Segments outstanding at the beginning of the episode.
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }

    /// Whether this is a timeout in an episode already handled: the threshold should stay.
    #[getter]
    fn again(&self) -> bool {
        self.0.again
    }
}

/// A decision: `Control(cwnd, ssthresh=None, pacing_mbit_s=None, prr=True)`, with all but the
/// window by name.
///
/// Fractions of a segment are truncated; the window is at least one segment. With `prr` the sender
/// may spread a reduction over the round trip. Without a pacing rate the flow is ack-clocked.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Control(cc::Control);

#[pymethods]
impl Control {
    #[new]
    #[pyo3(signature = (cwnd, *, ssthresh=None, pacing_mbit_s=None, prr=true))]
    fn new(
        cwnd: f64,
        ssthresh: Option<f64>,
        pacing_mbit_s: Option<f64>,
        prr: bool,
    ) -> PyResult<Self> {
        let whole = |name: &str, value: f64| {
            if value.is_finite() && (0.0..9e15).contains(&value) {
                return Ok((value as u64).max(1));
            }
            Err(PyValueError::new_err(format!(
                "{name}: expected a number of segments, not {value}"
            )))
        };
        let pacing = pacing_mbit_s
            .map(|rate| {
                // Senders pace in whole bytes a second.
                if (8e-6..1e9).contains(&rate) {
                    return Ok(Rate::from_bits_per_second((rate * 1e6) as u64));
                }
                let reason = format!(
                    "pacing_mbit_s: expected a rate from 8 bit/s (8e-6) to 1e9, not {rate}"
                );
                Err(PyValueError::new_err(reason))
            })
            .transpose()?;
        Ok(Self(cc::Control {
            cwnd: whole("cwnd", cwnd)?,
            ssthresh: ssthresh.map(|value| whole("ssthresh", value)).transpose()?,
            pacing,
            prr,
            least_burst: None,
            longest_burst: None,
        }))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
