//! A plan in the form of tables: the run, its flows, and their work.

use crate::web;
use tcplab_model::{FlowPlan, Plan, TrafficPlan};
use tcplab_tables::{FlowIdentity, Run, Transport, Window, Work};

/// The identity of a flow.
pub fn identity<'a>(plan: &'a Plan, flow: &'a FlowPlan) -> FlowIdentity<'a> {
    let bottleneck = &plan.lanes[flow.bottleneck];
    FlowIdentity {
        name: &flow.name,
        class: &flow.class,
        from: &plan.nodes[flow.from],
        to: &plan.nodes[flow.to],
        transport: if flow.tcp().is_some() { Transport::Tcp } else { Transport::Udp },
        cc: flow.cc().map(|cc| cc.name.as_str()),
        bottleneck: (&bottleneck.name, bottleneck.lasting_rate()),
    }
}

/// The kind and amount of a flow's work.
#[expect(
    clippy::match_wildcard_for_single_variants,
    reason = "a kind that is added without an end needs no line"
)]
pub fn work(flow: &FlowPlan) -> Work {
    match &*flow.traffic {
        TrafficPlan::Bulk(bulk) => Work::Bytes(bulk.size.map(|size| size.0)),
        TrafficPlan::Web(web) => Work::Transfers(Some(web::sessions(web).count() as u64)),
        TrafficPlan::Requests(requests) => Work::Transfers(requests.requests),
        TrafficPlan::Arrivals(arrivals) => Work::Transfers(arrivals.transfers),
        // Connections of programs, of which there may always be another one.
        TrafficPlan::Command(_) => Work::Transfers(None),
        TrafficPlan::Udp(udp) => Work::Datagrams(udp.packets),
        _ => Work::Bytes(None),
    }
}

/// The run, as in tables.
pub fn run(plan: &Plan, packet_hops: u64) -> Run<'_> {
    Run {
        id: &plan.id,
        experiment: &plan.experiment,
        backend: &plan.backend,
        version: &plan.version,
        seed: plan.seed,
        repetition: plan.repetition,
        simulated_s: plan.duration.as_secs_f64(),
        window: window(plan),
        packet_hops,
        swept: &plan.swept,
    }
}

/// The measuring window.
pub fn window(plan: &Plan) -> Window {
    let measured = plan.measured();
    Window::new(measured.from, measured.to, measured.every, plan.duration)
}
