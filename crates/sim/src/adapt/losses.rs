//! Loss models of the engine from those of a plan.

use tcplab_engine::{Carried, Loss};
use tcplab_model::Loss as Planned;
use tcplab_model::schema::{Carried as PlannedCarried, Holding, Reading};

/// The engine's loss model.
pub(super) fn loss(planned: &Planned) -> Loss {
    match planned {
        Planned::Independent(loss) => Loss::Independent { probability: loss.probability.0 },
        Planned::Listed(loss) => Loss::Listed { packets: loss.packets.clone() },
        Planned::Gilbert(loss) => Loss::Gilbert {
            to_bad: loss.to_bad.0,
            to_good: loss.to_good.0,
            loss: [loss.loss_good.0, loss.loss_bad.0],
        },
        Planned::GilbertTime(loss) => Loss::Timed {
            lasts: [loss.good, loss.bad],
            is_exponential: loss.holding == Holding::Exponential,
            is_sampled: loss.reading == Reading::Sampled,
            change: loss.change.0,
            loss: [loss.loss_good.0, loss.loss_bad.0],
        },
    }
}

/// The packets to which the loss model applies.
pub(super) fn on(planned: &Planned) -> Carried {
    match planned.on() {
        PlannedCarried::Data => Carried::Data,
        PlannedCarried::Acks => Carried::Acks,
        PlannedCarried::Both => Carried::Both,
    }
}
