//! The ports of flows: those of servers, and of their clients' connections.

use crate::arrivals::{Transfers, possible};
use crate::{start, web};
use tcplab_model::schema::{ArrivalsPlan, Begin};
use tcplab_model::{FlowPlan, Plan, TrafficPlan};

/// The first port of servers; clients' ports are further up. Both are outside the ranges from which
/// programs and the kernel choose.
pub const SERVER_PORTS: u16 = 5001;
/// The first port of clients.
pub const CLIENT_PORTS: u16 = 10_001;
/// The first port that the kernel assigns automatically.
pub const EPHEMERAL_PORTS: u16 = 50_001;

/// Whether the end that receives the data opens the connection, to request it.
pub fn asks(flow: &FlowPlan) -> bool {
    matches!(
        *flow.traffic,
        TrafficPlan::Requests(_) | TrafficPlan::Web(_) | TrafficPlan::Command(_)
    )
}

/// The number of the client's ports of a flow: one for each connection that it may open.
pub fn connections(plan: &Plan, flow: &FlowPlan) -> u64 {
    match &*flow.traffic {
        TrafficPlan::Web(web) => web::connections(web),
        TrafficPlan::Arrivals(arrivals) => transfers(plan, flow, arrivals),
        _ => 1,
    }
}

fn transfers(plan: &Plan, flow: &FlowPlan, arrivals: &ArrivalsPlan) -> u64 {
    if let Begin::Closed { users, think } = arrivals.begin {
        let all = possible(plan, flow, think).saturating_mul(users);
        return arrivals.transfers.map_or(all, |most| most.min(all));
    }
    let room = plan.duration.saturating_sub(start(flow, plan.seed));
    let transfers = Transfers::new(arrivals, plan.seed, &flow.name).into_iter().flatten();
    transfers.take_while(|it| it.after < room).count() as u64
}
