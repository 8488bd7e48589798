//! Building, listing and removing kernels.

use crate::errors::{self, KernelError};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tcplab_linux::kernel::{self, Cache, Progress, Request, Source};

/// A kernel in the cache.
#[pyclass(frozen, get_all, module = "tcplab._core")]
pub(crate) struct Kernel {
    name: String,
    release: String,
    key: String,
    hz: u32,
    source: String,
    congestion_controls: Vec<String>,
    compiler: String,
    folder: PathBuf,
    is_outdated: bool,
}

#[pymethods]
impl Kernel {
    fn __repr__(&self) -> String {
        format!("<Kernel {:?}: Linux {}, {} Hz>", self.name, self.release, self.hz)
    }
}

impl From<kernel::Kernel> for Kernel {
    fn from(kernel: kernel::Kernel) -> Self {
        let is_outdated = kernel.is_outdated();
        let kernel::Kernel {
            name,
            release,
            key,
            hz,
            source,
            congestion_controls,
            compiler,
            folder,
            ..
        } = kernel;
        Self { name, release, key, hz, source, congestion_controls, compiler, folder, is_outdated }
    }
}

/// The requested kernel: the keys of a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wish {
    version: String,
    source: Option<PathBuf>,
    hz: i64,
    congestion_controls: Vec<PathBuf>,
    name: Option<String>,
    jobs: Option<usize>,
}

impl Wish {
    fn request(self) -> PyResult<Request> {
        let hz = u32::try_from(self.hz)
            .map_err(|_| KernelError::new_err(format!("hz: {} is not possible", self.hz)))?;
        Ok(Request {
            source: self.source.map_or(Source::Debian(self.version), Source::Path),
            hz,
            congestion_controls: self.congestion_controls,
            name: self.name,
            jobs: self.jobs.and_then(NonZeroUsize::new),
        })
    }
}

/// Builds a kernel, unless it exists. `progress` is called with the stage, the completed steps,
/// their total, and their unit; an exception that it raises stops the build.
#[pyfunction]
pub(crate) fn build_kernel(
    py: Python<'_>,
    wish: Wish,
    progress: &Bound<'_, PyAny>,
) -> PyResult<Kernel> {
    let (request, progress) = (wish.request()?, progress.clone().unbind());
    let mut raised = None;
    let built = py.detach(|| {
        let mut watch = |now: Progress| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                progress.call1(py, (now.stage, now.done, now.total, now.unit))
            });
            match called {
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        Cache::open()?.build(&request, &mut watch)
    });
    match (built, raised) {
        (Ok(kernel), _) => Ok(kernel.into()),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(errors::kernel(&error)),
    }
}

/// All kernels, sorted by name.
#[pyfunction]
pub(crate) fn kernels() -> PyResult<Vec<Kernel>> {
    let listed = Cache::open().and_then(|cache| cache.list());
    let listed = listed.map_err(|error| errors::kernel(&error))?;
    Ok(listed.into_iter().map(Kernel::from).collect())
}

/// The folder of the user's cache, if it exists.
#[pyfunction]
pub(crate) fn cache() -> Option<PathBuf> {
    Cache::open().ok().map(|cache| cache.folder().to_owned())
}

/// Removes a kernel.
#[pyfunction]
pub(crate) fn remove_kernel(name: &str) -> PyResult<()> {
    let removed = Cache::open().and_then(|cache| cache.remove(name));
    removed.map_err(|error| errors::kernel(&error))
}
