//! Reports of the guest to the host side, one JSON object each. All times are in nanoseconds after
//! the start of the experiment.

use serde::{Deserialize, Serialize};
use tcplab_tables::DatagramFacts;

/// The counters of a datagram flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// The number of sent datagrams.
    pub sent: u64,
    /// When the last datagram was sent; `None` if the sender has not finished.
    pub finished: Option<u64>,
    /// When the last datagram arrived.
    pub arrived: Option<u64>,
    /// The statistics of the datagrams; `None` if they are too small for a number.
    pub facts: Option<Box<DatagramFacts>>,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// An operation of the job failed; the guest stops.
    Failed {
        /// The operation and the kernel's reason:
        /// `TCP_CONGESTION "qubic": No such file or directory`.
        reason: String,
    },
    /// A connection (or session, or datagram flow) of a flow ended, or was cut short by the end of
    /// the experiment.
    Connection {
        /// The flow's number.
        flow: usize,
        /// The number of the connection or session in the flow, from 0.
        number: usize,
        /// The client's port.
        port: u16,
        /// When the client began to connect, or sent first.
        start: u64,
        /// Bytes (with `Requests`, of responses) that arrived at the application, if the guest
        /// knows; otherwise they are in the kernel's summary of the connection.
        received: Option<u64>,
        /// When the last byte arrived, if all did.
        complete: Option<u64>,
        /// For a datagram flow, its counters.
        datagrams: Option<Datagrams>,
        /// The kernel's reason of a failure: `Connection refused`.
        error: Option<String>,
    },
    /// A connection of a flow continues with another session or request; the kernel has summarized
    /// the previous one.
    Session {
        /// The flow's number.
        flow: usize,
        /// The number of the session in the flow, from 0.
        number: usize,
        /// The client's port.
        port: u16,
    },
    /// A mark has passed, or the flow is over: the activity of a datagram flow since the last mark.
    /// Sent at the first event after the mark.
    Datagrams {
        /// The flow's number.
        flow: usize,
        /// The number of sent datagrams.
        sent: u64,
        /// The number of arrived datagrams.
        arrived: u64,
        /// The data that arrived, in bytes.
        bytes: u64,
    },
    /// A program exited, or was ended with the experiment.
    Exited {
        /// The flow's number.
        flow: usize,
        /// `server` or `client`.
        side: String,
        /// The exit status; `None` if it was ended.
        status: Option<i32>,
    },
}
