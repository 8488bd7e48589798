//! A connection that sends as fast as possible.

use super::connections::{Connection, End};
use super::streams::Sent;
use super::{sockets, streams};
use crate::clock;
use crate::failure::Failure;
use crate::flow::Flow;
use std::os::fd::OwnedFd;

pub(super) fn send(flow: Flow, size: Option<u64>, write: Option<u64>) -> Result<(), Failure> {
    flow.client.enter()?;
    let socket = sockets::to_connect(flow, 0)?;
    clock::sleep_until(flow.at(0));
    send_over(flow, 0, socket, (size, write));
    Ok(())
}

/// Connects, sends a given amount or without end, in one call or in pieces, and closes.
pub(super) fn send_over(
    flow: Flow,
    number: usize,
    socket: (OwnedFd, u16),
    (size, write): (Option<u64>, Option<u64>),
) {
    let Some((connection, socket)) = sockets::connect(flow, number, socket) else { return };
    let sent = match write {
        Some(piece) => streams::write_pieces(&socket, size, piece),
        None => Sent::default().send(&socket, size),
    };
    match sent {
        Ok(()) => streams::finish(&connection, socket),
        Err(error) => connection.end(End::broken(error)),
    }
}

pub(super) fn receive(flow: Flow, size: Option<u64>) -> Result<(), Failure> {
    flow.server.enter()?;
    let listener = sockets::listen_at(&flow.spec.server)?;
    let (_, connection, socket) = sockets::accept(flow, &listener)?;
    receive_over(flow, &connection, socket, size);
    Ok(())
}

/// Receives a given amount or everything, reports, and closes when the client has.
pub(super) fn receive_over(
    flow: Flow,
    connection: &Connection,
    socket: OwnedFd,
    size: Option<u64>,
) {
    match streams::receive(&socket, size.unwrap_or(u64::MAX)) {
        Ok(received) => {
            let complete = (size == Some(received)).then(|| flow.elapsed());
            connection.end(End { received: Some(received), complete, error: None });
            // Only the end can follow; an error after the last byte does not matter.
            streams::receive(&socket, u64::MAX).ok();
        }
        Err(error) => connection.end(End::broken(error)),
    }
    drop(socket);
}
