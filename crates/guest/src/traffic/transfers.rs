//! Many connections, one for each transfer at its own time.

use super::pool::in_thread;
use super::{bulk, sockets};
use crate::clock;
use crate::failure::Failure;
use crate::flow::Flow;

/// A transfer's time after the flow's start, and its size.
type Transfer = (u64, u64);

/// Transfers do not wait for each other: each has a thread.
pub(super) fn send(flow: Flow, transfers: &'static [Transfer]) -> Result<(), Failure> {
    flow.client.enter()?;
    for (number, &(after, size)) in transfers.iter().enumerate() {
        clock::sleep_until(flow.at(after));
        let socket = sockets::to_connect(flow, number)?;
        in_thread(move || bulk::send_over(flow, number, socket, (Some(size), None)));
    }
    Ok(())
}

pub(super) fn receive(flow: Flow, transfers: &'static [Transfer]) -> Result<(), Failure> {
    flow.server.enter()?;
    let listener = sockets::listen_at(&flow.spec.server)?;
    loop {
        let (number, connection, socket) = sockets::accept(flow, &listener)?;
        let size = transfers.get(number).map(|&(_, size)| size);
        in_thread(move || bulk::receive_over(flow, &connection, socket, size));
    }
}
