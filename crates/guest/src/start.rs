//! Starts a kernel on the machine itself: the one thing that this program does there.
//!
//! The kernel ends with the thread that asked for it, however that ends. It runs behind walls
//! ([`crate::kernel_sandbox`]). And its addresses are always the same: they find their way into its random
//! numbers.

use crate::kernel_sandbox::{Needs, kernel_sandbox};
use nix::sys::personality::{self, Persona};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
pub(crate) use tcplab_guest::launch::{END_OF_READS, WORD};

/// Becomes a kernel. The words are the folder of its memory, what programs in it may read,
/// [`END_OF_READS`], the kernel's path and its arguments. Returns only if that fails.
pub(crate) fn launch(words: impl Iterator<Item = OsString>) -> Box<dyn Error> {
    let words: Vec<_> = words.collect();
    let end = words.iter().position(|word| word == END_OF_READS);
    let (Some([memory, reads @ ..]), Some([_, kernel, arguments @ ..])) =
        (end.map(|end| &words[..end]), end.map(|end| &words[end..]))
    else {
        return "too few words".into();
    };
    let needs =
        Needs { kernel: Path::new(kernel), writes: [Path::new("."), Path::new(memory)], reads };
    match prepare(&needs) {
        Ok(()) => Command::new(kernel).args(arguments).exec().into(),
        Err(error) => error,
    }
}

fn prepare(needs: &Needs<'_>) -> Result<(), Box<dyn Error>> {
    personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
    confine(needs)?;
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}
