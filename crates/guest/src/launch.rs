//! Starts a kernel on the machine itself: the one thing that this program does there.
//!
//! The kernel ends with the thread that asked for it, however that ends. And its addresses are always
//! the same: they find their way into its random numbers.

use nix::sys::personality::{self, Persona};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the first argument is.
pub(crate) const WORD: &str = "launch";

/// Becomes the kernel whose path and arguments these are. Returns only if that fails.
pub(crate) fn launch(mut words: impl Iterator<Item = OsString>) -> io::Error {
    let prepared = set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(io::Error::from)
        .and_then(|()| Ok(personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?));
    match (prepared, words.next()) {
        (Err(error), _) => error,
        (Ok(_), None) => io::Error::from(io::ErrorKind::InvalidInput),
        (Ok(_), Some(kernel)) => Command::new(kernel).args(words).exec(),
    }
}
