//! The confinement of programs: a file system of their own, an ordinary user, no capabilities.
//!
//! Process 1 builds the file system once ([`build`]). A process that becomes a program moves into a
//! copy of it and drops all privileges before it executes any program of the machine ([`enter`]).

use crate::capabilities;
use crate::failure::{Failure, Trying};
use crate::machine::{make_folder, mount_at};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
use rustix::process::{Gid, Resource, Rlimit, Uid, chdir, pivot_root, setrlimit};
use rustix::system::sethostname;
use rustix::thread::{CapabilitySet, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;
use tcplab_guest::job::Programs;

/// Where the machine's files are mounted, visible only to process 1.
const MACHINE: &str = "/machine";
/// The root of programs.
const ROOT: &str = "/walls";

/// The initial working folder of programs, which they may write.
const WORKING_FOLDER: &str = "/tmp";

/// The most processes and threads of programs at once.
const PROCESSES: u64 = 30_000;

/// Numbers and modes as in `Documentation/admin-guide/devices.txt`.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// No set-user-ID programs and no devices.
const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Builds the file system of all programs.
pub(crate) fn build(programs: &Programs) -> Result<(), Failure> {
    mount_at(MACHINE, "hostfs", PLAIN | MountFlags::RDONLY, Some(c"/"))?;
    mount_at(ROOT, "tmpfs", MountFlags::NOSUID, Some(c"mode=755"))?;
    for folder in ["dev", "etc", "proc", "sys", "var"] {
        make_folder(&inside(folder))?;
    }
    for folder in ["tmp", "run", "dev/shm"] {
        mount_at(&inside(folder), "tmpfs", PLAIN, Some(c"mode=1777"))?;
    }
    make_devices()?;
    // Shells and scripts expect the first four.
    for (link, to) in [
        ("dev/fd", "/proc/self/fd"),
        ("dev/stdin", "/proc/self/fd/0"),
        ("dev/stdout", "/proc/self/fd/1"),
        ("dev/stderr", "/proc/self/fd/2"),
        ("var/run", "/run"),
        ("var/tmp", "/tmp"),
    ] {
        symlink(to, inside(link)).trying(|| inside(link))?;
    }
    write_names(programs)?;
    programs.reads.iter().try_for_each(|path| show(path))?;
    programs.hidden.iter().try_for_each(|path| hide(path))
}

/// A path of programs, as seen by process 1.
fn inside(path: &str) -> String {
    format!("{ROOT}/{}", path.trim_start_matches('/'))
}

fn make_devices() -> Result<(), Failure> {
    for (name, major, minor) in DEVICES {
        let path = inside(&format!("dev/{name}"));
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(major, minor))
            .trying(|| path.clone())?;
        // The mode is restricted by the umask of process 1.
        rustix::fs::chmod(&path, mode).trying(|| path.clone())?;
    }
    Ok(())
}

/// Users, groups and hosts have no names but these; the machine's names are private.
fn write_names(programs: &Programs) -> Result<(), Failure> {
    let Programs { user, group, .. } = programs;
    for (file, text) in [
        ("etc/passwd", format!("root:x:0:0::/:/bin/sh\nprogram:x:{user}:{group}::/tmp:/bin/sh\n")),
        ("etc/group", format!("root:x:0:\nprogram:x:{group}:\n")),
        ("etc/hosts", "127.0.0.1 localhost\n".into()),
    ] {
        fs::write(inside(file), text).trying(|| inside(file))?;
    }
    Ok(())
}

/// Shows a file or folder of the machine at the same path. A missing one is left out.
fn show(path: &str) -> Result<(), Failure> {
    let (from, to) = (format!("{MACHINE}{path}"), inside(path));
    let kind = match fs::symlink_metadata(&from) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).trying(|| path.into()),
    };
    if let Some(parent) = Path::new(&to).parent() {
        fs::create_dir_all(parent).trying(|| to.clone())?;
    }
    if kind.is_symlink() {
        let target = fs::read_link(&from).trying(|| from.clone())?;
        return symlink(target, &to).trying(|| to.clone());
    }
    if kind.is_dir() {
        fs::create_dir_all(&to).trying(|| to.clone())?;
    } else if !Path::new(&to).exists() {
        fs::write(&to, "").trying(|| to.clone())?;
    }
    mount_bind(&from, &to).trying(|| format!("bind {path}"))
}

/// Covers a folder within a visible folder.
fn hide(path: &str) -> Result<(), Failure> {
    let covered = inside(path);
    if !Path::new(&covered).is_dir() {
        return Ok(());
    }
    mount_at(&covered, "tmpfs", PLAIN | MountFlags::RDONLY, Some(c"mode=555"))
}

/// The input of programs: empty.
pub(crate) fn nothing() -> Result<fs::File, Failure> {
    fs::File::open(inside("dev/null")).trying(|| inside("dev/null"))
}

/// Confines the calling process, which must have one thread.
pub(crate) fn enter(host: &str, programs: &Programs) -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)
        .trying(|| format!("{host}: unshare"))?;
    sethostname(host.as_bytes()).trying(|| format!("hostname {host}"))?;
    // Processes of other users are invisible, including process 1.
    mount_at(&inside("proc"), "proc", PLAIN | MountFlags::NOEXEC, Some(c"hidepid=2"))?;
    // /sys shows the network of the process that mounts it: each program has its own.
    mount_at(&inside("sys"), "sysfs", PLAIN | MountFlags::NOEXEC | MountFlags::RDONLY, None)?;
    let fixed = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID;
    mount_remount(ROOT, fixed, "").trying(|| format!("remount {ROOT}"))?;
    // pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the new one, and is
    // unmounted.
    chdir(ROOT).trying(|| format!("chdir {ROOT}"))?;
    pivot_root(".", ".").trying(|| format!("pivot_root {ROOT}"))?;
    unmount(".", UnmountFlags::DETACH).trying(|| "unmount the guest's root".into())?;
    chdir(WORKING_FOLDER).trying(|| format!("chdir {WORKING_FOLDER}"))?;
    become_ordinary(programs).trying(|| "give up all rights".into())
}

fn become_ordinary(programs: &Programs) -> rustix::io::Result<()> {
    let limit = Rlimit { current: Some(PROCESSES), maximum: Some(PROCESSES) };
    setrlimit(Resource::Nproc, limit)?;
    let (user, group) = (Uid::from_raw(programs.user), Gid::from_raw(programs.group));
    // Before the change of user, which drops the privilege to do this.
    capabilities::bound(CapabilitySet::empty())?;
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    capabilities::keep(CapabilitySet::empty())
}
