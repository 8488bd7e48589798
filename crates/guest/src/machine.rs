//! The machine as a whole: file systems, limits, kernel settings, power.

use crate::failure::{Failure, Trying};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::system::{RebootCommand, reboot};
use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::Write;

/// The limit of open files, which include connections and namespaces. Programs inherit it, and some
/// of them iterate over all numbers below.
const OPEN_FILES: u64 = 1 << 16;

/// The thread limit. The kernel's default fits an eighth of its memory, and guests have little.
const THREADS: &str = "30000";
/// The limit of memory mappings: more than so many threads have, for their stacks and guard pages.
const MAPPINGS: &str = "200000";

/// Mounts the kernel's own file systems.
pub(crate) fn mount_basics() -> Result<(), Failure> {
    mount_at("/proc", "proc", MountFlags::empty(), None)?;
    mount_at("/sys", "sysfs", MountFlags::empty(), None)
}

/// Mounts a file system at a folder, which is created if missing.
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

/// Raises limits that would restrict the number of connections.
pub(crate) fn lift_limits() -> Result<(), Failure> {
    let limit = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
    setrlimit(Resource::Nofile, limit).trying(|| format!("RLIMIT_NOFILE {OPEN_FILES}"))?;
    set("/proc/sys/kernel/threads-max", THREADS)?;
    set("/proc/sys/vm/max_map_count", MAPPINGS)
}

/// Writes a value to a kernel file.
pub(crate) fn set(path: &str, value: &str) -> Result<(), Failure> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .trying(|| format!("{path} \"{value}\""))
}

/// Turns the machine off at once: nothing needs to be saved.
pub(crate) fn power_off() -> ! {
    let error = reboot(RebootCommand::PowerOff).expect_err("it would be off");
    eprintln!("tcplab: power off: {error}");
    std::process::exit(1)
}
