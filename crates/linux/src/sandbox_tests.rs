//! The confinement of a kernel's process, tested with a shell in its place: an attacker who takes
//! over the guest's kernel is such a process. Separate tests, because no experiment gets that far.

use crate::boot::GUEST;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;
use tcplab_guest::launch::{END_OF_READS, WORD};
use tempfile::TempDir;

/// A run's folder with the program that starts kernels, the folder of memory, and an unrelated one.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["run", "memory", "shown", "secret"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("file"), folder).unwrap();
        }
        let program = root.path().join("run/init");
        fs::write(&program, GUEST).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The output of a confined shell, which may read the machine's programs.
    fn shell(&self, line: &str) -> Output {
        let kernel = Path::new("/bin/sh");
        let mut command = Command::new(self.path("run/init"));
        command
            .arg(WORD)
            .arg(self.path("memory"))
            .args([Path::new("/usr"), Path::new("/bin"), &self.path("shown")])
            .arg(END_OF_READS)
            .arg(kernel.canonicalize().unwrap())
            .args(["-c", line])
            .current_dir(self.path("run"))
            .env("OUTSIDE", self.root.path());
        loop {
            match command.output() {
                // A process that another test has just forked may still hold the program open for
                // writing.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    thread::sleep(Duration::from_millis(10));
                }
                done => return done.unwrap(),
            }
        }
    }
}

/// Whether the machine has these confinements. If not, tcplab warns, and they cannot be tested.
fn are_there() -> bool {
    crate::missing_walls().is_empty()
}

#[test]
fn the_sandbox_opens_its_folders_and_those_of_programs() {
    let machine = Machine::new();
    let done = machine.shell(
        "set -e; cat file $OUTSIDE/shown/file; echo new > made; mkdir folder; echo memory > \
         $OUTSIDE/memory/made; rm made",
    );
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.stdout, b"runshown");
}

#[test]
fn the_sandbox_reaches_no_service_of_the_machine() {
    if !are_there() {
        return;
    }
    let machine = Machine::new();
    let connect = "import socket; socket.create_connection(('127.0.0.1', 9), 1)";
    let local = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/dev/log')";
    for attack in [
        "cat $OUTSIDE/secret/file",
        "ls $OUTSIDE/secret",
        "echo x > $OUTSIDE/secret/file",
        "echo x > $OUTSIDE/shown/file",
        "rm $OUTSIDE/secret/file",
        "truncate -s 0 $OUTSIDE/secret/file",
        "chmod 777 $OUTSIDE/secret",
        "touch $OUTSIDE/secret/file",
        "cat /etc/passwd",
        "ls $HOME /home /root /dev/shm",
        "cat /proc/1/status",
        "echo x > /dev/tty",
        "ln -s / link",
        "ln file hard",
        "mkfifo fifo",
        "mknod device c 1 3",
        "mount -t tmpfs none .",
        "unshare -U true",
        "unshare -m true",
        "chroot . /init",
        "kill -0 $PPID",
        &format!("python3 -c \"{connect}\""),
        &format!("python3 -c \"{local}\""),
        "grep -q '^CapEff:.*[1-9a-f]' /proc/self/status",
    ] {
        let done = machine.shell(attack);
        assert!(!done.status.success(), "{attack}: {done:?}");
    }
    assert_eq!(fs::read(machine.path("secret/file")).unwrap(), b"secret");
    assert_eq!(fs::read(machine.path("shown/file")).unwrap(), b"shown");
}

#[test]
fn the_sandbox_cannot_create_sockets() {
    if !are_there() {
        return;
    }
    let done = Machine::new().shell("/usr/bin/python3 -c 'import socket; socket.socket()'");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("PermissionError: [Errno 1]"), "{said}");
}
