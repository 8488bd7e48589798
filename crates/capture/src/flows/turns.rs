//! The table of turns: requests and responses, separated where the direction of new data changes.

use super::connection::{Connection, Side};
use tcplab_tables::{Table, rows};

rows! {
    /// One turn of a captured connection: data of the client, then data of the server. The next
    /// turn begins with the client's next data.
    ///
    /// Retransmissions are left out. Times are those at the capture point.
    "capture_turns" CaptureTurnRow CaptureTurnColumns {
        /// The number of the connection, as in `capture_flows`.
        connection: u64,
        /// The number of the turn in its connection, from 0.
        turn: u64,
        /// When the first data was captured, in seconds after the first packet of the capture.
        start_s: f64,
        /// Bytes of data of the client: 0 if the server sends first.
        request_bytes: u64,
        /// Bytes of data of the server: 0 if the connection ends before.
        response_bytes: u64,
        /// Milliseconds from the last data of the client to the first of the server.
        wait_ms: Option<f64>,
        /// Milliseconds from the first data of the server to the last.
        response_ms: Option<f64>,
        /// Milliseconds from the last data of the previous turn to the first data of this one.
        pause_ms: Option<f64>,
    }
}

/// A turn in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    number: u64,
    /// When the turn's data began; `None` before.
    start: Option<i64>,
    /// Bytes of the client and of the server.
    bytes: [u64; 2],
    /// The client's last data, and the server's first and last.
    asked: Option<i64>,
    answer: Option<(i64, i64)>,
    /// The pause after the previous turn.
    pause: Option<i64>,
}

impl Turn {
    /// Adds new data of a side. Returns the turn that ends with it, if one does.
    pub fn data(&mut self, now: i64, side: Side, bytes: u64) -> Option<Self> {
        let mut over = None;
        if let (Side::Client, Some((_, last))) = (side, self.answer) {
            let next = Self { number: self.number + 1, pause: Some(now - last), ..Self::default() };
            over = Some(std::mem::replace(self, next));
        }
        self.start.get_or_insert(now);
        self.bytes[side as usize] += bytes;
        match side {
            Side::Client => self.asked = Some(now),
            Side::Server => self.answer = Some((self.answer.map_or(now, |(first, _)| first), now)),
        }
        over
    }

    /// Adds the turn, if it has data. `begin`: the first packet of the capture.
    pub fn push(&self, table: &mut Table<CaptureTurnRow>, connection: u64, begin: i64) {
        let Some(start) = self.start else { return };
        let millis = |nanos: i64| nanos as f64 / 1e6;
        let wait = self.asked.zip(self.answer).map(|(asked, (first, _))| millis(first - asked));
        table.push(CaptureTurnRow {
            connection,
            turn: self.number,
            start_s: (start - begin) as f64 / 1e9,
            request_bytes: self.bytes[0],
            response_bytes: self.bytes[1],
            wait_ms: wait,
            response_ms: self.answer.map(|(first, last)| millis(last - first)),
            pause_ms: self.pause.map(millis),
        });
    }
}

impl Connection {
    /// Bytes of new data of both sides so far.
    pub(super) fn data(&self) -> [u64; 2] {
        self.halves.each_ref().map(|half| half.count.bytes)
    }
}
