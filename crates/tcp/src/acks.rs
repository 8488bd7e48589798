//! When to acknowledge: at once, with the next segment, or after a delay (RFC 5681 §4.2).

use crate::receiver::Reception;
use crate::settings::Settings;
use tcplab_units::Time;

/// The acknowledgments owed to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acks {
    /// When an ACK is to leave at the latest; `Time::ZERO` is now.
    due: Time,
    /// Segments received in order since the last ACK.
    pending: u32,
    /// Segments still to be acknowledged at once.
    quick: u32,
}

impl Acks {
    pub fn new(settings: &Settings) -> Self {
        Self { due: Time::NEVER, pending: 0, quick: settings.quick_ack }
    }

    /// An ACK must leave now.
    #[inline]
    pub fn hurry(&mut self) {
        self.due = Time::ZERO;
    }

    /// Data arrived.
    #[inline]
    pub fn on_data(&mut self, now: Time, reception: Reception, settings: &Settings) {
        let delay = match (reception, settings.delayed_ack) {
            (Reception::Nothing, _) => return,
            (Reception::Irregular, _) | (_, None) => return self.hurry(),
            (Reception::InOrder, Some(delay)) => delay,
        };
        self.pending += 1;
        if self.pending >= settings.ack_every || self.quick > 0 {
            self.quick = self.quick.saturating_sub(1);
            self.hurry();
        } else if self.due == Time::NEVER {
            self.due = now + delay;
        }
    }

    /// An ACK left, alone or with data.
    #[inline]
    pub fn on_sent(&mut self) {
        self.due = Time::NEVER;
        self.pending = 0;
    }

    /// When an ACK must have left.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }
}
