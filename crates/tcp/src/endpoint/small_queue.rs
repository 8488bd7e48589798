//! TCP small queues, as the host sees them: its device tells of packets that have left.

use crate::endpoint::Endpoint;
use crate::segment::Segment;
use tcplab_units::Time;

impl Endpoint {
    /// The device of this end's host tells of packets that have left it: the sender keeps few
    /// there. `paces`: its queue keeps each packet until the time that [`Self::departure`] says.
    pub fn enable_small_queue(&mut self, paces: bool) {
        self.send.enable_small_queue(paces);
    }

    /// Whether the sender keeps few packets at the device of its host.
    #[inline]
    pub fn has_small_queue(&self) -> bool {
        self.send.departure().has_small_queue()
    }

    /// Takes the segment that [`Self::poll_transmit`] gave, or that it gave no more, and gives the
    /// one before it: with the time when that may leave the queue of the device, and whether the
    /// next one is of its burst.
    pub fn pass_to_device(
        &mut self,
        now: Time,
        segment: Option<Segment>,
    ) -> Option<(Segment, Time, bool)> {
        self.send.pass_to_device(now, segment)
    }

    /// A segment with so much data has left the device, or was dropped there. Says whether that
    /// lets something go: then [`Self::resume`] is to be called.
    pub fn on_tx_completion(&mut self, payload: u16) -> bool {
        self.send.on_tx_completion(payload.into())
    }

    /// Data that was held back goes on with the next calls of [`Self::poll_transmit`].
    pub fn resume(&mut self) {
        self.send.resume();
    }
}
