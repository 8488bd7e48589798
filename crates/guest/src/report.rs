//! What the guest tells the host side, one JSON object each. All times are in nanoseconds after the
//! start of the experiment.

use serde::{Deserialize, Serialize};
use tcplab_tables::DatagramFacts;

/// What the two ends of a flow of datagrams did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// How many were sent.
    pub sent: u64,
    /// When the last of all was sent; nothing if the sender has not finished.
    pub finished: Option<u64>,
    /// When the last of those that arrived did so.
    pub arrived: Option<u64>,
    /// What became of them; nothing if they have no room for a number.
    pub facts: Option<Box<DatagramFacts>>,
}

/// One thing told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// Something the job asks for cannot be done; the guest stops.
    Failed {
        /// What, and the kernel's reason: `TCP_CONGESTION "qubic": No such file or directory`.
        reason: String,
    },
    /// A connection (or a session, or a flow of datagrams) of a flow ended, or the experiment ended before it.
    Connection {
        /// The flow's number.
        flow: usize,
        /// Which of the flow's connections, or sessions, from 0.
        number: usize,
        /// The client's port.
        port: u16,
        /// When the client began to connect, or sent first.
        start: u64,
        /// Bytes (with `Requests`, of answers) that arrived at the application, if the guest knows;
        /// otherwise the kernel's summary of the connection says.
        received: Option<u64>,
        /// When the last of all its bytes arrived, if all did.
        complete: Option<u64>,
        /// Of a flow of datagrams, what its two ends did.
        datagrams: Option<Datagrams>,
        /// Why it broke, as the kernel says: `Connection refused`.
        error: Option<String>,
    },
    /// A connection of a flow goes on with another session or request; the kernel has summed up the one before.
    Session {
        /// The flow's number.
        flow: usize,
        /// Which of the flow's sessions, from 0.
        number: usize,
        /// The client's port.
        port: u16,
    },
    /// A mark has passed, or the flow is over: what a flow of datagrams did since the last mark. Told when
    /// something happens after the mark.
    Datagrams {
        /// The flow's number.
        flow: usize,
        /// How many were sent.
        sent: u64,
        /// How many arrived.
        arrived: u64,
        /// The data in those.
        bytes: u64,
    },
    /// A program ended, or was ended with the experiment.
    Exited {
        /// The flow's number.
        flow: usize,
        /// `server` or `client`.
        side: String,
        /// Its exit status; nothing if it was ended.
        status: Option<i32>,
    },
}
