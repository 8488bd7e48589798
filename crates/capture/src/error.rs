//! Errors of unreadable captures.

use std::io;

/// An unreadable capture: the file and the problem.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct Error {
    /// The name of the file, `-` for standard input.
    pub file: String,
    /// The problem.
    pub problem: Problem,
}

/// The problem of an unreadable capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened or read.
    #[error("{}", reason(.0))]
    Io(#[from] io::Error),
    /// The file begins with none of the known formats.
    #[error(
        "is not a capture: it begins with {0}; pcap and pcapng are read, plain or packed with gzip or zstd"
    )]
    Format(String),
    /// The file ends within its first header.
    #[error("ends within its first header, after {0} bytes")]
    Header(u64),
    /// A header field has an impossible value.
    #[error("byte {at}: {what}")]
    Field {
        /// The position in the unpacked file.
        at: u64,
        /// The problem.
        what: String,
    },
}

impl Problem {
    /// Adds the name of the file.
    pub(crate) fn of(self, file: &str) -> Error {
        Error { file: file.into(), problem: self }
    }
}

/// The system's message without its number.
fn reason(error: &io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or_default();
    let mut letters = said.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
