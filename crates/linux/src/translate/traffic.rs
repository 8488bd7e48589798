//! Traffic of flows.

use super::{MOST_FLOWS, nanos};
use std::net::Ipv4Addr;
use tcplab_guest::job;
use tcplab_model::schema::{ArrivalsPlan, Begin, WebPlan};
use tcplab_model::{FlowPlan, Mistake, Plan, Problem, TrafficPlan};
use tcplab_units::Duration;
use tcplab_workload::{Transfer, Transfers, User, arrivals, pace, start, web};

/// The most transfers of one flow, more than any run could have.
const MOST_PARTS: u64 = 1_000_000;

/// The traffic of a flow.
pub(super) fn traffic(
    plan: &Plan,
    flow: &FlowPlan,
    mistakes: &mut Vec<Mistake>,
) -> Option<job::Traffic> {
    Some(match &*flow.traffic {
        TrafficPlan::Bulk(bulk) => job::Traffic::Bulk {
            size: bulk.size.map(|size| size.0),
            write: bulk.write.map(|piece| piece.0),
        },
        TrafficPlan::OnOff(times) => {
            let periods = times.periods.iter().map(|(from, until)| (nanos(*from), nanos(*until)));
            job::Traffic::OnOff { periods: periods.collect() }
        }
        TrafficPlan::Udp(udp) => {
            job::Traffic::Udp { pace: pace(udp, plan.seed, &flow.name), payload: udp.payload.0 }
        }
        TrafficPlan::Requests(requests) => job::Traffic::Requests {
            request: requests.request.0,
            response: requests.response.0,
            server_time: nanos(requests.server_time),
            think: nanos(requests.think),
            count: requests.requests,
        },
        TrafficPlan::Command(command) => {
            job::Traffic::Command { server: command.server.clone(), client: command.client.clone() }
        }
        TrafficPlan::Web(web) => job::Traffic::Sessions(sessions(web)),
        TrafficPlan::Arrivals(arrivals) => match arrivals_of(plan, flow, arrivals) {
            Ok(traffic) => traffic,
            Err(problem) => {
                mistakes.push(problem.at(format!("{}.traffic", flow.place)));
                return None;
            }
        },
    })
}

fn sessions(web: &WebPlan) -> job::Sessions {
    job::Sessions {
        loads: web::sessions(web).map(|session| (session.request, session.size)).collect(),
        server_time: nanos(web.server_time),
        at_once: web.at_once as usize,
        persistent: web.persistent,
    }
}

fn arrivals_of(
    plan: &Plan,
    flow: &FlowPlan,
    arrivals: &ArrivalsPlan,
) -> Result<job::Traffic, Problem> {
    if let Begin::Closed { users, think } = arrivals.begin {
        return closed_loop(plan, flow, arrivals, (users, think));
    }
    let room = plan.duration.saturating_sub(start(flow, plan.seed));
    let begin = |transfer: &Transfer| transfer.after < room;
    let transfers = Transfers::new(arrivals, plan.seed, &flow.name).into_iter().flatten();
    // There are fewer ports than that, so any excess is rejected later.
    let transfers = transfers.take_while(begin).take(MOST_PARTS as usize);
    Ok(job::Traffic::Transfers(transfers.map(|it| (nanos(it.after), it.size)).collect()))
}

/// As many sizes as each user has time for.
fn closed_loop(
    plan: &Plan,
    flow: &FlowPlan,
    arrivals: &ArrivalsPlan,
    (users, think): (u64, Duration),
) -> Result<job::Traffic, Problem> {
    if users > MOST_FLOWS {
        let (what, number) = ("users of one flow", users.into());
        return Err(Problem::TooMany { what, number, most: MOST_FLOWS });
    }
    let possible = arrivals::possible(plan, flow, think);
    let each = possible.min(arrivals.transfers.unwrap_or(u64::MAX));
    let all = u128::from(each) * u128::from(users);
    let most = all.min(arrivals.transfers.map_or(all, u128::from));
    if all > u128::from(MOST_PARTS) {
        let what = "possible transfers of users; fewer `users` or `transfers` are fewer";
        return Err(Problem::TooMany { what, number: all, most: MOST_PARTS });
    }
    let sizes = |user| {
        let sizes = User::new(arrivals, plan.seed, &flow.name, user);
        sizes.take(each as usize).collect()
    };
    Ok(job::Traffic::Users(job::Users {
        sizes: (0..users).map(sizes).collect(),
        think: nanos(think),
        most: most as usize,
    }))
}

/// Replaces `{server}` and `{client}` in command lines with addresses.
pub(super) fn with_addresses(
    traffic: job::Traffic,
    server_address: Ipv4Addr,
    client_address: Ipv4Addr,
) -> job::Traffic {
    let filled = |line: &str| {
        let line = line.replace("{server}", &server_address.to_string());
        line.replace("{client}", &client_address.to_string())
    };
    match traffic {
        job::Traffic::Command { server, client } => {
            job::Traffic::Command { server: filled(&server), client: filled(&client) }
        }
        other => other,
    }
}
