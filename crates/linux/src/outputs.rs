//! Reads the files that a guest left in the run's folder. A compromised guest may leave anything:
//! links are not followed, only regular files are opened, and the total size is limited.

use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use tcplab_guest::job::MOST_OUTPUT;

/// A folder of the run, and how much may still be read from it.
pub(crate) struct Leavings {
    folder: rustix::io::Result<OwnedFd>,
    left: u64,
}

impl Leavings {
    /// A folder in the guest's root, given as an absolute path of the guest.
    pub fn of(root: impl AsFd, folder: &str) -> Self {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(root, folder.trim_start_matches('/'), flags, Mode::empty());
        Self { folder, left: MOST_OUTPUT }
    }

    /// The content of a file in the folder, given as an absolute path of the guest.
    pub fn read(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let folder = self.folder.as_ref().map_err(|&error| error)?;
        let name = path.rsplit('/').next().unwrap_or_default();
        // Without NONBLOCK, opening a FIFO for reading waits for a writer.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(folder, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut content = Vec::new();
        // The file's length may change during the read.
        file.take(self.left + 1).read_to_end(&mut content)?;
        let Some(left) = self.left.checked_sub(content.len() as u64) else {
            let most = MOST_OUTPUT >> 20;
            return Err(io::Error::other(format!(
                "programs left more than {most} MiB together, which is the most that is kept"
            )));
        };
        self.left = left;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat, symlinkat};
    use std::fs;

    #[test]
    fn only_regular_files_are_read() {
        let root = tempfile::tempdir().unwrap();
        let secret = root.path().join("secret");
        fs::write(&secret, "not for guests").unwrap();
        let output = root.path().join("output");
        fs::create_dir(&output).unwrap();
        fs::write(output.join("0-client.txt"), "hello").unwrap();
        symlinkat(&secret, CWD, output.join("1-client.txt")).unwrap();
        let fifo = output.join("2-client.txt");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        fs::create_dir(output.join("3-client.txt")).unwrap();
        let mut leavings = Leavings::of(File::open(root.path()).unwrap(), "/output");
        assert_eq!(leavings.read("/output/0-client.txt").unwrap(), b"hello");
        for number in 1..=4 {
            assert!(leavings.read(&format!("/output/{number}-client.txt")).is_err(), "{number}");
        }
    }

    #[test]
    fn a_link_in_place_of_the_output_folder_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        fs::write(root.path().join("elsewhere/0-client.txt"), "not for guests").unwrap();
        symlinkat("elsewhere", CWD, root.path().join("output")).unwrap();
        let mut leavings = Leavings::of(File::open(root.path()).unwrap(), "/output");
        assert!(leavings.read("/output/0-client.txt").is_err());
    }

    #[test]
    fn all_outputs_share_one_size_limit() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("output")).unwrap();
        for number in 0..2 {
            let file = File::create(root.path().join(format!("output/{number}-client.txt")));
            file.unwrap().set_len(MOST_OUTPUT / 2 + 1).unwrap();
        }
        let mut leavings = Leavings::of(File::open(root.path()).unwrap(), "/output");
        assert!(leavings.read("/output/0-client.txt").is_ok());
        let error = leavings.read("/output/1-client.txt").unwrap_err();
        assert!(error.to_string().contains("64 MiB"), "{error}");
    }
}
