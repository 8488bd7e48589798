//! Request and response over one connection.

use super::{Stream, Writing};
use tcplab_units::Time;

/// The result of an attempt to make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The connection may have something to send, which must leave before the program continues.
    Acted,
    /// The program waits for the connection or its timer, or has finished.
    Waits,
    /// The response has arrived in full.
    Answered,
    /// The request has arrived in full, and the server takes time to respond.
    Asked,
    /// The other end has closed too early.
    Broken,
}

/// The client program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ask {
    /// Bytes of the request still to be written, and of the response still to come.
    asking: u64,
    awaiting: u64,
    has_asked: bool,
    has_finished: bool,
    /// Bytes received of the current response.
    pub received: u64,
    /// When the last byte arrived.
    pub last_arrival: Time,
}

impl Ask {
    /// Begins the next exchange, with a request and a response of these sizes.
    pub fn begin(&mut self, request: u64, response: u64) {
        *self = Self { asking: request, awaiting: response, has_asked: true, ..Self::default() };
    }

    /// Whether the next step is a write.
    pub fn writes(&self) -> bool {
        self.asking > 0
    }

    /// Sends no more requests.
    pub fn finish(&mut self) {
        (self.has_asked, self.has_finished) = (false, true);
    }

    /// Makes as much progress as possible at once.
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

/// The server program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// Bytes of each request.
    request: u64,
    /// Bytes of the next response.
    response: u64,
    /// Bytes of the current request that have arrived.
    received: u64,
    /// Bytes of the current response that are not written yet.
    unsent: u64,
    /// Whether the server takes time before it responds.
    is_slow: bool,
    /// Whether the server waits for requests in a call of its own, which also checks for buffer
    /// space (`poll`).
    polls: bool,
    has_closed: bool,
}

impl Answer {
    /// A server for requests of this size. If `is_slow`, it responds when told to.
    pub fn to(request: u64, response: u64, is_slow: bool) -> Self {
        Self { request, response, is_slow, ..Self::default() }
    }

    /// The same, with a separate call that waits for each request.
    pub fn polling(self) -> Self {
        Self { polls: true, ..self }
    }

    /// Sets the sizes of the next request and response.
    pub fn expect(&mut self, request: u64, response: u64) {
        (self.request, self.response) = (request, response);
    }

    /// Whether the next step is a write.
    pub fn writes(&self) -> bool {
        self.unsent > 0
    }

    /// Begins the response, whose time has come.
    pub fn begin(&mut self) {
        self.unsent = self.response;
    }

    /// Makes as much progress as possible at once.
    pub fn act(&mut self, now: Time, stream: &mut impl Stream) -> Step {
        if self.unsent > 0 {
            let written = stream.write(self.unsent, Writing::Whole);
            self.unsent -= written;
            return if written > 0 { Step::Acted } else { Step::Waits };
        }
        let read = stream.read(now, self.request - self.received);
        self.received += read;
        if self.received == self.request {
            self.received = 0;
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
        if self.polls && self.received == 0 {
            stream.on_poll();
        }
        Step::Waits
    }
}
