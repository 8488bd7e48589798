//! The sums over the transfers of one flow.

use crate::facts::{Counters, Outcome, RoundTrips, TransferFacts};
use crate::measure::Window;
use crate::quantiles::Quantiles;
use tcplab_units::Time;

/// The transfers of one flow so far, in constant memory.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// The number of transfers that have begun.
    pub begun: u64,
    /// The number of these that completed.
    pub completed: u64,
    /// Bytes that reached the application.
    pub bytes: u64,
    /// When the last completed transfer completed.
    pub last_end: Option<Time>,
    /// The sums of the senders' counters, as far as known for single transfers.
    pub counters: Counters,
    /// The RTTs of all transfers, as far as known for single transfers.
    pub rtt: Option<RoundTrips>,
    /// The measuring window, unless it is the whole run.
    window: Option<Window>,
    /// The numbers of transfers that began in the window, and that completed of these.
    pub(crate) measured: (u64, u64),
    /// Completion times, in picoseconds.
    pub(crate) completion: Quantiles,
}

impl Transfers {
    /// For a run with this measuring window.
    pub fn within(window: Window) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// Adds a transfer that is over, or cut short by the end of the experiment.
    pub(crate) fn add(&mut self, facts: &TransferFacts<'_>) {
        let is_measured = self.window.is_none_or(|window| window.holds(facts.start));
        self.begun += 1;
        self.measured.0 += u64::from(is_measured);
        self.bytes = self.bytes.saturating_add(facts.bytes);
        if let Some(counters) = &facts.counters {
            self.counters.add(counters);
        }
        self.rtt = facts.rtt.map(|rtt| rtt.and(self.rtt)).or(self.rtt);
        if facts.outcome == Outcome::Completed {
            self.completed += 1;
            self.last_end = self.last_end.max(Some(facts.end));
            if is_measured {
                self.measured.1 += 1;
                self.completion.add(facts.end.since(facts.start).as_picos());
            }
        }
    }
}
