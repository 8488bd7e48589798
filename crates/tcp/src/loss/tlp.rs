//! The state of a tail loss probe (RFC 8985 §7).

use super::Loss;

/// The probe under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// `TLP.end_seq`: what had been sent with the last probe ends here.
    pub(super) end: Option<u64>,
    /// The probe was a retransmission.
    pub(super) is_again: bool,
    /// Segments outstanding when it left.
    flight: u64,
    /// A probe is to leave.
    owed: bool,
    /// Segments of new data that it may have beside those that left.
    left: u64,
    /// The last of these is marked as pushed.
    push: bool,
}

impl TailProbe {
    /// Whether a probe is to leave, or more of one.
    #[inline]
    pub fn owes_probe(&self) -> bool {
        self.owed || self.left > 0
    }
}

impl Loss {
    /// Whether a probe is under way.
    #[inline]
    pub fn has_probe(&self) -> bool {
        self.tlp.end.is_some()
    }

    /// Whether the probe under way ends here.
    #[inline]
    pub fn is_probe_end(&self, end: u64) -> bool {
        self.tlp.end == Some(end)
    }

    /// Whether a probe is to leave, or more of one.
    #[inline]
    pub fn owes_probe(&self) -> bool {
        self.tlp.owes_probe()
    }

    /// A probe is to leave, unless one is under way. Says whether it is.
    pub fn owe_probe(&mut self) -> bool {
        let owes = self.tlp.end.is_none();
        self.tlp.owed |= owes;
        owes
    }

    /// Whether a new probe is to leave; it is taken.
    pub fn take_owed_probe(&mut self) -> bool {
        std::mem::take(&mut self.tlp.owed)
    }

    /// The probe has so many segments of new data, and the last of them is pushed or not.
    pub fn set_probe_size(&mut self, segments: u64, push: bool) {
        (self.tlp.left, self.tlp.push) = (segments - 1, push);
    }

    /// A probe leaves that ends at `end`; `is_again`: as a retransmission.
    pub fn note_probe(&mut self, end: u64, is_again: bool) {
        self.tlp.is_again = is_again;
        self.tlp.flight = self.board.outstanding();
        self.tlp.end = Some(end);
    }

    /// Another segment of the probe leaves, which is full or not. Says whether it is the last one and is
    /// pushed.
    pub fn note_more_of_probe(&mut self, end: Option<u64>, is_full: bool) -> bool {
        let left = self.tlp.left - 1;
        self.tlp.left = if is_full { left } else { 0 };
        self.tlp.end = end.or(self.tlp.end);
        self.tlp.left == 0 && self.tlp.push
    }

    /// The segments outstanding when the probe left.
    pub fn probe_flight(&self) -> u64 {
        self.tlp.flight
    }

    /// No probe is under way any more.
    pub fn forget_probe(&mut self) {
        self.tlp.end = None;
    }

    /// The meaning of an ACK for the probe (RFC 8985 §7.4.2). Says whether the probe repaired a loss, which
    /// is a sign of congestion like others.
    pub fn judge_probe(&mut self, una: u64, sign: Sign) -> bool {
        let Some(end) = self.tlp.end.filter(|&end| una >= end) else { return false };
        let repaired = self.tlp.is_again && !sign.dsack && una > end;
        // A plain duplicate: both copies arrived.
        if !self.tlp.is_again || sign.dsack || una > end || sign.is_plain_duplicate {
            self.tlp.end = None;
        }
        repaired
    }
}

/// The signs of an ACK for a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    /// It reports that the probe came twice.
    pub dsack: bool,
    pub is_plain_duplicate: bool,
}
