//! What programs do with connections: written once, for any transport that carries a stream of bytes.
//!
//! | file | program |
//! |---|---|
//! | `stream` | the seam: one end of a connection, as a program sees it |
//! | `bulk` | one end sends, always or at times; the other one receives |
//! | `exchange` | one end asks, the other one answers |
//!
//! Which connections there are, and when, is `crate::flow`.

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
