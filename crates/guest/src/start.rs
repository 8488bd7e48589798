//! Starts a kernel on the machine itself: the only thing that this program does there.
//!
//! The kernel ends with the thread that started it, however that ends. The kernel is confined
//! ([`crate::kernel_sandbox`]), and its address space layout is not randomized, because addresses
//! influence its random numbers.

use crate::kernel_sandbox::{Needs, confine};
use nix::sys::personality::{self, Persona};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
pub(crate) use tcplab_guest::launch::{END_OF_READS, WORD};

/// Becomes a kernel. The arguments are the folder of its memory, paths that its programs may read,
/// [`END_OF_READS`], the kernel's path and its arguments. Returns only on failure.
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
