//! Turns the sizes of queues into packets or bytes.

use crate::plan::{Discipline, FlowPlan, LanePlan, QueueLimit, QueuePlan};
use crate::schema::{Limit, Queue};
use tcplab_units::Duration;

/// Sets the BDP and the queue of each lane.
pub(crate) fn resolve(lanes: &mut [LanePlan], queues: &[Queue], flows: &[FlowPlan]) {
    let mut rtts: Vec<Option<Duration>> = vec![None; lanes.len()];
    for flow in flows {
        for &lane in flow.forward.iter().chain(&flow.back) {
            rtts[lane] = rtts[lane].max(Some(flow.base_rtt));
        }
    }
    for ((lane, queue), rtt) in lanes.iter_mut().zip(queues).zip(rtts) {
        lane.bdp = lane.rate.bytes_in(rtt.unwrap_or(lane.delay.saturating_mul(2)));
        lane.queue = plan(queue, lane);
    }
}

fn plan(queue: &Queue, lane: &LanePlan) -> QueuePlan {
    let size = |limit: Limit| size(limit, lane);
    let discipline = match queue {
        Queue::DropTail(_) => Discipline::DropTail,
        Queue::Red(queue) => Discipline::Red {
            min: size(queue.min),
            max: size(queue.max),
            probability: queue.probability.0,
            weight: queue.weight,
            gentle: queue.gentle,
            ecn: queue.ecn,
        },
        Queue::CoDel(queue) => {
            Discipline::CoDel { target: queue.target, interval: queue.interval, ecn: queue.ecn }
        }
        Queue::FqCoDel(queue) => Discipline::FqCoDel {
            flows: queue.flows,
            quantum: queue.quantum,
            target: queue.target,
            interval: queue.interval,
            ecn: queue.ecn,
        },
        Queue::Pie(queue) => {
            Discipline::Pie { target: queue.target, update: queue.update, ecn: queue.ecn }
        }
        Queue::Cake(queue) => Discipline::Cake { rtt: queue.rtt },
        Queue::Fq(queue) => Discipline::Fq { flow_limit: queue.flow_limit, quantum: queue.quantum },
    };
    QueuePlan { discipline, limit: size(limit(queue)) }
}

/// How much a queue holds, as it was written.
pub(super) fn limit(queue: &Queue) -> Limit {
    match queue {
        Queue::DropTail(queue) => queue.limit,
        Queue::Red(queue) => queue.limit,
        Queue::CoDel(queue) => queue.limit,
        Queue::FqCoDel(queue) => queue.limit,
        Queue::Pie(queue) => queue.limit,
        Queue::Cake(queue) => queue.limit,
        Queue::Fq(queue) => queue.limit,
    }
}

fn size(limit: Limit, lane: &LanePlan) -> QueueLimit {
    match limit {
        Limit::Packets(packets) => QueueLimit::Packets(packets),
        Limit::Bytes(bytes) => QueueLimit::Bytes(bytes.0),
        Limit::Bdp(multiple) => {
            let packets = lane.bdp.0 as f64 * multiple / lane.mtu as f64;
            QueueLimit::Packets((packets.round() as u64).max(1))
        }
    }
}
