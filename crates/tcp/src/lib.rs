//! One TCP endpoint as a state machine without I/O: segments, time and application calls go in,
//! segments and timers come out. Data is a count of bytes.
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
//! | handshake; TCP Fast Open | `endpoint::handshake`; `endpoint::fast_open` |
//! | TCP options: of a SYN; of other segments; their bytes and lengths | `endpoint::handshake` (`syn`, `take_syn`); `endpoint` (`segment_with_options`); `segment` (`SynOptions`, `with_syn_options`, `header_bytes`) |
//! | retransmission of a SYN or SYN-ACK: the timer; the segment | `endpoint` (`on_retransmission_timer`); `endpoint::handshake` (`syn`) |
//! | received segments, closing; TIME-WAIT | `endpoint::input`; `endpoint::time_wait` |
//! | keepalive, user timeout; memory pressure | `endpoint::keepalive`; `endpoint::memory_pressure` |
//! | the state that an observer sees | `endpoint::snapshot` |
//! | the sender's coordinators: an ACK; the next segment; RTO; tail loss probes (TLP) | `sender::on_ack`; `sender::output`; `sender::rto_timer`; `sender::tail_probe` |
//! | recovery; reordering; undo; segments of another size | `sender::recovery`; `sender::reordering`; `sender::undo`; `sender::resegment` |
//! | F-RTO: begun by an RTO; ACKs until it ends | `sender::recovery` (`on_timeout`, `process_loss`) |
//! | DSACK: received; sent | `sender::on_ack` (`take_sack`, `take_dsack`); `receiver` (`note_duplicate`) |
//! | backoff of the RTO: when; by how much | `sender::recovery` (`on_timeout`); `tcplab_transport::Rtt` (`back_off`) |
//! | slow start after idle; the decay of an unused window | `sender::output` (`cwnd_restart`); `sender::validation` |
//! | a segment that the host's queue refuses | `sender::refusal`; `endpoint::small_queue` (`on_refused`) |
//! | rate samples; window validation | `sender::sampling`; `sender::validation` |
//! | scoreboard, loss detection, RACK, TLP, duplicate ACKs, undo | `loss` and its folder |
//! | the controller, rounds, growth; proportional rate reduction (PRR) | `congestion`; `congestion::reduction` (`CwndReduction`) |
//! | send buffer; the coordinators' calls of it | `departure::send_buffer`; `departure::calls` |
//! | TSO bursts; pacing; small queues (TSQ) | `departure::tso`; `departure::pacing`; `departure::small_queue` |
//! | Nagle's algorithm: a segment; the end of a TSO burst | `sender::output` (`may_send_small`); `departure::tso` (`may_end_small`) |
//! | cork (`MSG_MORE`), autocork | `departure::send_buffer` (`Nagle`, `should_autocork`) |
//! | zero-window probe (persist timer): when one is needed; the timer; its expiry; the segment | `sender::output` (`needs_window_probe`); `sender::rto_timer` (`arm_persist_timer`); `endpoint` (`on_retransmission_timer`, `start_of_due_ack`) |
//! | window scaling: the scale; the option; the window sent; the window received | `receiver` (`new`); `endpoint::handshake` (`syn`, `take_syn`); `receiver` (`select_window`); `sender::on_ack` (`update_window`) |
//! | pacing rate, also of a controller without one; other inputs of a burst | `sender::bursts` (`update_rate`, `set_rate_for`) |
//! | path MTU: the size and the search for it; the sender's response; ICMP notices and black holes | `departure::path_mtu`; `sender::path_mtu`; `endpoint::path_mtu` |
//! | the sender's timer; the kernel's timer wheel | `timer`; `timer::wheel` |
//! | ECN; accurate ECN | `ecn`; `accurate_ecn` |
//! | reassembly, receive window, SACK blocks of an ACK | `receiver` (`receive`, `select_window`, `sack_blocks`) |
//! | Linux's receiver: window autotuning; memory; list of out-of-order ranges | `receiver::autotune`; `receiver::skb`; `receiver::sack_blocks` |
//! | delayed, quick and compressed ACKs | `delayed_ack`; `delayed_ack::linux` |
//! | segments; GRO; sequence numbers | `segment`; `segment::gro`; `seq` |
//!
//! The TCP-independent parts of a sender are in the crate `tcplab_transport`: RTT and RTO, delivery
//! rate, rounds, pacing and window validation.
//!
//! # Time and settings
//!
//! `context::Context` holds the time of a step and the settings of the connection. The endpoint
//! makes one for each call that needs both, and the coordinators pass it on. Where there is no
//! time, `&Settings` is an argument of its own: in constructors, in writes of the application, and
//! in rules that depend on the settings alone.
//!
//! # What differs between `rfc` and `linux`
//!
//! [`Behaviour`] names each choice once, with the kernel function or the RFC section. The profile
//! of an experiment (`crates/model/src/profile.rs`) sets its options and a flavour, `rfc` or
//! `linux`; `settings::behaviour` makes a `Behaviour` of the flavour. No other file asks which
//! profile runs.
//!
//! # What is not separated, and why
//!
//! - The scoreboard and the bursts are each allocated when data is first sent (`on_demand`), so
//!   that an end that only receives stays small.
//! - The MSS in effect is part of the stream that `sender` holds, as all three owners count by it.
//!   `sender::path_mtu` sets it to the size that `departure` has found for the path.
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

pub use endpoint::fast_open::CachedCookie;
pub use endpoint::memory_pressure::{GUARANTEED, MemoryPressure};
pub use endpoint::small_queue::BeforeBurst;
pub use endpoint::snapshot::{RttSummary, Snapshot};
pub use endpoint::time_wait::TimeWait;
pub use endpoint::{BuildControl, Ended, Endpoint, Identity, Start, State};
pub use segment::{
    Cookie, FastOpenOption, Flags, FragNeeded, IP_HEADER, Merged, SEGMENT_OVERHEAD, SackBlock,
    Segment, SynOptions, TCP_HEADER, TIMESTAMPS_OPTION, Timestamps,
};
pub use sender::SenderCounters;
pub use seq::SeqNumber;
pub use settings::{
    AckCounting, Behaviour, Capable, Ecn, Feedback, Keepalive, LossRecovery, MtuProbing, Settings,
    WindowReduction,
};
pub use tcplab_transport::{Clock, RtoEstimator, RtoLimits};
pub use timer::{ExpiryOrder, TICK, Wheel};
