//! One TCP endpoint as a state machine without I/O: segments, time and application calls go in,
//! segments and timers come out.
//!
//! Where to find what:
//!
//! | job | file |
//! |---|---|
//! | the endpoint, its calls and timers | `endpoint` |
//! | opening and options; TCP Fast Open | `handshake`, `fast_open` |
//! | segments in, closing; TIME-WAIT | `input`, `time_wait` |
//! | keepalive and user timeout | `keepalive` |
//! | acknowledgments in | `on_ack` |
//! | the scoreboard: what was sent and is not acknowledged | `scoreboard` |
//! | loss detection and recovery | `recovery`, `rack`, `tlp`, `dup_acks`, `undo` |
//! | the window: reductions, window validation, round counting | `cwnd_reduction`, `cwnd_validation`, `rounds` |
//! | transmission: send buffer, TSO bursts, pacing, small queues | `output`, `send_buffer`, `tso`, `pacing`, `small_queue` |
//! | path MTU, and data that was too large for it | `path_mtu`, `resegment` |
//! | ECN and accurate ECN | `ecn`, `accurate_ecn` |
//! | memory pressure of the host | `memory_pressure` |
//! | RTT, RTO and the timer wheel | `rtt`, `timer` |
//! | delivery rate | `delivery_rate` |
//! | reassembly, receive window, SACK blocks | `receiver` |
//! | delayed and quick ACKs | `delayed_ack` |
//! | segments, GRO, sequence numbers | `segment`, `seq` |
//! | what an observer sees | `snapshot` |
//!
//! It knows no network and no traffic, and moves counts of bytes instead of bytes.
//!
//! What every packet passes is inlined as one piece. What few packets do is kept out of it, by
//! `#[inline(never)]` or, where it is rare for every stack, `#[cold]`: then the way of a packet is short.
//! `make bench` was 5 to 10 % slower without.

mod accurate_ecn;
mod congestion;
mod delayed_ack;
mod ecn;
mod endpoint;
mod loss;
mod pages;
mod ranges;
mod receiver;
mod segment;
mod send_buffer;
mod sender;
mod seq;
mod settings;
mod timer;

pub use endpoint::fast_open::Known;
pub use endpoint::memory_pressure::{GUARANTEED, Shortage};
pub use endpoint::snapshot::{RttSummary, Snapshot};
pub use endpoint::time_wait::TimeWait;
pub use endpoint::{BuildControl, Ended, Endpoint, Identity, Start, State};
pub use segment::{
    Cookie, FastOpenOption, Flags, IP_HEADER, Merged, SEGMENT_OVERHEAD, SackBlock, Segment,
    SynOptions, TCP_HEADER, TIMESTAMPS_OPTION, Timestamps, TooLarge,
};
pub use sender::SenderCounters;
pub use seq::SeqNumber;
pub use settings::{
    AckCounting, Behaviour, Capable, Ecn, Feedback, Keepalive, LossRecovery, MtuProbing, Settings,
    WindowReduction,
};
pub use tcplab_transport::{Clock, RtoEstimator, RtoLimits};
pub use timer::{TICK, Turn, Wheel};
