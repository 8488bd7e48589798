//! Errors of building and finding kernels.

use std::path::{Path, PathBuf};

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The build was told to stop.
    #[error("the build was stopped")]
    Stopped,
    /// Kernels of this kind neither build nor run on this machine.
    #[error("the Linux backend needs Linux on x86-64; this is {system} on {machine}")]
    Machine {
        /// The operating system.
        system: &'static str,
        /// The processor.
        machine: &'static str,
    },
    /// There is no folder for kernels.
    #[error("there is no folder for the cache: neither `TCPLAB_CACHE` nor `HOME` is set")]
    NoCache,
    /// The name cannot be that of a folder.
    #[error(
        "{0:?} cannot be the name of a kernel: it may have letters, digits, `.`, `_`, `+` and `-`, \
         begins with a letter or digit, and has at most 64 characters"
    )]
    Name(String),
    /// No kernel has this name.
    #[error("no kernel is called {name:?}; {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The existing kernels.
        known: String,
    },
    /// The request is impossible.
    #[error("{at}: {problem}")]
    Refused {
        /// The file, folder or option.
        at: String,
        /// The problem, and what is allowed.
        problem: String,
    },
    /// The disk has no space for a build.
    #[error(
        "{}: a build needs {} MB for a while, and {} MB are free; `TCPLAB_CACHE` names \
         another folder for kernels", .folder.display(), .needed / 1_000_000, .free / 1_000_000
    )]
    Space {
        /// The folder of the build.
        folder: PathBuf,
        /// The bytes needed.
        needed: u64,
        /// The bytes available.
        free: u64,
    },
    /// Programs are missing.
    #[error("{what} needed to build a kernel and not installed; {how}")]
    Missing {
        /// The missing programs: `flex and bison are`.
        what: String,
        /// How to get them.
        how: String,
    },
    /// The compiler, or another program of the build, failed.
    #[error("{what}:\n{lines}\nthe whole log: {}", .log.display())]
    Failed {
        /// The step that failed.
        what: String,
        /// The program's messages.
        lines: String,
        /// The file with the whole output.
        log: PathBuf,
    },
}

impl Error {
    /// An impossible request, and its place.
    pub(super) fn refused(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Refused { at: at.into(), problem: problem.into() }
    }
}

/// Adds a place to errors of the system.
pub(super) trait At<T> {
    /// The file or folder of the error.
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::refused(path.display().to_string(), reason(&error)))
    }
}

/// The system's message, in the form of tcplab's own.
pub(super) fn reason(error: &std::io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or_default();
    let mut letters = said.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_name_their_path() {
        let missing: std::io::Result<()> = Err(std::io::Error::from_raw_os_error(2));
        let error = missing.at(Path::new("/a/b")).unwrap_err();
        assert_eq!(error.to_string(), "/a/b: no such file or directory");
    }
}
