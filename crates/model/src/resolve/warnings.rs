//! Settings that do nothing, or hardly what was meant.
//!
//! A setting that cannot be meant is a mistake. What stands here has a meaning that somebody may want,
//! so the experiment runs.

use super::hosts;
use super::queues::draining_rate;
use super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, LanePlan, QueueLimit, TcpPlan};
use crate::schema::{
    CakePlan, Carried, DelayChanges, DelayRule, Discipline, Ecn, Experiment, Flavour, Framing,
    Limit, Loss, OutageRule, Outages, Profile, Queue, RateChanges, RateRule, StackPlan, TbfPlan,
    Traffic, TrafficPlan,
};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::{Bytes, Duration, Rate};

/// A queue of fewer packets drops from bursts that every sender makes: in slow start the ACK of two
/// segments releases four (RFC 5681 §3.1, RFC 1122 §4.2.3.2).
const FEW_PACKETS: u64 = 4;

/// All warnings about one variant, one for each place.
pub(crate) fn all(
    topology: &Topology,
    flows: &[FlowPlan],
    experiment: &Experiment,
) -> Vec<Mistake> {
    let duration = experiment.duration;
    let mut warnings = parallel_links(topology);
    for lane in &topology.lanes {
        let found = idle_shaper(lane).into_iter().chain(late_changes(lane, duration));
        let found = found.chain(replaced_rate(lane)).chain(replaced_delay(lane));
        warnings.extend(
            found
                .chain(odd_loss(lane))
                .map(|(key, reason)| Problem::Invalid(reason).at(format!("{}.{key}", lane.place))),
        );
    }
    warnings.extend(hosts::odd(experiment, topology, flows));
    warnings.extend(long_intervals(experiment));
    warnings.extend(late_flows(flows, duration));
    warnings.extend(late_periods(flows, duration));
    warnings.extend(short_queues(topology, flows));
    warnings.extend(small_buffers(flows));
    warnings.extend(cut_buffers(flows));
    warnings.extend(narrow_buffers(topology, flows));
    warnings.extend(changing_loads(topology, flows, experiment));
    warnings.extend(overloads(topology, flows));
    warnings.extend(floods(topology, flows));
    warnings.extend(unmarked(topology, flows));
    warnings.extend(torn(topology, flows));
    warnings
}

/// Links beside others: routes go by nodes, and take the first link between two of them.
fn parallel_links(topology: &Topology) -> Vec<Mistake> {
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
            "is never used: packets between \"{from}\" and \"{to}\" take the link of {used}; to use \
             both, lead this one through a node of its own and choose that with [[network.routes]]"
        );
        warnings.push(Problem::Invalid(reason).at(place));
    }
    warnings
}

/// A key of a link, and what is odd about it.
type Odd = (String, String);

/// Shapers that hold nothing back, or that no packet of full size passes.
fn idle_shaper(lane: &LanePlan) -> Option<Odd> {
    let highest = lane.rate_changes.as_ref().map_or(Some(lane.rate), |it| it.highest(lane.rate));
    match &lane.queue.discipline {
        Discipline::Tbf(tbf) => idle_bucket(tbf, lane, highest),
        Discipline::Cake(cake) => idle_cake(cake, highest),
        _ => None,
    }
}

/// CAKE whose shaper is never slower than the link, or that has settings of a shaper without one.
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
        // Packets that count more than their own bytes may be held back at any rate, and so may those
        // that follow a dropped one that counts as sent.
        (Some(rate), None) if !cake.ingress => {
            let highest = highest.filter(|highest| rate >= *highest)?;
            let reason =
                format!("is {rate}, and the rate of the link {highest}: nothing is held back");
            Some(("queue.rate".into(), reason))
        }
        _ => None,
    }
}

/// Token buckets that no packet of full size passes, or that hold nothing back.
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

/// A rate that packets never have, and shares, loads and sizes go by.
fn replaced_rate(lane: &LanePlan) -> Option<Odd> {
    let rate = lane.rate;
    let reason = match lane.rate_changes.as_ref()? {
        // Without a rate, the mean stands for it.
        RateChanges::Trace(trace) if trace.mean_rate() != rate => format!(
            "is {rate}, and the trace carries {} in the mean: packets leave by the trace, while shares, \
             loads and BDPs go by `rate`; without `rate` they go by the trace",
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

/// A delay that packets never have, and BDPs go by.
fn replaced_delay(lane: &LanePlan) -> Option<Odd> {
    let mean = lane.light.as_ref()?.trains.mean_delay();
    (mean != lane.delay).then(|| {
        let reason = format!(
            "is {}, and the trains of `light` have {mean} in the mean: packets travel as these say, \
             while BDPs go by `delay`; without `delay` they go by the trains",
            lane.delay
        );
        ("delay".into(), reason)
    })
}

/// Changes that are to come when the experiment is over.
fn late_changes(lane: &LanePlan, duration: Duration) -> impl Iterator<Item = Odd> {
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

/// The first of a list, in the order of their times, that comes at the end or later.
fn late<T>(key: &str, list: &[(Duration, T)], duration: Duration) -> Option<Odd> {
    let first = list.iter().position(|change| change.0 >= duration)?;
    let what = match list.len() - first {
        1 => "it never comes".into(),
        number => format!("it and {} after it never come", number - 1),
    };
    let reason = format!("is at {}, and the experiment ends at {duration}: {what}", list[first].0);
    Some((format!("{key}[{first}]"), reason))
}

/// Links that nothing passes, states that never change, and packets that are lost twice.
fn odd_loss(lane: &LanePlan) -> Option<Odd> {
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

/// An interval of results that what is measured does not fill.
fn long_intervals(experiment: &Experiment) -> Option<Mistake> {
    let every = experiment.every?;
    let (from, to) = experiment.measure.as_ref().map_or((None, None), |it| (it.from, it.to));
    let (from, to) = (from.unwrap_or(Duration::ZERO), to.unwrap_or(experiment.duration));
    let measured = to.saturating_sub(from);
    (every > measured).then(|| {
        let reason = format!("is {every}, and what is measured lasts {measured}: one interval");
        Problem::Invalid(reason).at("every")
    })
}

/// Flows that are to begin when the experiment is over: they are in no statistic.
fn late_flows(flows: &[FlowPlan], duration: Duration) -> Vec<Mistake> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for flow in flows {
        let (late, all) = counts.entry(&flow.place).or_default();
        *late += usize::from(flow.start >= duration);
        *all += 1;
    }
    let late = counts.into_iter().filter(|(_, (late, _))| *late > 0);
    let warnings = late.map(|(place, (late, all))| {
        let reason = format!(
            "{late} of {all} would begin at the end of the experiment or later, which is at {duration}, \
             and do not run: they are in no statistic; to run all, make `duration` longer"
        );
        Problem::Invalid(reason).at(place)
    });
    warnings.collect()
}

/// Beginnings by chance that may come when the experiment is over, and times to send that do come then.
fn late_periods(flows: &[FlowPlan], duration: Duration) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows.iter().filter(|flow| flow.start < duration) {
        let periods = match &*flow.traffic {
            TrafficPlan::OnOff(it) => &it.periods[..],
            TrafficPlan::Udp(it) => it.periods.as_deref().unwrap_or_default(),
            _ => &[],
        };
        let (key, reason) = if flow.start + flow.start_jitter >= duration {
            let reason = format!(
                "is up to {} after {}, and the experiment ends at {duration}: the flow may never begin",
                flow.start_jitter, flow.start
            );
            ("start_jitter", reason)
        } else if let Some(late) = periods.iter().find(|period| flow.start + period.0 >= duration) {
            let reason = format!(
                "one begins {} after the flow, which begins at {}, and the experiment ends at \
                 {duration}: it never comes",
                late.0, flow.start
            );
            ("traffic.periods", reason)
        } else {
            continue;
        };
        if places.insert(&flow.place) {
            warnings.push(Problem::Invalid(reason).at(format!("{}.{key}", flow.place)));
        }
    }
    warnings
}

/// Queues that are a multiple of a BDP of next to nothing, or have no room for a full packet.
fn short_queues(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
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

/// What is wrong with a queue that is given in bytes or as a time, and is less than a full packet.
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

/// The first size of a queue that is a multiple of the BDP and comes to few packets: its key, how it
/// was written, and what it comes to.
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

/// Transfers that begin faster than their bottleneck can carry them.
fn overloads(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let mut loads: BTreeMap<usize, (f64, &str)> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.tcp().is_some()) {
        if let Some(offered) = flow.traffic.offered() {
            loads.entry(flow.bottleneck).or_insert((0.0, &flow.place)).0 += offered;
        }
    }
    let over = loads.into_iter().filter(|(_, (load, _))| *load > 1.0);
    let warnings = over.map(|(lane, (load, place))| {
        let reason = format!(
            "transfers ask for {:.0} % of the rate of {}: they pile up for as long as the experiment \
             lasts (0.6 is 60 %, and so is \"60 %\")",
            load * 100.0,
            topology.lanes[lane].name
        );
        Problem::Invalid(reason).at(format!("{place}.traffic"))
    });
    warnings.collect()
}

/// Datagrams that ask for so many times the rate of their bottleneck are rather a slip of the unit.
const FLOOD: f64 = 10.0;

/// Datagrams of which next to none can get through.
fn floods(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows.iter().filter(|flow| flow.tcp().is_none()) {
        let Some(offered) = flow.traffic.offered().filter(|offered| *offered > FLOOD) else {
            continue;
        };
        if places.insert(&flow.place) {
            let lane = &topology.lanes[flow.bottleneck];
            let reason = format!(
                "sends at {offered:.0} times the rate of {}, {}: most of what its queue has no room for is \
                 dropped",
                lane.name,
                lane.lasting_rate()
            );
            warnings.push(Problem::Invalid(reason).at(format!("{}.traffic", flow.place)));
        }
    }
    warnings
}

/// Datagrams in more fragments than the first queue on their way has room for: they come at once, and the
/// loss of one is that of all.
fn torn(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        let (TrafficPlan::Udp(udp), Some(&first)) = (&*flow.traffic, flow.forward.first()) else {
            continue;
        };
        // Behind the header of IPv4, fragments carry multiples of eight bytes, and one of them that of UDP.
        let each = (flow.mtu.saturating_sub(20) / 8 * 8).max(8);
        let fragments = (udp.payload.0 + 8).div_ceil(each);
        let lane = &topology.lanes[first];
        let room = match lane.queue.limit {
            QueueLimit::Packets(packets) => packets,
            QueueLimit::Bytes(bytes) => bytes / flow.mtu,
        };
        // One is in transmission.
        if fragments > room.saturating_add(1) && places.insert(&flow.place) {
            let reason = format!(
                "each datagram comes in {fragments} fragments at once, and the queue of {} has room for \
                 {room} packets: none gets through whole; to let them pass, give it {fragments} packets or more",
                lane.name
            );
            warnings.push(Problem::Invalid(reason).at(format!("{}.traffic.payload", flow.place)));
        }
    }
    warnings
}

/// Flows that ask for marks, on a way where nothing marks.
fn unmarked(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        let asks = flow.tcp().is_some_and(|tcp| tcp.stack.ecn != Ecn::Off);
        let marks = |lane: &usize| topology.lanes[*lane].queue.discipline.marks();
        if asks && !flow.forward.iter().any(marks) && places.insert(&flow.place) {
            let reason = "asks for marks, and no queue on the way has any: \"fq-codel\" marks, and others \
                          do with `ecn = true`, like { kind = \"codel\", ecn = true }";
            warnings.push(Problem::Invalid(reason.into()).at(format!("{}.stack.ecn", flow.place)));
        }
    }
    warnings
}

/// Loads of a link whose rate changes.
fn changing_loads(
    topology: &Topology,
    flows: &[FlowPlan],
    experiment: &Experiment,
) -> Vec<Mistake> {
    let has_load =
        |traffic: &Traffic| matches!(traffic, Traffic::Arrivals(it) if it.load.is_some());
    let entries = experiment.flows.iter().enumerate().filter(|(_, flow)| has_load(&flow.traffic));
    let loads: BTreeSet<String> = entries.map(|(i, _)| format!("flows[{i}]")).collect();
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows.iter().filter(|flow| loads.contains(&flow.place)) {
        let lane = &topology.lanes[flow.bottleneck];
        let is_held = lane.lasting_rate() < lane.rate;
        if lane.rate_changes.is_some() && !is_held && places.insert(&flow.place) {
            let reason = format!(
                "is a share of {}, the `rate` of {}: as many transfers begin when its rate changes; to \
                 choose their number yourself, give `per_second`",
                lane.rate, lane.name
            );
            warnings.push(Problem::Invalid(reason).at(format!("{}.traffic.load", flow.place)));
        }
    }
    warnings
}

/// Buffers that a program asks for and does not get.
fn cut_buffers(flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        for stack in flow.tcp().into_iter().flat_map(TcpPlan::stacks) {
            for (option, asked, key, most) in [
                ("so_rcvbuf", stack.so_rcvbuf, "rmem_max", stack.rmem_max),
                ("so_sndbuf", stack.so_sndbuf, "wmem_max", stack.wmem_max),
            ] {
                let Some(asked) = asked.on().filter(|asked| *asked > most) else { continue };
                if places.insert((&flow.place, option)) {
                    let reason = format!(
                        "is {asked}, and is cut to `{key}`, which is {most}; raise that too"
                    );
                    let place = format!("{}.stack.{option}", flow.place);
                    warnings.push(Problem::Invalid(reason).at(place));
                }
            }
        }
    }
    warnings
}

/// Flows without an end whose buffers together, as the profile has them, hold clearly less than the BDP of
/// their bottleneck. Whoever gives their sizes means them.
fn narrow_buffers(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    // By bottleneck: what buffers hold, and of the first flow its place, its sender, the smaller buffer
    // and the size of that.
    let mut rooms: BTreeMap<usize, (u64, &str, &StackPlan, &str, Bytes)> = BTreeMap::new();
    for flow in flows {
        let Some(TcpPlan { stack, peer_stack }) = flow.tcp() else { continue };
        // Of a buffer of Linux, about half is for data.
        let room = |stack: &StackPlan, size: Bytes| match stack.flavour {
            Flavour::Linux => size.0 / 2,
            Flavour::Rfc => size.0,
        };
        let sent = (room(stack, stack.wmem), "wmem", stack.wmem);
        let received = (room(peer_stack, peer_stack.rmem), "rmem", peer_stack.rmem);
        let (least, key, size) = if received.0 <= sent.0 { received } else { sent };
        let known = rooms.entry(flow.bottleneck).or_insert((0, &flow.place, &**stack, key, size));
        let has_no_end = matches!(&*flow.traffic, TrafficPlan::Bulk(bulk) if bulk.size.is_none());
        // Others come and go: nobody knows what they hold.
        known.0 = known.0.saturating_add(if has_no_end { least } else { u64::MAX });
    }
    let narrow = rooms.into_iter().filter_map(|(lane, (room, place, stack, key, size))| {
        let lane = &topology.lanes[lane];
        let is_default = |profile: &Profile| {
            let options = profile.options();
            let own = if key == "wmem" { options.wmem } else { options.rmem };
            own == size && options.flavour == stack.flavour
        };
        (room < lane.bdp.0 / 10 * 8 && Profile::ALL.iter().any(is_default)).then(|| {
            let reason = format!(
                "buffers of {size} hold about {} of data in all, less than the BDP of {}, {}: they limit \
                 what is sent, whatever the congestion control; to fill the link, give `wmem` and `rmem` \
                 more",
                Bytes(room),
                lane.name,
                lane.bdp
            );
            Problem::Invalid(reason).at(format!("{place}.stack.{key}"))
        })
    });
    narrow.collect()
}

/// The bytes of the headers of IPv4 and TCP without options.
const HEADERS: u64 = 40;

/// Buffers that do not hold one segment of the data.
fn small_buffers(flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        let Some(TcpPlan { stack, peer_stack }) = flow.tcp() else { continue };
        let segment = Bytes((flow.mtu - HEADERS).min(stack.mss).min(peer_stack.mss));
        let buffers = [
            ("wmem", stack.wmem, "Linux keeps a packet in spite of it, others send pieces"),
            ("rmem", peer_stack.rmem, "no full segment ever fits into the window"),
        ];
        for (option, size, effect) in buffers {
            if size < segment && places.insert((&flow.place, option)) {
                let reason = format!(
                    "{size} is less than a segment, which has up to {segment}: {effect}; to avoid \
                     that, give {segment} or more"
                );
                let place = format!("{}.stack.{option}", flow.place);
                warnings.push(Problem::Invalid(reason).at(place));
            }
        }
    }
    warnings
}
