//! TCP small queues at the host: its device reports packets that have left it.

use crate::endpoint::Endpoint;
use crate::segment::Segment;
use tcplab_units::Time;

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

    /// Takes the segment that [`Self::poll_transmit`] returned (or none), and returns the segment
    /// before it: with the earliest time at which it may leave the device's queue, and whether the
    /// next segment belongs to the same burst.
    pub fn pass_to_device(
        &mut self,
        now: Time,
        segment: Option<Segment>,
    ) -> Option<(Segment, Time, bool)> {
        self.send.pass_to_device(now, segment)
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
