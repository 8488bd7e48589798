//! The machine as a whole: file systems, limits, settings of the kernel, power.

use crate::failure::{Failure, Trying};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};
use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::Write;

/// Connections, namespaces: all are open files. Programs inherit the limit, and some of them go
/// through all numbers below it.
const OPEN_FILES: u64 = 1 << 16;

/// The kernel allows by default what fits into an eighth of its memory; ours are small.
const THREADS: &str = "30000";
/// More than so many threads have, for their stacks and what guards these.
const MAPPINGS: &str = "200000";

/// Makes the kernel's own files visible.
pub(crate) fn mount_basics() -> Result<(), Failure> {
    mount_at("/proc", "proc", MountFlags::empty(), None)?;
    mount_at("/sys", "sysfs", MountFlags::empty(), None)
}

/// Mounts a file system at a folder, which it makes if it is not there.
pub(crate) fn mount_at(
    folder: &str,
    kind: &str,
    flags: MountFlags,
    options: Option<&CStr>,
) -> Result<(), Failure> {
    make_folder(folder)?;
    mount("none", folder, kind, flags, options).trying(|| format!("mount {kind} at {folder}"))
}

pub(crate) fn make_folder(folder: &str) -> Result<(), Failure> {
    match rustix::fs::mkdir(folder, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error).trying(|| format!("mkdir {folder}")),
    }
}

/// Lifts what would get in the way of many connections.
pub(crate) fn lift_limits() -> Result<(), Failure> {
    let limit = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
    setrlimit(Resource::Nofile, limit).trying(|| format!("RLIMIT_NOFILE {OPEN_FILES}"))?;
    set("/proc/sys/kernel/threads-max", THREADS)?;
    set("/proc/sys/vm/max_map_count", MAPPINGS)
}

/// Writes a value into a file of the kernel.
pub(crate) fn set(path: &str, value: &str) -> Result<(), Failure> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .trying(|| format!("{path} \"{value}\""))
}

/// Turns the machine off at once: nothing of it is needed any more.
pub(crate) fn power_off() -> ! {
    let error = reboot(RebootCommand::PowerOff).expect_err("it would be off");
    eprintln!("tcplab: power off: {error}");
    std::process::exit(1)
}
