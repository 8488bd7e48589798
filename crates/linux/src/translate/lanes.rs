//! Links: a pair of devices, each with a lane of `kernel/net/lane.c` as the way out of it.

use super::attributes::Attributes;
use super::not_here;
use tcplab_engine::{Averaging, Random};
use tcplab_guest::job;
use tcplab_model::{
    Discipline, FlowPlan, LanePlan, Loss, Mistake, PathMtu, Plan, Probability, Problem, QueueLimit,
    RateChanges, schema::Holding,
};
use tcplab_units::Duration;

/// The kinds of attributes that `lane.c` knows.
const LANE: u16 = 1;
const STEPS: u16 = 2;
const LISTED: u16 = 3;

/// The longest list that fits into one attribute.
const MOST_BYTES: usize = 65_000;

/// All links, each with the numbers of its two lanes: the first leaves the first end.
pub(super) fn links(plan: &Plan, mistakes: &mut Vec<Mistake>) -> Vec<(job::Link, [usize; 2])> {
    let mut devices = vec![0; plan.nodes.len()];
    let mut links = Vec::new();
    let mut seen = "";
    for (number, pair) in plan.lanes.chunks(2).enumerate() {
        let [there, back] = pair else { continue };
        // Links made by one description share its mistakes.
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

/// The least size of packets that the kernel believes a router wants (`min_pmtu`).
const LEAST_TOLD: u64 = 552;

/// A path whose MTU is to be discovered: routers are the kernel's own, and say what they have to say.
pub(super) fn refuse_sizes(plan: &Plan, flow: &FlowPlan, mistakes: &mut Vec<Mistake>) {
    let ways = [(&flow.stack, &flow.forward), (&flow.peer_stack, &flow.back)];
    for (_, lanes) in ways.into_iter().filter(|way| way.0.path_mtu == PathMtu::Discovered) {
        let mut least = u64::MAX;
        for (place, number) in lanes.iter().copied().enumerate() {
            let lane = &plan.lanes[number];
            let narrows = place > 0 && lane.mtu < least;
            least = least.min(lane.mtu);
            let found = if narrows && !lane.icmp {
                Some(("icmp", "a router that says nothing of packets too large for a link"))
            } else if narrows && lane.mtu < LEAST_TOLD {
                Some(("mtu", "a router that wants packets smaller than 552 bytes"))
            } else if lane.mtu < plan.lanes[number ^ 1].mtu {
                Some(("mtu", "a link that takes larger packets in the other direction"))
            } else {
                None
            };
            if let Some((key, what)) = found {
                let mistake = not_here(what).at(format!("{}.{key}", lane.place));
                if !mistakes.contains(&mistake) {
                    mistakes.push(mistake);
                }
            }
        }
    }
}

fn disciplines(
    plan: &Plan,
    lane: &LanePlan,
    number: usize,
    mistakes: &mut Vec<Mistake>,
) -> Vec<job::Discipline> {
    let mut refuse = |key: &str, problem: Problem| {
        mistakes.push(problem.at(format!("{}.{key}", lane.place)));
    };
    if lane.lan.is_some() {
        let problem = Problem::NotYet { what: "a shared medium".into(), have: Vec::new() };
        mistakes.push(problem.at(&lane.place));
        return Vec::new();
    }
    let steps = match &lane.rate_changes {
        Some(RateChanges::Steps(steps)) => steps.as_slice(),
        Some(RateChanges::Trace { .. }) => {
            let problem = Problem::NotYet {
                what: "a rate that follows a trace".into(),
                have: vec!["steps".into()],
            };
            refuse("rate_changes", problem);
            &[]
        }
        None => &[],
    };
    let listed = match &lane.loss {
        Some(Loss::Listed(loss)) => {
            let mut listed = loss.packets.clone();
            listed.sort_unstable();
            listed.dedup();
            listed
        }
        _ => Vec::new(),
    };
    for (key, entries, bytes) in [("rate_changes", steps.len(), 16), ("loss", listed.len(), 8)] {
        if entries * bytes > MOST_BYTES {
            let most = (MOST_BYTES / bytes) as u64;
            refuse(key, Problem::TooMany { what: "entries", number: entries as u128, most });
        }
    }
    let child = match child(lane) {
        Ok(child) => child,
        Err(problem) => {
            refuse("queue", problem);
            None
        }
    };
    let mut options =
        Attributes::default().bytes(LANE, &config(plan, lane, number, child.is_some()));
    if !steps.is_empty() {
        let words = steps.iter().flat_map(|(at, rate)| [at.as_picos(), rate.bits_per_second()]);
        options = options.bytes(STEPS, &bytes(words));
    }
    if !listed.is_empty() {
        options = options.bytes(LISTED, &bytes(listed));
    }
    let root = job::Discipline { kind: "tcplab_lane".into(), options: options.finish() };
    std::iter::once(root).chain(child).collect()
}

/// `struct lane_config` of `lane.c`.
fn config(plan: &Plan, lane: &LanePlan, number: usize, has_child: bool) -> Vec<u8> {
    let is_captured = plan.record.captures.contains(&number);
    let (packets, queued_bytes) = match lane.queue.limit {
        QueueLimit::Packets(packets) => (packets, u64::MAX),
        QueueLimit::Bytes(bytes) => (u64::MAX, bytes),
    };
    let never = Probability(0.0);
    let mut loss = LossWords { kind: 0, chances: [never; 4], good: 0, bad: 0, exponential: false };
    match &lane.loss {
        None => {}
        Some(Loss::Independent(independent)) => {
            loss.kind = 1;
            loss.chances[2] = independent.probability;
        }
        Some(Loss::Listed(_)) => loss.kind = 2,
        Some(Loss::Gilbert(it)) => {
            loss.kind = 3;
            loss.chances = [it.to_bad, it.to_good, it.loss_good, it.loss_bad];
        }
        Some(Loss::GilbertTime(it)) => {
            loss.kind = 4;
            loss.chances = [it.change, never, it.loss_good, it.loss_bad];
            (loss.good, loss.bad) = (it.good.as_picos(), it.bad.as_picos());
            loss.exponential = it.holding == Holding::Exponential;
        }
    }
    let (reordering, held) = match &lane.reordering {
        Some(it) => (it.probability, it.delay.as_picos()),
        None => (never, 0),
    };
    let mut content = bytes([(number as u64) | u64::from(is_captured) << 32]);
    content.extend(bytes([
        lane.rate.bits_per_second(),
        lane.delay.as_picos(),
        lane.jitter.as_picos(),
        packets,
        queued_bytes,
        u64::from(has_child),
        loss.kind,
    ]));
    content.extend(bytes(loss.chances.into_iter().flat_map(chance)));
    content.extend(bytes([loss.good, loss.bad, u64::from(loss.exponential)]));
    content.extend(bytes(chance(reordering)));
    content.extend(bytes([held]));
    for element in ["loss", "jitter", "reordering"] {
        content.extend(Random::seed_of(plan.seed, &format!("{element} {}", lane.name)));
    }
    content
}

struct LossWords {
    kind: u64,
    /// To bad, to good, loss in the good state, loss in the bad state.
    chances: [Probability; 4],
    good: u64,
    bad: u64,
    exponential: bool,
}

/// What 64 random bits must be below, and whether it always happens.
fn chance(probability: Probability) -> [u64; 2] {
    let two_to_64 = 18_446_744_073_709_551_616.0;
    let below = (probability.0.clamp(0.0, 1.0) * two_to_64) as u128;
    u64::try_from(below).map_or([u64::MAX, 1], |below| [below, 0])
}

fn bytes(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The discipline of the kernel that is the queue of a lane, if it is not drop-tail. The numbers of
/// attributes are those of `linux/pkt_sched.h`.
fn child(lane: &LanePlan) -> Result<Option<job::Discipline>, Problem> {
    let limit = lane.queue.limit;
    let packets = || match limit {
        QueueLimit::Packets(packets) => Ok(packets),
        QueueLimit::Bytes(_) => {
            Err(Problem::Invalid("Linux limits this discipline in packets, not in bytes".into()))
        }
    };
    let in_bytes = |limit| match limit {
        QueueLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        QueueLimit::Bytes(bytes) => bytes,
    };
    let micros = |time: Duration| time.as_picos() / 1_000_000;
    let (kind, options) = match &lane.queue.discipline {
        Discipline::DropTail => return Ok(None),
        Discipline::Red { min, max, probability, weight, gentle, ecn } => {
            if *gentle {
                return Err(Problem::Invalid(
                    "Linux RED has no gentle mode; set gentle = false".into(),
                ));
            }
            let red = Red {
                limit: in_bytes(limit),
                min: in_bytes(*min),
                max: in_bytes(*max),
                probability: *probability,
                weight: *weight,
                ecn: *ecn,
                packet_time: lane.rate.time_for(lane.mtu),
            };
            ("red", red.options()?)
        }
        Discipline::CoDel { target, interval, ecn } => (
            "codel",
            Attributes::default()
                .u32(1, micros(*target))
                .u32(2, packets()?)
                .u32(3, micros(*interval))
                .u32(4, u64::from(*ecn)),
        ),
        Discipline::FqCoDel { flows, quantum, target, interval, ecn } => (
            "fq_codel",
            Attributes::default()
                .u32(1, micros(*target))
                .u32(2, packets()?)
                .u32(3, micros(*interval))
                .u32(4, u64::from(*ecn))
                .u32(5, *flows)
                .u32(6, *quantum),
        ),
        Discipline::Pie { target, update, ecn } => (
            "pie",
            Attributes::default()
                .u32(1, micros(*target))
                .u32(2, packets()?)
                .u32(3, micros(*update))
                .u32(6, u64::from(*ecn)),
        ),
        Discipline::Fq { flow_limit, quantum } => {
            ("fq", Attributes::default().u32(1, packets()?).u32(2, *flow_limit).u32(3, *quantum))
        }
        Discipline::Cake { rtt } => (
            "cake",
            // As `tc` does: the target is a twentieth of the interval.
            Attributes::default()
                .u32(7, micros(*rtt).max(1))
                .u32(8, (micros(*rtt) / 20).max(1))
                .u32(10, in_bytes(limit)),
        ),
    };
    Ok(Some(job::Discipline { kind: kind.into(), options: options.finish() }))
}

/// RED as Linux has it: in bytes, with the weight as a power of two.
struct Red {
    limit: u64,
    min: u64,
    max: u64,
    probability: f64,
    weight: f64,
    ecn: bool,
    /// How long a packet of full size takes.
    packet_time: Duration,
}

impl Red {
    fn options(&self) -> Result<Attributes, Problem> {
        let Averaging { weight_log, cell_log, table } =
            Averaging::new(self.weight, self.packet_time);
        if self.max >= 1 << 32 || self.min << weight_log >= 1 << 32 {
            return Err(Problem::Invalid("is larger than RED of Linux can count".into()));
        }
        if self.min > self.max {
            return Err(Problem::Invalid("has a `min` that is above its `max`".into()));
        }
        let mut parameters = Vec::new();
        for value in [self.limit, self.min, self.max] {
            parameters.extend((value.min(u64::from(u32::MAX)) as u32).to_le_bytes());
        }
        // The weight, the slope (given exactly below), the cell, ECN.
        parameters.extend([weight_log as u8, 0, cell_log as u8, u8::from(self.ecn)]);
        let probability = (self.probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
        Ok(Attributes::default().bytes(1, &parameters).bytes(2, &table).u32(3, probability))
    }
}
