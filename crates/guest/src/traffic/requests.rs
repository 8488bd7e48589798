//! One connection with questions and answers.

use super::connections::{Connection, End};
use super::streams::Sent;
use super::{sockets, streams};
use crate::channel;
use crate::clock;
use crate::failure::Failure;
use crate::flow::Flow;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use tcplab_guest::Report;

/// What is said.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    /// The bytes of a question.
    pub request: u64,
    /// The bytes of an answer.
    pub response: u64,
    /// The time from a question to its answer.
    pub server_time: u64,
    /// The time from an answer to the next question.
    pub think: u64,
    /// How many questions; nothing means until the experiment ends.
    pub count: Option<u64>,
}

pub(super) fn ask(flow: Flow, exchange: Exchange) -> Result<(), Failure> {
    ensure_audible(exchange.request)?;
    flow.client.enter()?;
    let socket = sockets::to_connect(flow, 0)?;
    let port = socket.1;
    clock::sleep_until(flow.at(0));
    let Some((mut request, socket)) = sockets::connect(flow, 0, socket) else { return Ok(()) };
    let mut sent = Sent::default();
    // When the next question is asked, after the start of the experiment.
    let mut next = 0;
    for number in 0..exchange.count.unwrap_or(u64::MAX) as usize {
        if number > 0 {
            if exchange.think > 0 {
                clock::sleep_until(flow.experiment.0 + next);
            }
            channel::begin_session(port, &Report::Session { flow: flow.number, number, port });
            request = Connection::begin(flow.number, number, port, next);
        }
        let mut received = 0;
        let (question, answer) = (exchange.request, exchange.response);
        match ask_once(&socket, &mut sent, question, answer, &mut received) {
            Ok(()) => {
                // A look at the clock moves it: one for each request.
                let now = flow.elapsed();
                next = now + exchange.think;
                request.end(End { received: Some(received), complete: Some(now), error: None });
            }
            Err(error) => {
                request.end(End { received: Some(received), ..End::broken(error) });
                return Ok(());
            }
        }
    }
    streams::finish(&request, socket);
    Ok(())
}

/// Refuses questions that nobody could hear.
pub(super) fn ensure_audible(request: u64) -> Result<(), Failure> {
    if request == 0 {
        return Err(Failure::new("requests of 0 bytes", "they cannot be heard"));
    }
    Ok(())
}

/// Asks, and waits for all of the answer.
pub(super) fn ask_once(
    socket: &OwnedFd,
    sent: &mut Sent,
    request: u64,
    response: u64,
    received: &mut u64,
) -> Result<(), Errno> {
    sent.send(socket, Some(request))?;
    let answer = streams::receive(socket, response)?;
    *received += answer;
    if answer < response { Err(Errno::CONNRESET) } else { Ok(()) }
}

pub(super) fn answer(flow: Flow, exchange: Exchange) -> Result<(), Failure> {
    flow.server.enter()?;
    let listener = sockets::listen_at(&flow.spec.server)?;
    let (_, _, socket) = sockets::accept(flow, &listener)?;
    if let Err(error) = answer_all(&socket, exchange)
        && let Some(request) = Connection::last(flow.number)
    {
        request.end(End::broken(error));
    }
    drop(socket);
    Ok(())
}

/// What the server takes to answer.
pub(super) fn work(server_time: u64) {
    // A look at the clock moves it: not where there is nothing to wait for.
    if server_time > 0 {
        clock::sleep_until(clock::now() + server_time);
    }
}

/// Answers until the client closes.
fn answer_all(socket: &OwnedFd, exchange: Exchange) -> Result<(), Errno> {
    let mut sent = Sent::default();
    while streams::receive(socket, exchange.request)? == exchange.request {
        work(exchange.server_time);
        sent.send(socket, Some(exchange.response))?;
    }
    Ok(())
}
