//! What flows send.

use super::nanos;
use std::net::Ipv4Addr;
use tcplab_engine::Random;
use tcplab_guest::job;
use tcplab_model::{FlowPlan, Mistake, Plan, Problem, Traffic};
use tcplab_units::Duration;

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
        Traffic::Web(_) | Traffic::Arrivals(_) => {
            let have = ["bulk", "on-off", "udp", "requests", "command"];
            let problem = Problem::NotYet {
                what: "this kind of traffic".into(),
                have: have.map(String::from).into(),
            };
            mistakes.push(problem.at(format!("{}.traffic", flow.place)));
            return None;
        }
    })
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
    matches!(traffic, Traffic::Requests(_) | Traffic::Command(_))
}

/// How many ports of the client a flow needs.
pub(super) fn connections(traffic: &job::Traffic) -> usize {
    match traffic {
        job::Traffic::Transfers(transfers) => transfers.len(),
        _ => 1,
    }
}

/// When a flow begins, the part left to chance included: the same as on the backend `sim`.
pub(super) fn start(plan: &Plan, flow: &FlowPlan) -> u64 {
    let mut random = Random::new(plan.seed, &format!("start {}", flow.name));
    nanos(flow.start + Duration::from_picos(random.up_to(flow.start_jitter.as_picos())))
}
