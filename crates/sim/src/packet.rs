//! What the network carries.

use tcplab_engine::Packet;
use tcplab_tcp::Segment;

/// A segment on the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnWire(pub Segment);

impl Packet for OnWire {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.0.wire_bytes()
    }

    #[inline]
    fn has_payload(&self) -> bool {
        self.0.payload > 0 && self.0.too_large().is_none()
    }
}
