//! Application programs, written once for any transport that carries a byte stream.
//!
//! | file | program |
//! |---|---|
//! | `stream` | the interface: one end of a connection, as a program sees it |
//! | `bulk` | one end sends, always or in periods; the other one receives |
//! | `exchange` | one end sends requests, the other one responds |
//!
//! Which connections exist, and when, is decided in `crate::flow`.

mod bulk;
mod exchange;
mod stream;

pub(crate) use bulk::{Receive, Send};
pub(crate) use exchange::{Answer, Ask, Step};
pub(crate) use stream::{Stream, Writing};

/// The program at one end of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    Send(Send),
    Receive(Receive),
    Ask(Ask),
    Answer(Answer),
}
