//! Programs of the machine as traffic: they see its files, read-only, and the network of a host.

use crate::failure::{Failure, Trying, reason};
use crate::hosts::Host;
use crate::machine::{make_folder, mount_at};
use crate::traffic::Flow;
use crate::{channel, clock};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::MountFlags;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, chdir, chroot, kill_process_group, setrlimit,
};
use rustix::system::sethostname;
use rustix::thread::set_current_timer_slack;
use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tcplab_guest::Report;

/// Where the machine's files are mounted.
const MACHINE: &str = "/machine";
const OUTPUT: &str = "/output";

/// A program that prints more is ended: one that never stops for anything would fill the disk while
/// the clock stands still.
const LONGEST_OUTPUT: u64 = 1 << 30;

/// Linux's own, in nanoseconds.
const USUAL_TIMER_SLACK: Option<NonZeroU64> = NonZeroU64::new(50_000);

/// What programs find in their environment, whoever started the kernel.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("USER", "root"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Server,
    Client,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// A program that has not ended: its process group and its output.
struct Running {
    group: Pid,
    output: File,
}

static RUNNING: Mutex<BTreeMap<(usize, Side), Running>> = Mutex::new(BTreeMap::new());

fn running() -> MutexGuard<'static, BTreeMap<(usize, Side), Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the machine's files visible, and a place for what programs print.
pub(crate) fn prepare() -> Result<(), Failure> {
    make_folder(OUTPUT)?;
    let limit = Rlimit { current: Some(LONGEST_OUTPUT), maximum: Some(LONGEST_OUTPUT) };
    setrlimit(Resource::Fsize, limit).trying(|| format!("RLIMIT_FSIZE {LONGEST_OUTPUT}"))?;
    mount_at(MACHINE, "hostfs", MountFlags::RDONLY, Some(c"/"))?;
    let under = |folder: &str| format!("{MACHINE}/{folder}");
    mount_at(&under("proc"), "proc", MountFlags::empty(), None)?;
    mount_at(&under("dev"), "devtmpfs", MountFlags::empty(), None)?;
    for folder in ["tmp", "run", "dev/shm"] {
        mount_at(&under(folder), "tmpfs", MountFlags::empty(), Some(c"mode=1777"))?;
    }
    // Shells and their scripts expect these.
    for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let link = under(&format!("dev/{name}"));
        std::os::unix::fs::symlink(format!("/proc/self/fd{to}"), &link).trying(|| link.clone())?;
    }
    Ok(())
}

/// Runs one side's program at its time and reports how it ended. The calling thread sees the machine's
/// files instead of the guest's from then on.
pub(crate) fn run(flow: Flow, side: Side, line: &str) -> Result<(), Failure> {
    let path = format!("{OUTPUT}/{}-{}.txt", flow.number, side.name());
    let output = File::create(&path).trying(|| path.clone())?;
    let host = match side {
        Side::Server => flow.server,
        Side::Client => flow.client,
    };
    if side == Side::Client {
        clock::sleep_until(flow.at(0));
    }
    enter(host)?;
    let mut child = start(line, &output)?;
    let group = Pid::from_child(&child);
    running().insert((flow.number, side), Running { group, output });
    let status = child.wait().trying(|| format!("wait for the {}", side.name()))?;
    if running().remove(&(flow.number, side)).is_some() {
        report(flow.number, side, Some(number(status)));
    }
    Ok(())
}

/// Moves the calling thread into the host, as a program is to see it.
fn enter(host: &Host) -> Result<(), Failure> {
    let name = &host.name;
    let own = CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS;
    unshare(own).trying(|| format!("{name}: unshare"))?;
    host.enter()?;
    sethostname(name.as_bytes()).trying(|| format!("hostname {name}"))?;
    // What is below /sys is of the network of whoever mounts it: each program has its own.
    mount_at(&format!("{MACHINE}/sys"), "sysfs", MountFlags::empty(), None)?;
    // Programs are to sleep as they do anywhere else.
    set_current_timer_slack(USUAL_TIMER_SLACK).trying(|| "PR_SET_TIMERSLACK".into())?;
    chroot(MACHINE).trying(|| format!("chroot {MACHINE}"))?;
    chdir("/").trying(|| "chdir /".into())
}

fn start(line: &str, output: &File) -> Result<Child, Failure> {
    let handle = || output.try_clone().trying(|| "output".into());
    Command::new("/bin/sh")
        .args(["-c", line])
        .env_clear()
        .envs(ENVIRONMENT)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(handle()?)
        .stderr(handle()?)
        .spawn()
        .trying(|| "/bin/sh".into())
}

/// Ends what still runs.
pub(crate) fn end() {
    for ((flow, side), program) in std::mem::take(&mut *running()) {
        // It may have ended this instant, and that is as well.
        kill_process_group(program.group, Signal::KILL).ok();
        // Or what it printed would be lost with the machine's memory.
        if let Err(error) = program.output.sync_all() {
            channel::fail(&format!("{OUTPUT}: {}", reason(error)));
        }
        report(flow, side, None);
    }
}

fn report(flow: usize, side: Side, status: Option<i32>) {
    channel::report(&Report::Exited { flow, side: side.name().into(), status });
}

/// The status as a shell has it: 128 and the number of the signal that ended the program.
fn number(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_shells() {
        // wait(2): the exit code is in the second byte, the signal in the first.
        assert_eq!(number(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(number(ExitStatus::from_raw(11)), 128 + 11);
    }
}
