//! Sums of the time that a sender waits, by cause. `direction` decides the cause of each wait
//! (`wait_cause_given`).

/// The causes of a sender's waits. If several apply, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The handshake.
    Handshake,
    /// The close, after all data.
    Close,
    /// The retransmission timer, and the recovery after it.
    Timeout,
    /// The recovery of losses indicated by ACKs.
    Recovery,
    /// The receiver's window, which has no room for a segment.
    PeerWindow,
    /// The congestion window or pacing: data is in flight, and no other reason is visible.
    CongestionWindow,
    /// The application: nothing is in flight, or the last segment was not full.
    Application,
}

/// The number of causes.
const WAITS: usize = 7;

/// Time by cause, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeByCause {
    known: [i64; WAITS],
    /// Time since the last progress, which counts as a timeout if the retransmission timer ends it.
    open: [i64; WAITS],
    /// For a sender away from the capture, the time since its last data: within a burst, this time
    /// is the network's, not the sender's.
    burst: [i64; WAITS],
}

impl TimeByCause {
    #[inline]
    pub fn add(&mut self, wait: Wait, time: i64) {
        self.open[wait as usize] += time;
    }

    /// The same for a sender away from the capture.
    #[inline]
    pub fn add_remote(&mut self, wait: Wait, time: i64) {
        self.burst[wait as usize] += time;
    }

    /// Takes the time between segments of one burst.
    pub fn take_burst(&mut self) -> i64 {
        std::mem::take(&mut self.burst).iter().sum()
    }

    /// Ends the burst: the next data was sent later.
    #[inline]
    pub fn end_burst(&mut self) {
        for (open, burst) in self.open.iter_mut().zip(&mut self.burst) {
            *open += std::mem::take(burst);
        }
    }

    /// Progress: the time since the last one counts for its causes.
    #[inline]
    pub fn progress(&mut self) {
        for (known, open) in self.known.iter_mut().zip(&mut self.open) {
            *known += std::mem::take(open);
        }
    }

    /// Accounts all time to the handshake.
    pub fn restart_handshake(&mut self) {
        self.progress();
        let whole = self.known.iter().sum();
        self.known = [0; WAITS];
        self.known[Wait::Handshake as usize] = whole;
    }

    /// Accounts the time since the last progress to a timeout.
    pub fn on_timeout(&mut self) {
        let waits = [Wait::Recovery, Wait::PeerWindow, Wait::CongestionWindow, Wait::Application];
        for wait in waits {
            let waited = std::mem::take(&mut self.open[wait as usize]);
            self.open[Wait::Timeout as usize] += waited;
        }
        self.progress();
    }

    /// The shares in percent, if any time passed.
    pub fn percent(&self) -> [Option<f64>; WAITS] {
        let mut all = *self;
        all.end_burst();
        all.progress();
        let whole: i64 = all.known.iter().sum();
        all.known.map(|time| (whole > 0).then(|| time as f64 * 100.0 / whole as f64))
    }
}
