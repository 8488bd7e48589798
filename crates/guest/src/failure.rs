//! Failures of the guest.

use std::io;

/// An operation of the job that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub(crate) struct Failure {
    what: String,
    reason: String,
}

impl Failure {
    pub fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { what: what.into(), reason: reason.into() }
    }
}

/// Adds the attempted operation to a system call's error.
pub(crate) trait Trying<T> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Trying<T> for Result<T, E> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(what(), reason(error)))
    }
}

/// The kernel's reason, without Rust's ` (os error 2)`.
pub(crate) fn reason(error: impl Into<io::Error>) -> String {
    let mut text = error.into().to_string();
    if let Some(at) = text.rfind(" (os error ") {
        text.truncate(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_failure_names_the_operation_and_the_errno() {
        let tried: Result<(), _> = Err(Errno::NOENT);
        let failure = tried.trying(|| "TCP_CONGESTION \"qubic\"".into()).unwrap_err();
        assert_eq!(failure.to_string(), "TCP_CONGESTION \"qubic\": No such file or directory");
    }
}
