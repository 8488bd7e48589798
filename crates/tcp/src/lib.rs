//! One TCP endpoint as a state machine without I/O: segments, time and application calls go in,
//! segments and timers come out. It moves counts of bytes, not bytes.
//!
//! # The map
//!
//! ```text
//!  application, host                             segments in and out
//!          |                                            |
//!  +-------v--------------------------------------------v--------------------------------+
//!  | endpoint   states, opening and closing, timers, options, memory, keepalive          |
//!  +-----+----------------------+-----------------------------+---------------+----------+
//!        |                      |                             |               |
//!        v                      v                             v               v
//!  +-----------------------------------------+          +----------+   +-------------+
//!  | sender     coordinators:                |          | receiver |   | delayed_ack |
//!  |   on_ack, output, recovery, probe       |          +----------+   +-------------+
//!  |   and reordering timers                 |
//!  +--+-------------------+---------------+--+
//!     |                   |               |
//!     v                   v               v
//!   loss              congestion      departure
//!   what is lost      how much may    what leaves when
//!                     be sent
//! ```
//!
//! | to change | only here | by |
//! |---|---|---|
//! | the scoreboard | `loss`: `Loss`, fields private to the folder | its methods, from `sender` |
//! | the window | `congestion`: `CongestionWindow`, the only caller of the controller, and `congestion::reduction` (PRR) | its methods, from `sender` |
//! | the departure | `departure`: `Departure`, send buffer, TSO bursts, pacing, small queue and path MTU, fields private to the folder | its methods, from `sender` |
//!
//! | job | file |
//! |---|---|
//! | states, application calls, timers | `endpoint` |
//! | opening, options; TCP Fast Open | `endpoint::handshake`, `endpoint::fast_open` |
//! | segments in, closing; TIME-WAIT | `endpoint::input`, `endpoint::time_wait` |
//! | keepalive and user timeout; memory pressure | `endpoint::keepalive`, `endpoint::memory_pressure` |
//! | what an observer sees | `endpoint::snapshot` |
//! | the sender's coordinators: an ACK; the next segment; RTO and tail loss probes | `sender::on_ack`, `sender::output`, `sender::rto_timer`, `sender::tail_probe` |
//! | recovery, reordering, undo, segments of another size | `sender::recovery`, `sender::reordering`, `sender::undo`, `sender::resegment` |
//! | rate samples, window validation | `sender::sampling`, `sender::validation` |
//! | scoreboard, loss detection, RACK, TLP, duplicate ACKs, undo | `loss` and its folder |
//! | the controller, reductions (PRR), rounds, growth | `congestion`, `congestion::reduction` |
//! | send buffer; the calls that reach it | `departure::send_buffer`; `departure::calls` |
//! | Nagle's algorithm and corking | `departure::tso` (`may_end_small`), `sender::output` (`may_send_small`), `departure::calls` |
//! | zero-window probes | `sender::rto_timer` (when), `endpoint` (`probe_closed_window`) |
//! | window scaling: the shift offered, and windows by it | `endpoint::handshake`, `receiver` (`offer`), `receiver::autotune` (`window`) |
//! | TSO bursts; pacing; small queues | `departure::tso`; `departure::pacing`; `departure::small_queue` |
//! | the pacing rate and what a burst asks of the other owners | `sender::bursts` |
//! | path MTU: what is told and searched for; what the sender does for it; ICMP notices and black holes | `departure::path_mtu`; `sender::path_mtu`; `endpoint::path_mtu` |
//! | timer wheel | `timer` |
//! | ECN and accurate ECN | `ecn`, `accurate_ecn` |
//! | reassembly, receive window, SACK blocks of an ACK (`with_sack`) | `receiver` |
//! | Linux's receiver: autotuning, its list of out-of-order ranges | `receiver::autotune`, `receiver::sack_blocks` |
//! | delayed and quick ACKs | `delayed_ack` |
//! | segments, GRO, sequence numbers | `segment`, `seq` |
//!
//! RTT and RTO, delivery rate, rounds, pacing and window validation know no TCP and are in the
//! crate `tcplab_transport`.
//!
//! # Time and settings
//!
//! `context::Context` holds the time of a step and the settings of the connection. The endpoint
//! makes one for each call of the sender, and the coordinators pass it on. What keeps `&Settings`:
//! constructors, which take place in no step; a write of the application, which has no time; and
//! the rules of `loss`, `ecn`, `delayed_ack` and `timer`, most of which depend on no time.
//!
//! # What differs between `rfc` and `linux`
//!
//! [`Behaviour`] names each choice once, with the kernel function or the RFC section. A profile
//! picks one; no other file asks which profile runs.
//!
//! # What is not separated, and why
//!
//! - The scoreboard and the bursts are each made when data is first sent (`on_demand`), so that an
//!   end that only receives stays small.
//! - The MSS in effect is part of the stream that `sender` holds, as all three owners count by it.
//!   `sender::path_mtu` sets it to what `departure` says that the path takes.
//! - Files of a folder and the folder's root import each other: a type, and the parts of its
//!   `impl`. Between folders, imports run one way: `endpoint` to `sender` to `loss`,
//!   `congestion` and `departure`, which do not import each other.
//!
//! # Speed
//!
//! The path of every packet is inlined as one piece. Rare paths are kept out of line by
//! `#[inline(never)]` or, where they are rare for every stack, `#[cold]`. `make bench` was 5 to 10
//! % slower without.

mod accurate_ecn;
mod congestion;
mod context;
mod delayed_ack;
mod departure;
mod ecn;
mod endpoint;
mod loss;
mod on_demand;
mod pages;
mod ranges;
mod receiver;
mod segment;
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
