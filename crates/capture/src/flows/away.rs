//! A sender away from the capture point: it hears an ACK after the capture has seen it, and the
//! data that it then sends is captured a round trip after the ACK.
//!
//! Such a sender's time is accounted by its data at the time of capture. An ACK takes effect when
//! data may be captured that the sender sent because of it: when data echoes the ACK's timestamp
//! (RFC 7323 §3), or after the round trip between capture and sender.

use std::collections::VecDeque;

/// Senders nearer than this, in nanoseconds, hear ACKs at once.
const NEAR: i64 = 1_000_000;
/// The limit of tracked ACKs on their way to the sender.
const MOST_ACKS: usize = 128;

/// The sender's knowledge of the receiver, and of the repair of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The first unacknowledged byte.
    pub una: u64,
    /// The right edge of the receiver's window, if it was seen.
    pub edge: Option<u64>,
    /// The number of the last completed repair.
    pub repaired: u32,
}

/// An ACK on its way to the sender.
#[derive(Clone, Copy, Debug)]
struct Ack {
    seen: i64,
    /// The timestamp that data will echo.
    clock: Option<u32>,
    known: Known,
}

/// A sender away from the capture point.
#[derive(Clone, Debug, Default)]
pub(super) struct Away {
    /// The round trip between capture and sender in the handshake, and as last measured by data; 0:
    /// the sender is near.
    least: i64,
    round: i64,
    pub known: Known,
    acks: VecDeque<Ack>,
    /// The timestamp of the last ACK that the sender heard, and its capture time, until data comes.
    heard: Option<(u32, i64)>,
    /// The timestamps of the sender's last segment.
    clocks: (u32, u32),
}

impl Away {
    /// Sets the round trip and the sender's knowledge.
    pub fn set(&mut self, round: i64, known: Known) {
        self.acks.clear();
        self.least = if round > NEAR { round } else { 0 };
        (self.round, self.known) = (self.least, known);
    }

    #[inline]
    pub fn is_away(&self) -> bool {
        self.least > 0
    }

    /// The capture sees an ACK, after which the sender will know this.
    pub fn sees(&mut self, now: i64, clock: Option<u32>, known: Known) {
        // Most segments of the only sending side acknowledge nothing new.
        if self.acks.back().map_or(self.known, |last| last.known) == known {
            return;
        }
        let is_full = self.acks.len() == MOST_ACKS;
        let apart = self.round / (MOST_ACKS / 2) as i64;
        match self.acks.back_mut() {
            Some(last) if is_full || now - last.seen < apart => last.known = known,
            _ => self.acks.push_back(Ack { seen: now, clock, known }),
        }
    }

    /// When the next ACK takes effect, if no later than `now`.
    #[inline]
    pub fn next(&self, now: i64) -> Option<i64> {
        let at = self.acks.front()?.seen + self.round + self.round / 4;
        (at <= now).then_some(at)
    }

    /// The next ACK takes effect. Returns whether it acknowledged new data.
    pub fn hears(&mut self) -> bool {
        let Some(ack) = self.acks.pop_front() else { return false };
        let has_advanced = ack.known.una > self.known.una;
        self.known = ack.known;
        self.heard = ack.clock.map(|clock| (clock, ack.seen));
        has_advanced
    }

    /// A segment with these timestamps is sent. Returns whether it was sent together with the last
    /// one: the sender's clock has not advanced, and it has heard nothing meanwhile.
    pub fn is_burst(&mut self, clocks: (u32, u32)) -> bool {
        std::mem::replace(&mut self.clocks, clocks) == clocks
    }

    /// Data echoes a timestamp. Returns whether the sender has heard anything new.
    pub fn is_echoed(&mut self, now: i64, echo: u32) -> bool {
        let mut has_advanced = false;
        while let Some(&Ack { seen, clock: Some(clock), .. }) = self.acks.front() {
            let ahead = echo.wrapping_sub(clock).cast_signed();
            // Several ACKs may have the same timestamp.
            if ahead < 0 || ahead == 0 && now - seen < self.least / 4 * 3 {
                break;
            }
            has_advanced |= self.hears();
        }
        // A sender without data to send has waited longer.
        if let Some((clock, seen)) = self.heard.take()
            && clock == echo
            && now - seen < 2 * self.round
        {
            self.round = now - seen;
        }
        has_advanced
    }
}
