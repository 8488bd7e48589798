//! Programs of the machine as traffic: confined programs in the network of a host
//! ([`crate::program_sandbox`]).

use crate::failure::{Failure, Trying, reason};
use crate::flow::Flow;
use crate::hosts::Host;
use crate::machine::{make_folder, set};
use crate::{channel, clock, job_file, program_sandbox};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fchown, fcntl_setfl};
use rustix::process::{Gid, Pid, Signal, Uid, kill_process_group};
use rustix::thread::set_current_timer_slack;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcplab_guest::Report;
use tcplab_guest::job::{self, MOST_OUTPUT, OUTPUT, Programs};

/// The first argument of a process that becomes a program.
pub(crate) const WORD: &str = "program";

/// Linux's default, in nanoseconds.
const USUAL_TIMER_SLACK: Option<NonZeroU64> = NonZeroU64::new(50_000);

/// The environment of programs, whoever started the kernel.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("USER", "program"),
];

/// Host settings that allow programs what an ordinary user may not do and is harmless here: `ping`,
/// and servers at ports below 1024.
const HOST_SETTINGS: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/ping_group_range", "0 2147483647"),
    ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"),
];

/// The available congestion controls, and those that an ordinary user may choose.
const THERE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

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

/// The process groups of running programs.
static RUNNING: Mutex<BTreeMap<(usize, Side), Pid>> = Mutex::new(BTreeMap::new());

/// The outputs of programs that may still produce some.
static OUTPUTS: Mutex<Vec<Arc<Mutex<Output>>>> = Mutex::new(Vec::new());

/// The bytes printed by all programs.
static PRINTED: AtomicU64 = AtomicU64::new(0);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program's output on its way to a file of the host. The program only has a pipe: no file that
/// it may write is in the machine's file system.
struct Output {
    pipe: PipeReader,
    file: File,
}

impl Output {
    /// Copies the printed data. Returns whether the output has ended.
    fn drain(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    let before = PRINTED.fetch_add(count as u64, Ordering::Relaxed);
                    if before + count as u64 > MOST_OUTPUT {
                        return Err(io::Error::other(format!(
                            "programs have printed more than {} MiB together, which is the most that \
                             is kept",
                            MOST_OUTPUT >> 20
                        )));
                    }
                    self.file.write_all(&buffer[..count])?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Builds the confinement and the place of programs' output. The calling thread is still in the
/// first network namespace, which has some global settings.
pub(crate) fn prepare(programs: &Programs) -> Result<(), Failure> {
    make_folder(OUTPUT)?;
    let there = std::fs::read_to_string(THERE).trying(|| THERE.into())?;
    set(ALLOWED, there.trim_end())?;
    program_sandbox::build(programs)
}

/// Runs one side's program at its time and reports its exit.
pub(crate) fn run(flow: Flow, side: Side, programs: &Programs) -> Result<(), Failure> {
    let path = job::output(flow.number, side.name());
    let file = File::create(&path).trying(|| path.clone())?;
    let host = match side {
        Side::Server => flow.server,
        Side::Client => flow.client,
    };
    if side == Side::Client {
        clock::sleep_until(flow.at(0));
    }
    host.enter()?;
    for (file, value) in HOST_SETTINGS {
        set(file, value)?;
    }
    let (pipe, writer) = io::pipe().trying(|| "a pipe".into())?;
    // Programs may open `/dev/stdout`, which is the pipe.
    let (user, group) = (Uid::from_raw(programs.user), Gid::from_raw(programs.group));
    fchown(&writer, Some(user), Some(group)).trying(|| "the owner of a pipe".into())?;
    fcntl_setfl(&pipe, OFlags::NONBLOCK).trying(|| "a pipe".into())?;
    let mut child = start(flow.number, side, host, writer)?;
    locked(&RUNNING).insert((flow.number, side), Pid::from_child(&child));
    let ready = pipe.try_clone().trying(|| "a pipe".into())?;
    let output = Arc::new(Mutex::new(Output { pipe, file }));
    locked(&OUTPUTS).push(Arc::clone(&output));
    std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || pass_on(&ready, &output))
        .trying(|| "a new thread".into())?;
    let status = child.wait().trying(|| format!("wait for the {}", side.name()))?;
    if locked(&RUNNING).remove(&(flow.number, side)).is_some() {
        report(flow.number, side, Some(number(status)));
    }
    Ok(())
}

/// Copies output as it is printed.
fn pass_on(ready: &PipeReader, output: &Mutex<Output>) {
    loop {
        // Errors also occur when the pipe is read.
        poll(&mut [PollFd::new(ready, PollFlags::IN)], None).ok();
        match locked(output).drain() {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => channel::fail(&reason(error)),
        }
    }
}

/// Starts a process that becomes the program: once confined, there is no way back.
fn start(flow: usize, side: Side, host: &Host, output: PipeWriter) -> Result<Child, Failure> {
    let nothing = program_sandbox::nothing()?;
    let error = output.try_clone().trying(|| "a pipe".into())?;
    Command::new("/proc/self/exe")
        .args([WORD, &flow.to_string(), side.name(), &host.name])
        .env_clear()
        .process_group(0)
        .stdin(nothing)
        .stdout(output)
        .stderr(error)
        .spawn()
        .trying(|| "a process".into())
}

/// Becomes the program of this flow and side, on the host of this name. Returns only on failure.
pub(crate) fn become_one(mut words: impl Iterator<Item = OsString>) -> Failure {
    let mut word = || words.next().unwrap_or_default().to_string_lossy().into_owned();
    let (flow, side, host) = (word(), word(), word());
    match behind_walls(&flow, &side, &host) {
        Err(failure) => failure,
        Ok(line) => {
            let error =
                Command::new("/bin/sh").args(["-c", &line]).env_clear().envs(ENVIRONMENT).exec();
            Failure::new("/bin/sh", reason(error))
        }
    }
}

/// Confines the process. Returns the command line.
fn behind_walls(flow: &str, side: &str, host: &str) -> Result<String, Failure> {
    let job = job_file::read()?;
    let nowhere = || Failure::new(job::PATH, "no such program");
    let flow = flow.parse().ok().and_then(|number: usize| job.flows.get(number));
    let Some(job::Traffic::Command { server, client }) = flow.map(|flow| &flow.traffic) else {
        return Err(nowhere());
    };
    let line = if side == Side::Server.name() { server } else { client };
    // Programs have the usual timer slack.
    set_current_timer_slack(USUAL_TIMER_SLACK).trying(|| "PR_SET_TIMERSLACK".into())?;
    program_sandbox::enter(host, job.programs.as_ref().ok_or_else(nowhere)?)?;
    Ok(line.clone())
}

/// Ends the running programs.
pub(crate) fn end() {
    let running = std::mem::take(&mut *locked(&RUNNING));
    for group in running.values() {
        // A program that has just ended is no error.
        kill_process_group(*group, Signal::KILL).ok();
    }
    for output in locked(&OUTPUTS).iter() {
        let mut output = locked(output);
        // Output that is not written now would be lost.
        if let Err(error) = output.drain().and_then(|_| output.file.sync_all()) {
            channel::fail(&format!("{OUTPUT}: {}", reason(error)));
        }
    }
    for (flow, side) in running.into_keys() {
        report(flow, side, None);
    }
}

fn report(flow: usize, side: Side, status: Option<i32>) {
    channel::report(&Report::Exited { flow, side: side.name().into(), status });
}

/// The exit status as in a shell: 128 plus the signal's number if a signal ended the program.
fn number(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_statuses_are_numbered_like_those_of_a_shell() {
        // wait(2): the exit code is in the second byte, the signal in the first.
        assert_eq!(number(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(number(ExitStatus::from_raw(11)), 128 + 11);
    }
}
