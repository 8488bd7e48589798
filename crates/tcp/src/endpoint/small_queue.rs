//! TCP small queues, as the host sees them: its device tells of packets that have left.

use crate::endpoint::Endpoint;
use crate::segment::Segment;
use tcplab_units::Time;

impl Endpoint {
    /// The device of this end's host tells of packets that have left it: the sender keeps few
    /// there. `paces`: its queue keeps each packet until the time that [`Self::departure`] says.
    pub fn keep_queue_small(&mut self, paces: bool) {
        self.send.keep_queue_small(paces);
    }

    /// Whether the sender keeps few packets at the device of its host.
    #[inline]
    pub fn keeps_queue_small(&self) -> bool {
        self.send.departure().has_small_queue()
    }

    /// Takes the segment that [`Self::poll_transmit`] gave, or that it gave no more, and gives the
    /// one before it: with the time when that may leave the queue of the device, and whether the
    /// next one is of its burst.
    pub fn hand_over(
        &mut self,
        now: Time,
        segment: Option<Segment>,
    ) -> Option<(Segment, Time, bool)> {
        self.send.hand_over(now, segment)
    }

    /// The device has sent or dropped a segment with this payload. Returns whether a burst waits
    /// for that: then the caller calls [`Self::resume`].
    pub fn on_tx_completion(&mut self, payload: u16) -> bool {
        self.send.on_tx_completion(payload.into())
    }

    /// Data that was held back goes on with the next calls of [`Self::poll_transmit`].
    pub fn resume(&mut self) {
        self.send.resume();
    }
}
