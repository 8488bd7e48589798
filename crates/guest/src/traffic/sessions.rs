//! A web page: sessions that each request one object, several at once, over connections of their
//! own or reused ones.

use super::connections::{Connection, End};
use super::pool::in_thread;
use super::requests::{ask_once, ensure_audible, work};
use super::streams::Sent;
use super::{sockets, streams};
use crate::channel;
use crate::clock;
use crate::failure::Failure;
use crate::flow::Flow;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use tcplab_guest::{Report, job};

/// Sessions of a flow with their progress. Both sides share it: they are one process.
#[derive(Clone, Copy)]
pub(super) struct Sessions {
    spec: &'static job::Sessions,
    /// The next session that has not begun.
    next: &'static AtomicUsize,
    /// The session that each connection serves, initially the one of its own number.
    served: &'static [AtomicUsize],
}

impl Sessions {
    /// Sessions that have not begun.
    pub fn of(spec: &'static job::Sessions, connections: usize) -> Self {
        let served: Vec<_> = (0..connections).map(AtomicUsize::new).collect();
        Self {
            spec,
            next: Box::leak(Box::new(AtomicUsize::new(spec.at_once))),
            served: served.leak(),
        }
    }

    pub fn at_once(self) -> usize {
        self.spec.at_once
    }

    /// The next session, if one is left.
    fn take(self) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.spec.loads.len()).then_some(number)
    }

    /// The bytes of the request on a connection, and of its response.
    fn load(self, connection: usize) -> (u64, u64) {
        self.spec.loads[self.served[connection].load(Ordering::Relaxed)]
    }
}

/// A client thread: requests this session's object, and then those of further sessions.
pub(super) fn ask(flow: Flow, sessions: Sessions, first: usize) -> Result<(), Failure> {
    for (request, _) in &sessions.spec.loads {
        ensure_audible(*request)?;
    }
    flow.client.enter()?;
    clock::sleep_until(flow.at(0));
    ask_over_one(flow, sessions, first)?;
    // The port of a failed connection stays in use for a while: others request the remaining
    // objects.
    while !sessions.spec.persistent
        && let Some(number) = sessions.take()
    {
        ask_over_one(flow, sessions, number)?;
    }
    Ok(())
}

/// Loads the objects of one connection.
fn ask_over_one(flow: Flow, sessions: Sessions, connection: usize) -> Result<(), Failure> {
    let socket = sockets::to_connect(flow, connection)?;
    let port = socket.1;
    let Some((session, socket)) = sockets::connect(flow, connection, socket) else { return Ok(()) };
    let mut sent = Sent::default();
    let mut has_come = load(flow, sessions, connection, (&socket, &mut sent), &session);
    while has_come
        && sessions.spec.persistent
        && let Some(number) = sessions.take()
    {
        channel::begin_session(port, &Report::Session { flow: flow.number, number, port });
        sessions.served[connection].store(number, Ordering::Relaxed);
        let session = Connection::begin(flow.number, number, port, flow.elapsed());
        has_come = load(flow, sessions, number, (&socket, &mut sent), &session);
    }
    Ok(())
}

/// Requests one object, and reports. Returns whether it arrived.
fn load(
    flow: Flow,
    sessions: Sessions,
    number: usize,
    (socket, sent): (&OwnedFd, &mut Sent),
    session: &Connection,
) -> bool {
    let (request, size) = sessions.spec.loads[number];
    let mut received = 0;
    let result = ask_once(socket, sent, request, size, &mut received);
    let complete = result.is_ok().then(|| flow.elapsed());
    let error = result.err().and_then(|error| End::broken(error).error);
    session.end(End { received: Some(received), complete, error });
    complete.is_some()
}

pub(super) fn answer(flow: Flow, sessions: Sessions) -> Result<(), Failure> {
    flow.server.enter()?;
    let listener = sockets::listen_at(&flow.spec.server)?;
    loop {
        let (number, _, socket) = sockets::accept(flow, &listener)?;
        in_thread(move || {
            if let Err(error) = answer_all(sessions, number, &socket) {
                let session = sessions.served[number].load(Ordering::Relaxed);
                if let Some(session) = Connection::find(flow.number, session) {
                    session.end(End::broken(error));
                }
            }
        });
    }
}

/// Responds until the client closes.
fn answer_all(sessions: Sessions, connection: usize, socket: &OwnedFd) -> Result<(), Errno> {
    let mut sent = Sent::default();
    loop {
        // The number of the session is known only when the request comes.
        streams::wait_for_data(socket)?;
        let (request, size) = sessions.load(connection);
        if streams::receive(socket, request)? < request {
            return Ok(());
        }
        work(sessions.spec.server_time);
        sent.send(socket, Some(size))?;
    }
}
