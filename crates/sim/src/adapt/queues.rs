//! Queue disciplines.

use tcplab_engine::{
    CoDelConfig, Discipline, DualPi2Config, DualScheduler, FqCoDelConfig, FqConfig, FqPieConfig,
    PieConfig, QueueLimit, RedConfig, SfqConfig, TbfConfig,
};
use tcplab_model::schema::{DualScheduler as PlannedScheduler, SfqPlan};
use tcplab_model::{Discipline as Planned, LanePlan, QueueLimit as PlannedLimit};

/// The engine's discipline in front of a lane; nothing for drop-tail.
#[expect(
    clippy::match_wildcard_for_single_variants,
    reason = "a discipline that is added and not run here needs no line"
)]
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
            mtu: frame(lane),
            ecn: codel.ecn,
        }),
        Planned::FqCoDel(queue) => Discipline::FqCoDel(FqCoDelConfig {
            codel: CoDelConfig {
                target: queue.target,
                interval: queue.interval,
                mtu: frame(lane),
                ecn: queue.ecn,
            },
            flows: queue.flows as u32,
            quantum: queue.quantum,
        }),
        Planned::FqPie(queue) => Discipline::FqPie(FqPieConfig {
            pie: PieConfig {
                target: queue.target,
                update: queue.update,
                alpha: queue.alpha,
                beta: queue.beta,
                ecn: queue.ecn,
                most_marked: PieConfig::ONE / 100 * queue.ecn_prob,
                bytemode: queue.bytemode,
                frame: frame(lane),
                frame_header: FRAME_HEADER,
            },
            flows: queue.flows as u32,
            quantum: queue.quantum,
        }),
        Planned::Fq(fq) => Discipline::Fq(FqConfig {
            flow_limit: fq.flow_limit,
            quantum: fq.quantum,
            initial_quantum: fq.initial_quantum,
        }),
        Planned::DropHead(_) => Discipline::DropHead,
        Planned::Sfq(sfq) => Discipline::Sfq(SfqConfig {
            depth: sfq.depth,
            flows: sfq.flows,
            divisor: SfqPlan::DIVISOR,
            quantum: sfq.quantum,
        }),
        Planned::Tbf(tbf) => Discipline::Tbf(TbfConfig { rate: tbf.rate, burst: tbf.burst }),
        Planned::Pie(pie) => Discipline::Pie(PieConfig {
            target: pie.target,
            update: pie.update,
            alpha: pie.alpha,
            beta: pie.beta,
            ecn: pie.ecn,
            most_marked: PieConfig::ONE / 10,
            bytemode: pie.bytemode,
            frame: frame(lane),
            frame_header: FRAME_HEADER,
        }),
        Planned::DualPi2(queue) => Discipline::DualPi2(DualPi2Config {
            target: queue.target,
            update: queue.update,
            alpha: queue.alpha,
            beta: queue.beta,
            coupling: queue.coupling,
            threshold: queue.threshold,
            ramp: queue.ramp,
            behind: queue.behind,
            scheduler: match queue.scheduler {
                PlannedScheduler::Wrr => DualScheduler::Weighted(queue.protection as u8),
                PlannedScheduler::TimeShifted => DualScheduler::Shifted(queue.shift),
            },
            drop_on_overload: queue.drop_on_overload,
            frame: frame(lane),
        }),
        _ => unreachable!("a plan with another discipline is refused"),
    })
}

/// Whether the discipline of a lane has several queues.
pub(crate) fn tells_flows(lane: &LanePlan) -> bool {
    matches!(
        &lane.queue.discipline,
        Planned::FqCoDel(_) | Planned::FqPie(_) | Planned::Fq(_) | Planned::Sfq(_)
    )
}

/// How much the queue of a lane holds.
pub(super) fn limit(lane: &LanePlan) -> QueueLimit {
    match lane.queue.limit {
        // RED's limit counts bytes like its thresholds, and so does a token bucket.
        limit if matches!(lane.queue.discipline, Planned::Red(_) | Planned::Tbf(_)) => {
            QueueLimit::Bytes(in_bytes(limit, lane))
        }
        PlannedLimit::Packets(packets) => QueueLimit::Packets(packets),
        PlannedLimit::Bytes(bytes) => QueueLimit::Bytes(bytes),
    }
}

/// Bytes of the header of an Ethernet frame. Sizes on links are those of IP packets, but Linux counts
/// it where it compares a queue with the largest packet (`psched_mtu`).
const FRAME_HEADER: u64 = 14;

/// The largest frame, in bytes.
fn frame(lane: &LanePlan) -> u64 {
    lane.mtu + FRAME_HEADER
}

/// A packet counts as one of full size.
fn in_bytes(limit: PlannedLimit, lane: &LanePlan) -> u64 {
    match limit {
        PlannedLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        PlannedLimit::Bytes(bytes) => bytes,
    }
}
