//! Lanes.

use super::{losses, queues};
use tcplab_engine::{Contention, LaneConfig, Spread, Trace, WireConfig};
use tcplab_model::schema::Jitter;
use tcplab_model::{LanePlan, Plan};
use tcplab_units::Time;
use tcplab_workload::{links, spread};

/// The engine's lane for a direction of a link; `observed`: its packets are looked at.
pub(crate) fn config(plan: &Plan, lane: &LanePlan, observed: bool) -> LaneConfig {
    let is_own = plan.has_qdisc(lane.from);
    LaneConfig {
        name: lane.name.clone(),
        rate: lane.rate,
        delay: lane.delay,
        queue: queues::limit(lane),
        discipline: queues::discipline(lane, is_own),
        wire: wire(plan, lane),
        observed,
        tells_sender: is_own,
    }
}

fn wire(plan: &Plan, lane: &LanePlan) -> WireConfig {
    let (seed, duration) = (plan.seed, plan.duration);
    let trace = links::opportunities(lane, seed, duration);
    // A trace has taken the outages out already.
    let rates = if trace.is_some() { Vec::new() } else { links::rates(lane, seed, duration) };
    WireConfig {
        rates: rates.into_iter().map(|(at, rate)| (Time::ZERO + at, rate)).collect(),
        trace: trace.map(|(opportunities, period_ms)| Trace { opportunities, period_ms }),
        contention: lane.contention.as_ref().map(|it| Contention {
            access: Spread(spread::cells(&it.access)),
            aggregate: it.aggregate,
        }),
        delays: links::delays(lane, seed, duration)
            .into_iter()
            .map(|(at, delay)| (Time::ZERO + at, delay))
            .collect(),
        jitter: match &lane.jitter {
            Jitter::UpTo(most) => (!most.is_zero()).then(|| Spread::up_to(*most)),
            Jitter::Spread(it) => Some(Spread(spread::cells(it))),
        },
        may_overtake: lane.overtaking,
        reordering: lane.reordering.as_ref().map(|it| (it.probability.0, it.delay)),
        loss: lane.loss.as_ref().map(losses::loss),
        loss_on: lane.loss.as_ref().map(losses::on).unwrap_or_default(),
        corruption: lane.corruption.0,
        duplication: lane.duplication.0,
    }
}
