//! A sender away from the capture point: it receives an ACK later than the capture point, and the
//! data that it then sends is captured a round trip after the ACK.
//!
//! Such a sender's time is accounted by its data at the time of capture. An ACK takes effect when
//! data that the sender sent because of it may be captured: when data echoes the ACK's timestamp
//! (RFC 7323 §3), or after the round trip between capture and sender.

use std::collections::VecDeque;

/// A sender with a shorter round trip to the capture point, in nanoseconds, counts as local: it
/// receives ACKs when they are captured.
const MAX_LOCAL_RTT: i64 = 1_000_000;
/// The limit of tracked ACKs in transit to the sender.
const MAX_ACKS: usize = 128;

/// What the ACKs received so far have told a sender: the ACK point, the window and the end of loss
/// recoveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SenderState {
    /// The first unacknowledged byte.
    pub una: u64,
    /// The right edge of the receiver's window, if a window was captured.
    pub edge: Option<u64>,
    /// The number of completed loss recoveries.
    pub completed_recoveries: u32,
}

/// An ACK in transit to the sender.
#[derive(Clone, Copy, Debug)]
struct Ack {
    captured: i64,
    /// The timestamp of the ACK, which later data echoes.
    timestamp: Option<u32>,
    /// The sender's state once it receives this ACK.
    state: SenderState,
}

/// A sender away from the capture point.
#[derive(Clone, Debug, Default)]
pub(super) struct RemoteSender {
    /// The round trip between capture and sender in the handshake; 0: the sender is local.
    handshake_rtt: i64,
    /// The same round trip as last measured by data.
    rtt: i64,
    pub state: SenderState,
    acks: VecDeque<Ack>,
    /// The timestamp and capture time of the last ACK that the sender received, until data is
    /// captured.
    last_received: Option<(u32, i64)>,
    /// The timestamps of the sender's last segment.
    timestamps: (u32, u32),
}

impl RemoteSender {
    /// Sets the round trip and the sender's state.
    pub fn set(&mut self, rtt: i64, state: SenderState) {
        self.acks.clear();
        self.handshake_rtt = if rtt > MAX_LOCAL_RTT { rtt } else { 0 };
        (self.rtt, self.state) = (self.handshake_rtt, state);
    }

    /// Frees memory that holds nothing.
    pub fn release(&mut self) {
        if self.acks.is_empty() {
            self.acks = VecDeque::new();
        }
    }

    /// Whether the sender receives ACKs later than the capture point.
    #[inline]
    pub fn is_remote(&self) -> bool {
        self.handshake_rtt > 0
    }

    /// An ACK is captured. `state`: the state the sender has once it receives this ACK.
    pub fn on_captured_ack(&mut self, now: i64, timestamp: Option<u32>, state: SenderState) {
        // Most segments of the only sending side acknowledge nothing new.
        if self.acks.back().map_or(self.state, |last| last.state) == state {
            return;
        }
        let is_full = self.acks.len() == MAX_ACKS;
        let apart = self.rtt / (MAX_ACKS / 2) as i64;
        match self.acks.back_mut() {
            Some(last) if is_full || now - last.captured < apart => last.state = state,
            _ => self.acks.push_back(Ack { captured: now, timestamp, state }),
        }
    }

    /// When the next ACK takes effect, if no later than `now`.
    #[inline]
    pub fn next_ack_at(&self, now: i64) -> Option<i64> {
        let at = self.acks.front()?.captured + self.rtt + self.rtt / 4;
        (at <= now).then_some(at)
    }

    /// The sender receives the next ACK. Returns whether the ACK acknowledges new data.
    pub fn receive_ack(&mut self) -> bool {
        let Some(ack) = self.acks.pop_front() else { return false };
        let has_advanced = ack.state.una > self.state.una;
        self.state = ack.state;
        self.last_received = ack.timestamp.map(|timestamp| (timestamp, ack.captured));
        has_advanced
    }

    /// A segment with these timestamps is sent. Returns whether it was sent together with the last
    /// one: the sender's clock has not advanced, and no ACK with a newer timestamp has arrived.
    pub fn is_same_burst(&mut self, timestamps: (u32, u32)) -> bool {
        std::mem::replace(&mut self.timestamps, timestamps) == timestamps
    }

    /// Data echoes a timestamp: the sender has received the ACKs up to it. Returns whether they
    /// acknowledge new data.
    pub fn on_echo(&mut self, now: i64, echo: u32) -> bool {
        let mut has_advanced = false;
        while let Some(&Ack { captured, timestamp: Some(timestamp), .. }) = self.acks.front() {
            let ahead = echo.wrapping_sub(timestamp).cast_signed();
            // Several ACKs may have the same timestamp.
            if ahead < 0 || ahead == 0 && now - captured < self.handshake_rtt / 4 * 3 {
                break;
            }
            has_advanced |= self.receive_ack();
        }
        // A sample of the round trip, unless the sender waited for data from the application.
        if let Some((timestamp, captured)) = self.last_received.take()
            && timestamp == echo
            && now - captured < 2 * self.rtt
        {
            self.rtt = now - captured;
        }
        has_advanced
    }
}
