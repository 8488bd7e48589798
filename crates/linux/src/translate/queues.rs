//! Queue disciplines of the kernel.

use super::attributes::Attributes;
use tcplab_engine::{Averaging, PolicerConfig};
use tcplab_guest::job;
use tcplab_model::schema::{
    AckFilter, CakePlan, Framing, PolicerPlan, RedPlan, SfqPlan, TbfPlan, Tins,
};
use tcplab_model::{Discipline, LanePlan, Problem, QueueLimit};
use tcplab_units::Duration;

/// The kernel's disciplines that form the queue of a lane, each the child of the one before; empty
/// for the lane's own drop-tail queue. `is_own`: the queue is the sending host's. Attribute numbers
/// are those of `linux/pkt_sched.h`.
pub(super) fn children(lane: &LanePlan, is_own: bool) -> Result<Vec<job::Discipline>, Problem> {
    let limit = lane.queue.limit;
    let packets = || match limit {
        QueueLimit::Packets(packets) => Ok(packets),
        QueueLimit::Bytes(_) => {
            Err(Problem::Invalid("Linux limits this discipline in packets, not in bytes".into()))
        }
    };
    let micros = |time: Duration| time.as_picos() / 1_000_000;
    let (kind, options) = match &lane.queue.discipline {
        Discipline::DropTail(_) if is_own => return Ok(vec![fifo(limit)]),
        // `DualPI2` was rejected before, by name.
        Discipline::DropTail(_) | Discipline::DualPi2(_) => return Ok(Vec::new()),
        Discipline::Policer(policer) => return Ok(vec![policed(policer)?, fifo(limit)]),
        Discipline::Red(red) => ("red", red_options(red, lane)?),
        Discipline::CoDel(codel) => (
            "codel",
            Attributes::default()
                .u32(1, micros(codel.target))
                .u32(2, packets()?)
                .u32(3, micros(codel.interval))
                .u32(4, u64::from(codel.ecn)),
        ),
        Discipline::FqCoDel(queue) => (
            "fq_codel",
            Attributes::default()
                .u32(1, micros(queue.target))
                .u32(2, packets()?)
                .u32(3, micros(queue.interval))
                .u32(4, u64::from(queue.ecn))
                .u32(5, queue.flows)
                .u32(6, queue.quantum)
                // No memory limit besides the packet limit.
                .u32(9, u64::MAX),
        ),
        Discipline::Pie(pie) => (
            "pie",
            Attributes::default()
                .u32(1, micros(pie.target))
                .u32(2, packets()?)
                .u32(3, micros(pie.update))
                .u32(4, pie.alpha)
                .u32(5, pie.beta)
                .u32(6, u64::from(pie.ecn))
                .u32(7, u64::from(pie.bytemode)),
        ),
        Discipline::FqPie(queue) => (
            "fq_pie",
            Attributes::default()
                .u32(1, packets()?)
                .u32(2, queue.flows)
                .u32(3, micros(queue.target))
                .u32(4, micros(queue.update))
                .u32(5, queue.alpha)
                .u32(6, queue.beta)
                .u32(7, queue.quantum)
                .u32(9, queue.ecn_prob)
                .u32(10, u64::from(queue.ecn))
                .u32(11, u64::from(queue.bytemode)),
        ),
        Discipline::DropHead(_) => ("pfifo_head_drop", Attributes::of_struct(&[packets()?])),
        Discipline::Sfq(sfq) => {
            let packets = packets()?;
            if packets < 2 {
                return Err(Problem::Invalid("Linux SFQ holds two packets at the least".into()));
            }
            // `tc_sfq_qopt_v1`: no perturbation and no RED, whose twelve numbers remain zero.
            let divisor = u64::from(SfqPlan::DIVISOR);
            let options = [sfq.quantum, 0, packets, divisor, sfq.flows, sfq.depth];
            let rest = [0; 12];
            ("sfq", Attributes::of_struct(&[options.as_slice(), &rest].concat()))
        }
        Discipline::Tbf(tbf) => ("tbf", tbf_options(tbf, in_bytes(limit, lane), lane.mtu)?),
        Discipline::Fq(fq) => (
            "fq",
            Attributes::default()
                .u32(1, packets()?)
                .u32(2, fq.flow_limit)
                .u32(3, fq.quantum)
                .u32(4, fq.initial_quantum)
                // Timers are exact: with slack, timers of other hosts would decide when a packet
                // leaves.
                .u32(13, 0),
        ),
        Discipline::Cake(cake) => ("cake", cake_options(cake, in_bytes(limit, lane))),
    };
    Ok(vec![discipline(kind, options)])
}

fn discipline(kind: &str, options: Attributes) -> job::Discipline {
    let (kind, options, more) = (kind.into(), options.finish(), Vec::new());
    job::Discipline { kind, options, more, filter: None }
}

fn fifo(limit: QueueLimit) -> job::Discipline {
    match limit {
        QueueLimit::Packets(packets) => discipline("pfifo", Attributes::of_struct(&[packets])),
        QueueLimit::Bytes(bytes) => discipline("bfifo", Attributes::of_struct(&[bytes])),
    }
}

/// The packet is dropped.
const TC_ACT_SHOT: u32 = 2;

/// `prio` with all packets in its first band, because it lets filters decide about packets:
/// `matchall` with the action `police`. Attribute numbers are those of `linux/pkt_cls.h`.
fn policed(policer: &PolicerPlan) -> Result<job::Discipline, Problem> {
    // `tc_prio_qopt`: bands, at least two, and the band of each priority.
    let prio = Attributes::of_struct(&[2, 0, 0, 0, 0]);
    let rate = (policer.rate.bits_per_second() / 8).max(1);
    let Ok(burst) =
        u32::try_from(PolicerConfig { rate: policer.rate, burst: policer.burst }.ticks())
    else {
        let reason =
            "has a `burst` that takes more than 274 s at its `rate`, which Linux cannot count";
        return Err(Problem::Invalid(reason.into()));
    };
    // `tc_police`: index, action, limit, burst, mtu; `tc_ratespec` of the rate, whose table is
    // present but unused, and of no peak rate; three numbers internal to the kernel.
    let short = rate.min(u32::MAX.into()) as u32;
    let words = [0, TC_ACT_SHOT, 0, burst, u32::MAX, 0x0101, 0, short, 0, 0, 0, 0, 0, 0];
    let words: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let police = Attributes::default()
        .bytes(1, &words) // TCA_POLICE_TBF
        .bytes(2, &[0; 1024]) // TCA_POLICE_RATE
        .bytes(8, &rate.to_le_bytes()); // TCA_POLICE_RATE64
    let action = Attributes::default()
        .bytes(1, b"police\0") // TCA_ACT_KIND
        .bytes(2, &police.finish()); // TCA_ACT_OPTIONS
    let actions = Attributes::default().bytes(1, &action.finish());
    let all = Attributes::default().bytes(2, &actions.finish()); // TCA_MATCHALL_ACT
    let filter = job::Filter { kind: "matchall".into(), options: all.finish() };
    Ok(job::Discipline { filter: Some(filter), ..discipline("prio", prio) })
}

/// The largest super-packet, in bytes, that a sending host's queue accepts whole: a token bucket
/// segments those it could never send (`tbf_enqueue`), and CAKE segments all (`cake_enqueue`).
pub(super) fn largest_burst(lane: &LanePlan) -> u64 {
    match &lane.queue.discipline {
        Discipline::Cake(_) => 0,
        Discipline::Tbf(tbf) if tbf.peakrate.is_some() => {
            tbf.burst.min(tbf.mtu.unwrap_or(lane.mtu))
        }
        Discipline::Tbf(tbf) => tbf.burst,
        _ => u64::MAX,
    }
}

fn cake_options(cake: &CakePlan, memory: u64) -> Attributes {
    let [interval, target] = cake.interval_and_target();
    let [flows, sources, targets] = cake.isolation.parts().map(u64::from);
    let tins = match cake.tins {
        Tins::Diffserv3 => 0,
        Tins::Diffserv4 => 1,
        Tins::Diffserv8 => 2,
        Tins::BestEffort => 3,
        Tins::Precedence => 4,
    };
    let framing = match cake.framing {
        Framing::None => 0,
        Framing::Atm => 1,
        Framing::Ptm => 2,
    };
    let ack_filter = match cake.ack_filter {
        AckFilter::Off => 0,
        AckFilter::On => 1,
        AckFilter::Aggressive => 2,
    };
    // Bytes a second; 0 is unlimited.
    let rate = cake.rate.map_or(0, |rate| (rate.bits_per_second() / 8).max(1));
    Attributes::default()
        .bytes(2, &rate.to_le_bytes())
        .u32(3, tins)
        .u32(4, framing)
        .u32(5, sources | targets << 1 | flows << 2)
        .u32(6, cake.overhead)
        .u32(7, interval)
        .u32(8, target)
        .u32(10, memory)
        // Sizes are those of IP packets already: no frame header is subtracted.
        .u32(12, 0)
        .u32(13, u64::from(cake.wash))
        .u32(14, cake.mpu)
        .u32(15, u64::from(cake.ingress))
        .u32(16, ack_filter)
}

/// `tc_tbf_qopt`, with the exact rate and burst in separate attributes.
fn tbf_options(tbf: &TbfPlan, limit: u64, mtu: u64) -> Result<Attributes, Problem> {
    let rate = tbf.rate.bits_per_second() / 8;
    let peak = tbf.peakrate.map(|rate| rate.bits_per_second() / 8);
    if peak.is_some_and(|peak| peak <= rate) {
        let reason = "has a `peakrate` that is not above its `rate`";
        return Err(Problem::Invalid(reason.into()));
    }
    let short = |value: u64| (value.min(u64::from(u32::MAX)) as u32).to_le_bytes();
    // TC_LINKLAYER_ETHERNET: times are computed instead of looked up.
    let mut parameters = Vec::new();
    for rate in [Some(rate), peak] {
        parameters.extend([0, u8::from(rate.is_some()), 0, 0, 0, 0, 0, 0]);
        parameters.extend(short(rate.unwrap_or(0)));
    }
    parameters.extend(short(limit));
    parameters.extend([0; 8]);
    let attributes = Attributes::default().bytes(1, &parameters);
    let attributes = attributes.bytes(4, &rate.to_le_bytes()).u32(6, tbf.burst);
    Ok(match peak {
        None => attributes,
        Some(peak) => attributes.bytes(5, &peak.to_le_bytes()).u32(7, tbf.mtu.unwrap_or(mtu)),
    })
}

/// The size in bytes, with packets of full size.
fn in_bytes(limit: QueueLimit, lane: &LanePlan) -> u64 {
    match limit {
        QueueLimit::Packets(packets) => packets.saturating_mul(lane.mtu),
        QueueLimit::Bytes(bytes) => bytes,
    }
}

/// RED in Linux's form: in bytes, with the weight as a power of two.
fn red_options(red: &RedPlan, lane: &LanePlan) -> Result<Attributes, Problem> {
    if red.gentle {
        let reason = "Linux RED has no gentle mode; set `gentle = false`, or run it on `sim`";
        return Err(Problem::Invalid(reason.into()));
    }
    let [limit, min, max] = [lane.queue.limit, red.min, red.max].map(|limit| in_bytes(limit, lane));
    // The transmission time of a full packet.
    let packet_time = lane.rate.time_for(lane.mtu);
    let Averaging { weight_log, cell_log, table } = Averaging::new(red.weight, packet_time);
    if max >= 1 << 32 || min << weight_log >= 1 << 32 {
        return Err(Problem::Invalid("exceeds Linux RED's maximum".into()));
    }
    let mut parameters = Vec::new();
    for value in [limit, min, max] {
        parameters.extend((value.min(u64::from(u32::MAX)) as u32).to_le_bytes());
    }
    // The weight, the slope (given exactly below), the cell, the flags for ECN and adaptive RED.
    let flags = u8::from(red.ecn) | u8::from(red.adaptive) << 2;
    parameters.extend([weight_log as u8, 0, cell_log as u8, flags]);
    let probability = (red.probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
    Ok(Attributes::default().bytes(1, &parameters).bytes(2, &table).u32(3, probability))
}
