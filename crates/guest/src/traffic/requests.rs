//! One connection with questions and answers.

use super::connections::End;
use super::streams::Sent;
use super::{Flow, sockets, streams};
use crate::clock;
use crate::failure::Failure;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// What is said.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    /// The bytes of a question.
    pub request: u64,
    /// The bytes of an answer.
    pub response: u64,
    /// The time from an answer to the next question.
    pub think: u64,
    /// How many questions; nothing means until the experiment ends.
    pub count: Option<u64>,
}

pub(super) fn ask(flow: Flow, exchange: Exchange) -> Result<(), Failure> {
    ensure_audible(exchange.request)?;
    flow.client.enter()?;
    let socket = sockets::to_connect(flow, 0)?;
    clock::sleep_until(flow.at(0));
    let Some((connection, socket)) = sockets::connect(flow, 0, socket) else { return Ok(()) };
    let mut received = 0;
    match ask_all(&socket, exchange, &mut received) {
        Ok(()) => {
            let complete = Some(flow.elapsed());
            connection.end(End { received: Some(received), complete, error: None });
            streams::finish(&connection, socket);
        }
        Err(error) => connection.end(End { received: Some(received), ..End::broken(error) }),
    }
    Ok(())
}

/// Refuses questions that nobody could hear.
pub(super) fn ensure_audible(request: u64) -> Result<(), Failure> {
    if request == 0 {
        return Err(Failure::new("requests of 0 bytes", "they cannot be heard"));
    }
    Ok(())
}

fn ask_all(socket: &OwnedFd, exchange: Exchange, received: &mut u64) -> Result<(), Errno> {
    let mut sent = Sent::default();
    for number in 0..exchange.count.unwrap_or(u64::MAX) {
        if number > 0 && exchange.think > 0 {
            clock::sleep_until(clock::now() + exchange.think);
        }
        ask_once(socket, &mut sent, exchange.request, exchange.response, received)?;
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
    let (_, connection, socket) = sockets::accept(flow, &listener)?;
    if let Err(error) = answer_all(&socket, exchange) {
        connection.end(End::broken(error));
    }
    drop(socket);
    Ok(())
}

/// Answers until the client closes.
fn answer_all(socket: &OwnedFd, exchange: Exchange) -> Result<(), Errno> {
    let mut sent = Sent::default();
    while streams::receive(socket, exchange.request)? == exchange.request {
        sent.send(socket, Some(exchange.response))?;
    }
    Ok(())
}
