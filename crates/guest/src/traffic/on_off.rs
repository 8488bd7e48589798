//! One connection that sends as fast as it can, at times.

use super::connections::{Connection, End};
use super::{Flow, bulk, sockets, streams};
use crate::clock;
use crate::failure::{Failure, Trying};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use std::os::fd::OwnedFd;

/// What is kept ready and is still sent when the time is over: as much as `crates/sim` keeps.
const READY: u32 = 1 << 17;

pub(super) fn receive(flow: Flow) -> Result<(), Failure> {
    bulk::receive(flow, None)
}

/// The connection stays open after the last period, as that of `crates/sim` does.
pub(super) fn send(flow: Flow, periods: &[(u64, u64)]) -> Result<(), Failure> {
    flow.client.enter()?;
    let socket = sockets::to_connect(flow, 0)?;
    sockets::limit_unsent(&socket.0, READY)?;
    clock::sleep_until(flow.at(0));
    let Some((connection, socket)) = sockets::connect(flow, 0, socket) else { return Ok(()) };
    ioctl_fionbio(&socket, true).trying(|| "FIONBIO".into())?;
    for &(from, until) in periods {
        clock::sleep_until(flow.at(from));
        if let Err(error) = send_until(&socket, flow.at(until)) {
            connection.end(End::broken(error));
            return Ok(());
        }
    }
    keep_open(&connection, &socket);
    Ok(())
}

/// Keeps the socket full until then.
fn send_until(socket: &OwnedFd, end: u64) -> Result<(), Errno> {
    loop {
        match streams::send_some(socket, u64::MAX) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        let left = end.saturating_sub(clock::now());
        let mut writable = [PollFd::new(socket, PollFlags::OUT)];
        if left == 0 || poll(&mut writable, Some(&clock::timespec(left)))? == 0 {
            return Ok(());
        }
    }
}

/// Waits for an error or for the end of the machine.
fn keep_open(connection: &Connection, socket: &OwnedFd) {
    let ended = poll(&mut [PollFd::new(socket, PollFlags::IN)], None)
        .and_then(|_| streams::receive(socket, u64::MAX));
    if let Err(error) = ended {
        connection.end(End::broken(error));
    }
}
