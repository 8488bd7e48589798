//! A program that sends, and one that receives.

use super::{Stream, Writing};
use tcplab_units::{Duration, Time};

/// A program that sends a given amount or without end, either always or in on periods.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    /// Bytes still to be written; `u64::MAX` is without end.
    left: u64,
    /// The bytes of each call and those left of the current call; 0 if there is only one call.
    piece: u64,
    in_piece: u64,
    /// The on periods, from the flow's start, with the last period first; `None` is always on.
    periods: Option<Vec<(Duration, Duration)>>,
    is_on: bool,
}

impl Send {
    /// Sends as fast as possible once it has begun.
    pub fn bulk(size: Option<u64>) -> Self {
        let left = size.unwrap_or(u64::MAX);
        Self { left, piece: 0, in_piece: 0, periods: None, is_on: false }
    }

    /// The same, in calls of so many bytes.
    pub fn in_pieces(size: Option<u64>, piece: u64) -> Self {
        Self { piece, ..Self::bulk(size) }
    }

    /// Whether the program writes in calls of a fixed size, from its own memory.
    pub fn is_in_pieces(&self) -> bool {
        self.piece > 0
    }

    /// Whether the next write begins a new call.
    pub fn is_between_calls(&self) -> bool {
        self.is_in_pieces() && self.in_piece == 0
    }

    /// Sends during these periods.
    pub fn on_off(periods: &[(Duration, Duration)]) -> Self {
        let periods = periods.iter().rev().copied().collect();
        Self { periods: Some(periods), ..Self::bulk(None) }
    }

    /// Whether the program is on.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Switches on or off as due, when the flow begins or a change is due. Returns the time of the
    /// next change.
    pub fn switch(&mut self, now: Time, start: Time) -> Time {
        let Some(periods) = &mut self.periods else {
            self.is_on = true;
            return Time::NEVER;
        };
        while periods.last().is_some_and(|&(_, until)| start + until <= now) {
            periods.pop();
        }
        let Some(&(from, until)) = periods.last() else {
            self.is_on = false;
            return Time::NEVER;
        };
        self.is_on = start + from <= now;
        if self.is_on { start + until } else { start + from }
    }

    /// Writes what the connection may need next, or closes once everything is written. Returns
    /// whether the connection got something to send. The connection must send it before the next
    /// call, as a kernel sends what it can before a program reports the end of its data.
    #[inline]
    pub fn act(&mut self, stream: &mut impl Stream) -> bool {
        if !self.is_on {
            return false;
        }
        if self.left == 0 {
            self.is_on = false;
            stream.finish();
            return true;
        }
        let written = if self.piece > 0 {
            self.write_piece(stream)
        } else {
            let how = if self.periods.is_some() { Writing::MayStop } else { Writing::Whole };
            stream.write(self.left, how)
        };
        if self.left != u64::MAX {
            self.left -= written;
        }
        written > 0
    }

    /// Continues a call, or begins the next one.
    #[inline(never)]
    fn write_piece(&mut self, stream: &mut impl Stream) -> u64 {
        if self.in_piece == 0 {
            self.in_piece = self.piece.min(self.left);
        }
        let written = stream.write(self.in_piece, Writing::Piece);
        self.in_piece -= written;
        written
    }
}

/// A program that reads everything that arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Receive {
    /// Bytes read.
    pub received: u64,
    /// When the last byte arrived.
    pub last_arrival: Time,
}

impl Receive {
    /// Reads all available bytes. Returns whether there were any.
    #[inline]
    pub fn act(&mut self, now: Time, stream: &mut impl Stream) -> bool {
        let bytes = stream.read(now, u64::MAX);
        if bytes > 0 {
            self.received += bytes;
            self.last_arrival = now;
        }
        bytes > 0
    }
}
