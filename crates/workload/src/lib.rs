//! What the applications of an experiment ask of the transport, drawn from the run's seed: the same on
//! every backend.
//!
//! - [`sizes`]: how large transfers are.
//! - [`arrivals`]: when transfers begin that come at random.
//! - [`web`]: the sessions of a web page, and how many go on at once.

pub mod arrivals;
pub mod sizes;
pub mod web;

pub use arrivals::{Transfer, Transfers};
pub use sizes::Sampler;
pub use web::Session;
