//! Congestion controls that are Python classes.
//!
//! A class has the methods of the seam; what it is told are plain objects with times in seconds, and it
//! answers with a `Control`. What it raises ends the run with that exception.

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

/// Makes a Python class known as a congestion control. `version` tells it from others of that name.
#[pyfunction]
#[pyo3(signature = (name, class_, version))]
pub(crate) fn register(name: &str, class_: Py<PyAny>, version: String) -> PyResult<()> {
    REGISTERED.store(true, Ordering::Relaxed);
    cc::register(name, Arc::new(Class { class: class_, version }))
        .map_err(|error| errors::ConfigError::new_err(error.to_string()))
}

static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Whether any class is, or was tried to be.
pub(crate) fn is_registered() -> bool {
    REGISTERED.load(Ordering::Relaxed)
}

thread_local! {
    /// The run of this thread, and what a class has raised in it.
    static RUN: RefCell<Option<(Arc<Watch>, Option<PyErr>)>> = const { RefCell::new(None) };
}

/// Does `run` so that what a class raises ends it.
pub(crate) fn within<T>(watch: &Arc<Watch>, run: impl FnOnce() -> T) -> Result<T, PyErr> {
    RUN.set(Some((Arc::clone(watch), None)));
    let outcome = run();
    match RUN.take() {
        Some((_, Some(raised))) => Err(raised),
        _ => Ok(outcome),
    }
}

/// Ends the run of this thread with what was raised. Says whether there is one.
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
                // They name columns for as long as the process lives.
                names.push(&*String::leak(name));
            }
        }
        let hears_arrivals = object.hasattr("on_arrival")?;
        let control = control_of(&object)?;
        Ok(Own { object: object.unbind(), control, names, hears_arrivals })
    }
}

/// The exception, and the line of the class that did, if one did.
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

/// A copy has an object of its own (`copy.deepcopy`).
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
            Self { object, control, names, hears_arrivals: self.hears_arrivals }
        })
    }
}

/// One flow's object of a Python class.
struct Own {
    object: Py<PyAny>,
    control: cc::Control,
    /// What it says of itself.
    names: Vec<&'static str>,
    hears_arrivals: bool,
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
        Self { object: py.None(), control, names, hears_arrivals: false }
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

    fn hears_arrivals(&self) -> bool {
        self.hears_arrivals
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

/// What a flow is started with.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Init {
    /// Payload bytes of a full segment.
    mss: u64,
    /// Segments of the first window.
    initial_window: u64,
    /// For algorithms that draw random numbers: of the run and the flow.
    seed: u64,
}

impl From<&cc::Init> for Init {
    fn from(init: &cc::Init) -> Self {
        Self { mss: init.mss, initial_window: init.initial_window, seed: init.seed }
    }
}

/// What the sender knows.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct FlowState(cc::FlowState);

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

#[pymethods]
impl FlowState {
    /// Now, since the start of the experiment.
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

    /// Smoothed RTT, once there is one.
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        (!self.0.srtt.is_zero()).then(|| self.0.srtt.as_secs_f64())
    }

    /// Least RTT of the connection, once there is one.
    #[getter]
    fn min_rtt_s(&self) -> Option<f64> {
        (self.0.min_rtt != Duration::MAX).then(|| self.0.min_rtt.as_secs_f64())
    }

    /// The retransmission timeout.
    #[getter]
    fn rto_s(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }

    /// The oldest byte that is not acknowledged.
    #[getter]
    fn una(&self) -> u64 {
        self.0.una
    }

    /// The next byte to be sent for the first time.
    #[getter]
    fn nxt(&self) -> u64 {
        self.0.nxt
    }

    /// The window was the limit, not the application or the peer.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }

    /// Between the `on_congestion` of a loss or a mark and its end: windows do not grow.
    #[getter]
    fn is_recovering(&self) -> bool {
        self.0.is_recovering()
    }
}

/// What one ACK brought.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Ack(cc::Ack);

#[pymethods]
impl Ack {
    /// Newly acknowledged.
    #[getter]
    fn acked(&self) -> u64 {
        self.0.acked
    }

    /// What growth it is worth, by the stack's way of counting.
    #[getter]
    fn credit(&self) -> u64 {
        self.0.credit
    }

    /// Acknowledged or SACKed for the first time.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// Newly marked lost.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    /// Newly reported as marked (ECN).
    #[getter]
    fn marked(&self) -> u64 {
        self.0.ce
    }

    /// RTT of the newest segment delivered, if it is known for sure.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs_f64)
    }

    /// How fast the path delivered, where the sender measures it.
    #[getter]
    fn rate_mbit_s(&self) -> Option<f64> {
        self.0.rate.map(|sample| sample.rate.bits_per_second() as f64 / 1e6)
    }

    /// Least RTT of the round trip that this ACK ends.
    #[getter]
    fn round_min_rtt_s(&self) -> Option<f64> {
        self.0.round.and_then(|round| round.min_rtt).map(Duration::as_secs_f64)
    }

    /// Whether it ends a round trip.
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
    /// What signalled it: `loss`, `ecn` or `timeout`.
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.cause {
            cc::Cause::Loss => "loss",
            cc::Cause::Ecn => "ecn",
            cc::Cause::Timeout => "timeout",
        }
    }

    /// Segments outstanding when it began.
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }

    /// A timeout in an episode that was answered already: the threshold should stay.
    #[getter]
    fn again(&self) -> bool {
        self.0.again
    }
}

/// A decision: `Control(cwnd, ssthresh=None, pacing_mbit_s=None, prr=True)`, all but the window by name.
///
/// Fractions of a segment are cut off; the window is one segment at least. With `prr` the sender may
/// spread a reduction over the round trip. Without a pacing rate ACKs clock the flow.
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
