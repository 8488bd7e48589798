//! When to acknowledge: at once, with the next segment, or after a delay (RFC 5681 §4.2).

use crate::receiver::Reception;
use crate::settings::Settings;
use crate::timer::{InWheel, Place};
use tcplab_units::{Duration, Time};

mod linux;

pub(crate) use linux::Arrived;
use linux::{LinuxDelayedAck, SLACK};

/// The acknowledgments owed to the peer.
#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    /// When an ACK is to leave at the latest; `Time::ZERO` is now.
    due: Time,
    /// Segments received in order since the last ACK.
    pending: u32,
    /// Segments still to be acknowledged at once.
    quick: u32,
    /// How Linux decides, once there is data to acknowledge.
    linux: Option<Box<LinuxDelayedAck>>,
}

impl DelayedAck {
    pub fn new(settings: &Settings) -> Self {
        Self { due: Time::NEVER, pending: 0, quick: settings.quick_ack, linux: None }
    }

    /// An ACK must be sent at once.
    #[inline]
    pub fn ack_now(&mut self) {
        self.due = Time::ZERO;
    }

    /// An ACK must be sent at this time at the latest.
    pub fn delay_ack(&mut self, until: Time) {
        self.due = self.due.min(until);
    }

    /// Data arrived, of so many segments that became one.
    #[inline]
    pub fn on_data(&mut self, now: Time, reception: Reception, segments: u64, settings: &Settings) {
        let delay = match (reception, settings.delayed_ack) {
            (Reception::Nothing, _) => return,
            (Reception::Irregular, _) | (_, None) => return self.ack_now(),
            (Reception::InOrder, Some(delay)) => delay,
        };
        self.pending += segments as u32;
        if self.pending >= settings.ack_every || self.quick > 0 {
            self.quick = self.quick.saturating_sub(1);
            self.ack_now();
        } else if self.due == Time::NEVER {
            self.due = now + delay;
        }
    }

    /// Data arrived, and the kernel's rules say when that is acknowledged.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, arrived: Arrived, settings: &Settings) {
        let linux = self.linux.get_or_insert_with(|| Box::new(LinuxDelayedAck::new(arrived.since)));
        self.due = self.due.min(linux.on_data(now, arrived, settings));
    }

    /// A segment arrived. Says whether duplicates wait for their ACK.
    #[inline]
    pub fn note_segment(&mut self, now: Time) -> bool {
        self.linux.as_mut().is_some_and(|linux| {
            linux.note_segment(now);
            linux.holds_back()
        })
    }

    /// A CE-marked segment starts quick ACKs. The compressed ACK that it flushes counts as the
    /// first of them.
    pub fn on_mark(&mut self, window: u64) {
        if let Some(linux) = &mut self.linux {
            linux.on_mark(window);
        }
    }

    /// From when on duplicates that wait for their ACK may be let go, if there are any.
    #[inline]
    pub fn held_from(&self) -> Option<Time> {
        let linux = self.linux.as_ref().filter(|linux| linux.holds_back())?;
        Some(linux.patient_until())
    }

    /// When they are let go at the latest.
    #[inline]
    pub fn held_until(&self) -> Option<Time> {
        self.held_from().map(|from| from + SLACK)
    }

    /// The receive buffer is short of memory: ends quickack mode, so that the sender slows down.
    #[cold]
    pub fn end_quickack(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.end_quickack();
        }
    }

    /// A segment came again that was taken long ago; `recent`: the last ACK was the first for it.
    pub fn on_old(&mut self, recent: bool, window: u64, settings: &Settings) {
        if let Some(linux) = &mut self.linux {
            linux.on_old(recent, window, settings);
        }
        self.ack_now();
    }

    /// The application has read; `next` is expected, and what came before `acked` is acknowledged.
    #[inline]
    pub fn on_read(&mut self, next: u64, acked: u64, holds_nothing: bool) {
        if self.linux.as_ref().is_some_and(|linux| linux.on_read(next, acked, holds_nothing)) {
            self.ack_now();
        }
    }

    /// When the kernel's timer of delayed ACKs runs out, though nobody may wait for it.
    #[inline]
    pub fn pending(&self) -> Time {
        self.linux.as_ref().map_or(Time::NEVER, |linux| linux.pending())
    }

    /// The turn of the kernel's timer of delayed ACKs among those that run out now.
    pub fn turn_at(&self, now: Time) -> Option<InWheel> {
        self.linux.as_ref().and_then(|linux| linux.turn_at(now))
    }

    /// The place of that timer, if there is one.
    #[inline]
    pub fn place(&mut self) -> Option<&mut Place> {
        self.linux.as_mut().map(|linux| linux.place())
    }

    /// Data waits for its acknowledgment.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        match &self.linux {
            Some(linux) => linux.is_waiting(),
            None => self.pending > 0,
        }
    }

    /// Time has passed.
    #[inline]
    pub fn on_timer(&mut self, now: Time, rto: Duration) {
        if let Some(linux) = self.linux.as_mut().filter(|_| self.due <= now) {
            linux.on_timer(now, rto);
        }
    }

    /// The time that an ACK which leaves now says it is.
    #[inline]
    pub fn stamp(&self, now: Time) -> Time {
        self.linux.as_ref().map_or(now, |linux| linux.stamp(now))
    }

    /// An ACK left, alone or with data.
    #[inline]
    pub fn on_sent(&mut self) {
        self.due = Time::NEVER;
        self.pending = 0;
        if let Some(linux) = &mut self.linux {
            linux.on_sent();
        }
    }

    /// Data left.
    #[inline]
    pub fn on_data_sent(&mut self, now: Time) {
        if let Some(linux) = &mut self.linux {
            linux.on_data_sent(now);
        }
    }

    /// When an ACK must have left.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }
}
