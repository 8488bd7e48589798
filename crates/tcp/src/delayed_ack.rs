//! Delayed ACKs: whether an ACK leaves at once, with the next segment, or after a delay (RFC 5681
//! §4.2).

use crate::context::Context;
use crate::receiver::Reception;
use crate::settings::Settings;
use crate::timer::{OrderInWheel, WheelSlot};
use tcplab_units::{Duration, Time};

mod linux;

pub(crate) use linux::Arrived;
use linux::{LinuxDelayedAck, SLACK};

/// The ACK that is owed to the peer.
#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    /// When the ACK leaves at the latest; `Time::ZERO` is now.
    due: Time,
    /// Segments received in order since the last ACK.
    pending: u32,
    /// Quick ACKs left: segments that are still acknowledged at once.
    quick: u32,
    /// The delayed ACKs of Linux, once there is data to acknowledge.
    linux: Option<Box<LinuxDelayedAck>>,
}

impl DelayedAck {
    pub fn new(settings: &Settings) -> Self {
        Self { due: Time::NEVER, pending: 0, quick: settings.quick_ack, linux: None }
    }

    /// An ACK leaves now.
    #[inline]
    pub fn ack_now(&mut self) {
        self.due = Time::ZERO;
    }

    /// An ACK is due at `until` at the latest.
    pub fn delay_ack(&mut self, until: Time) {
        self.due = self.due.min(until);
    }

    /// Data arrived, of `segments` segments that GRO merged.
    #[inline]
    pub fn on_data(&mut self, context: Context<'_>, reception: Reception, segments: u64) {
        let Context { now, settings } = context;
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

    /// Data arrived, and is acknowledged by the kernel's rules.
    #[inline]
    pub fn on_arrival(&mut self, context: Context<'_>, arrived: Arrived) {
        let linux = self.linux.get_or_insert_with(|| Box::new(LinuxDelayedAck::new(arrived.since)));
        self.due = self.due.min(linux.on_data(context, arrived));
    }

    /// A segment arrived. Returns whether a compressed ACK is waiting.
    #[inline]
    pub fn on_segment(&mut self, now: Time) -> bool {
        self.linux.as_mut().is_some_and(|linux| {
            linux.on_segment(now);
            linux.is_compressing()
        })
    }

    /// A CE-marked segment starts quick ACKs. The compressed ACK that it flushes counts as the
    /// first of them.
    pub fn on_ce_mark(&mut self, window: u64) {
        if let Some(linux) = &mut self.linux {
            linux.on_ce_mark(window);
        }
    }

    /// The earliest time at which a waiting compressed ACK may leave.
    #[inline]
    pub fn compressed_ack_from(&self) -> Option<Time> {
        let linux = self.linux.as_ref().filter(|linux| linux.is_compressing())?;
        Some(linux.compressed_until())
    }

    /// The latest time at which a waiting compressed ACK leaves.
    #[inline]
    pub fn compressed_ack_until(&self) -> Option<Time> {
        self.compressed_ack_from().map(|from| from + SLACK)
    }

    /// The receive buffer is short of memory: quick ACKs end, which slows the sender down.
    #[cold]
    pub fn end_quickack(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.end_quickack();
        }
    }

    /// A segment arrived that was received long ago. `recent`: the last ACK was the first to cover
    /// it.
    pub fn on_old_data(&mut self, recent: bool, window: u64, settings: &Settings) {
        if let Some(linux) = &mut self.linux {
            linux.on_old_data(recent, window, settings);
        }
        self.ack_now();
    }

    /// The application has read. `next` is RCV.NXT, and data below `acked` is acknowledged.
    #[inline]
    pub fn on_read(&mut self, next: u64, acked: u64, holds_nothing: bool) {
        if self.linux.as_ref().is_some_and(|linux| linux.on_read(next, acked, holds_nothing)) {
            self.ack_now();
        }
    }

    /// When the kernel's delayed-ACK timer expires, even if it is no longer needed.
    #[inline]
    pub fn pending(&self) -> Time {
        self.linux.as_ref().map_or(Time::NEVER, |linux| linux.pending())
    }

    /// The position of the delayed-ACK timer among the kernel's timers that expire now.
    pub fn expiry_order(&self, now: Time) -> Option<OrderInWheel> {
        self.linux.as_ref().and_then(|linux| linux.expiry_order(now))
    }

    /// The timer's slot in the wheel, if there is one.
    #[inline]
    pub fn slot(&mut self) -> Option<&mut WheelSlot> {
        self.linux.as_mut().map(|linux| linux.slot())
    }

    /// Whether data waits for its acknowledgment.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        match &self.linux {
            Some(linux) => linux.is_waiting(),
            None => self.pending > 0,
        }
    }

    /// The delayed-ACK timer expires, if it is due.
    #[inline]
    pub fn on_timer(&mut self, now: Time, rto: Duration) {
        if let Some(linux) = self.linux.as_mut().filter(|_| self.due <= now) {
            linux.on_timer(now, rto);
        }
    }

    /// The time in the timestamps option of an ACK that leaves now.
    #[inline]
    pub fn timestamp_clock(&self, now: Time) -> Time {
        self.linux.as_ref().map_or(now, |linux| linux.timestamp_clock(now))
    }

    /// An ACK left, alone or with data.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.due = Time::NEVER;
        self.pending = 0;
        if let Some(linux) = &mut self.linux {
            linux.on_ack_sent();
        }
    }

    /// Data left.
    #[inline]
    pub fn on_data_sent(&mut self, now: Time) {
        if let Some(linux) = &mut self.linux {
            linux.on_data_sent(now);
        }
    }

    /// When an ACK leaves at the latest.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }
}
