//! Lanes.

use super::{losses, queues};
use tcplab_engine::LaneConfig;
use tcplab_model::LanePlan;

/// The engine's lane for a direction of a link; `observed`: its packets are looked at.
pub(crate) fn config(lane: &LanePlan, observed: bool) -> LaneConfig {
    LaneConfig {
        name: lane.name.clone(),
        rate: lane.rate,
        delay: lane.delay,
        jitter: lane.jitter,
        queue: queues::limit(lane),
        discipline: queues::discipline(lane),
        loss: lane.loss.as_ref().map(losses::loss),
        observed,
    }
}
