//! The data of a segment that is about to leave.

/// The data of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub start: u64,
    pub payload: u16,
    pub fin: bool,
    pub is_retransmission: bool,
    /// A tail loss probe that retransmits; already recorded.
    pub is_probe: bool,
    /// The last segment of a burst, or of all written data.
    pub push: bool,
}

impl Data {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.payload) + u64::from(self.fin)
    }
}
