//! Turns the sizes of queues into packets or bytes.

use crate::plan::{FlowPlan, LanePlan, QueueLimit};
use crate::schema::{Limit, Queue};
use tcplab_units::{Duration, Rate};

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
        let rate = queue.rate().unwrap_or(lane.rate);
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

/// `rate`: at which packets leave the queue.
fn size(limit: Limit, rate: Rate, lane: &LanePlan) -> QueueLimit {
    match limit {
        Limit::Packets(packets) => QueueLimit::Packets(packets),
        Limit::Bytes(bytes) => QueueLimit::Bytes(bytes.0),
        Limit::Bdp(multiple) => {
            let packets = lane.bdp.0 as f64 * multiple / lane.mtu as f64;
            QueueLimit::Packets((packets.round() as u64).max(1))
        }
        // A packet always fits.
        Limit::Time(time) => QueueLimit::Bytes(rate.bytes_in(time).0.max(lane.mtu)),
    }
}
