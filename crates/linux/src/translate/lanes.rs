//! Links: a pair of devices, each with a lane of `kernel/net/lane.c` as its outgoing direction.

use super::attributes::Attributes;
use super::{losses, queues};
use tcplab_engine::Random;
use tcplab_guest::job;
use tcplab_model::schema::Jitter;
use tcplab_model::{
    Discipline, FlowPlan, LanePlan, Mistake, PathMtu, Plan, Probability, Problem, QueueLimit,
    TcpPlan, support,
};
use tcplab_units::Duration;
use tcplab_workload::links as changes;
use tcplab_workload::spread::{Cell, cells};

/// The attribute types of `lane.c`.
const LANE: u16 = 1;
const STEPS: u16 = 2;
const LISTED: u16 = 3;
const DELAYS: u16 = 4;
const TRACE: u16 = 5;
const JITTER: u16 = 6;
const ACCESS: u16 = 7;
const TRAINS: u16 = 8;
const OFFSETS: u16 = 9;

/// Arguments of `lane.c`: report the start of each packet's transmission, or all points.
const WATCHED_LEAVING: u64 = 1;
const WATCHED_THROUGHOUT: u64 = 2;

/// Flags in `lane.c` for a queue of the sending host.
const OWN_QUEUE: u64 = 1;
const OWN_DROP_TAIL: u64 = 2;

/// The largest part of a list in one attribute: whole entries of 8, 16 or 24 bytes.
const MOST_BYTES: usize = 48_000;

/// All links, each with the numbers of its two lanes: the first one leaves the first end.
pub(super) fn links(plan: &Plan, mistakes: &mut Vec<Mistake>) -> Vec<(job::Link, [usize; 2])> {
    let mut devices = vec![0; plan.nodes.len()];
    let mut links = Vec::new();
    let mut seen = "";
    for (number, pair) in plan.lanes.chunks(2).enumerate() {
        let [there, back] = pair else { continue };
        // Links from one description share its mistakes.
        let mut found = Vec::new();
        let mtu = there.mtu.max(back.mtu) as u32;
        let mut end = |lane: &LanePlan, number: usize| {
            let device = format!("eth{}", devices[lane.from]);
            devices[lane.from] += 1;
            job::End {
                host: lane.from,
                device,
                mtu,
                disciplines: disciplines(plan, lane, number, &mut found),
            }
        };
        let ends = [end(there, 2 * number), end(back, 2 * number + 1)];
        links.push((job::Link { ends }, [2 * number, 2 * number + 1]));
        if there.place != seen || found.is_empty() {
            mistakes.append(&mut found);
        }
        seen = &there.place;
    }
    mistakes.dedup();
    links
}

/// The minimum path MTU that the kernel accepts from a router (`min_pmtu`).
const LEAST_TOLD: u64 = 552;

/// Rejects unsuitable paths for MTU discovery: routers are the kernel's own, and send its messages.
pub(super) fn unsupported_sizes(plan: &Plan, flow: &FlowPlan, mistakes: &mut Vec<Mistake>) {
    let stacks = flow.tcp().into_iter().flat_map(TcpPlan::stacks);
    let ways = stacks.zip([&flow.forward, &flow.back]);
    for (_, lanes) in ways.filter(|way| way.0.path_mtu == PathMtu::Discovered) {
        let mut least = u64::MAX;
        for (place, number) in lanes.iter().copied().enumerate() {
            let lane = &plan.lanes[number];
            let narrows = place > 0 && lane.mtu < least;
            least = least.min(lane.mtu);
            let found = if narrows && !lane.icmp {
                Some(("icmp", None))
            } else if narrows && lane.mtu < LEAST_TOLD {
                Some(("mtu", Some("small")))
            } else if lane.mtu < plan.lanes[number ^ 1].mtu {
                Some(("mtu", Some("unequal")))
            } else {
                None
            };
            if let Some((key, kind)) = found {
                let problem = support::missing(key, kind, crate::NAME);
                let mistake = problem.at(format!("{}.{key}", lane.place));
                if !mistakes.contains(&mistake) {
                    mistakes.push(mistake);
                }
            }
        }
    }
}

/// Whether flows begin or end at a node.
fn is_end(plan: &Plan, node: usize) -> bool {
    plan.flows.iter().any(|flow| [flow.from, flow.to].contains(&node))
}

/// Rejects processors that programs would wait for, and those of hosts whose lanes carry other
/// traffic too.
pub(super) fn unsupported_processors(plan: &Plan, mistakes: &mut Vec<Mistake>) {
    for host in plan.hosts.iter().filter(|host| host.cpu.is_some()) {
        let mut add = |kind| {
            let problem = support::missing("cpu", Some(kind), crate::NAME);
            mistakes.push(problem.at(format!("{}.cpu", host.place)));
        };
        if plan.flows.iter().any(|flow| flow.from == host.node && flow.tcp().is_none()) {
            add("datagrams");
        }
        let passes = |flow: &FlowPlan| {
            let ways = flow.forward.iter().skip(1).chain(flow.back.iter().skip(1));
            ways.into_iter().any(|&lane| plan.lanes[lane].from == host.node)
        };
        if is_end(plan, host.node) && plan.flows.iter().any(passes) {
            add("router");
        }
    }
}

fn disciplines(
    plan: &Plan,
    lane: &LanePlan,
    number: usize,
    mistakes: &mut Vec<Mistake>,
) -> Vec<job::Discipline> {
    let mut add = |key: &str, problem: Problem| {
        mistakes.push(problem.at(format!("{}.{key}", lane.place)));
    };
    let is_own = plan.has_qdisc(lane.from);
    let children = queues::children(lane, is_own).unwrap_or_else(|problem| {
        add("queue", problem);
        Vec::new()
    });
    let (lists, period) = lists(plan, lane);
    let config = config(plan, lane, number, !children.is_empty(), period);
    let options = Attributes::default().bytes(LANE, &config).finish();
    let parts = lists.iter().flat_map(|(kind, list)| list.chunks(MOST_BYTES).map(|it| (*kind, it)));
    let more = parts.map(|(kind, part)| Attributes::default().bytes(kind, part).finish()).collect();
    let root = job::Discipline { kind: "tcplab_lane".into(), options, more, filter: None };
    std::iter::once(root).chain(children).collect()
}

/// The lists of a lane, by attribute type, and the period of its trace.
fn lists(plan: &Plan, lane: &LanePlan) -> (Vec<(u16, Vec<u8>)>, u64) {
    let (seed, duration) = (plan.seed, plan.duration);
    let trace = changes::opportunities(lane, seed, duration);
    let period = trace.as_ref().map_or(0, |trace| trace.1);
    // Traces already account for outages.
    let rates = match trace {
        Some(_) => Vec::new(),
        None => changes::rates(lane, seed, duration),
    };
    let rates = rates.into_iter().flat_map(|(at, rate)| [at.as_picos(), rate.bits_per_second()]);
    let delays = changes::delays(lane, seed, duration);
    let delays = delays.into_iter().flat_map(|(at, delay)| [at.as_picos(), delay.as_picos()]);
    // Two 32-bit numbers each.
    let trace = trace.into_iter().flat_map(|(list, _)| list);
    let trace = trace.map(|(ms, count)| ms | count << 32);
    let jitter = match &lane.jitter {
        Jitter::UpTo(_) => Vec::new(),
        Jitter::Spread(it) => cells(it),
    };
    let access = lane.contention.as_ref().map_or_else(Vec::new, |it| cells(&it.access));
    let trains = lane.light.as_ref().map_or(&[][..], |light| &light.trains.0);
    let offsets = trains.iter().flat_map(|train| train.opportunities.iter().copied());
    let ends = trains.iter().scan(0, |end, train| {
        *end += train.opportunities.len() as u64;
        Some(*end)
    });
    let trains = trains.iter().zip(ends);
    let trains = trains.flat_map(|(it, end)| [it.at.as_micros(), it.delay.as_micros(), end]);
    let words =
        |cells: Vec<Cell>| cells.into_iter().flat_map(|it| [it.0.as_picos(), it.1.as_picos()]);
    let lists = vec![
        (STEPS, bytes(rates)),
        (LISTED, bytes(losses::listed(lane.loss.as_ref()))),
        (DELAYS, bytes(delays)),
        (TRACE, bytes(trace)),
        (JITTER, bytes(words(jitter))),
        (ACCESS, bytes(words(access))),
        (TRAINS, bytes(trains)),
        (OFFSETS, bytes(offsets)),
    ];
    (lists, period)
}

/// `struct lane_config` of `lane.c`.
fn config(
    plan: &Plan,
    lane: &LanePlan,
    number: usize,
    has_child: bool,
    trace_period: u64,
) -> Vec<u8> {
    let record = &plan.record;
    let watched = [(&record.captures, WATCHED_LEAVING), (&record.packets, WATCHED_THROUGHOUT)]
        .into_iter()
        .filter(|(lanes, _)| lanes.contains(&number))
        .fold(0, |watched, (_, what)| watched | what);
    let (packets, queued_bytes) = match lane.queue.limit {
        QueueLimit::Packets(packets) => (packets, u64::MAX),
        QueueLimit::Bytes(bytes) => (u64::MAX, bytes),
    };
    let loss = losses::words(lane.loss.as_ref());
    let jitter = match &lane.jitter {
        Jitter::UpTo(most) => most.as_picos(),
        Jitter::Spread(_) => 0,
    };
    let (reordering, held) = match &lane.reordering {
        Some(it) => (it.probability, it.delay.as_picos()),
        None => (Probability(0.0), 0),
    };
    let mut content = bytes([(number as u64) | watched << 32]);
    content.extend(bytes([
        lane.rate.bits_per_second(),
        lane.delay.as_picos(),
        jitter,
        packets,
        queued_bytes,
        u64::from(has_child),
        loss.kind,
    ]));
    content.extend(bytes(loss.chances.into_iter().flat_map(chance)));
    content.extend(bytes([
        loss.good,
        loss.bad,
        u64::from(loss.exponential),
        u64::from(loss.sampled),
    ]));
    content.extend(bytes(chance(reordering)));
    content.extend(bytes([held, loss.on]));
    content.extend(bytes([lane.corruption, lane.duplication].into_iter().flat_map(chance)));
    let after = lane.light.as_ref().map_or(0, |light| light.after.as_picos());
    let aggregate = lane.contention.as_ref().map_or(0, |it| it.aggregate);
    let is_drop_tail = matches!(lane.queue.discipline, Discipline::DropTail(_));
    let own = match plan.has_qdisc(lane.from) {
        false => 0,
        true if is_drop_tail => OWN_DROP_TAIL,
        true => OWN_QUEUE,
    };
    let largest = queues::largest_burst(lane);
    let wait = plan.gro(lane.to).map_or(0, Duration::as_nanos);
    let overtaking = u64::from(lane.overtaking);
    content.extend(bytes([overtaking, trace_period, after, aggregate, own, largest, wait]));
    // A router forwards in no time.
    for node in [lane.from, lane.to] {
        let cpu = plan.cpu(node).filter(|_| is_end(plan, node));
        content.extend(bytes(
            cpu.map_or([0; 3], |cpu| [node as u64 + 1, cpu.packet.as_picos(), cpu.ack.as_picos()]),
        ));
    }
    for element in ["loss", "jitter", "reordering", "corruption", "duplication", "access", "states"]
    {
        content.extend(Random::seed_of(plan.seed, &format!("{element} {}", lane.name)));
    }
    // The engine names the generator of a discipline after it.
    let discipline = lane.queue.discipline.word();
    content.extend(Random::seed_of(plan.seed, &format!("{discipline} {}", lane.name)));
    let mut hash = Random::new(plan.seed, &format!("hash {}", lane.name));
    content.extend(bytes([hash.bits()]));
    content
}

/// The bound that 64 random bits must be below, and whether the event always happens.
fn chance(probability: Probability) -> [u64; 2] {
    let two_to_64 = 18_446_744_073_709_551_616.0;
    let below = (probability.0.clamp(0.0, 1.0) * two_to_64) as u128;
    u64::try_from(below).map_or([u64::MAX, 1], |below| [below, 0])
}

fn bytes(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}
