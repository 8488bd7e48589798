//! Limited slow start (RFC 3742): doubling up to a window, and beyond it growth by at most half of
//! that window a round trip, so that fewer segments are lost at the end of slow start.

use std::num::NonZeroU64;

/// The state of a flow's limited slow start. Windows are in segments.
#[derive(Clone, Debug)]
pub struct Limited {
    /// `max_ssthresh`.
    most: NonZeroU64,
    /// Credit of less than a segment.
    part: u64,
}

impl Limited {
    /// Doubles up to a window of `max_ssthresh`.
    pub fn new(max_ssthresh: NonZeroU64) -> Self {
        Self { most: max_ssthresh, part: 0 }
    }

    /// The segments of growth for `credit` in slow start, with a window of `cwnd`.
    ///
    /// RFC 3742 §2: one each for a window of `max_ssthresh` or less, else 1/K with K = int(cwnd /
    /// (0.5 `max_ssthresh`)).
    pub fn credit(&mut self, cwnd: u64, credit: u64) -> u64 {
        let most = self.most.get();
        let whole = credit.min(most.saturating_add(1).saturating_sub(cwnd));
        let price = (cwnd.saturating_add(whole).saturating_mul(2) / most).max(1);
        let total = self.part.saturating_add(credit - whole);
        self.part = total % price;
        whole.saturating_add(total / price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> Limited {
        Limited::new(NonZeroU64::new(100).unwrap())
    }

    #[test]
    fn growth_is_one_per_segment_up_to_max_ssthresh() {
        assert_eq!(limited().credit(50, 2), 2);
        // RFC 3742 §2: "less than or equal to max_ssthresh".
        assert_eq!(limited().credit(100, 1), 1);
    }

    #[test]
    fn growth_takes_k_segments_beyond_max_ssthresh() {
        // K = int(cwnd / 50): 2 up to 149, 3 up to 199, 4 at 200, 20 at 1000.
        for (cwnd, k) in [(101, 2), (149, 2), (150, 3), (200, 4), (1000, 20)] {
            let mut limited = limited();
            let worth: Vec<_> = (0..k).map(|_| limited.credit(cwnd, 1)).collect();
            assert_eq!(worth.iter().sum::<u64>(), 1, "{cwnd}");
            assert_eq!(worth.last(), Some(&1), "{cwnd}");
        }
    }

    #[test]
    fn ack_crossing_max_ssthresh_grows_slower_beyond_it() {
        // Two reach 101, and from there every second one counts.
        assert_eq!(limited().credit(99, 6), 4);
    }
}
