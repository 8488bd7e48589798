//! Queue disciplines.

use tcplab_engine::{CoDelConfig, Discipline, QueueLimit, RedConfig};
use tcplab_model::{Discipline as Planned, LanePlan, QueueLimit as PlannedLimit};

/// The engine's discipline in front of a lane; nothing for drop-tail.
pub(super) fn discipline(lane: &LanePlan) -> Option<Discipline> {
    Some(match &lane.queue.discipline {
        Planned::DropTail(_) => return None,
        Planned::Red(red) => {
            let config = RedConfig {
                min: in_bytes(red.min, lane),
                max: in_bytes(red.max, lane),
                probability: red.probability,
                weight: red.weight,
                gentle: red.gentle,
                packet_time: lane.rate.time_for(lane.mtu),
            };
            Discipline::Red { config, ecn: red.ecn }
        }
        Planned::CoDel(codel) => Discipline::CoDel(CoDelConfig {
            target: codel.target,
            interval: codel.interval,
            mtu: lane.mtu,
            ecn: codel.ecn,
        }),
        _ => unreachable!("a plan with another discipline is refused"),
    })
}

/// How much the queue of a lane holds.
pub(super) fn limit(lane: &LanePlan) -> QueueLimit {
    match lane.queue.limit {
        // Like its thresholds, RED's limit counts bytes.
        limit if matches!(lane.queue.discipline, Planned::Red(_)) => {
            QueueLimit::Bytes(in_bytes(limit, lane))
        }
        PlannedLimit::Packets(packets) => QueueLimit::Packets(packets),
        PlannedLimit::Bytes(bytes) => QueueLimit::Bytes(bytes),
    }
}

/// A packet counts as one of full size.
fn in_bytes(limit: PlannedLimit, lane: &LanePlan) -> u64 {
    match limit {
        PlannedLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        PlannedLimit::Bytes(bytes) => bytes,
    }
}
