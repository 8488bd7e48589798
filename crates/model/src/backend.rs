//! The interface between the model and a backend: what a backend declares, and how the model
//! watches a run.

use crate::memory::Held;
use crate::mistake::Mistake;
use crate::plan::Plan;
use crate::schema::Profile;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tcplab_units::Time;

/// The backend that is to run the plans.
#[derive(Clone, Copy)]
pub struct Backend<'a> {
    /// Its name: `sim`.
    pub name: &'a str,
    /// The transport profile of experiments that name none.
    pub profile: Profile,
    /// The version of the code that runs this plan. A new version gives the run a new id.
    pub version: &'a (dyn Fn(&Plan) -> String + Sync),
    /// The features of a plan that the backend cannot run, each with its place: the plan's own
    /// `place` and a key, like `flows[0].stack.rack`, which the model traces to where it was
    /// written. Called once for each variant, not for its repetitions.
    pub unsupported: &'a (dyn Fn(&Plan) -> Vec<Mistake> + Sync),
}

/// The run was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// The progress of a run, and whether it is to stop. Shared between threads.
#[derive(Debug, Default)]
pub struct Watch {
    reached: AtomicU64,
    stop: AtomicBool,
    limit: Option<u64>,
    exceeded: OnceLock<Held>,
}

impl Watch {
    /// A watch that stops the run when it holds more than so many bytes.
    pub fn with_memory(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Records the memory that the run holds, and fails if that is too much.
    ///
    /// # Errors
    /// The run exceeds the limit; [`Watch::exceeded`] then has both numbers.
    pub fn hold(&self, held: Held) -> Result<(), Stopped> {
        if self.limit.is_none_or(|limit| held.total() <= limit) {
            return Ok(());
        }
        self.exceeded.set(held).ok();
        Err(Stopped)
    }

    /// The memory limit and the memory that the run held, if the limit was exceeded.
    pub fn exceeded(&self) -> Option<(u64, Held)> {
        Some((self.limit?, *self.exceeded.get()?))
    }

    /// The simulated time reached.
    pub fn reached(&self) -> Time {
        Time::from_picos(self.reached.load(Ordering::Relaxed))
    }

    /// Tells the run to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Records the progress of the run, and fails if the run is to stop.
    ///
    /// # Errors
    /// [`Watch::stop`] was called.
    pub fn reach(&self, now: Time) -> Result<(), Stopped> {
        self.reached.store(now.as_picos(), Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}
