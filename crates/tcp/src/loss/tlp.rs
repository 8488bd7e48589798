//! The state of a tail loss probe (RFC 8985 §7).

use super::Loss;

/// The probe under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// `TLP.end_seq`: what had been sent with the last probe ends here.
    pub(super) end: Option<u64>,
    /// The probe was a retransmission.
    pub(super) is_retransmission: bool,
    /// Segments outstanding when it left.
    flight: u64,
    /// A probe is to leave.
    pending: bool,
    /// Segments of new data that it may have beside those that left.
    segments_left: u64,
    /// The last of these is marked as pushed.
    push: bool,
}

impl TailProbe {
    /// Whether a probe is to leave, or more of one.
    #[inline]
    pub fn is_probe_pending(&self) -> bool {
        self.pending || self.segments_left > 0
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
    pub fn is_probe_pending(&self) -> bool {
        self.tlp.is_probe_pending()
    }

    /// A probe is to leave, unless one is under way. Says whether it is.
    pub fn request_probe(&mut self) -> bool {
        let owes = self.tlp.end.is_none();
        self.tlp.pending |= owes;
        owes
    }

    /// Whether a new probe is to leave; it is taken.
    pub fn take_pending_probe(&mut self) -> bool {
        std::mem::take(&mut self.tlp.pending)
    }

    /// The probe has so many segments of new data, and the last of them is pushed or not.
    pub fn set_probe_size(&mut self, segments: u64, push: bool) {
        (self.tlp.segments_left, self.tlp.push) = (segments - 1, push);
    }

    /// A probe leaves that ends at `end`; `is_retransmission`: as a retransmission.
    pub fn note_probe(&mut self, end: u64, is_retransmission: bool) {
        self.tlp.is_retransmission = is_retransmission;
        self.tlp.flight = self.scoreboard.outstanding();
        self.tlp.end = Some(end);
    }

    /// Another segment of the probe leaves, which is full or not. Says whether it is the last one
    /// and is pushed.
    pub fn note_probe_segment(&mut self, end: Option<u64>, is_full: bool) -> bool {
        let left = self.tlp.segments_left - 1;
        self.tlp.segments_left = if is_full { left } else { 0 };
        self.tlp.end = end.or(self.tlp.end);
        self.tlp.segments_left == 0 && self.tlp.push
    }

    /// The segments outstanding when the probe left.
    pub fn probe_flight(&self) -> u64 {
        self.tlp.flight
    }

    /// No probe is under way any more.
    pub fn forget_probe(&mut self) {
        self.tlp.end = None;
    }

    /// The meaning of an ACK for the probe (RFC 8985 §7.4.2). Says whether the probe repaired a
    /// loss, which is a sign of congestion like others.
    pub fn process_tlp_ack(&mut self, una: u64, sign: ProbeSigns) -> bool {
        let Some(end) = self.tlp.end.filter(|&end| una >= end) else { return false };
        let repaired = self.tlp.is_retransmission && !sign.dsack && una > end;
        // A plain duplicate: both copies arrived.
        if !self.tlp.is_retransmission || sign.dsack || una > end || sign.is_plain_duplicate {
            self.tlp.end = None;
        }
        repaired
    }
}

/// The signs of an ACK for a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeSigns {
    /// The ACK reports the probe as a duplicate.
    pub dsack: bool,
    pub is_plain_duplicate: bool,
}
