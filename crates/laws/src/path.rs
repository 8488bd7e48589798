//! The flows of a plan behind the rows of tables, and what their paths cost.

use tcplab_model::{FlowPlan, Plan};
use tcplab_units::Duration;

/// The smallest packet of TCP: 20 bytes of IP and 20 of TCP, without options.
const SMALLEST: u64 = 40;

/// The planned flow that a row is of: `NAME`, or `NAME#3` where it has many connections or sessions.
pub(crate) fn flow_of<'a>(plan: &'a Plan, name: &str) -> Option<&'a FlowPlan> {
    let named = |name: &str| plan.flows.iter().find(|flow| flow.name == name);
    named(name).or_else(|| named(name.rsplit_once('#')?.0))
}

/// The least time in which a packet can go to the other end and another come back: propagation, and the
/// transmission of the smallest packets at the highest rate that each lane ever has.
pub(crate) fn least_rtt(plan: &Plan, flow: &FlowPlan) -> Duration {
    let lanes = flow.forward.iter().chain(&flow.back).map(|&lane| &plan.lanes[lane]);
    lanes.fold(flow.base_rtt, |sum, lane| {
        sum + crate::capacity::highest_rate(lane).time_for(SMALLEST)
    })
}
