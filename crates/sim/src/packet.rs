//! What the network carries.

use tcplab_engine::Packet;
use tcplab_tcp::{Flags, Segment};

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

    #[inline]
    fn is_marked(&self) -> bool {
        self.0.flags.has(Flags::CE)
    }

    fn mark(&mut self) -> bool {
        if self.0.flags.has(Flags::ECT) {
            self.0.flags = self.0.flags.with(Flags::CE);
        }
        self.is_marked()
    }
}
