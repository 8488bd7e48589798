//! Datagrams at a constant rate.

use super::connections::{Connection, End};
use super::{Flow, sockets};
use crate::clock;
use crate::failure::{Failure, Trying};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use rustix::net::{RecvFlags, SendFlags, SocketAddrV4, connect, recv, send as send_one};
use std::sync::atomic::Ordering;

/// Enough for the sender never to wait for its queue, and for the receiver never to lose anything:
/// the network alone decides.
const BUFFER: usize = 1 << 29;

/// What is sent.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// The time between two datagrams, in picoseconds.
    pub interval_ps: u64,
    /// The data in each.
    pub payload: usize,
    /// How many; nothing means until the experiment ends.
    pub packets: Option<u64>,
}

pub(super) fn send(flow: Flow, stream: Stream) -> Result<(), Failure> {
    if stream.interval_ps == 0 && stream.packets.is_none() {
        return Err(Failure::new("datagrams without an interval", "they would never end"));
    }
    flow.client.enter()?;
    let (client, server) = (&flow.spec.client, &flow.spec.server);
    let socket = sockets::datagram_socket(client)?;
    set_socket_send_buffer_size_force(&socket, BUFFER).trying(|| "SO_SNDBUFFORCE".into())?;
    connect(&socket, &SocketAddrV4::new(server.address, server.port))
        .trying(|| format!("connect to {}:{}", server.address, server.port))?;
    let data = vec![0; stream.payload];
    clock::sleep_until(flow.at(0));
    let connection = Connection::begin_datagrams(flow.number, client.port, flow.elapsed());
    for number in 0..stream.packets.unwrap_or(u64::MAX) {
        let time = flow.at(number.saturating_mul(stream.interval_ps) / 1000);
        if time >= flow.experiment.1 {
            break;
        }
        clock::sleep_until(time);
        if let Err(error) = send_one(&socket, &data, SendFlags::empty()) {
            connection.end(End::broken(error));
            break;
        }
        connection.datagrams().sent.fetch_add(1, Ordering::Relaxed);
        if stream.packets == Some(number + 1) {
            // At least 1: 0 means not yet.
            connection.datagrams().finished.store(flow.elapsed().max(1), Ordering::Relaxed);
        }
    }
    Ok(())
}

pub(super) fn receive(flow: Flow, stream: Stream) -> Result<(), Failure> {
    flow.server.enter()?;
    let socket = sockets::datagram_socket(&flow.spec.server)?;
    set_socket_recv_buffer_size_force(&socket, BUFFER).trying(|| "SO_RCVBUFFORCE".into())?;
    let all = stream.packets.map(|packets| packets * stream.payload as u64);
    let mut received = 0;
    loop {
        // Their length is all that is asked for.
        let (_, bytes) =
            recv(&socket, &mut [0; 0], RecvFlags::TRUNC).trying(|| "receive a datagram".into())?;
        let Some(connection) = Connection::find(flow.number, 0) else { continue };
        received += bytes as u64;
        connection.datagrams().received_bytes.store(received, Ordering::Relaxed);
        // A look at the clock moves it: not where the answer does not matter.
        let Some(all) = all else { continue };
        let now = flow.elapsed();
        connection.datagrams().arrived.store(now, Ordering::Relaxed);
        if all == received {
            connection.end(End { complete: Some(now), ..End::default() });
        }
    }
}
