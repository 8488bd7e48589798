//! Explicit congestion notification (RFC 3168): agreed on in the handshake, marks echoed until the
//! sender says that it has made its window smaller, or as they come (RFC 8257 §3.2). What a mark means
//! for the window is `recovery`.

use crate::segment::{Flags, Segment};
use crate::settings::{Capable, Ecn, Feedback, Settings};

/// What the two ends know of marks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Both ends understand them.
    pub agreed: bool,
    /// A mark arrived, and the sender has not said that it knows.
    echoes: bool,
    /// Some packet could have been marked.
    seen: bool,
}

/// What a segment with data says that is to be acknowledged soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// The window may be very small: a first mark; or something was probably sent again.
    pub marked: bool,
    /// The window was made smaller.
    pub reduced: bool,
    /// Marks begin or end, and that is to be told at once.
    pub changed: bool,
}

impl Marks {
    /// Takes the peer's SYN or SYN-ACK (§6.1.1).
    pub fn on_syn(&mut self, segment: &Segment, setting: Ecn) {
        let flags = segment.flags;
        let is_setup = flags.has(Flags::ECE) && !flags.has(Flags::CWR);
        self.agreed = if flags.has(Flags::ACK) {
            setting == Ecn::Asks && is_setup
        } else {
            setting != Ecn::Off && flags.has(Flags::ECE.with(Flags::CWR))
        };
    }

    /// The flags of our SYN after so many of them. One that is repeated does not ask: what drops those
    /// that do would drop it, too (§6.1.1.1).
    pub fn of_syn(settings: &Settings, sent: u32) -> Flags {
        if settings.ecn == Ecn::Asks && sent == 0 {
            Flags::ECE.with(Flags::CWR).with(capable(settings))
        } else {
            Flags::NONE
        }
    }

    /// The flags of our SYN-ACK.
    pub fn of_answer(self, settings: &Settings) -> Flags {
        if self.agreed { Flags::ECE.with(capable(settings)) } else { Flags::NONE }
    }

    /// Whether the peer says that its data was marked (§6.1.2).
    #[inline]
    pub fn is_echo(self, segment: &Segment) -> bool {
        self.agreed && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN)
    }

    /// Takes a segment, of which data counts (§6.1.3). A mark on the one that says that the window is smaller is a
    /// new one.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, settings: &Settings) -> Said {
        if !self.agreed || segment.payload == 0 {
            return Said::default();
        }
        let reduced = segment.flags.has(Flags::CWR);
        if settings.feedback == Feedback::Changes {
            let changed = self.changes(segment, settings);
            self.echoes ^= changed;
            return Said { changed, reduced, marked: false };
        }
        self.echoes &= !reduced;
        // What could not be marked was probably sent again (`__tcp_ecn_check_ce`).
        let mut marked = self.seen && !segment.flags.has(Flags::ECT);
        if segment.flags.has(Flags::CE) {
            marked = !self.echoes;
            self.echoes = true;
        }
        self.seen |= segment.flags.has(Flags::ECT);
        Said { marked, reduced, changed: false }
    }

    /// Whether this segment begins or ends marks, and that is to be told (RFC 8257 §3.2).
    #[inline]
    pub fn changes(self, segment: &Segment, settings: &Settings) -> bool {
        settings.feedback == Feedback::Changes
            && self.agreed
            && segment.payload > 0
            && segment.flags.has(Flags::ECT)
            && segment.flags.has(Flags::CE) != self.echoes
    }

    /// The flags of all that is sent: while a mark is echoed (§6.1.3), and where all can be marked.
    #[inline]
    pub fn of_any(self, settings: &Settings) -> Flags {
        let echo = if self.echoes { Flags::ECE } else { Flags::NONE };
        if self.agreed { echo.with(capable(settings)) } else { echo }
    }

    /// The flags of data that leaves for the first time: it can be marked, and it tells that the window
    /// was made smaller if that is owed (§6.1.2; of ACKs and what is sent again §6.1.4, §6.1.5).
    #[inline]
    pub fn of_new_data(self, owes_cwr: &mut bool) -> Flags {
        match (self.agreed, std::mem::take(owes_cwr)) {
            (false, _) => Flags::NONE,
            (true, false) => Flags::ECT,
            (true, true) => Flags::ECT.with(Flags::CWR),
        }
    }
}

/// What any packet is that is sent where all can be marked.
#[inline]
fn capable(settings: &Settings) -> Flags {
    match settings.capable {
        Capable::NewData => Flags::NONE,
        Capable::All => Flags::ECT,
    }
}
