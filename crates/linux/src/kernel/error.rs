//! What can go wrong between a wish for a kernel and a kernel.

use std::path::{Path, PathBuf};

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Whoever asked for the kernel does not want it any more.
    #[error("the build was stopped")]
    Stopped,
    /// A kernel of our kind neither builds nor runs here.
    #[error("the Linux backend needs Linux on x86-64; this is {system} on {machine}")]
    Machine {
        /// The operating system.
        system: &'static str,
        /// The processor.
        machine: &'static str,
    },
    /// There is no place for kernels.
    #[error("there is no folder for the cache: neither `TCPLAB_CACHE` nor `HOME` is set")]
    NoCache,
    /// A name that cannot be a folder's.
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
        /// Which there are.
        known: String,
    },
    /// What was asked for is not possible.
    #[error("{at}: {problem}")]
    Refused {
        /// The file, folder or option.
        at: String,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// A build would not fit on the disk.
    #[error(
        "{}: a build needs {} MB for a while, and {} MB are free; `TCPLAB_CACHE` names \
         another folder for kernels", .folder.display(), .needed / 1_000_000, .free / 1_000_000
    )]
    Space {
        /// Where the build would be.
        folder: PathBuf,
        /// How many bytes it takes.
        needed: u64,
        /// How many there are.
        free: u64,
    },
    /// Something has to be installed first.
    #[error("{what} needed to build a kernel and not installed; {how}")]
    Missing {
        /// What: `flex and bison are`.
        what: String,
        /// How to get it.
        how: String,
    },
    /// The compiler, or another program of the build, refused.
    #[error("{what}:\n{lines}\nthe whole log: {}", .log.display())]
    Failed {
        /// What did not work.
        what: String,
        /// What the program said about it.
        lines: String,
        /// Where everything else is that it said.
        log: PathBuf,
    },
}

impl Error {
    /// Something that is not possible, and its place.
    pub(super) fn refused(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Refused { at: at.into(), problem: problem.into() }
    }
}

/// Gives errors of the system their place.
pub(super) trait At<T> {
    /// The file or folder that it is about.
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::refused(path.display().to_string(), reason(&error)))
    }
}

/// What the system said, in the form of our own messages.
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
    fn errors_of_the_system_name_their_place() {
        let missing: std::io::Result<()> = Err(std::io::Error::from_raw_os_error(2));
        let error = missing.at(Path::new("/a/b")).unwrap_err();
        assert_eq!(error.to_string(), "/a/b: no such file or directory");
    }
}
