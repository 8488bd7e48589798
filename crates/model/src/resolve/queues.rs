//! Converts queue sizes to packets or bytes.

use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan, QueueLimit};
use crate::schema::{Discipline, Limit, Queue};
use tcplab_units::{Bytes, Duration, Rate};

/// Gives each lane its queue, without a size yet: sizes depend on the flows, and the flows depend
/// on the rates of shapers.
pub(crate) fn place(lanes: &mut [LanePlan], queues: &[Queue]) {
    for (lane, queue) in lanes.iter_mut().zip(queues) {
        lane.queue = queue.plan(&|_| QueueLimit::Packets(1));
    }
}

/// Sets each lane's BDP and queue size.
pub(crate) fn resolve(lanes: &mut [LanePlan], queues: &[Queue], flows: &[FlowPlan]) {
    let mut rtts: Vec<Option<Duration>> = vec![None; lanes.len()];
    for flow in flows {
        for &lane in flow.forward.iter().chain(&flow.back) {
            rtts[lane] = rtts[lane].max(Some(flow.base_rtt));
        }
    }
    for ((lane, queue), rtt) in lanes.iter_mut().zip(queues).zip(rtts) {
        let rate = draining_rate(lane);
        lane.bdp = rate.min(lane.rate).bytes_in(rtt.unwrap_or(lane.delay.saturating_mul(2)));
        lane.queue = queue.plan(&|limit| match size(limit, rate, lane) {
            QueueLimit::Bytes(bytes)
                if matches!(limit, Limit::Time(_)) && !queue.counts_bytes() =>
            {
                QueueLimit::Packets(bytes.div_ceil(lane.mtu))
            }
            size => size,
        });
    }
}

/// The rate at which packets leave a queue, by which sizes in time are converted. In a policer no
/// packet waits for tokens: queued packets leave at the rate of the link.
pub(crate) fn draining_rate(lane: &LanePlan) -> Rate {
    match &lane.queue.discipline {
        Discipline::Policer(_) => lane.rate,
        discipline => discipline.rate().unwrap_or(lane.rate),
    }
}

/// Rejects sizes that contradict each other once they are in packets or bytes.
pub(crate) fn check(lanes: &[LanePlan], mistakes: &mut Vec<Mistake>) {
    for lane in lanes {
        let Discipline::Red(red) = &lane.queue.discipline else { continue };
        let [min, max] = [red.min, red.max].map(|size| bytes(size, lane));
        if min > max {
            let [min, max] = [red.min, red.max].map(written);
            let reason = format!("comes to {min}, more than `max`, which comes to {max}");
            mistakes.push(Problem::Invalid(reason).at(format!("{}.queue.min", lane.place)));
        }
    }
}

/// The size in bytes, with packets of full size.
fn bytes(size: QueueLimit, lane: &LanePlan) -> u64 {
    match size {
        QueueLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        QueueLimit::Bytes(bytes) => bytes,
    }
}

fn written(size: QueueLimit) -> Limit {
    match size {
        QueueLimit::Packets(packets) => Limit::Packets(packets),
        QueueLimit::Bytes(bytes) => Limit::Bytes(Bytes(bytes)),
    }
}

/// `rate`: the rate at which packets leave the queue.
fn size(limit: Limit, rate: Rate, lane: &LanePlan) -> QueueLimit {
    match limit {
        Limit::Packets(packets) => QueueLimit::Packets(packets),
        Limit::Bytes(bytes) => QueueLimit::Bytes(bytes.0),
        Limit::Bdp(multiple) => {
            let packets = lane.bdp.0 as f64 * multiple / lane.mtu as f64;
            QueueLimit::Packets((packets.round() as u64).max(1))
        }
        // At least one packet always fits.
        Limit::Time(time) => QueueLimit::Bytes(rate.bytes_in(time).0.max(lane.mtu)),
    }
}
