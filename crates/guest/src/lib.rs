//! The protocol between the host side and process 1 of the guest.
//!
//! The host side (`crates/linux`) makes all decisions and writes a [`Job`] into the run's folder.
//! The program of this crate carries it out in the booted kernel and answers with [`Report`]s.

pub mod job;
pub mod launch;
pub mod report;

pub use job::Job;
pub use report::Report;
