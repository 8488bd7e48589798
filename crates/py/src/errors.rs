//! From mistakes to exceptions.

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::{PyErr, create_exception};
use std::fmt::Write;
use tcplab_model::Mistakes;
use tcplab_sim::Stopped;

create_exception!(
    tcplab,
    ConfigError,
    PyValueError,
    "An experiment that cannot be run: one line for each mistake, with its place."
);
create_exception!(tcplab, Interrupted, PyException, "A run was stopped before its end.");

/// All mistakes, one per line, each behind the name of its file if it came from one.
pub(crate) fn config(mistakes: &Mistakes, file: Option<&str>) -> PyErr {
    let mut message = String::new();
    for mistake in &mistakes.0 {
        let mistake = Mistakes::from(mistake.clone());
        let break_before = if message.is_empty() { "" } else { "\n" };
        let file = file.map(|file| format!("{file}: ")).unwrap_or_default();
        write!(message, "{break_before}{file}{mistake}").expect("text takes everything");
    }
    ConfigError::new_err(message)
}

pub(crate) fn stopped(_: Stopped) -> PyErr {
    Interrupted::new_err("the run was stopped")
}
