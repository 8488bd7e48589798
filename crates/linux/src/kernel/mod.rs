//! Kernels: gets the source, adds our part, builds it for `ARCH=um`, keeps the result in a cache.
//!
//! | file | job |
//! |---|---|
//! | `request` | what kernel is asked for |
//! | `cache` | the kernels there are |
//! | `build` | from a request to a kernel in the cache |
//! | `source` | trees and tarballs: their identity, and a copy to build in |
//! | `recipe` | what we add to a source |
//! | `options` | the configuration, and whether it was granted |
//! | `congestion` | the names of congestion controls in C sources |
//! | `tools` | the programs that a build needs |
//! | `apt` | Debian's packages, with and without root |
//! | `symlinks` | whether everything in a folder stays in it |
//! | `permissions` | who can write where kernels are |
//! | `hash` | the SHA-256 of files |
//! | `process` | runs programs that must not outlive us |
//! | `log` | what the output of `make` means |
//! | `error` | what can go wrong |

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

/// How far a build is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done: `compiling Linux 6.12.90`.
    pub stage: String,
    /// How many of its steps are done.
    pub done: u64,
    /// How many steps there are, as far as one can tell; 0 if one cannot.
    pub total: u64,
    /// What the steps are: `files`.
    pub unit: &'static str,
}

impl Progress {
    /// A stage that cannot be measured.
    fn stage(stage: impl Into<String>) -> Self {
        Self { stage: stage.into(), done: 0, total: 0, unit: "" }
    }
}
