//! Runs the programs of a build, which are killed when the requesting process exits.

use super::Progress;
use super::error::{At, Error};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Called with the progress of a build; decides whether to continue.
pub(super) type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// The longest delay before a request to stop is noticed.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Runs a program in a process group that ends when the pipe to its standard input closes: on
/// request, and also when tcplab dies by any signal.
const GUARD: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
guard=$!
wait $program
status=$?
kill -KILL $guard
exit $status
"#;

/// Runs a program to its end, logs its output, and calls `each` for every line and, without output,
/// every tenth of a second.
pub(super) fn run(
    command: &Command,
    log: &mut File,
    each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>,
) -> Result<ExitStatus, Error> {
    let program = Path::new(command.get_program());
    let (mut child, lines) = start(command).at(program)?;
    loop {
        let verdict = match lines.recv_timeout(TICK) {
            Ok(line) => {
                log.write_all(&line).at(Path::new("the log of the build"))?;
                each(Some(String::from_utf8_lossy(&line).trim_end()))
            }
            Err(RecvTimeoutError::Timeout) => each(None),
            Err(RecvTimeoutError::Disconnected) => return child.wait().at(program),
        };
        if verdict.is_break() {
            // The guard's pipe may be shared with a fork of this process, so a line is sent to wake
            // it.
            child.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
            // Once no more output comes, all writers have been killed.
            while lines.recv().is_ok() {}
            child.wait().at(program)?;
            return Err(Error::Stopped);
        }
    }
}

fn start(command: &Command) -> io::Result<(Child, Receiver<Vec<u8>>)> {
    use std::os::unix::process::CommandExt;
    let (reader, writer) = io::pipe()?;
    let mut guarded = Command::new("/bin/sh");
    guarded.args(["-c", GUARD, "sh"]).arg(command.get_program()).args(command.get_args());
    guarded.env_clear();
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    guarded.envs(set);
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    guarded.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let child = guarded.spawn()?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    Ok((child, lines))
}

/// A program with only the given environment.
pub(super) fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn shell(script: &str) -> Command {
        let mut command = clean("sh");
        command.args(["-c", script]).env("PATH", "/usr/bin:/bin");
        command
    }

    fn log() -> File {
        File::create("/dev/null").unwrap()
    }

    #[test]
    fn stdout_and_stderr_lines_and_the_status_are_returned() {
        let mut seen = Vec::new();
        let status = run(&shell("echo a; echo b >&2; exit 3"), &mut log(), &mut |line| {
            seen.extend(line.map(str::to_owned));
            ControlFlow::Continue(())
        });
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(seen, ["a", "b"]);
    }

    #[test]
    fn a_missing_program_has_status_127() {
        let status = run(&clean("no-such-program"), &mut log(), &mut |_| ControlFlow::Continue(()));
        assert_eq!(status.unwrap().code(), Some(127));
    }

    #[test]
    fn stopping_kills_all_child_processes() {
        let mut numbers = Vec::new();
        let script = "sleep 1000 & echo $!; (sleep 1000 & echo $!; wait) & wait";
        let stopped = run(&shell(script), &mut log(), &mut |line| {
            numbers.extend(line.map(|line| line.parse::<u32>().unwrap()));
            if numbers.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(stopped, Err(Error::Stopped)));
        for number in numbers {
            // Gone, or a zombie; on a busy machine a signal takes time.
            let state = || fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            let has_ended = || state().is_empty() || state().contains(") Z ");
            for _ in 0..100 {
                if has_ended() {
                    break;
                }
                std::thread::sleep(TICK);
            }
            assert!(has_ended(), "{}", state());
        }
    }

    #[test]
    fn children_end_with_their_parent() {
        let (mut child, lines) = start(&shell("echo $$; sleep 1000")).unwrap();
        lines.recv().unwrap();
        drop(child.stdin.take());
        // No writers are left.
        assert!(
            lines
                .recv_timeout(Duration::from_secs(10))
                .is_err_and(|error| { error == RecvTimeoutError::Disconnected })
        );
        child.wait().unwrap();
    }
}
