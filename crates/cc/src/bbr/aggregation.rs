//! ACK aggregation: how many more segments than expected are acknowledged at once
//! (`bbr_update_ack_aggregation`). Receivers and links aggregate ACKs, and the window must keep the
//! path busy in between.

/// Half of the window of the maximum filter, in round trips.
const HALF: u32 = 5;
/// The number of segments after which a new epoch begins.
const LONGEST: u64 = 1 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// The start of the epoch in microseconds, and the segments acknowledged in it.
    began: u64,
    acked: u64,
    /// The maxima of this half and of the last half of the window.
    most: [u64; 2],
    current: usize,
    rounds: u32,
}

/// The information of an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub segments: u64,
    pub round_start: bool,
    /// When data was last delivered, in microseconds.
    pub at: u64,
    /// The expected rate, in 2^-24 segments a microsecond.
    pub bandwidth: u64,
    pub cwnd: u64,
}

impl Aggregation {
    /// The most segments beyond the expected number, over the last five to ten round trips.
    pub fn extra(&self) -> u64 {
        self.most[0].max(self.most[1])
    }

    /// Begins an epoch.
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
        // ACKs are as slow as expected, or the epoch is too long.
        if self.acked <= expected || self.acked.saturating_add(ack.segments) >= LONGEST {
            self.begin(ack.at);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(ack.segments).min(LONGEST - 1);
        let extra = self.acked.saturating_sub(expected).min(ack.cwnd);
        self.most[self.current] = self.most[self.current].max(extra);
    }
}
