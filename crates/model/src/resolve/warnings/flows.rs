//! Warnings about flows: their times, and their paths.

use super::super::topology::Topology;
use crate::mistake::{Mistake, Problem};
use crate::plan::{FlowPlan, QueueLimit};
use crate::schema::{Ecn, Experiment, Traffic, TrafficPlan};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::Duration;

/// Flows that begin after the end of the experiment and are in no statistic.
pub(super) fn late_flows(flows: &[FlowPlan], duration: Duration) -> Vec<Mistake> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for flow in flows {
        let (late, all) = counts.entry(&flow.place).or_default();
        *late += usize::from(flow.start >= duration);
        *all += 1;
    }
    let late = counts.into_iter().filter(|(_, (late, _))| *late > 0);
    let warnings = late.map(|(place, (late, all))| {
        let reason = format!(
            "{late} of {all} would begin at or after the end of the experiment at {duration}, and \
             do not run: no statistic includes them; to run all, make `duration` longer"
        );
        Problem::Invalid(reason).at(place)
    });
    warnings.collect()
}

/// Random starts that may be after the end of the experiment, and on periods that are.
pub(super) fn late_periods(flows: &[FlowPlan], duration: Duration) -> Vec<Mistake> {
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

/// Transfers that arrive faster than their bottleneck can carry them.
pub(super) fn overloads(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let mut loads: BTreeMap<usize, (f64, &str)> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.tcp().is_some()) {
        if let Some(offered) = flow.traffic.offered() {
            loads.entry(flow.bottleneck).or_insert((0.0, &flow.place)).0 += offered;
        }
    }
    let over = loads.into_iter().filter(|(_, (load, _))| *load > 1.0);
    let warnings = over.map(|(lane, (load, place))| {
        let reason = format!(
            "transfers ask for {:.0} % of the rate of {}: transfers pile up until the experiment \
             ends (0.6 means 60 %, as does \"60 %\")",
            load * 100.0,
            topology.lanes[lane].name
        );
        Problem::Invalid(reason).at(format!("{place}.traffic"))
    });
    warnings.collect()
}

/// Datagrams at so many times the rate of their bottleneck are probably a wrong unit.
const FLOOD: f64 = 10.0;

/// Datagrams of which hardly any can get through.
pub(super) fn floods(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
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

/// Datagrams in more fragments than the first queue holds: the fragments arrive at once, and the
/// loss of one loses the datagram.
pub(super) fn torn(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
    let (mut places, mut warnings) = (BTreeSet::new(), Vec::new());
    for flow in flows {
        let (TrafficPlan::Udp(udp), Some(&first)) = (&*flow.traffic, flow.forward.first()) else {
            continue;
        };
        // Fragments carry multiples of eight bytes behind the IPv4 header, one of them the UDP
        // header.
        let each = (flow.mtu.saturating_sub(20) / 8 * 8).max(8);
        let fragments = (udp.payload.0 + 8).div_ceil(each);
        let lane = &topology.lanes[first];
        let room = match lane.queue.limit {
            QueueLimit::Packets(packets) => packets,
            QueueLimit::Bytes(bytes) => bytes / flow.mtu,
        };
        // One fragment is in transmission.
        if fragments > room.saturating_add(1) && places.insert(&flow.place) {
            let reason = format!(
                "each datagram comes in {fragments} fragments at once, and the queue of {} has room for \
                 {room} packets: no datagram arrives whole; to let them pass, give it \
                 {fragments} packets or more",
                lane.name
            );
            warnings.push(Problem::Invalid(reason).at(format!("{}.traffic.payload", flow.place)));
        }
    }
    warnings
}

/// Flows that use ECN on a path where nothing marks.
pub(super) fn unmarked(topology: &Topology, flows: &[FlowPlan]) -> Vec<Mistake> {
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

/// Loads relative to a link whose rate changes.
pub(super) fn changing_loads(
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
