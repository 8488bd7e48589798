//! Turns mistakes into exceptions.

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::{PyErr, create_exception};
use std::fmt::Write;
use tcplab_laws::Broken;
use tcplab_model::memory::{Held, Size};
use tcplab_model::{Mistake, Mistakes, Plan, Stopped, Watch, printable};

create_exception!(
    tcplab,
    ConfigError,
    PyValueError,
    "An experiment that cannot be run: one line for each mistake, with its place."
);
create_exception!(
    tcplab._core,
    TooLargeError,
    ConfigError,
    "A run that holds more memory than it gets."
);
create_exception!(tcplab, KernelError, PyException, "A kernel cannot be had, or not used.");
create_exception!(tcplab, RunError, PyException, "A run failed: what it ran in, or its programs.");
create_exception!(
    tcplab,
    InternalError,
    PyException,
    "A run broke a law that no run may break: a mistake in tcplab, not in the experiment."
);
create_exception!(tcplab._core, Interrupted, PyException, "A run was stopped before its end.");

/// All mistakes, one per line, each after the name of its file if it came from one, with a hint at
/// another backend that runs the experiment, if there is one.
pub(crate) fn config(mistakes: &Mistakes, file: Option<&str>, elsewhere: Option<&str>) -> PyErr {
    refused(mistakes, file, elsewhere, file)
}

/// The same; if the experiment is just a file, the hint has the complete command.
pub(crate) fn refused(
    mistakes: &Mistakes,
    file: Option<&str>,
    elsewhere: Option<&str>,
    command: Option<&str>,
) -> PyErr {
    // Parameters of algorithms have other units elsewhere: a value rejected here may be accepted
    // there with another meaning.
    let is_parameter = mistakes.0.iter().any(|mistake| mistake.at.contains(".cc."));
    let hint = elsewhere.filter(|_| !is_parameter).map_or_else(String::new, |backend| {
        let command = command.map(|file| format!("tcplab run {} ", quoted(&printable(file))));
        let command = command.unwrap_or_default();
        format!("; `{backend}` runs the experiment: {command}--on {backend}")
    });
    let mut message = String::new();
    for mistake in &mistakes.0 {
        let break_before = if message.is_empty() { "" } else { "\n" };
        let line = line(mistake, file);
        write!(message, "{break_before}{line}{hint}").expect("text takes everything");
    }
    ConfigError::new_err(message)
}

/// Quotes a name for a command line.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@%".contains(c);
    if !name.starts_with('-') && name.chars().all(is_plain) {
        return name.into();
    }
    // Prevents a name from being taken for an option.
    let before = if name.starts_with('-') { "./" } else { "" };
    format!("'{before}{}'", name.replace('\'', "'\\''"))
}

/// A mistake or warning, after the name of its file if it came from one.
pub(crate) fn line(mistake: &Mistake, file: Option<&str>) -> String {
    let file = file.map(|file| format!("{}: ", printable(file))).unwrap_or_default();
    format!("{file}{}", Mistakes::from(mistake.clone()))
}

/// Advice about memory.
const MORE: &str = "`--memory` allows more, and fewer `--workers` leave more to each";

/// A run needs more memory than it may use.
pub(crate) fn too_large(held: &Held, memory: u64) -> PyErr {
    let (largest, what, advice) = held.largest();
    let [all, most, largest] = [held.total(), memory, largest].map(Size);
    ConfigError::new_err(format!(
        "one run needs at least {all} of memory and gets {most}; {largest} of it is for {what}, less \
         with {advice}; {MORE}"
    ))
}

/// The error of a run stopped for exceeding its memory limit, if it was.
pub(crate) fn out_of_memory(plan: &Plan, watch: &Watch) -> Option<PyErr> {
    let (limit, held) = watch.exceeded()?;
    let (largest, what, advice) = held.largest();
    let (most, largest) = (Size(limit), Size(largest));
    let (at, end) = (watch.reached().as_secs_f64(), plan.duration.as_secs_f64());
    Some(TooLargeError::new_err(format!(
        "the run {} holds more than the {most} of memory that it gets, at {at:.3} of {end} s; {largest} \
         of it is for {what}, less with {advice}; {MORE}",
        plan.id
    )))
}

pub(crate) fn stopped(_: Stopped) -> PyErr {
    Interrupted::new_err("the run was stopped")
}

pub(crate) fn kernel(error: &tcplab_linux::kernel::Error) -> PyErr {
    of_backend(&error.into())
}

/// A backend failed.
pub(crate) fn of_backend(error: &tcplab_backends::Error) -> PyErr {
    use tcplab_backends::Error;
    let message = error.to_string();
    match error {
        Error::Stopped(_) => Interrupted::new_err(message),
        Error::Missing(_) => KernelError::new_err(message),
        Error::Failed(_) => RunError::new_err(message),
    }
}

/// The run broke a law.
pub(crate) fn internal(plan: &Plan, broken: &Broken) -> PyErr {
    let swept = plan
        .swept
        .iter()
        .fold(String::new(), |text, (path, value)| text + &format!(", {path} = {value}"));
    InternalError::new_err(format!(
        "{broken}\nThis is a mistake in tcplab, not in the experiment; nothing of this run was kept. \
         Please report it, with the experiment's file and this line:\n  \
         tcplab {}, backend {} {}, run {}, seed {}{swept}",
        tcplab_sim::VERSION,
        plan.backend,
        plan.version,
        plan.id,
        plan.seed,
    ))
}

/// The file beside stored results is not a valid plan.
pub(crate) fn unreadable_plan(error: &str) -> PyErr {
    PyValueError::new_err(format!("this version of tcplab cannot read the plan: {error}"))
}
