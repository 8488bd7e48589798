//! What the transfers of one flow amount to.

use crate::facts::{Counters, Outcome, RoundTrips, TransferFacts};
use crate::measure::Window;
use crate::quantiles::Quantiles;
use tcplab_units::Time;

/// The transfers of one flow so far. Memory does not grow with their number.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// How many have begun.
    pub begun: u64,
    /// How many of these completed.
    pub completed: u64,
    /// Bytes that reached the application, of all.
    pub bytes: u64,
    /// When the last of those that completed did so.
    pub last_end: Option<Time>,
    /// The sums of what the senders counted, as far as it can be told for one transfer.
    pub counters: Counters,
    /// The RTTs of all, as far as they can be told for one transfer.
    pub rtt: Option<RoundTrips>,
    /// The part of the run that results are of, if it is not all.
    window: Option<Window>,
    /// How many of those that began in it, and how many of these completed.
    pub(crate) measured: (u64, u64),
    /// The times of these, in picoseconds.
    pub(crate) completion: Quantiles,
}

impl Transfers {
    /// Of a run whose results are of this part of it.
    pub fn within(window: Window) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// Counts one that is over, or cut short by the end of the experiment.
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
