//! A shared half-duplex medium, as all of its stations see it.

use tcplab_units::Time;

/// The time until which the medium is busy, once it has been used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Medium(pub(super) Option<Time>);
