//! A connection that sends as fast as possible in on periods.

use super::connections::{Connection, End};
use super::streams::Sent;
use super::{bulk, sockets, streams};
use crate::clock;
use crate::failure::{Failure, Trying};
use crate::flow::Flow;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::os::fd::OwnedFd;

/// Bytes kept ready, which are still sent after a period: as many as in `crates/sim`.
const READY: u32 = 1 << 17;

pub(super) fn receive(flow: Flow) -> Result<(), Failure> {
    bulk::receive(flow, None)
}

/// The connection stays open after the last period, as in `crates/sim`.
pub(super) fn send(flow: Flow, periods: &[(u64, u64)]) -> Result<(), Failure> {
    flow.client.enter()?;
    let socket = sockets::to_connect(flow, 0)?;
    let asked = flow.spec.client.socket.most_unsent.unwrap_or(READY);
    sockets::limit_unsent(&socket.0, asked.min(READY))?;
    clock::sleep_until(flow.at(0));
    let Some((connection, socket)) = sockets::connect(flow, 0, socket) else { return Ok(()) };
    ioctl_fionbio(&socket, true).trying(|| "FIONBIO".into())?;
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .trying(|| "timerfd_create".into())?;
    let mut sent = Sent::default();
    for &(from, until) in periods {
        clock::sleep_until(flow.at(from));
        if let Err(error) = send_until(&socket, &mut sent, &timer, flow.at(until)) {
            connection.end(End::broken(error));
            return Ok(());
        }
    }
    keep_open(&connection, &socket);
    Ok(())
}

/// Keeps the socket full until then. A timer ends it, because the kernel lets timeouts of `poll`
/// expire late.
fn send_until(socket: &OwnedFd, sent: &mut Sent, timer: &OwnedFd, end: u64) -> Result<(), Errno> {
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ends = Itimerspec { it_interval: never, it_value: clock::timespec(end) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &ends)?;
    while clock::now() < end {
        match sent.send_some(socket, u64::MAX) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        let mut ready = [PollFd::new(socket, PollFlags::OUT), PollFd::new(timer, PollFlags::IN)];
        poll(&mut ready, None)?;
    }
    Ok(())
}

/// Waits for an error or for the end of the machine.
fn keep_open(connection: &Connection, socket: &OwnedFd) {
    let ended = poll(&mut [PollFd::new(socket, PollFlags::IN)], None)
        .and_then(|_| streams::receive(socket, u64::MAX));
    if let Err(error) = ended {
        connection.end(End::broken(error));
    }
}
