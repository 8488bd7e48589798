//! Lanes of the engine from the links of a plan.

use super::{losses, queues};
use tcplab_engine::{
    ArpConfig, Contention, LaneConfig, LaneId, Light, QueueLimit, Spread, StationConfig, Trace,
    Train, WireConfig,
};
use tcplab_model::schema::{self, Jitter, LanPlan};
use tcplab_model::{LaneChange, LanePlan, Plan};
use tcplab_units::{Rate, Time};
use tcplab_workload::{links, spread};

/// The engine's lane for the direction of a link with this number. `observed`: an observer sees its
/// packets.
pub(crate) fn config(plan: &Plan, number: usize, observed: bool) -> LaneConfig {
    let lane = &plan.lanes[number];
    if lane.leaves_lan() {
        return out_of_lan(lane, observed);
    }
    let is_own = plan.has_qdisc(lane.from);
    LaneConfig {
        name: lane.name.clone(),
        rate: lane.rate,
        delay: lane.delay,
        queue: queues::limit(lane),
        discipline: queues::discipline(lane, is_own),
        wire: wire(plan, lane),
        station: lane.lan.as_ref().map(|lan| station(lan, number)),
        observed,
        reports_tx_completion: is_own,
        may_change: plan.change.is_some(),
    }
}

/// The new settings of the engine's lane. `after`: the plan after the change.
pub(crate) fn change(after: &Plan, change: &LaneChange) -> tcplab_engine::LaneChange {
    let lane = &after.lanes[change.lane];
    let queue = || (queues::discipline(lane, false), queues::limit(lane));
    tcplab_engine::LaneChange {
        rate: change.rate,
        delay: change.delay,
        queue: change.queue.is_some().then(queue),
        may_overtake: lane.overtaking,
    }
}

/// From a shared medium to a station: the frame has crossed the medium and arrives at once.
fn out_of_lan(lane: &LanePlan, observed: bool) -> LaneConfig {
    LaneConfig {
        name: lane.name.clone(),
        rate: Rate::from_bits_per_second(u64::MAX),
        delay: lane.delay,
        queue: QueueLimit::Packets(1),
        discipline: None,
        wire: WireConfig::default(),
        station: None,
        observed,
        reports_tx_completion: false,
        may_change: false,
    }
}

/// The station at the start of the lane with this number.
fn station(lan: &LanPlan, number: usize) -> StationConfig {
    StationConfig {
        medium: lan.node,
        // The two lanes of a link have numbers that differ in the last bit.
        receives: LaneId(number as u32 ^ 1),
        framing: lan.framing.0 as u32,
        gap: lan.gap,
        slot: lan.slot,
        arp: lan.arp.as_ref().map(|arp| ArpConfig {
            wait: match &arp.wait {
                Jitter::UpTo(most) => Spread::up_to(*most),
                Jitter::Spread(it) => Spread(spread::cells(it)),
            },
            pending: usize::try_from(arp.pending).unwrap_or(usize::MAX),
            learns_from_requests: arp.learns,
        }),
    }
}

fn wire(plan: &Plan, lane: &LanePlan) -> WireConfig {
    let (seed, duration) = (plan.seed, plan.duration);
    let trace = links::opportunities(lane, seed, duration);
    // Traces already account for outages.
    let rates = if trace.is_some() { Vec::new() } else { links::rates(lane, seed, duration) };
    WireConfig {
        rates: rates.into_iter().map(|(at, rate)| (Time::ZERO + at, rate)).collect(),
        trace: trace.map(|(opportunities, period_ms)| Trace { opportunities, period_ms }),
        light: lane.light.as_ref().map(|light| Light {
            trains: light.trains.0.iter().map(train).collect(),
            after: light.after,
        }),
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

fn train(train: &schema::Train) -> Train {
    Train { at: train.at, delay: train.delay, opportunities: train.opportunities.clone() }
}
