//! Sockets with the options of a flow's side.

use super::connections::{Connection, End};
use crate::failure::{Failure, Trying, reason};
use crate::flow::Flow;
use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, SetStruct, SndBuf};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_congestion, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_nodelay, set_tcp_user_timeout,
};
use rustix::net::{
    AddressFamily, SocketAddrV4, SocketFlags, SocketType, acceptfrom_with, bind, listen,
    socket_with,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tcplab_guest::job::{Keepalive, Side, SocketOptions};

/// The backlog of connections to be accepted; the kernel's own limit is 4096.
const BACKLOG: i32 = 4096;

/// `SO_MAX_PACING_RATE`, in bytes a second.
#[derive(Clone, Copy, Debug)]
struct MaxPacingRate;
nix::setsockopt_impl!(
    MaxPacingRate,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64,
    SetStruct<'_, u64>
);

/// `TCP_MAXSEG`.
#[derive(Clone, Copy, Debug)]
struct MaxSegment;
nix::setsockopt_impl!(MaxSegment, libc::IPPROTO_TCP, libc::TCP_MAXSEG, u32, SetStruct<'_, u32>);

/// `TCP_WINDOW_CLAMP`.
#[derive(Clone, Copy, Debug)]
struct WindowClamp;
nix::setsockopt_impl!(
    WindowClamp,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    u32,
    SetStruct<'_, u32>
);

/// `TCP_NOTSENT_LOWAT`: a socket with this much unsent data accepts no more.
#[derive(Clone, Copy, Debug)]
struct MostUnsent;
nix::setsockopt_impl!(
    MostUnsent,
    libc::IPPROTO_TCP,
    libc::TCP_NOTSENT_LOWAT,
    u32,
    SetStruct<'_, u32>
);

/// `TCP_FASTOPEN`: accepts data with a SYN, while fewer than this many handshakes are pending.
#[derive(Clone, Copy, Debug)]
struct FastOpen;
nix::setsockopt_impl!(FastOpen, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, u32, SetStruct<'_, u32>);

/// `TCP_FASTOPEN_CONNECT`: the first written data is sent with the SYN.
#[derive(Clone, Copy, Debug)]
struct FastOpenConnect;
nix::setsockopt_impl!(
    FastOpenConnect,
    libc::IPPROTO_TCP,
    libc::TCP_FASTOPEN_CONNECT,
    u32,
    SetStruct<'_, u32>
);

/// Limits the unsent data of a socket.
pub(super) fn limit_unsent(socket: &OwnedFd, bytes: u32) -> Result<(), Failure> {
    setsockopt(socket, MostUnsent, &bytes).trying(|| format!("TCP_NOTSENT_LOWAT {bytes}"))
}

/// A socket that listens at the server's address and port. Accepted sockets inherit its options.
pub(super) fn listen_at(side: &Side) -> Result<OwnedFd, Failure> {
    let socket = tcp_socket(side, side.port)?;
    if side.socket.fast_open {
        setsockopt(&socket, FastOpen, &(BACKLOG as u32)).trying(|| "TCP_FASTOPEN".into())?;
    }
    listen(&socket, BACKLOG).trying(|| format!("listen at {}:{}", side.address, side.port))?;
    Ok(socket)
}

/// A socket to connect from, for the client's connection of this number.
pub(super) fn to_connect(flow: Flow, number: usize) -> Result<(OwnedFd, u16), Failure> {
    let side = &flow.spec.client;
    let port = u16::try_from(usize::from(side.port) + number).map_err(|_| {
        let what = format!("connection {number} from port {} on", side.port);
        Failure::new(what, "there are no ports above 65535")
    })?;
    let socket = tcp_socket(side, port)?;
    if side.socket.fast_open {
        setsockopt(&socket, FastOpenConnect, &1).trying(|| "TCP_FASTOPEN_CONNECT".into())?;
    }
    Ok((socket, port))
}

/// Connects. Returns the connected socket, or reports a failure.
pub(super) fn connect(
    flow: Flow,
    number: usize,
    (socket, port): (OwnedFd, u16),
) -> Option<(Arc<Connection>, OwnedFd)> {
    let connection = Connection::begin(flow.number, number, port, flow.elapsed());
    let server = &flow.spec.server;
    match rustix::net::connect(&socket, &SocketAddrV4::new(server.address, server.port)) {
        Ok(()) => Some((connection, socket)),
        Err(error) => {
            connection.end(End::broken(error));
            None
        }
    }
}

/// Waits for the next of the flow's connections. Returns its number.
pub(super) fn accept(
    flow: Flow,
    listener: &OwnedFd,
) -> Result<(usize, Arc<Connection>, OwnedFd), Failure> {
    loop {
        let (socket, peer) =
            acceptfrom_with(listener, SocketFlags::CLOEXEC).trying(|| "accept".into())?;
        let port = peer.and_then(|peer| SocketAddrV4::try_from(peer).ok()).map(|peer| peer.port());
        let number = port.and_then(|port| port.checked_sub(flow.spec.client.port));
        let connection = number.and_then(|number| Connection::find(flow.number, number.into()));
        // Other connections may come: programs of the machine may connect anywhere.
        if let (Some(number), Some(connection)) = (number, connection) {
            return Ok((number.into(), connection, socket));
        }
    }
}

/// A datagram socket at the side's address and port.
pub(super) fn datagram_socket(side: &Side) -> Result<OwnedFd, Failure> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .trying(|| "datagram socket".into())?;
    bind_to(&socket, side, side.port)?;
    Ok(socket)
}

fn tcp_socket(side: &Side, port: u16) -> Result<OwnedFd, Failure> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .trying(|| "socket".into())?;
    set_options(&socket, &side.socket)?;
    bind_to(&socket, side, port)?;
    Ok(socket)
}

fn bind_to(socket: &OwnedFd, side: &Side, port: u16) -> Result<(), Failure> {
    bind(socket, &SocketAddrV4::new(side.address, port))
        .trying(|| format!("bind to {}:{port}", side.address))
}

fn set_options(socket: &OwnedFd, options: &SocketOptions) -> Result<(), Failure> {
    if let Some(name) = &options.congestion_control {
        set_tcp_congestion(socket, name).trying(|| format!("TCP_CONGESTION \"{name}\""))?;
    }
    if let Some(rate) = options.pacing {
        setsockopt(socket, MaxPacingRate, &rate).trying(|| format!("SO_MAX_PACING_RATE {rate}"))?;
    }
    if options.no_delay {
        set_tcp_nodelay(socket, true).trying(|| "TCP_NODELAY".into())?;
    }
    if let Some(bytes) = options.max_segment {
        setsockopt(socket, MaxSegment, &bytes).trying(|| format!("TCP_MAXSEG {bytes}"))?;
    }
    if let Some(bytes) = options.receive_buffer {
        setsockopt(socket, RcvBuf, &(bytes as usize)).trying(|| format!("SO_RCVBUF {bytes}"))?;
    }
    if let Some(bytes) = options.send_buffer {
        setsockopt(socket, SndBuf, &(bytes as usize)).trying(|| format!("SO_SNDBUF {bytes}"))?;
    }
    if let Some(bytes) = options.window_clamp {
        setsockopt(socket, WindowClamp, &bytes).trying(|| format!("TCP_WINDOW_CLAMP {bytes}"))?;
    }
    if let Some(bytes) = options.most_unsent {
        limit_unsent(socket, bytes)?;
    }
    if let Some(millis) = options.user_timeout_ms {
        set_tcp_user_timeout(socket, millis).trying(|| format!("TCP_USER_TIMEOUT {millis}"))?;
    }
    if let Some(Keepalive { idle_s, interval_s, probes }) = options.keepalive {
        let seconds = |value: u32| Duration::from_secs(value.into());
        set_tcp_keepidle(socket, seconds(idle_s)).trying(|| format!("TCP_KEEPIDLE {idle_s}"))?;
        set_tcp_keepintvl(socket, seconds(interval_s))
            .trying(|| format!("TCP_KEEPINTVL {interval_s}"))?;
        set_tcp_keepcnt(socket, probes).trying(|| format!("TCP_KEEPCNT {probes}"))?;
        set_socket_keepalive(socket, true).trying(|| "SO_KEEPALIVE".into())?;
    }
    Ok(())
}

impl End {
    /// The end of a connection that failed, with the kernel's reason.
    pub fn broken(error: rustix::io::Errno) -> Self {
        Self { error: Some(reason(error)), ..Self::default() }
    }
}
