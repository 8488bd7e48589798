//! Traffic: threads that send and receive, one for each side of each connection, which sleep in the
//! kernel most of the time.

mod bulk;
mod connections;
mod on_off;
mod pool;
mod requests;
mod sessions;
mod sockets;
mod streams;
mod transfers;
mod udp;
mod users;

pub(crate) use connections::report_unfinished;

use crate::channel;
use crate::failure::Failure;
use crate::flow::Flow;
use crate::hosts::Host;
use crate::programs::{self, Side};
use pool::{in_new_thread, in_thread};
use tcplab_guest::Job;
use tcplab_guest::job::Traffic;

/// Starts the threads of all flows: servers listen, clients wait for their time.
pub(crate) fn start(job: &'static Job, hosts: &'static [Vec<Host>], start: u64) {
    for (number, spec) in job.flows.iter().enumerate() {
        let flow = Flow {
            number,
            spec,
            client: &hosts[spec.client.host][spec.client.namespace],
            server: &hosts[spec.server.host][spec.server.namespace],
            experiment: (start, start + job.duration),
            window: job.record.window,
        };
        match &spec.traffic {
            Traffic::Bulk { size, write } => {
                run(flow, move || bulk::receive(flow, *size));
                run(flow, move || bulk::send(flow, *size, *write));
            }
            Traffic::OnOff { periods } => {
                run(flow, move || on_off::receive(flow));
                run(flow, move || on_off::send(flow, periods));
            }
            Traffic::Transfers(transfers) => {
                run(flow, move || transfers::receive(flow, transfers));
                run(flow, move || transfers::send(flow, transfers));
            }
            Traffic::Users(spec) => {
                let users = users::Users::of(spec);
                run(flow, move || users::receive(flow, users));
                for user in 0..spec.sizes.len() {
                    run(flow, move || users::send(flow, users, user));
                }
            }
            Traffic::Requests { request, response, server_time, think, count } => {
                let exchange = requests::Exchange {
                    request: *request,
                    response: *response,
                    server_time: *server_time,
                    think: *think,
                    count: *count,
                };
                run(flow, move || requests::answer(flow, exchange));
                run(flow, move || requests::ask(flow, exchange));
            }
            Traffic::Sessions(spec) => {
                let sessions = sessions::Sessions::of(spec, flow.spec.traffic.connections());
                run(flow, move || sessions::answer(flow, sessions));
                for number in 0..sessions.at_once() {
                    run(flow, move || sessions::ask(flow, sessions, number));
                }
            }
            Traffic::Udp { pace, payload } => {
                let stream = udp::Stream { pace, payload: *payload as usize };
                run(flow, move || udp::receive(flow, stream));
                run(flow, move || udp::send(flow, stream));
            }
            Traffic::Command { .. } => {
                let spec = job.programs.as_ref().expect("it is there where programs are");
                for side in [Side::Server, Side::Client] {
                    in_new_thread(move || or_fail(flow, programs::run(flow, side, spec)));
                }
            }
        }
    }
}

/// Runs one side of a flow in a thread.
fn run(flow: Flow, side: impl FnOnce() -> Result<(), Failure> + Send + 'static) {
    in_thread(move || or_fail(flow, side()));
}

/// A failure of one side of a flow fails the experiment.
fn or_fail(flow: Flow, result: Result<(), Failure>) {
    if let Err(failure) = result {
        channel::fail(&format!("flow {}: {failure}", flow.number));
    }
}
