//! What the host side and process 1 of the guest say to each other.
//!
//! The host side (`crates/linux`) decides everything and writes a [`Job`] into the run's folder; the
//! program of this crate carries it out inside the booted kernel and answers with [`Report`]s.

pub mod job;
pub mod launch;
pub mod report;

pub use job::Job;
pub use report::Report;
