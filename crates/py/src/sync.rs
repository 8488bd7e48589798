//! Syncs results to disk while others are computed.

use pyo3::prelude::*;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval between syncs. A power failure costs no more than this.
const PERIOD: Duration = Duration::from_secs(1);

/// How long the end waits for the last sync. The disk may be busy with other files.
const LAST_SYNC_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Default)]
struct State {
    is_written: bool,
    is_closed: bool,
    is_done: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for data to sync, and then for more. Returns whether this was the last.
    fn wait(&self) -> bool {
        let idle = |state: &mut State| !state.is_written && !state.is_closed;
        let state = self.changed.wait_while(self.lock(), idle);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let open = |state: &mut State| !state.is_closed;
        let state = self.changed.wait_timeout_while(state, PERIOD, open);
        let (mut state, _) = state.unwrap_or_else(PoisonError::into_inner);
        state.is_written = false;
        state.is_closed
    }
}

/// Syncs the file system of a folder: a second after data was written, and at the end.
#[pyclass(frozen, module = "tcplab._core")]
pub(crate) struct Syncing(Arc<Shared>);

#[pymethods]
impl Syncing {
    #[new]
    fn new(folder: PathBuf) -> PyResult<Self> {
        let folder = File::open(folder)?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        // A thread without the interpreter, which may end before the thread does.
        thread::Builder::new().name("sync".into()).spawn(move || {
            loop {
                let is_last = theirs.wait();
                sync(&folder);
                if is_last {
                    break theirs.set(|state| state.is_done = true);
                }
            }
        })?;
        Ok(Self(shared))
    }

    /// Data was written.
    fn written(&self) {
        self.0.set(|state| state.is_written = true);
    }

    /// No more data will be written.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.0.set(|state| state.is_closed = true);
            let undone = |state: &mut State| !state.is_done;
            drop(self.0.changed.wait_timeout_while(self.0.lock(), LAST_SYNC_TIMEOUT, undone));
        });
    }
}

/// A file system that cannot sync writes in its own time.
fn sync(folder: &File) {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(folder).ok();
    #[cfg(not(target_os = "linux"))]
    folder.sync_all().ok();
}
