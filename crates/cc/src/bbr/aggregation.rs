//! How many segments more than expected are acknowledged at once (`bbr_update_ack_aggregation`):
//! receivers and links gather ACKs, and the window must keep the path busy in between.

/// Half of the window of the maximum, in round trips.
const HALF: u32 = 5;
/// Segments after which an epoch begins anew.
const LONGEST: u64 = 1 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// When the epoch began, in microseconds, and what has been acknowledged in it.
    began: u64,
    acked: u64,
    /// The most of this and of the last half of the window.
    most: [u64; 2],
    current: usize,
    rounds: u32,
}

/// What an ACK says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub segments: u64,
    pub round_start: bool,
    /// When something was last delivered, in microseconds.
    pub at: u64,
    /// Segments a microsecond that are expected, times 2^24.
    pub bandwidth: u64,
    pub cwnd: u64,
}

impl Aggregation {
    /// Segments beyond what was expected, at most, over the last five to ten round trips.
    pub fn extra(&self) -> u64 {
        self.most[0].max(self.most[1])
    }

    /// An epoch begins.
    pub fn begin(&mut self, at: u64) {
        self.began = at;
        self.acked = 0;
    }

    pub fn on_ack(&mut self, ack: Acked) {
        if ack.round_start {
            self.rounds += 1;
            if self.rounds >= HALF {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.most[self.current] = 0;
            }
        }
        let time = ack.at.saturating_sub(self.began);
        let mut expected = super::segments_in(ack.bandwidth, time);
        // ACKs come as slowly as expected, or the epoch is old.
        if self.acked <= expected || self.acked.saturating_add(ack.segments) >= LONGEST {
            self.begin(ack.at);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(ack.segments).min(LONGEST - 1);
        let extra = self.acked.saturating_sub(expected).min(ack.cwnd);
        self.most[self.current] = self.most[self.current].max(extra);
    }
}
