//! One TCP endpoint as a state machine without I/O: segments, time and application calls go in,
//! segments and timers come out.
//!
//! Where to find what:
//!
//! | job | file |
//! |---|---|
//! | the endpoint, its calls and timers | `endpoint` |
//! | opening, options | `handshake` |
//! | data before the handshake ends | `fast_open` |
//! | segments in, closing | `input` |
//! | what is left of an end that is over | `remains` |
//! | what may be sent, in which bursts, out of which buffer, and when | `output`, `bursts`, `sendbuf`, `pacing` |
//! | acknowledgments in | `sender` |
//! | what is under way | `scoreboard` |
//! | loss detection and repair | `recovery`, `rack`, `duplicates`, `tlp` |
//! | how large packets may be | `path_mtu` |
//! | what was too large, sent again | `refit` |
//! | smaller windows, by and by, and taken back | `reduction`, `undo` |
//! | what waits at the host's own device | `small_queue` |
//! | whether the window is used | `usage` |
//! | congestion marks | `ecn`, `accurate` |
//! | while the memory of a host runs short | `memory` |
//! | keepalives, user timeout | `alive` |
//! | round-trip time, timeout, what is waited for | `rtt`, `timer` |
//! | round counting | `rounds` |
//! | how fast the path delivers | `rate` |
//! | reassembly, window, SACK blocks | `receiver` |
//! | delayed and quick ACKs | `acks` |
//! | segments, and several that become one on arrival | `segment` |
//! | wrapping numbers | `seq` |
//! | what is seen from outside | `view` |
//!
//! It knows no network and no traffic, and moves counts of bytes instead of bytes.
//!
//! What every packet passes is inlined as one piece. What few packets do is kept out of it, by
//! `#[inline(never)]` or, where it is rare for every stack, `#[cold]`: then the way of a packet is short.
//! `make bench` was 5 to 10 % slower without.

mod accurate;
mod acks;
mod alive;
mod answer;
mod bursts;
mod duplicates;
mod ecn;
mod endpoint;
mod fast_open;
mod handshake;
mod input;
mod memory;
mod output;
mod pacing;
mod pages;
mod path_mtu;
mod rack;
mod ranges;
mod rate;
mod receiver;
mod recovery;
mod reduction;
mod refit;
mod remains;
mod rounds;
mod rtt;
mod scoreboard;
mod segment;
mod sendbuf;
mod sender;
mod seq;
mod settings;
mod small_queue;
mod timer;
mod tlp;
mod undo;
mod usage;
mod view;

pub use endpoint::{BuildControl, Ended, Endpoint, Identity, Start, State};
pub use fast_open::Known;
pub use memory::{GUARANTEED, Shortage};
pub use remains::Remains;
pub use segment::{
    Cookie, FastOpenOption, Flags, IP_HEADER, Merged, SEGMENT_OVERHEAD, SackBlock, Segment,
    SynOptions, TCP_HEADER, TIMESTAMPS_OPTION, Timestamps, TooLarge,
};
pub use sender::SenderCounters;
pub use seq::SeqNumber;
pub use settings::{
    AckCounting, Capable, Ecn, Feedback, Keepalive, LossRecovery, MtuProbing, Settings,
    WindowReduction,
};
pub use timer::{TICK, Turn, Wheel};
pub use view::{RttSummary, Snapshot};
