//! Warnings about links and their queues.

use super::super::queues::draining_rate;
use super::super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan, QueueLimit};
use crate::schema::{
    CakePlan, Carried, DelayChanges, DelayRule, Discipline, Framing, Limit, Loss, OutageRule,
    Outages, Queue, RateChanges, RateRule, TbfPlan,
};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::{Bytes, Duration, Rate};

/// A shorter queue drops from the bursts of every sender: in slow start the ACK of two segments
/// releases four (RFC 5681 §3.1, RFC 1122 §4.2.3.2).
const FEW_PACKETS: u64 = 4;

/// Parallel links: routes go by nodes, and take the first link between two of them.
pub(super) fn parallel_links(topology: &Topology) -> Vec<Mistake> {
    let mut first: BTreeMap<_, &String> = BTreeMap::new();
    let mut warnings = Vec::new();
    for (lane, place) in topology.lanes.iter().step_by(2).zip(&topology.links) {
        let ends = (lane.from.min(lane.to), lane.from.max(lane.to));
        let used = *first.entry(ends).or_insert(place);
        if std::ptr::eq(used, place) {
            continue;
        }
        let [from, to] = [lane.from, lane.to].map(|node| &topology.nodes[node]);
        let reason = format!(
            "is never used: packets between \"{from}\" and \"{to}\" take the link of {used}; to \
             use both, lead this link through a node of its own and choose that node with \
             [[network.routes]]"
        );
        warnings.push(Problem::Invalid(reason).at(place));
    }
    warnings
}

/// A key of a link, and the warning about it.
pub(super) type Odd = (String, String);

/// Shapers without effect, or that no packet of full size passes.
pub(super) fn idle_shaper(lane: &LanePlan) -> Option<Odd> {
    let highest = lane.rate_changes.as_ref().map_or(Some(lane.rate), |it| it.highest(lane.rate));
    match &lane.queue.discipline {
        Discipline::Tbf(tbf) => idle_bucket(tbf, lane, highest),
        Discipline::Cake(cake) => idle_cake(cake, highest),
        _ => None,
    }
}

/// CAKE with a shaper that is never slower than the link, or with shaper settings but no shaper.
fn idle_cake(cake: &CakePlan, highest: Option<Rate>) -> Option<Odd> {
    let sizes = [
        ("overhead", cake.overhead > 0),
        ("mpu", cake.mpu > 0),
        ("framing", cake.framing != Framing::None),
    ];
    let counted = sizes.iter().find(|(_, is_set)| *is_set);
    match (cake.rate, counted) {
        (None, Some((key, _))) => {
            let reason = "holds nothing back without a `rate`: packets leave at the rate of the link, \
                          whatever they count; give a `rate` that is a little less than the link's";
            Some((format!("queue.{key}"), reason.into()))
        }
        // A shaper may still have an effect if packets count more than their own bytes, or follow
        // dropped packets that count as sent.
        (Some(rate), None) if !cake.ingress => {
            let highest = highest.filter(|highest| rate >= *highest)?;
            let reason =
                format!("is {rate}, and the rate of the link {highest}: nothing is held back");
            Some(("queue.rate".into(), reason))
        }
        _ => None,
    }
}

/// Token buckets that no packet of full size passes, or without effect.
fn idle_bucket(tbf: &TbfPlan, lane: &LanePlan, highest: Option<Rate>) -> Option<Odd> {
    let (burst, mtu) = (Bytes(tbf.burst), Bytes(lane.mtu));
    if burst < mtu {
        let reason = format!(
            "is {burst}: larger packets are dropped, and there may be packets of {mtu}; to let all \
             pass, give {mtu} or more"
        );
        return Some(("queue.burst".into(), reason));
    }
    let highest = highest.filter(|highest| tbf.rate > *highest)?;
    let reason =
        format!("is {}, and the rate of the link {highest}: nothing is held back", tbf.rate);
    Some(("queue.rate".into(), reason))
}

/// A nominal rate, overridden by `rate_changes`, that still scales shares, loads and sizes.
pub(super) fn replaced_rate(lane: &LanePlan) -> Option<Odd> {
    let rate = lane.rate;
    let reason = match lane.rate_changes.as_ref()? {
        // Without a rate, the trace's mean is used.
        RateChanges::Trace(trace) if trace.mean_rate() != rate => format!(
            "is {rate}, and the trace carries {} in the mean: packets leave by the trace, but \
             shares, loads and BDPs are computed from `rate`, or from the trace if `rate` is left \
             out",
            trace.mean_rate()
        ),
        RateChanges::Steps(steps)
            if steps.first().is_some_and(|it| it.0.is_zero() && it.1 != rate) =>
        {
            format!(
                "is {rate}, and `rate_changes` begins with another at {}: shares, loads and BDPs go by \
                 `rate`",
                steps[0].0
            )
        }
        _ => return None,
    };
    Some(("rate".into(), reason))
}

/// A delay that packets never have, but by which BDPs are computed.
pub(super) fn replaced_delay(lane: &LanePlan) -> Option<Odd> {
    let mean = lane.light.as_ref()?.trains.mean_delay();
    (mean != lane.delay).then(|| {
        let reason = format!(
            "is {}, and the trains of `light` have {mean} in the mean: packets take the delays of \
             the trains, but BDPs are computed from `delay`, or from the trains if `delay` is \
             left out",
            lane.delay
        );
        ("delay".into(), reason)
    })
}

/// Changes after the end of the experiment.
pub(super) fn late_changes(lane: &LanePlan, duration: Duration) -> impl Iterator<Item = Odd> {
    let rule = |key: &str, every: Duration| {
        let reason = format!("is {every}, and the experiment lasts {duration}: nothing changes");
        (every >= duration).then(|| (format!("{key}.every"), reason))
    };
    let rate = lane.rate_changes.as_ref().and_then(|changes| match changes {
        RateChanges::Steps(steps) => late("rate_changes", steps, duration),
        RateChanges::Rule(RateRule::Sine(it)) => rule("rate_changes", it.every),
        RateChanges::Rule(RateRule::RandomWalk(it)) => rule("rate_changes", it.every),
        RateChanges::Trace(_) => None,
    });
    let delay = lane.delay_changes.as_ref().and_then(|changes| match changes {
        DelayChanges::Steps(steps) => late("delay_changes", steps, duration),
        DelayChanges::Rule(DelayRule::Handover(it)) => (it.every >= duration).then(|| {
            let reason = format!(
                "is {}, and the experiment lasts {duration}: the delay that is drawn at the start stays",
                it.every
            );
            ("delay_changes.every".into(), reason)
        }),
    });
    let outages = lane.outages.as_ref().and_then(|outages| match outages {
        Outages::Listed(listed) => late("outages", listed, duration),
        Outages::Rule(OutageRule::Periodic(it)) => rule("outages", it.every),
        Outages::Rule(OutageRule::RandomOutages(_)) => None,
    });
    [rate, delay, outages].into_iter().flatten()
}

/// The first list entry, in order of time, at or after the end.
fn late<T>(key: &str, list: &[(Duration, T)], duration: Duration) -> Option<Odd> {
    let first = list.iter().position(|change| change.0 >= duration)?;
    let what = match list.len() - first {
        1 => "it never comes".into(),
        number => format!("it and {} after it never come", number - 1),
    };
    let reason = format!("is at {}, and the experiment ends at {duration}: {what}", list[first].0);
    Some((format!("{key}[{first}]"), reason))
}

/// Links that nothing passes, states that never change, and packets that are listed twice.
pub(super) fn odd_loss(lane: &LanePlan) -> Option<Odd> {
    let (key, reason) = match lane.loss.as_ref()? {
        Loss::Independent(loss) if loss.probability.0 >= 1.0 => {
            let which = match loss.on {
                Carried::Both => "all packets are lost",
                Carried::Data => "all packets with data are lost",
                Carried::Acks => "all packets without data are lost",
            };
            return Some(("loss".into(), format!("is 100 %: {which}")));
        }
        Loss::Gilbert(loss) if loss.to_bad.0 <= 0.0 => {
            ("to_bad", "is 0: the bad state never comes, and all packets meet the good one")
        }
        Loss::Gilbert(loss) if loss.to_good.0 <= 0.0 => {
            ("to_good", "is 0: once the bad state has come, it never ends")
        }
        Loss::GilbertTime(loss) if loss.change.0 <= 0.0 => {
            ("change", "is 0: the bad state never comes, and all packets meet the good one")
        }
        Loss::Listed(loss) => {
            let mut known = BTreeSet::new();
            let twice = loss.packets.iter().position(|packet| !known.insert(packet))?;
            let reason = format!("packet {} is listed already", loss.packets[twice]);
            return Some((format!("loss.packets[{twice}]"), reason));
        }
        _ => return None,
    };
    Some((format!("loss.{key}"), reason.into()))
}

/// Queues that are a multiple of a tiny BDP, or do not hold a full packet.
pub(super) fn short_queues(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let mut is_used = vec![false; topology.lanes.len()];
    for &lane in flows.iter().flat_map(|flow| flow.forward.iter().chain(&flow.back)) {
        is_used[lane] = true;
    }
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    let lanes = topology.lanes.iter().zip(&topology.queues).zip(is_used);
    for ((lane, queue), _) in lanes.filter(|(_, is_used)| *is_used) {
        let (key, reason) = if let Some(reason) = tight(queue, lane) {
            ("queue", reason)
        } else if let Some((key, limit, packets)) = short(queue, lane) {
            let reason = format!(
                "\"{limit}\" of {} comes to {}, because its BDP is {}: bursts of a few packets are \
                 dropped; to avoid that, give the size in packets, like \"20 packets\"",
                lane.name,
                Limit::Packets(packets),
                lane.bdp
            );
            (key, reason)
        } else {
            continue;
        };
        if places.insert(&lane.place) {
            warnings.push(Problem::Invalid(reason).at(format!("{}.{key}", lane.place)));
        }
    }
    warnings
}

/// The problem of a queue given in bytes or as a time that is less than a full packet.
fn tight(queue: &Queue, lane: &LanePlan) -> Option<String> {
    let full = Bytes(lane.mtu);
    match queue.limit() {
        Limit::Bytes(limit) if limit < full => Some(format!(
            "has a limit of {limit}: larger packets are dropped, and there may be packets of {full}; to \
             let all pass, give {full} or more"
        )),
        Limit::Time(time) if draining_rate(lane).bytes_in(time) < full => Some(format!(
            "\"{time}\" of {} comes to less than a full packet, {full}, and counts as one: bursts of a \
             few packets are dropped; to avoid that, give the size in packets, like \"20 packets\"",
            lane.name
        )),
        _ => None,
    }
}

/// The first size of a queue that is a multiple of the BDP and comes to few packets: its key, the
/// size as written, and in packets.
fn short(queue: &Queue, lane: &LanePlan) -> Option<(&'static str, Limit, u64)> {
    let max = match (queue, &lane.queue.discipline) {
        (Queue::Red(red), Discipline::Red(plan)) => Some(("queue.max", red.max, plan.max)),
        _ => None,
    };
    let limit = ("queue", queue.limit(), lane.queue.limit);
    std::iter::once(limit).chain(max).find_map(|(key, written, size)| match (written, size) {
        (Limit::Bdp(_), QueueLimit::Packets(size)) => {
            (size < FEW_PACKETS).then_some((key, written, size))
        }
        _ => None,
    })
}
