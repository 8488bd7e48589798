//! Runs a kernel as a process, from boot to its last record.

use crate::Produced;
use crate::files;
use crate::outputs::Leavings;
use crate::recorder::Recorder;
use crate::records::{Content, Stream, Tick};
use crate::scratch::Scratch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use tcplab_guest::job::{Flow, Job, Traffic};
use tcplab_guest::{Report, job, launch};
use tcplab_model::{Plan, Watch};
use tcplab_units::Time;
use thiserror::Error;

/// The guest's program (`crates/guest`); empty where there is none.
pub(crate) const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest"));

/// Environment variable: the stall timeout of the guest's clock, in seconds of real time.
const STALL_TIMEOUT: &str = "TCPLAB_STALL_TIMEOUT";
const DEFAULT_STALL_TIMEOUT_S: u32 = 120;

/// How far a read of the clock advances it where there are programs: a program that polls the clock
/// would otherwise wait for ever. About the cost of a read on a real machine.
const PROGRAMS_STEP_NS: u32 = 1000;

/// The number of console lines kept for messages.
const LAST_LINES: usize = 12;

/// The beginning of a console line printed by every confined kernel, which probes terminals of the
/// machine without access to them.
const NO_TERMINALS: &str = "check_one_sigio failed";

/// Why a run has no result.
#[derive(Debug, Error)]
pub enum Error {
    /// The run was told to stop.
    #[error("the run was stopped")]
    Stopped,
    /// There are no kernels for this machine.
    #[error("the backend linux needs Linux on x86-64")]
    Unavailable,
    /// The kernel cannot be trusted.
    #[error(transparent)]
    Kernel(#[from] crate::kernel::Error),
    /// An operation on the host failed.
    #[error("{what}: {error}")]
    Host {
        /// The operation.
        what: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The guest could not carry out the job.
    #[error("the guest failed: {0}")]
    Failed(String),
    /// The kernel ended before the experiment did.
    #[error("the kernel ended before the experiment did; its last lines were:\n{0}")]
    Died(String),
    /// The stall timeout is invalid.
    #[error("{STALL_TIMEOUT}: {0:?} is not a number of seconds from 1 to 1000000")]
    StallTimeout(String),
    /// The guest makes no progress.
    #[error(
        "the guest's clock has stood still for {seconds} s at {at} s of the experiment: a process \
         in it never goes idle; `{STALL_TIMEOUT}` sets how many seconds may pass; the kernel's last \
         lines were:\n{lines}"
    )]
    Hung {
        /// The stall timeout in seconds.
        seconds: u32,
        /// The guest's clock.
        at: f64,
        /// The last lines of the console.
        lines: String,
    },
    /// A program of a flow failed.
    #[error("{flow}: the {side} `{command}` ended with status {status}; output:\n{output}")]
    Program {
        /// The flow's name.
        flow: String,
        /// `server` or `client`.
        side: String,
        /// Its command line.
        command: String,
        /// Its exit status.
        status: i32,
        /// The last lines of its output.
        output: String,
    },
    /// The stream of records is invalid.
    #[error(transparent)]
    Unreadable(Box<dyn std::error::Error + Send + Sync>),
    /// The guest's file with a program's output is not a regular file, or too large.
    #[error("the output of the {side} of {flow}: {error}")]
    Output {
        /// The flow's name.
        flow: String,
        /// `server` or `client`.
        side: String,
        /// The problem.
        error: io::Error,
    },
}

/// Boots, watches and ends a kernel.
pub(crate) fn run(plan: &Plan, job: &Job, kernel: &Path, watch: &Watch) -> Result<Produced, Error> {
    if GUEST.is_empty() {
        return Err(Error::Unavailable);
    }
    let stall_timeout = stall_timeout()?;
    let host = |what: &str| {
        let what = what.to_string();
        move |error: io::Error| Error::Host { what, error }
    };
    let root = Scratch::new().map_err(host("no folder for the guest's files"))?;
    let memory = Scratch::of_memory();
    let place = root.path().display();
    let unwritten = format!("the guest's files cannot be written to {place} ($TMPDIR)");
    prepare(root.path(), job).map_err(host(&unwritten))?;
    watch.reach(Time::ZERO).map_err(|_| Error::Stopped)?;
    let (reader, writer) = io::pipe().map_err(host("no pipe to the kernel"))?;
    let memory = memory.as_ref().map_or(root.path(), Scratch::path);
    let mut guest = Guest::boot(kernel, [root.path(), memory], (job, plan.seed), writer)
        .map_err(host(&format!("the kernel {} does not start", kernel.display())))?;
    let mut recorder = Recorder::new(plan, job);
    let ended = listen(&mut guest, reader.into(), stall_timeout, watch, &mut recorder);
    guest.end();
    ended?;
    let exits = recorder.take_exits();
    let mut outcome = recorder.finish();
    collect_output(plan, job, &root, exits, &mut outcome)?;
    Ok(outcome)
}

/// The number of seconds for which a guest's clock may stand still.
fn stall_timeout() -> Result<u32, Error> {
    let Some(text) = std::env::var_os(STALL_TIMEOUT) else { return Ok(DEFAULT_STALL_TIMEOUT_S) };
    let text = text.to_string_lossy();
    let seconds = text.parse().ok().filter(|seconds| (1..=1_000_000).contains(seconds));
    seconds.ok_or_else(|| Error::StallTimeout(text.into()))
}

/// A program cannot be started while any process has it open for writing, such as one that another
/// thread forks during the write. Writes and starts therefore exclude each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prepares the guest's root: its program and its job.
fn prepare(root: &Path, job: &Job) -> io::Result<()> {
    let program = root.join("init");
    {
        let _alone = alone();
        fs::write(&program, GUEST)?;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    fs::write(root.join(job::PATH.trim_start_matches('/')), serde_json::to_vec(job)?)
}

/// Memory is allocated on use. The buffers of many flows need some, and so do the threads of many
/// simultaneous connections, which queued transfers are.
fn memory_mib(job: &Job) -> u64 {
    let connections: usize = job.flows.iter().map(|flow| flow.traffic.connections()).sum();
    let (flows, links) = (job.flows.len().min(400), job.links.len().min(500));
    (512 + 8 * flows + 2 * links + connections / 8) as u64
}

/// A booted kernel, which ends with this value.
struct Guest {
    process: Child,
    console: Option<JoinHandle<String>>,
}

impl Guest {
    fn boot(
        kernel: &Path,
        [root, folder_of_memory]: [&Path; 2],
        (job, seed): (&Job, u64),
        stream: io::PipeWriter,
    ) -> io::Result<Self> {
        let memory = memory_mib(job);
        let step = if job.flows.iter().any(is_of_programs) { PROGRAMS_STEP_NS } else { 0 };
        let _alone = alone();
        let reads = job.programs.iter().flat_map(|programs| &programs.reads);
        // tcplab's own program starts the kernel, so that the kernel is confined, and dies with
        // this thread in any case.
        let mut process = Command::new(root.join("init"))
            .arg(launch::WORD)
            .arg(folder_of_memory)
            .args(reads)
            .arg(launch::END_OF_READS)
            .arg(kernel)
            .arg(format!("mem={memory}M"))
            // Without an explicit root, UML adds that of a device, which older kernels look for.
            .args(["root=none", "rootfstype=hostfs", "rw", "init=/init"])
            // The command line is mixed into the kernel's random numbers (`random_init_early`), so
            // it may differ between runs only by their seed.
            .arg(format!("tcplab.seed={seed}"))
            .args(["rootflags=/proc/self/cwd", "uml_dir=/proc/self/cwd"])
            .current_dir(root)
            .args(["con=null", "con0=null,fd:1", "ssl=null"])
            // UML advances the guest's clock only when all processes of the guest wait.
            .args(["time-travel=inf-cpu", "time-travel-start=0"])
            .args(["panic=-1", "quiet", "loglevel=4", "tcplab.stream=0"])
            .arg(format!("tcplab.step={step}"))
            .env_clear()
            // The folder of the kernel's memory.
            .env("TMPDIR", folder_of_memory)
            .stdin(Stdio::from(stream))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let outputs = (process.stdout.take(), process.stderr.take());
        let console = thread::spawn(move || last_lines(outputs));
        Ok(Self { process, console: Some(console) })
    }

    /// Kills all remaining processes. Returns the last lines of the console.
    fn end(&mut self) -> String {
        if let Some(group) = Pid::from_raw(self.process.id().cast_signed()) {
            // The group has no members left if the kernel ended by itself.
            kill_process_group(group, Signal::KILL).ok();
        }
        self.process.wait().ok();
        let console = self.console.take().and_then(|thread| thread.join().ok());
        console.unwrap_or_default()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads the console to its end, and keeps the last lines.
fn last_lines((stdout, stderr): (Option<impl Read>, Option<impl Read + Send + 'static>)) -> String {
    fn read(from: Option<impl Read>) -> Vec<String> {
        let mut text = Vec::new();
        if let Some(mut from) = from {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                text.extend(&buffer[..count]);
                let excess = text.len().saturating_sub(1 << 16);
                text.drain(..excess);
            }
        }
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        let lines = lines.filter(|line| !line.starts_with(NO_TERMINALS));
        lines.map(String::from).collect()
    }
    let errors = thread::spawn(move || read(stderr));
    let mut lines = read(stdout);
    let errors = errors.join().unwrap_or_default();
    lines.drain(..lines.len().saturating_sub(LAST_LINES));
    lines.extend_from_slice(&errors[errors.len().saturating_sub(LAST_LINES)..]);
    if lines.is_empty() { "(no output)".into() } else { lines.join("\n") }
}

/// Processes the kernel's records until the experiment is over.
fn listen(
    guest: &mut Guest,
    reader: std::os::fd::OwnedFd,
    stall_timeout: u32,
    watch: &Watch,
    recorder: &mut Recorder<'_>,
) -> Result<(), Error> {
    let mut file = File::from(reader);
    let mut stream = Stream::default();
    let mut buffer = vec![0; 1 << 18];
    let mut quiet = 0;
    let (mut begin, mut reached) = (None, 0);
    loop {
        let since = |begin: Option<u64>| {
            begin.map_or(0, |begin| u64::saturating_sub(reached, begin).saturating_mul(1000))
        };
        watch.reach(Time::from_picos(since(begin))).map_err(|_| Error::Stopped)?;
        let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut polled = [PollFd::new(&file, PollFlags::IN)];
        if poll(&mut polled, Some(&tenth)).unwrap_or(0) == 0 {
            quiet += 1;
            if quiet >= stall_timeout * 10 {
                let at = since(begin) as f64 / 1e12;
                return Err(Error::Hung { seconds: stall_timeout, at, lines: guest.end() });
            }
            continue;
        }
        quiet = 0;
        let count = file.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            return Err(Error::Died(guest.end()));
        }
        stream.extend(&buffer[..count]);
        loop {
            let record = stream.next().map_err(|error| Error::Unreadable(error.into()))?;
            let Some(record) = record else { break };
            match &record.content {
                Content::Report(Report::Failed { reason }) => {
                    return Err(Error::Failed(reason.clone()));
                }
                Content::Tick(Tick::Begin) => begin = Some(record.time),
                Content::Tick(Tick::End) => return Ok(()),
                _ => {}
            }
            reached = reached.max(record.time);
            recorder.take(record).map_err(|error| Error::Unreadable(error.into()))?;
        }
        watch.hold(recorder.held()).map_err(|_| Error::Stopped)?;
    }
}

pub(crate) fn is_of_programs(flow: &Flow) -> bool {
    matches!(flow.traffic, Traffic::Command { .. })
}

/// Keeps the output of programs, and reports those that failed.
fn collect_output(
    plan: &Plan,
    job: &Job,
    root: &Scratch,
    mut exits: BTreeMap<(usize, String), Option<i32>>,
    outcome: &mut Produced,
) -> Result<(), Error> {
    let stems = files::outputs(plan);
    if job.programs.is_none() {
        return Ok(());
    }
    let mut leavings = Leavings::of(root.handle(), job::OUTPUT);
    for (number, flow) in job.flows.iter().enumerate() {
        let Traffic::Command { server, client } = &flow.traffic else { continue };
        let stem = stems[number].as_deref().unwrap_or_default();
        let name = &plan.flows[number].name;
        for (side, command) in [("server", server), ("client", client)] {
            let output = leavings
                .read(&job::output(number, side))
                .map_err(|error| Error::Output { flow: name.clone(), side: side.into(), error })?;
            let status = exits.remove(&(number, side.to_string())).flatten();
            if let Some(status) = status.filter(|&status| status != 0) {
                let output = String::from_utf8_lossy(&output);
                let lines: Vec<&str> = output.lines().collect();
                let output = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
                let (flow, side, command) = (name.clone(), side.into(), command.clone());
                return Err(Error::Program { flow, side, command, status, output });
            }
            outcome.files.push((format!("{stem}-{side}.txt"), output));
        }
    }
    Ok(())
}
