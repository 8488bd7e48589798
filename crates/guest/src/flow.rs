//! A flow, as the threads of its sides know it.

use crate::clock;
use crate::hosts::Host;
use tcplab_guest::job;
use tcplab_tables::Window;

/// A flow, with the data that its threads need.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub number: usize,
    pub spec: &'static job::Flow,
    pub client: &'static Host,
    pub server: &'static Host,
    /// When the experiment starts and ends, by the clock.
    pub experiment: (u64, u64),
    /// The measuring window, if it has marks.
    pub window: Option<Window>,
}

impl Flow {
    /// The clock time this long after the flow's start.
    pub fn at(&self, after: u64) -> u64 {
        self.experiment.0 + self.spec.start + after
    }

    /// The current time, in nanoseconds after the start of the experiment.
    pub fn elapsed(&self) -> u64 {
        clock::now().saturating_sub(self.experiment.0)
    }
}
