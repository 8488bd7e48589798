//! rtnetlink by hand, for addresses, devices, queueing disciplines and routes of namespaces.
//!
//! RFC 3549, `man 7 netlink`, `man 7 rtnetlink`. Many messages go into one `send`. The kernel
//! carries them out before it returns and always answers failed ones; of the successful ones only
//! the last is asked to answer, which marks the end.

mod message;
pub(crate) mod route;

pub(crate) use message::{LONGEST_ATTRIBUTE, Message};

use crate::failure::{Failure, Trying, reason};
use message::{ACK, Answer};
use nix::libc::{self, c_int};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetBool;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::os::fd::OwnedFd;

/// Well below the default send limit of a socket (208 KiB).
const MOST_AT_ONCE: usize = 1 << 16;

/// Answers carry the kernel's text about an error.
#[derive(Clone, Copy, Debug)]
struct ExtendedAnswers;
nix::setsockopt_impl!(ExtendedAnswers, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, bool, SetBool);

/// Answers do not contain the message itself.
#[derive(Clone, Copy, Debug)]
struct ShortAnswers;
nix::setsockopt_impl!(ShortAnswers, libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, bool, SetBool);

/// A netlink socket in one network namespace.
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// A socket in the calling thread's namespace.
    pub fn open() -> Result<Self, Failure> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
                .trying(|| "netlink socket".into())?;
        setsockopt(&socket, ExtendedAnswers, &true).trying(|| "NETLINK_EXT_ACK".into())?;
        setsockopt(&socket, ShortAnswers, &true).trying(|| "NETLINK_CAP_ACK".into())?;
        Ok(Self { socket })
    }

    /// Carries out all operations in order. The result is the first error.
    pub fn carry_out(&self, batch: &Batch) -> Result<(), Failure> {
        let mut first = 0;
        while first < batch.orders.len() {
            let mut bytes = Vec::new();
            let mut last = first;
            for (number, order) in batch.orders.iter().enumerate().skip(first) {
                if number > first && bytes.len() + order.message.len() > MOST_AT_ONCE {
                    break;
                }
                order.message.append_to(&mut bytes, number as u32);
                last = number;
            }
            let length = bytes.len();
            let start = length - batch.orders[last].message.len();
            message::add_flags(&mut bytes[start..], ACK);
            self.send_and_check(batch, &bytes, last)?;
            first = last + 1;
        }
        Ok(())
    }

    fn send_and_check(&self, batch: &Batch, bytes: &[u8], last: usize) -> Result<(), Failure> {
        let what = |number: usize| batch.orders[number].what.clone();
        send(&self.socket, bytes, SendFlags::empty()).trying(|| what(last))?;
        let mut buffer = [0; 2048];
        loop {
            let (_, length) = recv(&self.socket, &mut buffer, RecvFlags::empty())
                .trying(|| format!("{}: answer", what(last)))?;
            let answer = Answer::read(&buffer[..length.min(buffer.len())])
                .ok_or_else(|| Failure::new(what(last), "an invalid answer"))?;
            let number = answer.sequence as usize;
            if answer.error != 0 && number < batch.orders.len() {
                return Err(Failure::new(what(number), said(&answer)));
            }
            if number == last {
                return Ok(());
            }
        }
    }
}

fn said(answer: &Answer) -> String {
    let reason = reason(Errno::from_raw_os_error(-answer.error as c_int));
    match &answer.text {
        Some(text) => format!("{reason} ({text})"),
        None => reason,
    }
}

/// Operations in one namespace.
#[derive(Default)]
pub(crate) struct Batch {
    orders: Vec<Order>,
}

struct Order {
    message: Message,
    /// The operation, for an error message.
    what: String,
}

impl Batch {
    pub fn push(&mut self, message: Message, what: String) {
        self.orders.push(Order { message, what });
    }
}
