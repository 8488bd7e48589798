//! One end asks, the other one answers, over the same connection.

use super::{Stream, Writing};
use tcplab_units::Time;

/// What became of an attempt to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The connection may have something to send, which leaves before the program goes on.
    Acted,
    /// It waits for the connection, for its time, or for nothing more.
    Waits,
    /// All of the answer has arrived.
    Answered,
    /// All of the question has arrived, and the answer takes its time.
    Asked,
    /// The other end has finished before its time.
    Broken,
}

/// A program that asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ask {
    /// Bytes of the question that are still to be written, and of the answer that are still to come.
    asking: u64,
    awaiting: u64,
    has_asked: bool,
    has_finished: bool,
    /// Bytes of the present answer.
    pub received: u64,
    /// When the last of them arrived.
    pub last_arrival: Time,
}

impl Ask {
    /// Asks next, with so many bytes, and expects so many.
    pub fn begin(&mut self, request: u64, response: u64) {
        *self = Self { asking: request, awaiting: response, has_asked: true, ..Self::default() };
    }

    /// Whether it writes next.
    pub fn writes(&self) -> bool {
        self.asking > 0
    }

    /// Asks no more.
    pub fn finish(&mut self) {
        (self.has_asked, self.has_finished) = (false, true);
    }

    /// Goes on as far as it can at once.
    pub fn act(&mut self, now: Time, stream: &mut impl Stream) -> Step {
        if self.asking > 0 {
            let written = stream.write(self.asking, Writing::Whole);
            self.asking -= written;
            return if written > 0 { Step::Acted } else { Step::Waits };
        }
        let most = if self.has_finished { u64::MAX } else { self.awaiting };
        let read = stream.read(now, most);
        if read > 0 && self.has_asked {
            self.received += read;
            self.last_arrival = now;
            self.awaiting -= read;
        }
        if self.has_asked && self.awaiting == 0 {
            self.has_asked = false;
            return Step::Answered;
        }
        match (read > 0, self.has_asked && stream.is_at_end()) {
            (true, _) => Step::Acted,
            (false, true) => {
                self.has_asked = false;
                Step::Broken
            }
            (false, false) => Step::Waits,
        }
    }
}

/// A program that answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// Bytes of each question.
    request: u64,
    /// Bytes of the answer to the next one.
    response: u64,
    heard: u64,
    answering: u64,
    /// An answer takes some time before it begins.
    is_slow: bool,
    /// It waits for questions in a call of its own, which looks for room as well (`poll`).
    polls: bool,
    has_closed: bool,
}

impl Answer {
    /// Waits for questions of this size. If `is_slow`, it is told when to answer.
    pub fn to(request: u64, response: u64, is_slow: bool) -> Self {
        Self { request, response, is_slow, ..Self::default() }
    }

    /// The same, and each question is waited for in a call of its own.
    pub fn polling(self) -> Self {
        Self { polls: true, ..self }
    }

    /// The next question and its answer have these sizes.
    pub fn expect(&mut self, request: u64, response: u64) {
        (self.request, self.response) = (request, response);
    }

    /// Whether it writes next.
    pub fn writes(&self) -> bool {
        self.answering > 0
    }

    /// The time of the answer has come.
    pub fn begin(&mut self) {
        self.answering = self.response;
    }

    /// Goes on as far as it can at once.
    pub fn act(&mut self, now: Time, stream: &mut impl Stream) -> Step {
        if self.answering > 0 {
            let written = stream.write(self.answering, Writing::Whole);
            self.answering -= written;
            return if written > 0 { Step::Acted } else { Step::Waits };
        }
        let read = stream.read(now, self.request - self.heard);
        self.heard += read;
        if self.heard == self.request {
            self.heard = 0;
            if self.is_slow {
                return Step::Asked;
            }
            self.begin();
            return Step::Acted;
        }
        if read == 0 && stream.is_at_end() && !self.has_closed {
            self.has_closed = true;
            stream.finish();
            return Step::Acted;
        }
        if read > 0 {
            return Step::Acted;
        }
        if self.polls && self.heard == 0 {
            stream.look();
        }
        Step::Waits
    }
}
