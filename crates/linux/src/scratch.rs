//! The folder of a guest's files, removed with the run or, if the process was killed, by the next
//! run.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The prefix of these folders' names.
const PREFIX: &str = "tcplab-run-";

/// The default folder of a kernel's memory unless `$TMPDIR` is set: a file system in memory.
const MEMORY: &str = "/dev/shm";

/// A folder accessible only to the user, removed with this value. Its lock shows that its process
/// is alive.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    lock: File,
}

impl Scratch {
    /// Creates a folder. The first one in a process removes those of killed processes.
    pub fn new() -> io::Result<Self> {
        static LEFTOVERS: Once = Once::new();
        LEFTOVERS.call_once(|| {
            remove_leftovers(&std::env::temp_dir());
            remove_leftovers(Path::new(MEMORY));
        });
        Self::within(&std::env::temp_dir())
    }

    /// A folder for a kernel's memory, if that is separate from the guest's files.
    pub fn of_memory() -> Option<Self> {
        // The kernel must not reach other files in that file system.
        std::env::var_os("TMPDIR").is_none().then(|| Self::within(Path::new(MEMORY)).ok())?
    }

    fn within(parent: &Path) -> io::Result<Self> {
        loop {
            let only_owner = fs::Permissions::from_mode(0o700);
            let made = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(only_owner)
                .tempdir_in(parent)?;
            // Another process may have removed the folder as a leftover before it was locked.
            if let Ok(lock) = File::open(made.path())
                && lock.try_lock().is_ok()
                && is_at(&lock, made.path())
            {
                return Ok(Self { path: made.keep(), lock });
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open folder, whatever its name refers to by now.
    pub fn handle(&self) -> &File {
        &self.lock
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Whether an open folder is still the one of this name.
fn is_at(folder: &File, path: &Path) -> bool {
    let number = |found: Metadata| (found.dev(), found.ino());
    let [open, named] =
        [folder.metadata(), fs::symlink_metadata(path)].map(|it| it.ok().map(number));
    open.is_some() && open == named
}

/// Removes this user's folders whose processes have ended.
fn remove_leftovers(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        if !is_ours {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
            && is_at(&folder, &entry.path())
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
        let foreign = parent.path().join(format!("{PREFIX}foreign"));
        fs::create_dir(&foreign).unwrap();
        let is_foreign = std::os::unix::fs::chown(&foreign, Some(65_533), None).is_ok();
        let mode = fs::metadata(&living.path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let another = parent.path().join("another");
        fs::create_dir(&another).unwrap();
        remove_leftovers(parent.path());
        assert!(living.path().join("init").exists());
        assert!(!dead.exists());
        assert!(another.exists());
        assert_eq!(foreign.exists(), is_foreign);
        fs::remove_dir_all(foreign).ok();
        let path = living.path.clone();
        drop(living);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
