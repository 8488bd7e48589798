//! Data on its way into a segment.

/// Data to be put into a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub start: u64,
    pub payload: u16,
    pub fin: bool,
    pub is_retransmission: bool,
    /// A probe of the tail that was sent before; it has been noted.
    pub is_probe: bool,
    /// The last of several that leave together, or of all there is.
    pub push: bool,
}

impl Data {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.payload) + u64::from(self.fin)
    }
}
