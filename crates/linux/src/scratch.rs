//! The folder of a guest's files: it goes with the run, and if the process was killed, with the next.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// How the names of these folders begin.
const PREFIX: &str = "tcplab-run-";

/// Where a kernel's memory lies unless `$TMPDIR` says otherwise: a file system in memory.
const MEMORY: &str = "/dev/shm";

/// A folder of the user alone that is removed with this value. Its lock says that its process lives.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    lock: File,
}

impl Scratch {
    /// Makes a folder. The first one of a process removes what killed processes have left.
    pub fn new() -> io::Result<Self> {
        static LEFTOVERS: Once = Once::new();
        LEFTOVERS.call_once(|| {
            remove_leftovers(&std::env::temp_dir());
            remove_leftovers(Path::new(MEMORY));
        });
        Self::within(&std::env::temp_dir())
    }

    /// A folder for a kernel's memory, if that is to lie elsewhere than the guest's files.
    pub fn of_memory() -> Option<Self> {
        // No other file of the machine's memory is the kernel's business.
        std::env::var_os("TMPDIR").is_none().then(|| Self::within(Path::new(MEMORY)).ok())?
    }

    fn within(parent: &Path) -> io::Result<Self> {
        // It has its name only once it is locked, so that nobody takes it for a leftover.
        let made = tempfile::Builder::new()
            .prefix(&format!(".{PREFIX}"))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        let lock = File::open(made.path())?;
        lock.try_lock()?;
        let hidden = made.path().file_name().unwrap_or_default().to_string_lossy();
        let path = made.path().with_file_name(hidden.trim_start_matches('.'));
        fs::rename(made.path(), &path)?;
        // What is removed is the renamed one.
        let _ = made.keep();
        Ok(Self { path, lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself, whatever its name leads to by now.
    pub fn handle(&self) -> &File {
        &self.lock
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Removes the folders whose processes are gone. What cannot be removed is another user's.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_dead_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::within(parent.path()).unwrap();
        fs::write(living.path().join("init"), "").unwrap();
        let dead = parent.path().join(format!("{PREFIX}dead"));
        fs::create_dir_all(dead.join("proc")).unwrap();
        let another = parent.path().join("another");
        fs::create_dir(&another).unwrap();
        remove_leftovers(parent.path());
        assert!(living.path().join("init").exists());
        assert!(!dead.exists());
        assert!(another.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
