//! What the sending half sends next.

use crate::recovery::Phase;
use crate::sender::Sender;
use crate::settings::Settings;
use tcplab_units::Time;

/// Data to be put into a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub start: u64,
    pub payload: u16,
    pub fin: bool,
    pub again: bool,
}

impl Sender {
    /// Offsets up to which data exists to be sent, the FIN included.
    #[inline]
    fn end_of_stream(&self) -> u64 {
        self.written + u64::from(self.closed)
    }

    /// Bytes written and never sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.nxt)
    }

    /// The next segment with data, if there is one and it may leave; it counts as sent. New data leaves
    /// room for this many bytes of further options (RFC 6691).
    #[inline]
    pub fn next_data(&mut self, now: Time, settings: &Settings, options: u64) -> Option<Data> {
        if self.nxt == self.una && self.nxt >= self.end_of_stream() {
            return None;
        }
        let in_flight = self.in_flight();
        let Some(data) = self.choose(now, in_flight, settings, options) else {
            self.note_use_of_window(in_flight);
            return None;
        };
        self.counters.sent_segments += 1;
        self.last_sent = now;
        self.overrides_silly_window = false;
        if data.again {
            self.counters.retransmitted_segments += 1;
            self.board.resend(now, data.start);
        } else {
            let length = data.payload + u16::from(data.fin);
            self.board.send(now, data.start, length);
            self.nxt = data.start + u64::from(length);
        }
        Some(data)
    }

    /// The window is the limit while what filled it is being acknowledged.
    #[inline]
    fn note_use_of_window(&mut self, in_flight: u64) {
        if in_flight >= self.control.cwnd {
            self.limited_until = self.nxt;
        }
        self.cwnd_limited = self.una < self.limited_until;
    }

    #[inline]
    fn choose(
        &mut self,
        now: Time,
        in_flight: u64,
        settings: &Settings,
        options: u64,
    ) -> Option<Data> {
        let has_room = in_flight < self.control.cwnd;
        if self.recovery.phase != Phase::Open {
            let owed = std::mem::take(&mut self.recovery.owes_retransmission);
            if (owed || has_room)
                && let Some(lost) = self.board.next_lost()
            {
                return Some(self.again(lost.start, lost.end()));
            }
        }
        if let Some(data) = self.new_data(now, in_flight, settings, options) {
            return Some(data);
        }
        (self.sack && self.recovery.phase == Phase::Recovery && has_room)
            .then(|| self.last_resort())
            .flatten()
    }

    /// A segment sent before, whole.
    fn again(&self, start: u64, end: u64) -> Data {
        let fin = end > self.written;
        let payload = (end - start - u64::from(fin)) as u16;
        Data { start, payload, fin, again: true }
    }

    /// Rules 3 and 4 of `NextSeg` (RFC 6675 §4): with nothing else to send, what might be lost.
    fn last_resort(&mut self) -> Option<Data> {
        if let Some(suspect) = self.board.next_suspect() {
            return Some(self.again(suspect.start, suspect.end()));
        }
        if std::mem::replace(&mut self.recovery.rescued, true) {
            return None;
        }
        self.board.last_suspect().map(|last| self.again(last.start, last.end()))
    }

    #[inline]
    fn new_data(
        &mut self,
        now: Time,
        in_flight: u64,
        settings: &Settings,
        options: u64,
    ) -> Option<Data> {
        let mss = u64::from(self.mss).saturating_sub(options).max(1);
        let available = self.unsent();
        let usable = (self.una + self.window).saturating_sub(self.nxt);
        let payload = available.min(usable).min(mss);
        // The FIN needs a place in the window like data.
        let fin =
            self.closed && payload == available && payload < usable && self.nxt <= self.written;
        let may_leave = payload >= mss || fin || self.may_send_small(payload, settings);
        if (payload == 0 && !fin) || !may_leave {
            return None;
        }
        let mut room = self.control.cwnd;
        if self.recovery.in_doubt() && !settings.limited_transmit {
            // RFC 3042 is off: what left the network out of order makes no room yet.
            room = room.saturating_sub(self.board.sacked() + self.recovery.dup_delivered());
        }
        if in_flight >= room {
            return None;
        }
        if settings.restart_after_idle && self.una == self.nxt && self.counters.sent_segments > 0 {
            let idle = now.since(self.last_sent);
            if idle > self.rtt.rto(settings) {
                self.consult(now, |cc, flow| cc.on_restart(flow, idle));
            }
        }
        Some(Data { start: self.nxt, payload: payload as u16, fin, again: false })
    }

    /// Avoids small segments: sender's silly-window avoidance (RFC 9293 §3.8.6.2.1) and Nagle.
    #[inline]
    fn may_send_small(&self, payload: u64, settings: &Settings) -> bool {
        if self.overrides_silly_window {
            return true;
        }
        if payload == self.unsent() {
            return !settings.nagle || !self.has_outstanding();
        }
        payload * 2 >= self.largest_window
    }

    /// Data waits and the window lets none of it go, with nothing under way that would open it.
    pub fn is_stuck(&self) -> bool {
        !self.has_outstanding() && self.nxt < self.end_of_stream()
    }
}
