//! Checks that only the owner and root can write to the kernels' folders: other users could replace
//! the program that runs.

use super::error::{At, Error};
use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// The mode's bits that let the group and others write.
const OTHERS_WRITE: u32 = 0o022;

/// In a folder with this bit, like `/tmp`, only owners can rename and remove entries.
const STICKY: u32 = 0o1000;

/// Creates a folder and its parents, accessible only to their owner.
pub(super) fn make(folder: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).at(folder)
}

/// Rejects a file or folder that another user can change, replace or remove: by its own mode and
/// owner, or by those of a parent. A missing path is accepted.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    check_all(path, path)?;
    // A path with links has other parents.
    match path.canonicalize() {
        Ok(real) if real != path => check_all(&real, path),
        _ => Ok(()),
    }
}

fn check_all(path: &Path, named: &Path) -> Result<(), Error> {
    for place in path.ancestors() {
        let Ok(found) = fs::symlink_metadata(place) else { continue };
        if let Some(problem) = problem(&found, place != path) {
            let text = format!(
                "{problem}, and so could choose what runs as a kernel{}; or let `TCPLAB_CACHE` name a \
                 folder of your own",
                remedy(&found, place)
            );
            let inside = if place == named {
                String::new()
            } else {
                format!(" (needed for {})", named.display())
            };
            return Err(Error::refused(format!("{}{inside}", place.display()), text));
        }
    }
    Ok(())
}

/// How other users can write here. `is_above`: for a parent, entries must not be replaceable.
fn problem(found: &Metadata, is_above: bool) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != 0 && found.uid() != own {
        return Some(format!("belongs to another user (uid {})", found.uid()));
    }
    let mode = found.mode() & 0o7777;
    if found.is_symlink() || mode & OTHERS_WRITE == 0 || (is_above && mode & STICKY != 0) {
        return None;
    }
    let who = if mode & 0o002 != 0 { "everyone" } else { "its group" };
    Some(format!("{who} can write to it (mode {mode:04o})"))
}

fn remedy(found: &Metadata, place: &Path) -> String {
    if found.mode() & OTHERS_WRITE == 0 || found.is_symlink() {
        String::new()
    } else {
        format!("; `chmod go-w {}`", place.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    /// A folder with another one in it, with these modes.
    fn folders(outer: u32, inner: u32) -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("cache");
        fs::create_dir(&folder).unwrap();
        for (place, mode) in [(&folder, inner), (&top.path().to_owned(), outer)] {
            fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
        }
        (top, folder)
    }

    fn refusal(outer: u32, inner: u32) -> Option<String> {
        let (top, folder) = folders(outer, inner);
        let said = check(&folder).err()?.to_string();
        Some(said.replace(&top.path().display().to_string(), "TOP"))
    }

    #[test]
    fn folders_writable_by_others_are_refused() {
        assert_eq!(refusal(0o700, 0o755), None);
        assert_eq!(refusal(0o1777, 0o700), None);
        let said = refusal(0o700, 0o777).unwrap();
        assert_eq!(
            said,
            "TOP/cache: everyone can write to it (mode 0777), and so could choose what runs as a \
             kernel; `chmod go-w TOP/cache`; or let `TCPLAB_CACHE` name a folder of your own"
        );
        // The folder is sticky, but other users could create files in it.
        assert!(refusal(0o700, 0o1777).is_some());
        assert!(refusal(0o700, 0o775).unwrap().contains("its group can write to it (mode 0775)"));
        let said = refusal(0o777, 0o700).unwrap();
        assert!(said.starts_with("TOP (needed for TOP/cache): everyone can write to it"), "{said}");
    }

    #[test]
    fn the_target_of_a_link_is_checked() {
        let (top, folder) = folders(0o700, 0o777);
        let link = top.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(check(&link).is_err());
        assert!(check(&top.path().join("nothing")).is_ok());
    }

    #[test]
    fn folders_of_others_are_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (_top, folder) = folders(0o755, 0o755);
        std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
        let said = check(&folder).unwrap_err().to_string();
        assert!(said.contains("belongs to another user (uid 65534)"), "{said}");
    }

    #[test]
    fn new_folders_have_mode_700() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("a/b");
        make(&folder).unwrap();
        for place in [&folder, &top.path().join("a")] {
            assert_eq!(fs::metadata(place).unwrap().mode() & 0o777, 0o700);
        }
    }
}
