//! What the application of a flow does: how much it writes, and when.

use tcplab_engine::TimerId;
use tcplab_model::Traffic;
use tcplab_tcp::Endpoint;
use tcplab_units::{Duration, Time};

/// Bytes kept ready for an endpoint that has not sent them. An application that writes further ahead
/// could not stop when its time is over.
const READY: u64 = 1 << 17;

/// A flow: its application, and what has arrived of it.
pub(crate) struct Flow {
    pub source: Source,
    /// When it begins.
    pub start: Time,
    pub has_started: bool,
    /// Fires when the application starts, or turns on or off.
    pub timer: TimerId,
    pub received: u64,
    pub last_arrival: Time,
}

impl Flow {
    /// All that was to be sent has arrived.
    pub fn is_complete(&self) -> bool {
        self.source.size.is_some_and(|size| self.received >= size)
    }
}

/// The sending application of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Bytes still to be written; `u64::MAX` is without end.
    left: u64,
    /// Total bytes, if it has a size.
    pub size: Option<u64>,
    /// When it writes, from the flow's start; the last period first. None is always.
    periods: Option<Vec<(Duration, Duration)>>,
    is_on: bool,
}

impl Source {
    pub fn new(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::Bulk(bulk) => {
                let size = bulk.size.map(|size| size.0);
                Self { left: size.unwrap_or(u64::MAX), size, periods: None, is_on: true }
            }
            Traffic::OnOff(times) => {
                let periods = times.periods.iter().rev().copied().collect();
                Self { left: u64::MAX, size: None, periods: Some(periods), is_on: false }
            }
            _ => unreachable!("a plan with other traffic is refused"),
        }
    }

    /// Whether it writes now.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Turns on or off what is due, and tells when the next change is.
    pub fn switch(&mut self, now: Time, start: Time) -> Time {
        let Some(periods) = &mut self.periods else { return Time::NEVER };
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

    /// Writes what the endpoint may need next, or closes when all is written. Says whether that gave the
    /// endpoint something to send: it is to do so before the next call, as a kernel sends what it can
    /// before a program gets to say that there is no more.
    #[inline]
    pub fn write(&mut self, end: &mut Endpoint) -> bool {
        if !self.is_on {
            return false;
        }
        if self.left == 0 {
            self.is_on = false;
            end.close();
            return true;
        }
        // One that need not stop leaves it to the send buffer to hold it back, if that does so.
        let ahead = (self.periods.is_some() || !end.paces_writer()).then_some(READY);
        let written = end.write_ahead(self.left, ahead);
        if self.left != u64::MAX {
            self.left -= written;
        }
        written > 0
    }
}
