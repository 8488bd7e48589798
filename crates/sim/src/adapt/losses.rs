//! Losses on the way.

use tcplab_engine::Loss;
use tcplab_model::Loss as Planned;

/// The engine's model of a loss.
pub(super) fn loss(planned: &Planned) -> Loss {
    match planned {
        Planned::Independent(loss) => Loss::Independent { probability: loss.probability.0 },
        Planned::Listed(loss) => Loss::Listed { packets: loss.packets.clone() },
        _ => unreachable!("a plan with other losses is refused"),
    }
}
