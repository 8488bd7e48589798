//! How large the peer's full segments are, as Linux learns it (`icsk_ack.rcv_mss`): from the
//! largest, and from two smaller ones of the same size that do not end anything.
//!
//! `tcp_initialize_rcv_mss`, `tcp_measure_rcv_mss`.

/// `TCP_MSS_DEFAULT`, `TCP_MIN_MSS`.
const USUAL: u64 = 536;
const LEAST: u64 = 88;
/// A TCP header without options.
const HEADER: u64 = 20;

/// Payload bytes of a full segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct RcvMss {
    pub bytes: u64,
    /// Payload bytes of our own segments (`tp->advmss`).
    most: u64,
    /// Payload of the last segment, if it was smaller and may still have been full.
    last_small: u64,
}

/// A segment with data as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentShape {
    pub payload: u64,
    /// Bytes of options in it, and in every segment of the connection.
    pub options: u64,
    pub usual_options: u64,
    /// The sender has pushed it, or has no more.
    pub ends: bool,
}

/// The shape of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeClass {
    /// As large as full ones, or larger.
    Full,
    /// Small like the one before: this is what full ones carry. Or the FIN alone.
    Repeated,
    /// Small.
    Small,
}

impl RcvMss {
    /// Before any has come, for our own and the window at the beginning.
    pub fn new(most: u64, window: u64) -> Self {
        let bytes = most.min(window / 2).clamp(LEAST, USUAL);
        Self { bytes, most, last_small: 0 }
    }

    /// A segment came.
    pub fn measure(&mut self, shape: SegmentShape) -> SizeClass {
        let last_small = std::mem::take(&mut self.last_small);
        if shape.payload >= self.bytes {
            self.bytes = shape.payload.min(self.most);
            return SizeClass::Full;
        }
        let length = shape.payload + shape.options + HEADER;
        if length >= USUAL + HEADER || (length >= LEAST + HEADER && !shape.ends) {
            // Without what only this one had of options.
            self.last_small = length - HEADER - shape.usual_options;
            if self.last_small == last_small {
                self.bytes = last_small;
                return SizeClass::Repeated;
            }
        }
        SizeClass::Small
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(payload: u64) -> SegmentShape {
        SegmentShape { payload, options: 12, usual_options: 12, ends: false }
    }

    #[test]
    fn begins_with_half_a_window_at_the_most() {
        let begins = |most, window| RcvMss::new(most, window).bytes;
        assert_eq!(begins(1448, 65_535), 536);
        assert_eq!(begins(1448, 267), 133, "a window of less than a segment still opens again");
        assert_eq!(begins(500, 65_535), 500);
        assert_eq!(begins(500, 100), 88);
    }

    #[test]
    fn is_the_largest_or_what_comes_twice() {
        let mut full = RcvMss::new(1448, 65_535);
        let mut after = |shape| (full.measure(shape), full.bytes);
        assert_eq!(after(shape(1448)), (SizeClass::Full, 1448));
        assert_eq!(after(shape(1000)), (SizeClass::Small, 1448));
        assert_eq!(after(shape(1000)), (SizeClass::Repeated, 1000));
        // Twice, but not one after the other.
        assert_eq!(after(shape(900)), (SizeClass::Small, 1000));
        assert_eq!(after(shape(1000)), (SizeClass::Full, 1000));
        assert_eq!(after(shape(900)), (SizeClass::Small, 1000));
        // A block of SACK takes its 12 bytes from the data.
        assert_eq!(after(SegmentShape { options: 24, ..shape(888) }), (SizeClass::Repeated, 900));
    }

    #[test]
    fn what_ends_something_is_full_only_if_it_is_large() {
        // 524 bytes and 12 of options are 536.
        for (payload, then) in [(523, SizeClass::Small), (524, SizeClass::Repeated)] {
            let mut full = RcvMss::new(1448, 65_535);
            full.measure(shape(1448));
            let pushed = SegmentShape { ends: true, ..shape(payload) };
            assert_eq!(full.measure(pushed), SizeClass::Small);
            assert_eq!(full.measure(pushed), then, "{payload}");
        }
    }
}
