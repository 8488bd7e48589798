//! Why a capture cannot be read.

use std::io;

/// A capture of which nothing can be read: the file, and why.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct Error {
    /// The name of the file, `-` for standard input.
    pub file: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened or read.
    #[error("{}", reason(.0))]
    Io(#[from] io::Error),
    /// The file begins with neither of the formats.
    #[error(
        "is not a capture: it begins with {0}; pcap and pcapng are read, plain or packed with gzip or zstd"
    )]
    Format(String),
    /// The file ends within its first header.
    #[error("ends within its first header, after {0} bytes")]
    Header(u64),
    /// A header has a field that no capture has.
    #[error("byte {at}: {what}")]
    Field {
        /// The place in the unpacked file.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

impl Problem {
    /// The problem with its file.
    pub(crate) fn of(self, file: &str) -> Error {
        Error { file: file.into(), problem: self }
    }
}

/// What the system said, without its number.
fn reason(error: &io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or_default();
    let mut letters = said.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
