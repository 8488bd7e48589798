//! Looking at a run from another thread, and stopping it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tcplab_units::Time;

/// The run was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// How far a run is, and whether it is to stop. Shared between threads.
#[derive(Debug, Default)]
pub struct Watch {
    reached: AtomicU64,
    stop: AtomicBool,
}

impl Watch {
    /// The simulated time reached.
    pub fn reached(&self) -> Time {
        Time::from_picos(self.reached.load(Ordering::Relaxed))
    }

    /// Tells the run to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reach(&self, now: Time) -> Result<(), Stopped> {
        self.reached.store(now.as_picos(), Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}
