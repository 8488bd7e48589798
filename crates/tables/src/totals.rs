//! What a run counted from its beginning to its end, to check its tables against.

/// The counts of all lanes, and of all connections.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// By lane, in the order of the plan.
    pub lanes: Vec<LaneTotals>,
    /// By row of the table of flows; nothing where a backend does not count these.
    pub flows: Vec<Option<FlowTotals>>,
}

/// The packets of one lane, each of which is in one of these places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTotals {
    /// Offered to the queue.
    pub entered: u64,
    /// At the other end.
    pub arrived: u64,
    /// Dropped by the queue.
    pub dropped: u64,
    /// Lost on the wire.
    pub lost: u64,
    /// In the queue.
    pub queued: u64,
    /// On the wire.
    pub in_transit: u64,
}

/// The data that one connection sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Bytes that the application wrote.
    pub written_bytes: u64,
    /// Bytes that were sent, each counted once.
    pub sent_bytes: u64,
}
