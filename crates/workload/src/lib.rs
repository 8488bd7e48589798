//! What the applications of an experiment ask of the transport, and how its links change, drawn from
//! the run's seed: the same on every backend.
//!
//! - [`sizes`]: how large transfers are.
//! - [`accounts`]: flows as tables know them.
//! - [`arrivals`]: when transfers begin, and how large they are.
//! - [`datagrams`]: when datagrams leave.
//! - [`start`]: when a flow begins.
//! - [`links`]: how links change while an experiment lasts.
//! - [`spread`]: distributions of delays, as tables that backends draw from.
//! - [`web`]: the sessions of a web page, and how many go on at once.
//!
//! Times within a flow are in whole nanoseconds, in which kernels count.

pub mod accounts;
pub mod arrivals;
pub mod datagrams;
pub mod links;
pub mod ports;
pub mod sizes;
pub mod spread;
pub mod start;
pub mod web;

pub use arrivals::{Transfer, Transfers, User};
pub use datagrams::pace;
pub use sizes::Sampler;
pub use start::start;
pub use tcplab_pace::{Pace, Times};
pub use web::Session;
