//! Kernels: gets the source, adds tcplab's part, builds it for `ARCH=um`, and caches the result.
//!
//! | file | job |
//! |---|---|
//! | `request` | the requested kernel |
//! | `cache` | the cached kernels |
//! | `build` | builds a kernel and stores it in the cache |
//! | `source` | trees and tarballs: their identity, and a copy to build in |
//! | `recipe` | tcplab's additions to a source |
//! | `options` | the configuration, and a check of the result |
//! | `congestion` | the names of congestion controls in C sources |
//! | `tools` | the programs that a build needs |
//! | `apt` | Debian packages, with and without root |
//! | `symlinks` | checks that links in a folder stay in it |
//! | `permissions` | checks who can write to the kernels' folders |
//! | `hash` | the SHA-256 of files |
//! | `process` | runs programs that end with tcplab |
//! | `log` | reads the output of `make` |
//! | `error` | errors of a build |

mod apt;
mod build;
mod cache;
mod congestion;
mod error;
mod hash;
mod log;
mod options;
mod permissions;
mod process;
mod recipe;
mod request;
mod source;
#[cfg(test)]
mod source_mutated;
mod symlinks;
mod tools;

pub use cache::{Cache, Kernel};
pub use error::Error;
pub use request::{DEFAULT, DEFAULT_HZ, Request, Source};

/// The progress of a build.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The current stage: `compiling Linux 6.12.90`.
    pub stage: String,
    /// The number of completed steps.
    pub done: u64,
    /// The estimated number of steps; 0 if unknown.
    pub total: u64,
    /// The unit of the steps: `files`.
    pub unit: &'static str,
}

impl Progress {
    /// A stage without measurable progress.
    fn stage(stage: impl Into<String>) -> Self {
        Self { stage: stage.into(), done: 0, total: 0, unit: "" }
    }
}
