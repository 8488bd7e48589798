//! The TCP-independent parts of a sender. A QUIC sender needs each of them in the same form.
//!
//! | job | file | source |
//! |---|---|---|
//! | granularity of the clock | `clock` | `tcp_clock_us`, jiffies |
//! | round-trip time and retransmission timeout | `rtt` | RFC 6298, RFC 9002 §5 |
//! | delivery rate | `delivery_rate` | draft-cheng-iccrg-delivery-rate-estimation |
//! | round counting | `rounds` | |
//! | pacing | `pacing` | RFC 9002 §7.7, `tcp_update_skb_after_send` |
//! | congestion window validation | `cwnd_validation` | RFC 7661, RFC 9002 §7.8 |
//!
//! Nothing here sees a segment, a header or a socket. Data is named by offsets or packet numbers,
//! whichever the transport has: `una` is the oldest that is not acknowledged and `nxt` the next to
//! be sent. Settings come in as small values of this crate ([`RtoLimits`], [`Clock`]).
//!
//! `tests/quic.rs` is a sender with packet numbers built on these parts alone.

mod clock;
mod cwnd_validation;
mod delivery_rate;
mod pacing;
mod rounds;
mod rtt;

pub use clock::Clock;
pub use cwnd_validation::{CwndValidation, Outstanding};
pub use delivery_rate::{Delivery, DeliveryRate, SenderState, Totals};
pub use pacing::{Burst, Pacing};
pub use rounds::Rounds;
pub use rtt::{EIGHTH, Progressed, RtoEstimator, RtoLimits, Rtt};
