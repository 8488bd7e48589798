//! A flow, as the threads of its sides know it.

use crate::clock;
use crate::hosts::Host;
use tcplab_guest::job;
use tcplab_tables::Window;

/// A flow, and what its threads need to know.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub number: usize,
    pub spec: &'static job::Flow,
    pub client: &'static Host,
    pub server: &'static Host,
    /// When the experiment starts and ends, by the clock.
    pub experiment: (u64, u64),
    /// The part of it that results are of, if it has marks.
    pub window: Option<Window>,
}

impl Flow {
    /// The time by the clock that is this long after the flow's start.
    pub fn at(&self, after: u64) -> u64 {
        self.experiment.0 + self.spec.start + after
    }

    /// Now, in nanoseconds after the start of the experiment.
    pub fn elapsed(&self) -> u64 {
        clock::now().saturating_sub(self.experiment.0)
    }
}
