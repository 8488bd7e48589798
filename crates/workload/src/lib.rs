//! What the applications of an experiment ask of the transport, drawn from the run's seed: the same on
//! every backend.
//!
//! - [`sizes`]: how large transfers are.
//! - [`arrivals`]: when transfers begin, and how large they are.
//! - [`datagrams`]: when datagrams leave.
//! - [`start`]: when a flow begins.
//! - [`web`]: the sessions of a web page, and how many go on at once.
//!
//! Times within a flow are in whole nanoseconds, in which kernels count.

pub mod arrivals;
pub mod datagrams;
pub mod sizes;
pub mod start;
pub mod web;

pub use arrivals::{Transfer, Transfers, User};
pub use datagrams::pace;
pub use sizes::Sampler;
pub use start::start;
pub use tcplab_pace::{Pace, Times};
pub use web::Session;
