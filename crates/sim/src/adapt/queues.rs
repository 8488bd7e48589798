//! Queue disciplines of the engine from those of a plan.

use tcplab_engine::{
    AckFilter, CakeConfig, Cells, CoDelConfig, Discipline, DualPi2Config, DualScheduler,
    FqCoDelConfig, FqConfig, FqPieConfig, Framing, Isolation, PieConfig, PolicerConfig, QueueLimit,
    RedConfig, SfqConfig, TbfConfig, Tins,
};
use tcplab_model::schema::{self, CakePlan, DualScheduler as PlannedScheduler, SfqPlan};
use tcplab_model::{Discipline as Planned, LanePlan, QueueLimit as PlannedLimit};
use tcplab_units::Duration;

/// The engine's discipline for a lane; `None` for drop-tail. `is_own`: the queue of a sending host.
#[expect(
    unreachable_patterns,
    reason = "a discipline that is added and not run here needs no line"
)]
pub(super) fn discipline(lane: &LanePlan, is_own: bool) -> Option<Discipline> {
    Some(match &lane.queue.discipline {
        Planned::DropTail(_) => return None,
        Planned::Red(red) => {
            let config = RedConfig {
                min: in_bytes(red.min, lane),
                max: in_bytes(red.max, lane),
                probability: red.probability,
                weight: red.weight,
                gentle: red.gentle,
                adaptive: red.adaptive,
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
            by_socket: is_own,
        }),
        Planned::DropHead(_) => Discipline::DropHead,
        Planned::Sfq(sfq) => Discipline::Sfq(SfqConfig {
            depth: sfq.depth,
            flows: sfq.flows,
            divisor: SfqPlan::DIVISOR,
            quantum: sfq.quantum,
        }),
        Planned::Tbf(tbf) => Discipline::Tbf(TbfConfig {
            rate: tbf.rate,
            burst: tbf.burst,
            peak: tbf.peakrate.map(|rate| (rate, tbf.mtu.unwrap_or(lane.mtu))),
        }),
        Planned::Policer(policer) => {
            Discipline::Policer(PolicerConfig { rate: policer.rate, burst: policer.burst })
        }
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
        Planned::Cake(cake) => Discipline::Cake(cake_config(cake, lane)),
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

fn cake_config(cake: &CakePlan, lane: &LanePlan) -> CakeConfig {
    let [interval, target] = cake.interval_and_target().map(Duration::from_micros);
    let [flows, sources, targets] = cake.isolation.parts();
    CakeConfig {
        shaper: cake.rate,
        framing: Framing {
            overhead: cake.overhead,
            least: cake.mpu,
            cells: match cake.framing {
                schema::Framing::None => Cells::None,
                schema::Framing::Atm => Cells::Atm,
                schema::Framing::Ptm => Cells::Ptm,
            },
        },
        target,
        interval,
        isolation: Isolation { flows, sources, targets },
        tins: match cake.tins {
            schema::Tins::BestEffort => Tins::BestEffort,
            schema::Tins::Precedence => Tins::Precedence,
            schema::Tins::Diffserv3 => Tins::Diffserv3,
            schema::Tins::Diffserv4 => Tins::Diffserv4,
            schema::Tins::Diffserv8 => Tins::Diffserv8,
        },
        ack_filter: match cake.ack_filter {
            schema::AckFilter::Off => AckFilter::Off,
            schema::AckFilter::On => AckFilter::On,
            schema::AckFilter::Aggressive => AckFilter::Aggressive,
        },
        ingress: cake.ingress,
        wash: cake.wash,
        frame: frame(lane),
        memory: in_bytes(lane.queue.limit, lane),
    }
}

/// Whether a lane's discipline has several queues.
pub(crate) fn tells_flows(lane: &LanePlan) -> bool {
    matches!(
        &lane.queue.discipline,
        Planned::FqCoDel(_)
            | Planned::FqPie(_)
            | Planned::Fq(_)
            | Planned::Sfq(_)
            | Planned::Cake(_)
    )
}

/// The queue limit of a lane.
pub(super) fn limit(lane: &LanePlan) -> QueueLimit {
    match lane.queue.limit {
        // RED and token buckets count their limit in bytes, as they count thresholds.
        limit if matches!(lane.queue.discipline, Planned::Red(_) | Planned::Tbf(_)) => {
            QueueLimit::Bytes(in_bytes(limit, lane))
        }
        PlannedLimit::Packets(packets) => QueueLimit::Packets(packets),
        PlannedLimit::Bytes(bytes) => QueueLimit::Bytes(bytes),
    }
}

/// The size of an Ethernet header. Packet sizes on links are those of IP packets, but Linux
/// includes this header where a queue is compared with the largest packet (`psched_mtu`).
const FRAME_HEADER: u64 = 14;

/// The largest frame, in bytes.
fn frame(lane: &LanePlan) -> u64 {
    lane.mtu + FRAME_HEADER
}

/// Converts a limit to bytes, with packets of full size.
fn in_bytes(limit: PlannedLimit, lane: &LanePlan) -> u64 {
    match limit {
        PlannedLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        PlannedLimit::Bytes(bytes) => bytes,
    }
}
