//! Explicit congestion notification (RFC 3168). Negotiated in the handshake. The receiver echoes CE
//! marks until the sender reports a reduced window (CWR), or as they arrive (RFC 8257 §3.2). The
//! sender's `recovery` reduces the window for a mark. `accurate_ecn` has the feedback of RFC 9768.

use crate::accurate_ecn::{AccurateEcn, bits_of};
use crate::segment::{Flags, Segment};
use crate::settings::{Capable, Ecn, Feedback, Settings};

/// The ECN state of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnState {
    /// Both ends negotiated ECN.
    pub agreed: bool,
    /// A CE mark arrived, and is echoed until CWR.
    echoes_ce: bool,
    /// An ECN-capable packet arrived (`TCP_ECN_SEEN`).
    ect_seen: bool,
    /// Accurate ECN, if both ends negotiated it.
    counts: Option<AccurateEcn>,
}

/// The ECN feedback of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The ECE flag: whether the acknowledged data was marked.
    Echo(bool),
    /// The last three bits of the receiver's count of marked packets.
    Count(u8),
}

/// The ECN signs of a data segment that concern its ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EcnSigns {
    /// Quick ACKs are due: the first CE mark arrived, or data that is not ECN-capable, which is
    /// probably a retransmission.
    pub marked: bool,
    /// The sender has reduced its window (CWR).
    pub reduced: bool,
    /// CE marks begin or end, and the change is to be reported at once.
    pub changed: bool,
}

impl EcnState {
    /// Negotiates by the peer's SYN or SYN-ACK (§6.1.1).
    pub fn on_syn(&mut self, segment: &Segment, settings: &Settings) {
        let (flags, setting) = (segment.flags, settings.ecn);
        if settings.feedback == Feedback::Accurate && setting != Ecn::Off {
            // RFC 9768 §3.1.1, table 2, and §3.1.3: no flags, classic ECN, and reflected flags
            // exclude accurate ECN; all other combinations mean that both ends use it.
            let has_asked = flags.has(Flags::ACK);
            let others = if has_asked { [0, 0b001, 0b111] } else { [0, 0b011, 0b011] };
            let both_count =
                !others.contains(&bits_of(flags)) && (!has_asked || setting == Ecn::Asks);
            if both_count {
                self.counts = Some(AccurateEcn::new(segment));
                self.agreed = true;
                return;
            }
        }
        let is_setup = flags.has(Flags::ECE) && !flags.has(Flags::CWR);
        self.agreed = if flags.has(Flags::ACK) {
            setting == Ecn::Asks && is_setup
        } else {
            setting != Ecn::Off && flags.has(Flags::ECE.with(Flags::CWR))
        };
    }

    /// The flags of our SYN, after `sent` of them. A retransmitted SYN does not ask for ECN: a path
    /// that drops ECN-setup SYNs would drop it, too (§6.1.1.1).
    pub fn syn_flags(settings: &Settings, sent: u32) -> Flags {
        let flags = Flags::ECE.with(Flags::CWR).with(capable(settings));
        match (settings.ecn, settings.feedback) {
            // RFC 9768 §3.1.4.1: it asks once more.
            (Ecn::Asks, Feedback::Accurate) if sent <= 1 => flags.with(Flags::AE),
            (Ecn::Asks, Feedback::Classic | Feedback::Changes) if sent == 0 => flags,
            _ => Flags::NONE,
        }
    }

    /// The flags of our SYN-ACK.
    pub fn syn_ack_flags(&self, settings: &Settings) -> Flags {
        let flags = match self.counts {
            Some(counts) => counts.syn_ack_flags(),
            None => Flags::ECE,
        };
        if self.agreed { flags.with(capable(settings)) } else { Flags::NONE }
    }

    /// The ECN feedback on our data in an ACK (§6.1.2).
    #[inline]
    pub fn report(&self, segment: &Segment) -> Report {
        if !self.agreed || segment.flags.has(Flags::SYN) {
            Report::Echo(false)
        } else if self.counts.is_some() {
            Report::Count(bits_of(segment.flags))
        } else {
            Report::Echo(segment.flags.has(Flags::ECE))
        }
    }

    /// The peer's feedback on our SYN-ACK, in the ACK of it.
    pub fn on_first_ack(&mut self, segment: &Segment) {
        if let Some(counts) = &mut self.counts {
            counts.on_first_ack(segment);
        }
    }

    /// How many of the segments that an ACK delivers were marked, with accurate ECN.
    #[inline]
    pub fn newly_marked(&mut self, report: Report, delivered: u64) -> u64 {
        match (report, &mut self.counts) {
            // An ACK that delivers nothing may be older than the last one (RFC 9768 §3.2.2.2).
            (Report::Count(bits), Some(counts)) if delivered > 0 => {
                counts.newly_marked(bits, delivered)
            }
            _ => 0,
        }
    }

    /// A packet arrived after the handshake. Returns whether its marks are to be reported at once.
    #[inline]
    pub fn on_packet(&mut self, segment: &Segment) -> bool {
        self.counts.as_mut().is_some_and(|counts| counts.on_packet(segment))
    }

    /// A segment left.
    #[inline]
    pub fn on_segment_sent(&mut self) {
        if let Some(counts) = &mut self.counts {
            counts.on_segment_sent();
        }
    }

    /// Processes the ECN flags of a data segment (§6.1.3). A CE mark on a segment with CWR is a new
    /// one.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, settings: &Settings) -> EcnSigns {
        if !self.agreed || segment.payload == 0 {
            return EcnSigns::default();
        }
        self.on_capable_segment(segment, settings)
    }

    /// The same on a connection with ECN.
    #[inline(never)]
    fn on_capable_segment(&mut self, segment: &Segment, settings: &Settings) -> EcnSigns {
        if let Some(counts) = &self.counts {
            return EcnSigns { changed: counts.must_report_now(), ..EcnSigns::default() };
        }
        let reduced = segment.flags.has(Flags::CWR);
        if settings.feedback == Feedback::Changes {
            let changed = self.ce_state_changes(segment, settings);
            self.echoes_ce ^= changed;
            return EcnSigns { changed, reduced, marked: false };
        }
        self.echoes_ce &= !reduced;
        // Data that is not ECN-capable is probably a retransmission (`__tcp_ecn_check_ce`).
        let mut marked = self.ect_seen && !segment.flags.has(Flags::ECT);
        if segment.flags.has(Flags::CE) {
            marked = !self.echoes_ce;
            self.echoes_ce = true;
        }
        self.ect_seen |= segment.flags.has(Flags::ECT);
        EcnSigns { marked, reduced, changed: false }
    }

    /// Whether the CE state changes with this segment, and the change is to be reported (RFC 8257
    /// §3.2).
    #[inline]
    pub fn ce_state_changes(&self, segment: &Segment, settings: &Settings) -> bool {
        settings.feedback == Feedback::Changes
            && self.agreed
            && segment.payload > 0
            && segment.flags.has(Flags::ECT)
            && segment.flags.has(Flags::CE) != self.echoes_ce
    }

    /// The ECN flags of every segment: ECE while marks are echoed (§6.1.3), and ECT where all
    /// packets are ECN-capable.
    #[inline]
    pub fn segment_flags(&self, settings: &Settings) -> Flags {
        if !self.agreed {
            return Flags::NONE;
        }
        let echo = match self.counts {
            Some(counts) => counts.segment_flags(),
            None if self.echoes_ce => Flags::ECE,
            None => Flags::NONE,
        };
        echo.with(capable(settings))
    }

    /// The ECN flags of an ACK without data.
    #[inline]
    pub fn ack_flags(&self, settings: &Settings) -> Flags {
        match self.counts {
            Some(counts) if self.agreed => counts.ack_flags().with(capable(settings)),
            _ => self.segment_flags(settings),
        }
    }

    /// The ECN flags of data that leaves for the first time: ECT, and CWR if it is pending (§6.1.2;
    /// pure ACKs and retransmissions carry neither, §6.1.4, §6.1.5).
    #[inline]
    pub fn new_data_flags(&self, take_cwr: impl FnOnce() -> bool) -> Flags {
        if !self.agreed {
            return Flags::NONE;
        }
        let owes_cwr = take_cwr() && self.counts.is_none();
        Flags::ECT.with(if owes_cwr { Flags::CWR } else { Flags::NONE })
    }
}

/// The ECT flags of every packet, where all packets are ECN-capable.
#[inline]
fn capable(settings: &Settings) -> Flags {
    match settings.capable {
        Capable::NewData => Flags::NONE,
        Capable::All => Flags::ECT,
        Capable::AllScalable => Flags::ECT.with(Flags::ECT1),
    }
}
