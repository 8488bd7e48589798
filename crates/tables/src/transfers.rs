//! What the transfers of one flow amount to.

use crate::facts::{Counters, Outcome, RoundTrips, TransferFacts};
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
    /// In picoseconds.
    pub(crate) completion: Quantiles,
}

impl Transfers {
    /// Counts one that is over, or cut short by the end of the experiment.
    pub(crate) fn add(&mut self, facts: &TransferFacts<'_>) {
        self.begun += 1;
        self.bytes = self.bytes.saturating_add(facts.bytes);
        if let Some(counters) = &facts.counters {
            self.counters.add(counters);
        }
        self.rtt = facts.rtt.map(|rtt| rtt.and(self.rtt)).or(self.rtt);
        if facts.outcome == Outcome::Completed {
            self.completed += 1;
            self.last_end = self.last_end.max(Some(facts.end));
            self.completion.add(facts.end.since(facts.start).as_picos());
        }
    }
}
