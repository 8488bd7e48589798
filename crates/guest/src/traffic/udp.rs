//! Scheduled datagrams.

use super::connections::{Connection, End};
use super::sockets;
use crate::clock;
use crate::failure::{Failure, Trying};
use crate::flow::Flow;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use rustix::net::{SendFlags, SocketAddrV4, connect, send as send_one};
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use tcplab_pace::Pace;

/// Large enough for the sender never to wait for its queue, and for the receiver never to drop:
/// only the network decides.
const BUFFER: usize = 1 << 29;

/// Datagrams begin with their number, from 0, if they are large enough.
const NUMBER: usize = 8;

/// A stream of datagrams.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// The schedule.
    pub pace: &'static Pace,
    /// The data in each.
    pub payload: usize,
}

pub(super) fn send(flow: Flow, stream: Stream) -> Result<(), Failure> {
    let pace = stream.pace;
    if pace.gap.is_zero() && pace.packets.is_none() {
        return Err(Failure::new("datagrams without an end", "the interval must be positive"));
    }
    flow.client.enter()?;
    let (client, server) = (&flow.spec.client, &flow.spec.server);
    let socket = sockets::datagram_socket(client)?;
    set_socket_send_buffer_size_force(&socket, BUFFER).trying(|| "SO_SNDBUFFORCE".into())?;
    connect(&socket, &SocketAddrV4::new(server.address, server.port))
        .trying(|| format!("connect to {}:{}", server.address, server.port))?;
    let mut data = vec![0; stream.payload];
    let are_numbered = stream.payload >= NUMBER;
    clock::sleep_until(flow.at(0));
    // Reading the clock would advance it, and the first datagram would leave a nanosecond late.
    let (begin, end) = flow.experiment;
    let times = (flow.at(0) - begin, end - begin);
    let connection =
        Connection::begin_datagrams(flow.number, client.port, times, (are_numbered, flow.window));
    for (number, after) in (0_u64..).zip(pace.times()) {
        let time = flow.at(after.as_nanos());
        if time >= flow.experiment.1 {
            break;
        }
        // Sleeping until the current time costs a nanosecond.
        if !after.is_zero() {
            clock::sleep_until(time);
        }
        if are_numbered {
            data[..NUMBER].copy_from_slice(&number.to_le_bytes());
        }
        connection.datagrams().on_sent(time - begin);
        if let Err(error) = send_one(&socket, &data, SendFlags::empty()) {
            connection.end(End::broken(error));
            break;
        }
        if pace.packets == Some(number + 1) {
            // At least 1: 0 means not yet.
            connection.datagrams().finished.store((time - begin).max(1), Ordering::Relaxed);
        }
    }
    Ok(())
}

pub(super) fn receive(flow: Flow, stream: Stream) -> Result<(), Failure> {
    flow.server.enter()?;
    let socket = sockets::datagram_socket(&flow.spec.server)?;
    set_socket_recv_buffer_size_force(&socket, BUFFER).trying(|| "SO_RCVBUFFORCE".into())?;
    let all = stream.pace.packets.map(|packets| packets * stream.payload as u64);
    // Reading the clock advances it, so arrival times are the kernel's timestamps.
    setsockopt(&socket, ReceiveTimestampns, &true).trying(|| "SO_TIMESTAMPNS".into())?;
    let ahead = clock::real_ahead();
    let mut received = 0;
    loop {
        let arrival = arrival(&socket).trying(|| "receive a datagram".into())?;
        let Some(connection) = Connection::find(flow.number, 0) else { continue };
        let counts = connection.datagrams();
        received += arrival.bytes;
        counts.received_bytes.store(received, Ordering::Relaxed);
        let Some(at) = arrival.at.map(|at| at.saturating_sub(ahead + flow.experiment.0)) else {
            return Err(Failure::new("receive a datagram", "it has no time of arrival"));
        };
        counts.on_arrival(arrival.number, at, arrival.bytes);
        counts.arrived.store(at, Ordering::Relaxed);
        if all == Some(received) {
            connection.end(End { complete: Some(at), ..End::default() });
        }
    }
}

/// An arrived datagram.
struct Arrival {
    bytes: u64,
    /// The number at its beginning.
    number: u64,
    /// When the host received it from the link, by the real-time clock.
    at: Option<u64>,
}

/// Waits for a datagram.
fn arrival(socket: &OwnedFd) -> nix::Result<Arrival> {
    let mut number = [0; NUMBER];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut buffers = [IoSliceMut::new(&mut number)];
    // The rest of the datagram is not read.
    let flags = MsgFlags::MSG_TRUNC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut buffers, Some(&mut control), flags)?;
    let times = message.cmsgs()?.filter_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(at) => {
            Some(clock::nanoseconds(at.tv_sec(), at.tv_nsec()))
        }
        _ => None,
    });
    let (at, bytes) = (times.last(), message.bytes as u64);
    Ok(Arrival { bytes, number: u64::from_le_bytes(number), at })
}
