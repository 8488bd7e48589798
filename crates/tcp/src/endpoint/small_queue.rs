//! TCP small queues at the host: its device reports packets that have left it.

use crate::context::Context;
use crate::endpoint::{Endpoint, State};
use crate::segment::{Flags, Segment};
use crate::sender::refusal::Before;
use tcplab_units::Time;

/// The state of an endpoint before a burst.
#[derive(Clone, Copy, Debug)]
pub struct BeforeBurst {
    state: State,
    send: Before,
}

impl Endpoint {
    /// The device of the host reports packets that have left it, and the sender limits how much it
    /// queues there. `paces`: the device's queue holds each packet until its departure time.
    pub fn enable_small_queue(&mut self, paces: bool) {
        self.send.enable_small_queue(paces);
    }

    /// Whether the sender limits its packets at the host's device.
    #[inline]
    pub fn has_small_queue(&self) -> bool {
        self.send.departure().has_small_queue()
    }

    /// Whether the segment that [`Self::poll_transmit`] returned continues the burst before it, and
    /// the earliest time at which it may leave the device's queue.
    pub fn take_departing(&mut self, now: Time) -> (bool, Time) {
        self.send.take_departing(now)
    }

    /// The state before the burst that is about to leave.
    pub fn before_burst(&self) -> BeforeBurst {
        BeforeBurst { state: self.state, send: self.send.before_burst() }
    }

    /// Whether the last segment that [`Self::poll_transmit`] returned completes its burst.
    pub fn ends_burst(&self, now: Time) -> bool {
        self.send.ends_burst(Context { now, settings: &self.settings })
    }

    /// Segments of new data that have left since `before`.
    pub fn new_since(&self, before: &BeforeBurst) -> u64 {
        self.send.new_since(&before.send)
    }

    /// The host's queue has refused the burst from the segment `first` to `last` (`NET_XMIT_DROP`),
    /// the only one since `before`. `sent` segments of new data left before it in the same event.
    /// Returns whether [`Self::poll_transmit`] may be called again in this event.
    #[cold]
    pub fn on_refused(
        &mut self,
        now: Time,
        before: &BeforeBurst,
        (first, last): (&Segment, &Segment),
        sent: u64,
    ) -> bool {
        let context = Context { now, settings: &self.settings };
        if last.payload == 0 && !last.flags.has(Flags::FIN) {
            if self.state.carries_data() {
                self.send.enter_cwr(context, sent);
            }
            return true;
        }
        let place = |segment: &Segment| self.send.origin.offset(segment.seq, self.send.una);
        let (Some(start), Some(end)) = (place(first), place(last)) else { return false };
        let end = end + u64::from(last.payload) + u64::from(last.flags.has(Flags::FIN));
        self.state = before.state;
        self.send.on_refused(context, &before.send, (start, end), sent);
        self.settings.has_packet_buffer() && !self.settings.behaviour.has_next_seg_rule3
    }

    /// The host's queue has dropped a burst of this sender as the burst of `segments` since
    /// `before` entered it (`NET_XMIT_CN`): that burst itself if `is_newest`, or else another one.
    /// `sent` segments of new data left before it in the same event.
    #[cold]
    pub fn on_dropped(
        &mut self,
        now: Time,
        before: &BeforeBurst,
        (segments, sent): (u64, u64),
        is_newest: bool,
    ) {
        if self.state.carries_data() {
            let context = Context { now, settings: &self.settings };
            self.send.on_dropped(context, &before.send, (segments, sent), is_newest);
        }
    }

    /// Whether a refused or dropped burst lets a throttled sender continue; [`Self::resume`] is
    /// then to be called.
    #[inline]
    pub fn take_resumption(&mut self) -> bool {
        self.send.take_resumption()
    }

    /// A segment with `payload` bytes has left the device, or was dropped there. Returns whether a
    /// throttled sender may continue; [`Self::resume`] is then to be called.
    pub fn on_tx_completion(&mut self, payload: u16) -> bool {
        self.send.on_tx_completion(payload.into())
    }

    /// Throttled data continues with the next calls of [`Self::poll_transmit`].
    pub fn resume(&mut self) {
        self.send.resume();
    }
}
