//! A connection with requests and responses.

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

/// The sizes and times of an exchange.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    /// The bytes of a request.
    pub request: u64,
    /// The bytes of a response.
    pub response: u64,
    /// The time from a request to its response.
    pub server_time: u64,
    /// The time from a response to the next request.
    pub think: u64,
    /// The number of requests; `None` means until the experiment ends.
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
    // When the next request is sent, after the start of the experiment.
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
                // Reading the clock advances it: once for each request.
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

/// Rejects requests of zero bytes, which a server could not notice.
pub(super) fn ensure_audible(request: u64) -> Result<(), Failure> {
    if request == 0 {
        return Err(Failure::new("requests of 0 bytes", "a server cannot notice an empty request"));
    }
    Ok(())
}

/// Sends a request, and waits for the whole response.
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

/// The server time of a response.
pub(super) fn work(server_time: u64) {
    // Reading the clock advances it, so it is not read without a server time.
    if server_time > 0 {
        clock::sleep_until(clock::now() + server_time);
    }
}

/// Responds until the client closes.
fn answer_all(socket: &OwnedFd, exchange: Exchange) -> Result<(), Errno> {
    let mut sent = Sent::default();
    while streams::receive(socket, exchange.request)? == exchange.request {
        work(exchange.server_time);
        sent.send(socket, Some(exchange.response))?;
    }
    Ok(())
}
