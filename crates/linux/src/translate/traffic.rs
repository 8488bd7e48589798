//! What flows send.

use super::nanos;
use std::net::Ipv4Addr;
use tcplab_engine::Random;
use tcplab_guest::job;
use tcplab_model::schema::Web;
use tcplab_model::{FlowPlan, Mistake, Plan, Problem, Traffic};
use tcplab_units::Duration;
use tcplab_workload::{Transfer, Transfers, web};

/// More sessions or transfers of one flow than any run could have.
const MOST_PARTS: u64 = 1_000_000;

/// The traffic of a flow.
pub(super) fn traffic(
    plan: &Plan,
    flow: &FlowPlan,
    mistakes: &mut Vec<Mistake>,
) -> Option<job::Traffic> {
    Some(match &*flow.traffic {
        Traffic::Bulk(bulk) => job::Traffic::Bulk { size: bulk.size.map(|size| size.0) },
        Traffic::OnOff(times) => {
            let periods = times.periods.iter().map(|(from, until)| (nanos(*from), nanos(*until)));
            job::Traffic::OnOff { periods: periods.collect() }
        }
        Traffic::Udp(udp) => {
            // Headers of IP and UDP count towards the rate.
            let interval = udp.interval.or_else(|| Some(udp.rate?.time_for(udp.payload.0 + 28)));
            job::Traffic::Udp {
                interval_ps: interval.unwrap_or(plan.duration).as_picos().max(1),
                payload: udp.payload.0,
                packets: udp.packets,
            }
        }
        Traffic::Requests(requests) => job::Traffic::Requests {
            request: requests.request.0,
            response: requests.response.0,
            think: nanos(requests.think),
            count: requests.requests,
        },
        Traffic::Command(command) => {
            job::Traffic::Command { server: command.server.clone(), client: command.client.clone() }
        }
        Traffic::Web(web) => {
            let number = web::count(web).into();
            if number > MOST_PARTS.into() {
                let problem = Problem::TooMany { what: "sessions", number, most: MOST_PARTS };
                mistakes.push(problem.at(format!("{}.traffic", flow.place)));
                return None;
            }
            job::Traffic::Sessions(sessions(web))
        }
        Traffic::Arrivals(arrivals) => {
            let room = plan.duration.saturating_sub(start(plan, flow));
            let begin = |transfer: &Transfer| transfer.after < room;
            let transfers = Transfers::new(arrivals, plan.seed, &flow.name).take_while(begin);
            // There are fewer ports than that, so whatever is left out here is refused later.
            let transfers = transfers.take(MOST_PARTS as usize);
            job::Traffic::Transfers(transfers.map(|it| (nanos(it.after), it.size)).collect())
        }
    })
}

fn sessions(web: &Web) -> job::Sessions {
    job::Sessions {
        request: web.request.0,
        sizes: web::sessions(web).map(|session| session.size).collect(),
        at_once: web::at_once(web) as usize,
        persistent: web.persistent,
    }
}

/// Command lines name the other side's address by `{server}` and `{client}`.
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

/// Whether the one that receives the data opens the connection, to ask for it.
pub(super) fn asks(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::Requests(_) | Traffic::Web(_) | Traffic::Command(_))
}

/// When a flow begins, the part left to chance included: the same as on the backend `sim`.
pub(super) fn start(plan: &Plan, flow: &FlowPlan) -> Duration {
    let mut random = Random::new(plan.seed, &format!("start {}", flow.name));
    flow.start + Duration::from_picos(random.up_to(flow.start_jitter.as_picos()))
}
