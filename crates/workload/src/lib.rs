//! The traffic of applications and the changes of links, drawn from the run's seed: the same on
//! every backend.
//!
//! - [`sizes`]: sizes of transfers.
//! - [`accounts`]: flows in the form of tables.
//! - [`arrivals`]: starts and sizes of transfers.
//! - [`datagrams`]: schedules of datagrams.
//! - [`start`]: starts of flows.
//! - [`links`]: changes of links during an experiment.
//! - [`spread`]: distributions of delays, as lookup tables for random draws.
//! - [`web`]: the sessions of a web page.
//!
//! Times within a flow are in whole nanoseconds, the kernel's unit.

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
