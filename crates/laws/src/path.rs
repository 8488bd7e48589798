//! The flows and links of a plan by the names in tables, and the minimum times of paths.

use crate::capacity::least_time;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tcplab_model::{FlowPlan, Plan};
use tcplab_units::Duration;

/// The smallest TCP packet: 20 bytes of IP and 20 of TCP, without options.
const SMALLEST: u64 = 40;

/// The flows and links of a plan by name.
pub(crate) struct Names<'a> {
    plan: &'a Plan,
    flows: OnceCell<BTreeMap<&'a str, usize>>,
    lanes: OnceCell<BTreeMap<&'a str, usize>>,
}

impl<'a> Names<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, flows: OnceCell::new(), lanes: OnceCell::new() }
    }

    /// The planned flow of a row: `NAME`, or `NAME#3` with many connections or sessions. Tables
    /// usually have the order of the plan, in which the flow's place is `hint`.
    pub fn flow(&self, name: &str, hint: usize) -> Option<&'a FlowPlan> {
        let flows = &self.plan.flows;
        if let Some(flow) = flows.get(hint).filter(|flow| flow.name == name) {
            return Some(flow);
        }
        let by_name = self.flows.get_or_init(|| {
            flows.iter().enumerate().map(|(place, flow)| (flow.name.as_str(), place)).collect()
        });
        let place = by_name.get(name).or_else(|| by_name.get(name.rsplit_once('#')?.0))?;
        Some(&flows[*place])
    }

    /// The number of a lane.
    pub fn lane(&self, name: &str, hint: usize) -> Option<usize> {
        let lanes = &self.plan.lanes;
        if lanes.get(hint).is_some_and(|lane| lane.name == name) {
            return Some(hint);
        }
        let by_name = self.lanes.get_or_init(|| {
            lanes.iter().enumerate().map(|(place, lane)| (lane.name.as_str(), place)).collect()
        });
        by_name.get(name).copied()
    }
}

/// The likely place of a label in the plan: usually the first text of the table is the run's id and
/// the others are in the order of the plan.
pub(crate) fn hint(label: u32) -> usize {
    (label as usize).wrapping_sub(1)
}

/// The minimum round-trip time of the smallest packets: propagation and transmission, at the
/// highest rate and shortest delay of each lane.
pub(crate) fn least_rtt(plan: &Plan, flow: &FlowPlan) -> Duration {
    let lanes = flow.forward.iter().chain(&flow.back).map(|&lane| &plan.lanes[lane]);
    // The plan's RTT exceeds the delays of the links only if one of the two is wrong.
    let more = flow.base_rtt.saturating_sub(lanes.clone().map(|lane| lane.delay).sum());
    more + lanes.map(|lane| least_time(lane, SMALLEST)).sum()
}

/// The smallest UDP packet: 20 bytes of IP and 8 of UDP.
const SMALLEST_OF_UDP: u64 = 28;

/// The minimum one-way time of a datagram.
pub(crate) fn least_delay(plan: &Plan, flow: &FlowPlan) -> Duration {
    let lanes = flow.forward.iter().map(|&lane| &plan.lanes[lane]);
    lanes.map(|lane| least_time(lane, SMALLEST_OF_UDP)).sum()
}
