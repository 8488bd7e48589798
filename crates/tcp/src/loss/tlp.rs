//! The state of a tail loss probe (RFC 8985 §7).

use super::Loss;

/// The state of a tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// `TLP.end_seq`: SND.NXT when the probe left; none if no probe is outstanding.
    pub(super) end: Option<u64>,
    /// The probe was a retransmission.
    pub(super) is_retransmission: bool,
    /// Segments outstanding when the probe left.
    flight: u64,
    /// A probe is due.
    pending: bool,
    /// Further segments of new data that belong to the probe.
    segments_left: u64,
    /// The last of these is pushed.
    push: bool,
}

impl TailProbe {
    /// Whether a probe, or another segment of one, is due.
    #[inline]
    pub fn is_tlp_pending(&self) -> bool {
        self.pending || self.segments_left > 0
    }

    /// No probe, and no further segment of one, is due any more.
    pub fn clear_pending(&mut self) {
        (self.pending, self.segments_left) = (false, 0);
    }
}

impl Loss {
    /// Whether a probe is outstanding.
    #[inline]
    pub fn has_probe(&self) -> bool {
        self.tlp.end.is_some()
    }

    /// Whether the outstanding probe ends at `end`.
    #[inline]
    pub fn is_probe_end(&self, end: u64) -> bool {
        self.tlp.end == Some(end)
    }

    /// Whether a probe, or another segment of one, is due.
    #[inline]
    pub fn is_tlp_pending(&self) -> bool {
        self.tlp.is_tlp_pending()
    }

    /// Makes a probe due, unless one is outstanding. Returns whether it does.
    pub fn request_probe(&mut self) -> bool {
        let may_probe = self.tlp.end.is_none();
        self.tlp.pending |= may_probe;
        may_probe
    }

    /// Whether a new probe is due; it leaves now.
    pub fn take_pending_probe(&mut self) -> bool {
        std::mem::take(&mut self.tlp.pending)
    }

    /// The probe consists of `segments` segments of new data. `push`: the last one is pushed.
    pub fn set_probe_size(&mut self, segments: u64, push: bool) {
        (self.tlp.segments_left, self.tlp.push) = (segments - 1, push);
    }

    /// A probe that ends at `end` leaves. `is_retransmission`: it is no new data.
    pub fn note_probe(&mut self, end: u64, is_retransmission: bool) {
        self.tlp.is_retransmission = is_retransmission;
        self.tlp.flight = self.scoreboard.outstanding();
        self.tlp.end = Some(end);
    }

    /// Another segment of the probe leaves. Returns whether it is the last one and is pushed.
    pub fn note_probe_segment(&mut self, end: Option<u64>, is_full: bool) -> bool {
        let left = self.tlp.segments_left - 1;
        self.tlp.segments_left = if is_full { left } else { 0 };
        self.tlp.end = end.or(self.tlp.end);
        self.tlp.segments_left == 0 && self.tlp.push
    }

    /// Segments outstanding when the probe left.
    pub fn probe_flight(&self) -> u64 {
        self.tlp.flight
    }

    /// No probe is outstanding any more.
    pub fn forget_probe(&mut self) {
        self.tlp.end = None;
    }

    /// Processes an ACK while a probe is outstanding (RFC 8985 §7.4.2). Returns whether the probe
    /// repaired a loss, which calls for a congestion response.
    pub fn process_tlp_ack(&mut self, una: u64, sign: ProbeSigns) -> bool {
        let Some(end) = self.tlp.end.filter(|&end| una >= end) else { return false };
        let repaired = self.tlp.is_retransmission && !sign.dsack && una > end;
        // A plain duplicate ACK: original and probe were both delivered.
        if !self.tlp.is_retransmission || sign.dsack || una > end || sign.is_plain_duplicate {
            self.tlp.end = None;
        }
        repaired
    }
}

/// The signs in an ACK for an outstanding probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeSigns {
    /// The ACK reports the probe as a duplicate.
    pub dsack: bool,
    pub is_plain_duplicate: bool,
}
