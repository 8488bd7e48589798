//! The peer's segment size as Linux estimates it (`icsk_ack.rcv_mss`): the largest payload seen, or
//! that of two equal smaller segments in a row that end nothing.
//!
//! `tcp_initialize_rcv_mss`, `tcp_measure_rcv_mss`.

/// `TCP_MSS_DEFAULT`, `TCP_MIN_MSS`.
const USUAL: u64 = 536;
const LEAST: u64 = 88;
/// A TCP header without options.
const HEADER: u64 = 20;

/// The estimate of a full segment's payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct RcvMss {
    pub bytes: u64,
    /// Payload bytes of our own segments (`tp->advmss`).
    most: u64,
    /// Payload of the last segment, if it was smaller and may have been full.
    last_small: u64,
}

/// The size of a received data segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentShape {
    pub payload: u64,
    /// Bytes of options in the segment, and in every segment of the connection.
    pub options: u64,
    pub usual_options: u64,
    /// The segment has PSH or FIN.
    pub ends: bool,
}

/// The size of a segment, compared with full ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeClass {
    /// At least a full segment.
    Full,
    /// As small as the segment before it, which makes this the new full size. Also a FIN without
    /// data.
    Repeated,
    /// Smaller.
    Small,
}

impl RcvMss {
    /// The estimate before the first data, from our own MSS and the initial window
    /// (`tcp_initialize_rcv_mss`).
    pub fn new(most: u64, window: u64) -> Self {
        let bytes = most.min(window / 2).clamp(LEAST, USUAL);
        Self { bytes, most, last_small: 0 }
    }

    /// A data segment arrived (`tcp_measure_rcv_mss`).
    pub fn measure(&mut self, shape: SegmentShape) -> SizeClass {
        let last_small = std::mem::take(&mut self.last_small);
        if shape.payload >= self.bytes {
            self.bytes = shape.payload.min(self.most);
            return SizeClass::Full;
        }
        let length = shape.payload + shape.options + HEADER;
        if length >= USUAL + HEADER || (length >= LEAST + HEADER && !shape.ends) {
            // Excludes options that only this segment carries.
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
    fn initial_rcv_mss_is_at_most_half_the_window() {
        let begins = |most, window| RcvMss::new(most, window).bytes;
        assert_eq!(begins(1448, 65_535), 536);
        assert_eq!(begins(1448, 267), 133, "a window of less than a segment still opens again");
        assert_eq!(begins(500, 65_535), 500);
        assert_eq!(begins(500, 100), 88);
    }

    #[test]
    fn rcv_mss_is_the_largest_or_a_twice_repeated_segment_size() {
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
    fn pushed_segment_updates_rcv_mss_only_from_536_bytes() {
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
