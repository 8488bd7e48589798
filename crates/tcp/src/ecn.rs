//! Explicit congestion notification (RFC 3168): agreed on in the handshake, marks echoed until the
//! sender says that it has made its window smaller, or as they come (RFC 8257 §3.2). The sender's
//! `recovery` reduces the window for a mark. `accurate_ecn` has the feedback of RFC 9768.

use crate::accurate_ecn::{AccurateEcn, bits_of};
use crate::segment::{Flags, Segment};
use crate::settings::{Capable, Ecn, Feedback, Settings};

/// The state of ECN at one end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnState {
    /// Both ends understand them.
    pub agreed: bool,
    /// A mark arrived, and the sender has not said that it knows.
    echoes_ce: bool,
    /// Some packet could have been marked.
    ect_seen: bool,
    /// Where both ends count.
    counts: Option<AccurateEcn>,
}

/// The report of marks in an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The ECE flag: the acknowledged data was marked, or was not.
    Echo(bool),
    /// The last three bits of the count of marked packets.
    Count(u8),
}

/// The signs in a data segment that concern its ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EcnSigns {
    /// Quick ACKs are due: the first CE mark arrived, or a segment that is not ECN-capable, which
    /// is probably a retransmission.
    pub marked: bool,
    /// The window was made smaller.
    pub reduced: bool,
    /// Marks begin or end, and that is to be told at once.
    pub changed: bool,
}

impl EcnState {
    /// Takes the peer's SYN or SYN-ACK (§6.1.1).
    pub fn on_syn(&mut self, segment: &Segment, settings: &Settings) {
        let (flags, setting) = (segment.flags, settings.ecn);
        if settings.feedback == Feedback::Accurate && setting != Ecn::Off {
            // RFC 9768 §3.1.1, table 2, and §3.1.3: nothing, a classic peer, and flags that came
            // back as they were sent are known; all else means that both count.
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

    /// The flags of our SYN after so many of them. One that is repeated does not ask: what drops
    /// those that do would drop it, too (§6.1.1.1).
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

    /// The peer's report of marks on our data (§6.1.2).
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

    /// The peer's report on our SYN-ACK, which the segment acknowledges.
    pub fn on_first_ack(&mut self, segment: &Segment) {
        if let Some(counts) = &mut self.counts {
            counts.on_first_ack(segment);
        }
    }

    /// How many of the segments that an ACK delivers were marked, where both ends count.
    #[inline]
    pub fn newly_marked(&mut self, report: Report, delivered: u64) -> u64 {
        match (report, &mut self.counts) {
            // An ACK that brings no news may be older than the last (RFC 9768 §3.2.2.2).
            (Report::Count(bits), Some(counts)) if delivered > 0 => {
                counts.newly_marked(bits, delivered)
            }
            _ => 0,
        }
    }

    /// A packet arrived after the handshake. Says whether its marks are to be told at once.
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

    /// Takes a segment, of which data counts (§6.1.3). A mark on the one that says that the window
    /// is smaller is a new one.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, settings: &Settings) -> EcnSigns {
        if !self.agreed || segment.payload == 0 {
            return EcnSigns::default();
        }
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
        // Data that could not be marked was probably retransmitted (`__tcp_ecn_check_ce`).
        let mut marked = self.ect_seen && !segment.flags.has(Flags::ECT);
        if segment.flags.has(Flags::CE) {
            marked = !self.echoes_ce;
            self.echoes_ce = true;
        }
        self.ect_seen |= segment.flags.has(Flags::ECT);
        EcnSigns { marked, reduced, changed: false }
    }

    /// Whether this segment begins or ends marks, and that is to be told (RFC 8257 §3.2).
    #[inline]
    pub fn ce_state_changes(&self, segment: &Segment, settings: &Settings) -> bool {
        settings.feedback == Feedback::Changes
            && self.agreed
            && segment.payload > 0
            && segment.flags.has(Flags::ECT)
            && segment.flags.has(Flags::CE) != self.echoes_ce
    }

    /// The flags of all that is sent: while a mark is echoed (§6.1.3), and where all can be marked.
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

    /// The flags of an ACK without data.
    #[inline]
    pub fn ack_flags(&self, settings: &Settings) -> Flags {
        match self.counts {
            Some(counts) if self.agreed => counts.ack_flags().with(capable(settings)),
            _ => self.segment_flags(settings),
        }
    }

    /// The flags of data that leaves for the first time: it can be marked, and it tells that the
    /// window was made smaller if that is owed (§6.1.2; of ACKs and what is sent again §6.1.4,
    /// §6.1.5).
    #[inline]
    pub fn new_data_flags(&self, take_cwr: impl FnOnce() -> bool) -> Flags {
        if !self.agreed {
            return Flags::NONE;
        }
        let owes_cwr = take_cwr() && self.counts.is_none();
        Flags::ECT.with(if owes_cwr { Flags::CWR } else { Flags::NONE })
    }
}

/// The ECT flags of every packet, where all packets can be marked.
#[inline]
fn capable(settings: &Settings) -> Flags {
    match settings.capable {
        Capable::NewData => Flags::NONE,
        Capable::All => Flags::ECT,
        Capable::AllScalable => Flags::ECT.with(Flags::ECT1),
    }
}
