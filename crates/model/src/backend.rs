//! What a backend tells the model, and what it is told while it runs a plan.

use crate::memory::Held;
use crate::mistake::Mistake;
use crate::plan::Plan;
use crate::schema::Profile;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tcplab_units::Time;

/// What is to run the plans.
#[derive(Clone, Copy)]
pub struct Backend<'a> {
    /// Its name: `sim`.
    pub name: &'a str,
    /// Whose behaviour its transport has where an experiment names no profile.
    pub profile: Profile,
    /// The version of what runs this plan: a new one gives the run a new id.
    pub version: &'a (dyn Fn(&Plan) -> String + Sync),
    /// What it cannot run of a plan, each with its place: the plan's own `place` and a key, like
    /// `flows[0].stack.rack`, which is then traced to where it was written. Asked once for each
    /// variant, not for its repetitions.
    pub unsupported: &'a (dyn Fn(&Plan) -> Vec<Mistake> + Sync),
}

/// The run was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// How far a run is, and whether it is to stop. Shared between threads.
#[derive(Debug, Default)]
pub struct Watch {
    reached: AtomicU64,
    stop: AtomicBool,
    limit: Option<u64>,
    exceeded: OnceLock<Held>,
}

impl Watch {
    /// One that stops the run when it holds more than so many bytes.
    pub fn with_memory(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Notes what the run holds in memory; fails if it is too much.
    ///
    /// # Errors
    /// The run holds more, and [`Watch::exceeded`] says so.
    pub fn hold(&self, held: Held) -> Result<(), Stopped> {
        if self.limit.is_none_or(|limit| held.total() <= limit) {
            return Ok(());
        }
        self.exceeded.set(held).ok();
        Err(Stopped)
    }

    /// The limit to the run's memory and what it held, if that was more.
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

    /// Notes how far the run is; fails if it is to stop.
    ///
    /// # Errors
    /// [`Watch::stop`] was called.
    pub fn reach(&self, now: Time) -> Result<(), Stopped> {
        self.reached.store(now.as_picos(), Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}
