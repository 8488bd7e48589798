//! Users, each with one transfer after another: a closed loop.

use super::connections::End;
use super::pool::in_thread;
use super::streams::Sent;
use super::{bulk, sockets, streams};
use crate::clock;
use crate::failure::Failure;
use crate::flow::Flow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tcplab_guest::job;

/// Users of a flow with their progress. Both sides share it: they are one process.
#[derive(Clone, Copy)]
pub(super) struct Users {
    spec: &'static job::Users,
    /// The number of transfers begun.
    begun: &'static AtomicUsize,
    /// The sizes of transfers begun, by number.
    sizes: &'static [OnceLock<u64>],
}

impl Users {
    /// Users without any transfer begun.
    pub fn of(spec: &'static job::Users) -> Self {
        let sizes: Vec<_> = (0..spec.most).map(|_| OnceLock::new()).collect();
        Self { spec, begun: Box::leak(Box::new(AtomicUsize::new(0))), sizes: sizes.leak() }
    }

    /// The number of a new transfer, if another may begin.
    fn begin(self, size: u64) -> Option<usize> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.sizes.get(number)?.get_or_init(|| size);
        Some(number)
    }
}

/// One user: the next transfer begins a while after the last byte of the previous one has arrived,
/// or after it failed.
pub(super) fn send(flow: Flow, users: Users, user: usize) -> Result<(), Failure> {
    flow.client.enter()?;
    let mut next = flow.at(0);
    for &size in &users.spec.sizes[user] {
        clock::sleep_until(next);
        let Some(number) = users.begin(size) else { break };
        let over = send_one(flow, number, size)?;
        let over = over.unwrap_or_else(|| flow.elapsed());
        next = flow.experiment.0 + over + users.spec.think;
    }
    Ok(())
}

/// Sends a transfer, and waits until it has arrived. Returns the time, unless the transfer failed.
fn send_one(flow: Flow, number: usize, size: u64) -> Result<Option<u64>, Failure> {
    let socket = sockets::to_connect(flow, number)?;
    let Some((connection, socket)) = sockets::connect(flow, number, socket) else {
        return Ok(None);
    };
    match Sent::default().send(&socket, Some(size)) {
        Ok(()) => {
            let closing = Arc::clone(&connection);
            in_thread(move || streams::finish(&closing, socket));
        }
        Err(error) => connection.end(End::broken(error)),
    }
    Ok(connection.wait())
}

pub(super) fn receive(flow: Flow, users: Users) -> Result<(), Failure> {
    flow.server.enter()?;
    let listener = sockets::listen_at(&flow.spec.server)?;
    loop {
        let (number, connection, socket) = sockets::accept(flow, &listener)?;
        let size = users.sizes.get(number).and_then(OnceLock::get).copied();
        in_thread(move || bulk::receive_over(flow, &connection, socket, size));
    }
}
