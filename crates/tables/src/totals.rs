//! Counters of a whole run, against which its tables are checked.

/// The counters of all lanes and of all flows.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// By lane, in the order of the plan.
    pub lanes: Vec<LaneTotals>,
    /// In the order of the table of flows; `None` if a backend does not count.
    pub flows: Vec<Option<FlowTotals>>,
}

/// The packets of one lane, by whereabouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTotals {
    /// Offered to the queue.
    pub entered: u64,
    /// Arrived at the other end.
    pub arrived: u64,
    /// Dropped by the queue.
    pub dropped: u64,
    /// Lost on the wire.
    pub lost: u64,
    /// In the queue.
    pub queued: u64,
    /// In transit on the wire.
    pub in_transit: u64,
}

/// The data sent by one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Bytes that the application wrote.
    pub written_bytes: u64,
    /// Bytes that were sent, without retransmissions.
    pub sent_bytes: u64,
}
