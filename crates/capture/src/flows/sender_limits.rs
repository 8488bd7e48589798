//! What a sender's time went by.

/// What a sender waits for. Where several hold, the first of them counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The connection is being opened.
    Handshake,
    /// All is said; the connection is being closed.
    Close,
    /// The retransmission timer, and the repair after it.
    Timeout,
    /// The repair of what ACKs said to be lost.
    Recovery,
    /// The receiver's window has no room for a segment.
    PeerWindow,
    /// Data is in flight, and no other reason is seen: the congestion window, or pacing.
    Window,
    /// There is nothing to send: nothing is in flight, or the last segment was not full.
    Application,
}

/// How many there are.
const WAITS: usize = 7;

/// Time by what a sender waited for, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    known: [i64; WAITS],
    /// Since the last progress: if the timer ends it, it was waited for.
    open: [i64; WAITS],
    /// Of a sender away from the capture, since its last data: if it had sent more at once, which comes one
    /// behind the other, this is no time of its own.
    burst: [i64; WAITS],
}

impl Spent {
    #[inline]
    pub fn add(&mut self, wait: Wait, time: i64) {
        self.open[wait as usize] += time;
    }

    /// The same of a sender away from the capture.
    #[inline]
    pub fn add_away(&mut self, wait: Wait, time: i64) {
        self.burst[wait as usize] += time;
    }

    /// Data came that was sent together with the data before: the time between them.
    pub fn take_burst(&mut self) -> i64 {
        std::mem::take(&mut self.burst).iter().sum()
    }

    /// Data came that was sent later.
    #[inline]
    pub fn end_burst(&mut self) {
        for (open, burst) in self.open.iter_mut().zip(&mut self.burst) {
            *open += std::mem::take(burst);
        }
    }

    /// Something went on.
    #[inline]
    pub fn progress(&mut self) {
        for (known, open) in self.known.iter_mut().zip(&mut self.open) {
            *known += std::mem::take(open);
        }
    }

    /// All was the handshake.
    pub fn opens_again(&mut self) {
        self.progress();
        let whole = self.known.iter().sum();
        self.known = [0; WAITS];
        self.known[Wait::Handshake as usize] = whole;
    }

    /// The timer ran out.
    pub fn timed_out(&mut self) {
        let waits = [Wait::Recovery, Wait::PeerWindow, Wait::Window, Wait::Application];
        for wait in waits {
            let waited = std::mem::take(&mut self.open[wait as usize]);
            self.open[Wait::Timeout as usize] += waited;
        }
        self.progress();
    }

    /// In percent of the whole, if it took any time.
    pub fn percent(&self) -> [Option<f64>; WAITS] {
        let mut all = *self;
        all.end_burst();
        all.progress();
        let whole: i64 = all.known.iter().sum();
        all.known.map(|time| (whole > 0).then(|| time as f64 * 100.0 / whole as f64))
    }
}
