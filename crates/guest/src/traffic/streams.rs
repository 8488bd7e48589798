//! Zero bytes, sent and received without copying, in as few system calls as possible.

use super::connections::{Connection, End};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create, sendfile};
use rustix::io::{Errno, write};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// The most bytes sent by one call. The file is sparse and takes no memory.
const MOST_SENT: u64 = 1 << 30;
/// The most bytes received by one call. The kernel requires a buffer, but does not touch it.
const MOST_RECEIVED: usize = 1 << 24;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; MOST_RECEIVED]);
}

fn zeros() -> &'static OwnedFd {
    static ZEROS: OnceLock<OwnedFd> = OnceLock::new();
    ZEROS.get_or_init(|| {
        let file = memfd_create("zeros", MemfdFlags::CLOEXEC).expect("memory for a file");
        ftruncate(&file, MOST_SENT).expect("a file of holes may have any size");
        file
    })
}

/// The position of a socket's data in the file. The kernel keeps data in pages, which follow each
/// other regardless of calls: each call continues in the file where the last one ended.
#[derive(Default)]
pub(super) struct Sent(u64);

impl Sent {
    /// Sends so many bytes, or without end.
    pub fn send(&mut self, socket: &OwnedFd, size: Option<u64>) -> Result<(), Errno> {
        let mut left = size.unwrap_or(u64::MAX);
        while left > 0 {
            left -= self.send_some(socket, left)?;
        }
        Ok(())
    }

    /// Sends as much as one call does.
    pub fn send_some(&mut self, socket: &OwnedFd, most: u64) -> Result<u64, Errno> {
        let mut offset = self.0 % MOST_SENT;
        let count = most.min(MOST_SENT - offset) as usize;
        let sent = sendfile(socket, zeros(), Some(&mut offset), count)? as u64;
        self.0 += sent;
        Ok(sent)
    }
}

/// Writes so many bytes, or without end, in calls of a given size, each of which waits for buffer
/// space.
pub(super) fn write_pieces(socket: &OwnedFd, size: Option<u64>, piece: u64) -> Result<(), Errno> {
    let data = vec![0; piece as usize];
    let mut left = size.unwrap_or(u64::MAX);
    while left > 0 {
        let mut rest = &data[..left.min(piece) as usize];
        while !rest.is_empty() {
            let written = write(socket, rest)?;
            left -= written as u64;
            rest = &rest[written..];
        }
    }
    Ok(())
}

/// Waits for data, or for the other side to close.
pub(super) fn wait_for_data(socket: &OwnedFd) -> Result<(), Errno> {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], None).map(|_| ())
}

/// Receives so many bytes; fewer if no more come.
pub(super) fn receive(socket: &OwnedFd, size: u64) -> Result<u64, Errno> {
    let flags = RecvFlags::TRUNC | RecvFlags::WAITALL;
    let mut left = size;
    BUFFER.with_borrow_mut(|buffer| {
        while left > 0 {
            let most = left.min(MOST_RECEIVED as u64) as usize;
            let (_, received) = recv(socket, &mut buffer[..most], flags)?;
            left -= received as u64;
            if received == 0 {
                break;
            }
        }
        Ok(size - left)
    })
}

/// Closes the sending direction, and the connection when the other side has done so too.
pub(super) fn finish(connection: &Connection, socket: OwnedFd) {
    let closed = shutdown(&socket, Shutdown::Write).and_then(|()| receive(&socket, u64::MAX));
    if let Err(error) = closed {
        connection.end(End::broken(error));
    }
    drop(socket);
}
