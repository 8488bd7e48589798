//! The Python extension `tcplab._core`: text in, tables out.
//!
//! The only crate that depends on Python. Mistakes become exceptions in `errors`, tables become
//! Arrow in `frames`. The interpreter lock is released during a run, so that runs share the cores
//! and Ctrl-C works.

mod batch;
mod capture;
mod catalogue;
mod csv;
mod errors;
mod experiment;
mod frames;
mod kernels;
mod python_cc;
mod stored;
mod sync;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::batch::{Batch, Group, Ran, Watch, run_batch};
    #[pymodule_export]
    use super::capture::{capture_columns, read_capture};
    #[pymodule_export]
    use super::catalogue::printable;
    #[pymodule_export]
    use super::catalogue::{
        Algorithm, algorithms, column_kinds, columns, profile, profiles, schema, schema_of_values,
        support, tables,
    };
    #[pymodule_export]
    use super::errors::{
        ConfigError, InternalError, Interrupted, KernelError, RunError, TooLargeError,
    };
    #[pymodule_export]
    use super::experiment::{Document, Plan, backends, missing_walls, run, value};
    #[pymodule_export]
    use super::frames::Frame;
    #[pymodule_export]
    use super::kernels::{Kernel, build_kernel, cache, kernels, remove_kernel};
    #[pymodule_export]
    use super::python_cc::{Ack, Congestion, Control, FlowState, Init, register};
    #[pymodule_export]
    use super::stored::StoredTables;
    #[pymodule_export]
    use super::sync::Syncing;
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", tcplab_sim::VERSION)
    }
}
